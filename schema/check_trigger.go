package schema

import (
	"fmt"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"

	"millwright/schema/provider"
)

// automation reads the document as an automation and checks its triggers.
func (d *document) automation(name string) Automation {
	d.checkStructure("automation")
	a := Automation{
		Name: name, Path: d.path, Line: d.line(),
		Enabled:   boolean(d.data, "enabled", true),
		Agent:     text(d.data, "agent"),
		Checkout:  d.checkout(),
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

	d.distinctSchedules(nodes)
	d.headOnce(nodes, a)
	a.Flow = d.flow(a.Triggers)
	a.Outputs = d.outputs()

	if len(d.body) == 0 {
		d.report(
			d.spanAt(d.close, d.close+3),
			ruleEmptyPrompt,
			"the automation has no prompt",
			"write the prompt below this line",
		)
	}

	return a
}

func (d *document) trigger(n *yaml.Node, m map[string]any, i int) Trigger {
	t := Trigger{Provider: text(m, "provider"), Event: text(m, "event"), Checkout: text(m, "checkout")}
	_, from := find(n, "provider")
	_, event := find(n, "event")
	scheduleKey, schedule := find(n, "schedule")
	_, filter := find(n, "filter")
	if isNull(filter) { // as an absent one
		filter = nil
	}

	where := "triggers[" + strconv.Itoa(i) + "]"
	if t.Provider == "" || d.bad[from] {
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
		if filter != nil {
			d.scheduleFilter(filter, &t, where)
		}
		if d.eventIs(event, t, eventCronFired) {
			d.schedule(n, scheduleKey, schedule, m, &t)
		}

	default:
		if d.nearProvider(n, from, t) || d.nearEvent(event, t) {
			return t
		}
		if _, known := provider.Lookup(t.Provider, t.Event); known {
			d.providerTrigger(n, &t, where)
			return t
		}

		if filter != nil && !d.anyBad(filter) {
			t.Filter = nodeJSON(filter)
		}

		d.notFired(from, t.Provider, fmt.Sprintf("%s/%s is not fired by this server", clip(t.Provider), clip(t.Event)))
	}

	return t
}

// providerNames are the providers that definitions name, sorted.
func providerNames() []string {
	names := append([]string{providerWebhook, providerSchedule, "factory"}, provider.Names()...)
	slices.Sort(names)
	return names
}

// nearProvider reports a provider that was probably meant to be another, and whether it is one: a misspelt
// name, or any unknown one whose filter has webhook_ids.
func (d *document) nearProvider(trigger, n *yaml.Node, t Trigger) bool {
	if slices.Contains(providerNames(), t.Provider) {
		return false
	}

	near := suggest(t.Provider, providerNames())
	if near != "" && editDistance(fold(t.Provider), near) > 1+len(near)/6 {
		near = ""
	}

	if ids, _ := find(child(trigger, "filter"), "webhook_ids"); ids != nil {
		near = providerWebhook
	}

	if near == "" {
		return false
	}

	p := d.errorAt(
		n,
		ruleTrigger,
		fmt.Sprintf("there is no provider %s", quoted(t.Provider)),
		didYouMean(near, ""),
	)
	if p != nil {
		p.Fix = d.replace(n, near)
	}

	return true
}

// nearEvent reports an event that was probably meant to be another of its provider, and whether it is one.
func (d *document) nearEvent(n *yaml.Node, t Trigger) bool {
	events := provider.Events(t.Provider)
	if n == nil || d.bad[n] || slices.Contains(events, t.Event) {
		return false
	}

	near := suggest(t.Event, events)
	if near == "" || editDistance(fold(t.Event), fold(near)) > 1+len(near)/6 {
		near = provider.MeantEvent(t.Provider, t.Event)
	}
	if near == "" {
		return false
	}

	p := d.errorAt(
		n,
		ruleTrigger,
		fmt.Sprintf("provider %s has no event %s", t.Provider, quoted(t.Event)),
		didYouMean(near, ""),
	)
	if p != nil {
		p.Fix = d.replace(n, near)
	}

	return true
}

// scheduleFilter reads the filter of a schedule trigger: schedules that a hosted service has.
func (d *document) scheduleFilter(n *yaml.Node, t *Trigger, where string) {
	if n.Kind != yaml.MappingNode || d.anyBad(n) {
		return
	}

	d.unknownKeys(n, []string{"schedule_ids"}, where+".filter")
	key, ids := find(n, "schedule_ids")
	if key == nil {
		return
	}

	where += ".filter.schedule_ids"
	if ids.Kind != yaml.SequenceNode || len(ids.Content) == 0 {
		d.errorAt(ids, ruleTrigger, where+" takes a list of schedules", "")
		return
	}

	for _, id := range ids.Content {
		if id.Kind != yaml.ScalarNode || id.Value == "" || id.Style == 0 && classify(id.Value) != scalarString {
			d.errorAt(id, ruleTypeMismatch, where+" takes strings", "")
			return
		}
	}

	t.Filter = nodeJSON(n)
}

// distinctSchedules refuses two schedules of one name in an automation: runs could not tell them apart.
func (d *document) distinctSchedules(triggers *yaml.Node) {
	if triggers == nil || triggers.Kind != yaml.SequenceNode {
		return
	}

	first := map[string]*yaml.Node{}
	for _, trigger := range triggers.Content {
		name := child(child(trigger, "schedule"), "name")
		if name == nil || name.Kind != yaml.ScalarNode || name.Value == "" || d.bad[name] {
			continue
		}
		if other := first[name.Value]; other != nil {
			d.errorAt(name, ruleSchedule, fmt.Sprintf("the name %s is already that of the schedule on line %d",
				quoted(name.Value), other.Line+d.base), "give one of the two another name")
			continue
		}

		first[name.Value] = name
	}
}

func (d *document) eventIs(n *yaml.Node, t Trigger, want string) bool {
	if n == nil || d.bad[n] {
		return t.Event == want || n == nil
	}
	if t.Event == want {
		return true
	}
	message := fmt.Sprintf("provider %s has no event %s", t.Provider, quoted(t.Event))
	if p := d.errorAt(n, ruleTrigger, message, "write event: "+want); p != nil &&
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

	d.unknownKeys(filter, []string{"headers", "payload", "webhook_ids"}, where+".filter")
	_, ids := find(filter, "webhook_ids")
	value := fm["webhook_ids"]
	if set, ok := value.(map[string]any); ok && len(ids.Content) == 2 && set["in"] != nil {
		ids, value = child(ids, "in"), set["in"] // {in: [...]} is the list
	}

	list, isList := value.([]any)
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
		hint := "list the UIDs of the webhooks"
		if ids.Kind == yaml.ScalarNode {
			hint = "write [" + shown(ids) + "]"
		}

		d.errorAt(
			ids,
			ruleWebhookIDs,
			where+".filter.webhook_ids takes a list of UIDs, not "+nodeArticle(ids),
			hint,
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
	if _, headers := find(filter, "headers"); headers != nil {
		d.headers(headers, t, where)
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
