package schema

import (
	"fmt"
	"slices"
	"strings"
)

type crossed struct {
	nearby
	factory  *Factory
	entries  []entry
	problems []Problem
}

func (c *crossed) report(path string, s span, rule RuleID, message, hint string) *Problem {
	c.problems = append(c.problems, newProblem(path, s, rule, message, hint))
	return &c.problems[len(c.problems)-1]
}

func (c *crossed) names() {
	type key struct {
		kind  fileKind
		agent string
		name  string
	}
	seen := make(map[key]entry, len(c.entries))
	for _, e := range c.entries {
		k := key{e.kind, strings.ToLower(e.agent), strings.ToLower(e.name)}
		first, twice := seen[k]
		if !twice {
			seen[k] = e
			continue
		}

		message := fmt.Sprintf("the name %s is also that of %s", quoted(e.name), clip(first.path))
		if e.name != first.name || e.agent != first.agent {
			message = fmt.Sprintf(
				"the name %s differs only in case from that of %s",
				quoted(e.name),
				clip(first.path),
			)
		}

		c.report(e.path, fileSpan(), ruleDuplicateName, message, "rename one of the two")
	}
}

func (c *crossed) webhookLimit() {
	if names := c.factory.webhookNames; len(names) > MaxWebhooks {
		c.report(
			"webhooks/"+names[MaxWebhooks]+".yaml",
			fileSpan(),
			ruleWebhookLimit,
			fmt.Sprintf(
				"this is the first of %d webhooks, in name order, that is over the limit of %d",
				len(names),
				MaxWebhooks,
			),
			fmt.Sprintf("delete %d, or split the factory", len(names)-MaxWebhooks),
		)
	}
}

func (c *crossed) notificationLimit() {
	var all []entry
	for _, e := range c.entries { // in the order of their paths
		if e.kind == kindNotification {
			all = append(all, e)
		}
	}

	if len(all) > MaxNotifications {
		message := fmt.Sprintf(
			"this is the first of %d notifications, in the order of paths, that is over the limit of %d",
			len(all), MaxNotifications)
		hint := fmt.Sprintf("delete %d: one notification can ask for several events", len(all)-MaxNotifications)
		c.report(all[MaxNotifications].path, fileSpan(), ruleNotification, message, hint)
	}
}

// references checks the names of agents, runners, environments and automations. Names of files that have
// errors count as present.
func (c *crossed) references() {
	agents, runners, environments := map[string]bool{}, map[string]bool{}, map[string]bool{}
	automations := map[string]bool{}
	for _, e := range c.entries {
		switch e.kind {
		case kindAutomation:
			automations[e.name] = true
		case kindAgent:
			agents[e.name] = true
		case kindRunner:
			runners[e.name] = true
		case kindEnvironment:
			environments[e.name] = true
		}
	}

	agentNames, runnerNames, environmentNames := sortedKeys(agents), sortedKeys(runners), sortedKeys(environments)
	automationNames := sortedKeys(automations)
	for i := range c.factory.facts {
		f := &c.factory.facts[i]
		kind, place, names, there := "agent", "agents/"+f.value+"/agent.md", agentNames, agents[f.value]
		switch f.kind {
		case factAgent:
		case factAutomation:
			kind, place = "automation", "automations/"+f.value+"/automation.md"
			names, there = automationNames, automations[f.value]
		case factRunner:
			kind, place, names, there = "runner", "runners/"+f.value+".yaml", runnerNames, runners[f.value]
		case factEnvironment:
			kind, place = "environment", "environments/"+f.value+".yaml"
			names, there = environmentNames, environments[f.value]
		default:
			continue
		}

		if there {
			continue
		}

		near := c.suggest(f.value, names)
		message := fmt.Sprintf("the %s %s is not in this tree", kind, quoted(f.value))
		if f.kind == factRunner || f.kind == factEnvironment { // it may be one that a hosted service has
			without := "runs ask for no machine of their own"
			if f.kind == factEnvironment {
				without = "runs start without it, unless the settings of the server have it"
			}
			p := c.report(f.path, f.span(), ruleReference, message+": "+without, didYouMean(near, "add "+clip(place)))
			p.Severity = SeverityWarning
			continue
		}

		p := c.report(f.path, f.span(), ruleReference, message, didYouMean(near, "add "+clip(place)))
		if near != "" {
			p.Fix = f.fix(near)
		}
	}
}

// foreman allows one foreman, and wants one in a full definition.
func (c *crossed) foreman() {
	first := ""
	places := map[string]span{}
	for _, f := range c.factory.facts {
		if f.kind == factForeman {
			places[f.path] = f.span()
		}
	}

	read := make(map[string]bool, len(c.factory.Agents))
	for _, a := range c.factory.Agents {
		read[a.Path] = true
		if !a.IsForeman() {
			continue
		}
		if first == "" {
			first = a.Path
			continue
		}

		c.report(
			a.Path,
			places[a.Path],
			ruleForeman,
			fmt.Sprintf("a second foreman; %s is one already", clip(first)),
			"give one of the two another agentType",
		)
	}

	if first != "" || !slices.ContainsFunc(c.entries, func(e entry) bool { return e.kind == kindFactory }) {
		return
	}

	for _, e := range c.entries {
		if e.kind == kindAgent && !read[e.path] {
			return // it may be the agent that cannot be read
		}
	}

	c.report(
		"factory.yaml",
		fileSpan(),
		ruleForeman,
		"a factory with a factory.yaml needs one foreman, and no agent is it",
		"write agentType: FOREMAN in one agents/<name>/agent.md",
	)
}
