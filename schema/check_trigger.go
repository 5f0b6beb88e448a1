package schema

import (
	"fmt"
	"strconv"

	"go.yaml.in/yaml/v3"
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
