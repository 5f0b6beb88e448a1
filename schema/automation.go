package schema

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Automation is automations/<name>/automation.md, defaults filled in. It
// survives a round trip through JSON.
type Automation struct {
	Name    string `json:"name"`
	Path    string `json:"path"`
	Line    int    `json:"line,omitempty"` // of the first key in the file, from 1
	Enabled bool   `json:"enabled"`
	// Agent names an agent of the tree; empty means the foreman, or none.
	Agent    string    `json:"agent,omitempty"`
	Triggers []Trigger `json:"triggers"`
	Execution
	Prompt string `json:"prompt"`
}

// Trigger says what starts an automation.
type Trigger struct {
	Provider string `json:"provider"`
	Event    string `json:"event"`
	// WebhookIDs are the UIDs of filter.webhook_ids of a webhook trigger.
	WebhookIDs []string `json:"webhookIds,omitempty"`
	// Payload is filter.payload of a webhook trigger as JSON, nil when there is
	// none; CompileFilter takes it and finds no problem.
	Payload json.RawMessage `json:"payload,omitempty"`
	// Schedule is set on a schedule trigger.
	Schedule *Schedule `json:"schedule,omitempty"`
	// Filter is the whole filter of any other trigger as JSON, kept as it is.
	Filter json.RawMessage `json:"filter,omitempty"`
}

// Fires reports whether this system fires the trigger: webhook/received and
// schedule/cron_fired. Triggers of other providers are kept and do nothing.
func (t Trigger) Fires() bool {
	return t.Provider == "webhook" && t.Event == "received" ||
		t.Provider == "schedule" && t.Event == "cron_fired"
}

// Schedule is the schedule of a schedule/cron_fired trigger, always in UTC.
type Schedule struct {
	Cron string `json:"cron"`
	Name string `json:"name,omitempty"`
}

// The providers and events that this system fires.
const (
	providerWebhook  = "webhook"
	providerSchedule = "schedule"
	eventReceived    = "received"
	eventCronFired   = "cron_fired"
)

// automation reads the document as an automation and checks its triggers.
func (d *document) automation(name string) Automation {
	d.checkStructure("automation")
	a := Automation{
		Name: name, Path: d.path, Line: d.line(),
		Enabled:   boolean(d.data, "enabled", true),
		Agent:     text(d.data, "agent"),
		Execution: d.execution(d.root, d.data, false),
		Prompt:    string(d.body),
	}
	if n := d.value("agent"); n != nil && a.Agent != "" {
		d.fact(factAgent, n, a.Agent)
	}

	list, _ := d.data["triggers"].([]any)
	nodes := d.value("triggers")
	for i := range list {
		if m, ok := list[i].(map[string]any); ok {
			a.Triggers = append(a.Triggers, d.trigger(nodes.Content[i], m, i))
		}
	}

	if len(d.body) == 0 {
		d.report(
			d.spanAt(d.close, d.close+3),
			ruleEmptyPrompt,
			"the automation has no prompt",
			"write below this line what the run is to do",
		)
	}

	return a
}

func (d *document) trigger(n *yaml.Node, m map[string]any, i int) Trigger {
	t := Trigger{Provider: text(m, "provider"), Event: text(m, "event")}
	_, provider := find(n, "provider")
	_, event := find(n, "event")
	scheduleKey, schedule := find(n, "schedule")
	_, filter := find(n, "filter")
	where := "triggers[" + strconv.Itoa(i) + "]"
	if t.Provider == "" || d.bad[provider] {
		return t
	}

	if t.Provider != providerSchedule && scheduleKey != nil {
		d.errorAt(
			scheduleKey,
			ruleTrigger,
			"schedule belongs to a trigger with provider: schedule",
			"delete this key, or write provider: schedule and event: cron_fired",
		)
	}

	switch t.Provider {
	case providerWebhook:
		if d.eventIs(event, t, eventReceived) {
			d.webhookFilter(n, filter, m, &t, where)
		}
	case providerSchedule:
		if d.eventIs(event, t, eventCronFired) {
			d.schedule(n, scheduleKey, schedule, m, &t)
		}
		if key, _ := find(n, "filter"); key != nil {
			d.errorAt(key, ruleTrigger, "a schedule trigger takes no filter", "delete this key")
		}

	default:
		if near := suggest(t.Provider, []string{providerWebhook, providerSchedule}); near != "" &&
			editDistance(fold(t.Provider), near) <= 1 {
			if p := d.errorAt(provider, ruleTrigger, fmt.Sprintf("%s is no provider", quoted(t.Provider)), didYouMean(near, "")); p != nil {
				p.Fix = d.replace(provider, near)
			}
			return t
		}

		if filter != nil && !d.anyBad(filter) {
			t.Filter = nodeJSON(filter)
		}

		d.report(
			d.spanOf(provider),
			ruleTriggerNotFired,
			fmt.Sprintf(
				"%s/%s is not fired by this server",
				clip(t.Provider),
				clip(t.Event),
			),
			"the trigger is kept; webhook/received and schedule/cron_fired are fired here",
		)
	}

	return t
}

func (d *document) eventIs(n *yaml.Node, t Trigger, want string) bool {
	if n == nil || d.bad[n] {
		return t.Event == want || n == nil
	}
	if t.Event == want {
		return true
	}
	if p := d.errorAt(n, ruleTrigger, fmt.Sprintf("provider %s has no event %s", t.Provider, quoted(t.Event)), "write event: "+want); p != nil &&
		suggest(t.Event, []string{want}) != "" {
		p.Fix = d.replace(n, want)
	}

	return true // the rest of the trigger is checked all the same
}

func (d *document) webhookFilter(trigger, filter *yaml.Node, m map[string]any, t *Trigger, where string) {
	hint := "write filter: with webhook_ids: and the UIDs of the webhooks"
	if filter == nil {
		if misplaced, _ := find(trigger, "webhook_ids"); misplaced != nil {
			return // reported as an unknown key
		}

		at, _ := find(trigger, "provider")
		d.errorAt(at, ruleWebhookIDs, where+": a webhook trigger needs filter.webhook_ids", hint)
		return
	}

	fm, ok := m["filter"].(map[string]any)
	if !ok || filter.Kind != yaml.MappingNode {
		return
	}

	d.unknownKeys(filter, []string{"payload", "webhook_ids"}, where+".filter")
	_, ids := find(filter, "webhook_ids")
	list, isList := fm["webhook_ids"].([]any)
	switch {
	case ids == nil && d.meant[meantKey{filter, "webhook_ids"}]:
	case ids == nil:
		key, _ := find(trigger, "filter")
		d.errorAt(key, ruleWebhookIDs, where+".filter has no webhook_ids", "list the UIDs of the webhooks")
	case d.bad[ids]:
	case !isList && ids.Kind == yaml.ScalarNode && ids.Value == "":
		key, _ := find(filter, "webhook_ids")
		d.errorAt(key, ruleWebhookIDs, where+".filter.webhook_ids has no value", "list the UIDs of the webhooks")
	case !isList:
		d.errorAt(
			ids,
			ruleWebhookIDs,
			where+".filter.webhook_ids takes a list of UIDs, not "+nodeArticle(ids),
			"write ["+shown(ids)+"]",
		)

	case len(list) == 0:
		d.errorAt(
			ids,
			ruleWebhookIDs,
			where+".filter.webhook_ids is empty, so the trigger can never fire",
			"list the UIDs of the webhooks",
		)
	}

	for i := range list {
		d.webhookID(ids.Content[i], list[i], t)
	}

	if _, payload := find(filter, "payload"); payload != nil {
		d.payload(payload, t, where)
	}
}

func (d *document) webhookID(n *yaml.Node, v any, t *Trigger) {
	id, ok := v.(string)
	if !ok {
		d.errorAt(
			n,
			ruleWebhookIDs,
			fmt.Sprintf("a UID is a string, not %s", nodeArticle(n)),
			"a UID is wh_ and 26 characters",
		)
		return
	}

	t.WebhookIDs = append(t.WebhookIDs, id)
	d.fact(factWebhookID, n, id)
}

func (d *document) payload(n *yaml.Node, t *Trigger, where string) {
	if d.anyBad(n) {
		return
	}

	raw := nodeJSON(n)
	_, problems := CompileFilter(raw)
	for _, p := range problems {
		at := n
		for i, step := range p.Path {
			if i == len(p.Path)-1 && p.onKey {
				at, _ = find(at, step)
				break
			}
			at = child(at, step)
		}

		if at == nil {
			at = n
		}

		place := where + ".filter.payload"
		if len(p.Path) > 0 {
			place = wherePath(p.Path)
		}

		if v, ok := yaml11Bool(at.Value); ok && at.Style == 0 && strings.HasPrefix(p.Message, "exists ") {
			p.Hint = fmt.Sprintf("%s is a string in YAML 1.2: write %s", at.Value, v)
		} else if (at.Value == "true" || at.Value == "false") && at.Style != 0 && strings.HasPrefix(p.Message, "exists ") {
			p.Hint = "write it without quotes: " + at.Value
		} else if near := nearOperator(p.Path); near == "exists" {
			p.Hint = "the operators are in, not_in and exists: write exists: " + clip(at.Value)
		} else if list, ok := strings.CutPrefix(p.Hint, "write ["); ok && near != "" {
			p.Hint = "the operators are in, not_in and exists: write " + near + ": [" + list
		}

		d.report(d.spanOf(at), ruleFilter, place+": "+p.Message, p.Hint)
	}

	if len(problems) == 0 {
		t.Payload = raw
		d.nearOperators(n, true)
	}
}

// nearOperators warns of fields below the root of a filter that read like an operator: as fields they would
// never be there, and the filter would match nothing.
func (d *document) nearOperators(n *yaml.Node, root bool) {
	if n.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if near := operatorOf(key.Value); near != "" && near != key.Value && !root {
			d.report(
				d.spanOf(key),
				ruleFilterOperator,
				fmt.Sprintf("%s is the name of a field here, not an operator", quoted(key.Value)),
				didYouMean(near, "")+" If the body has such a field, this is right",
			)
		}

		d.nearOperators(n.Content[i+1], false)
	}
}

// nearOperator returns the operator that the last step of a path below the root reads like, and is not.
func nearOperator(path []string) string {
	if len(path) < 2 {
		return ""
	}
	last := path[len(path)-1]
	if near := operatorOf(last); near != last {
		return near
	}
	return ""
}

// operatorOf returns the operator that a word stands for in other filter languages.
func operatorOf(word string) string {
	switch fold(strings.TrimPrefix(word, "$")) {
	case "in", "oneof", "anyof", "eq", "equals":
		return "in"
	case "notin", "nin", "noneof", "ne", "neq", "not", "notequals":
		return "not_in"
	case "exists", "exist":
		return "exists"
	}
	return ""
}
