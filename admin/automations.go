package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"millwright/api"
	"millwright/schema"
	"millwright/state"
)

// Automation is an automation of an applied definition.
type Automation struct {
	UID      string              `json:"uid" doc:"Identifier" example:"auto_01h455vb4pex5vsknk084sn02q"`
	Name     string              `json:"name" doc:"Name, as its directory"`
	Enabled  bool                `json:"enabled" doc:"Whether the automation is enabled"`
	Agent    string              `json:"agent" doc:"Name of the agent, or empty"`
	File     string              `json:"file" doc:"The definition file, relative to the root of the definition" example:"automations/ci/automation.md"`
	Line     int                 `json:"line" doc:"Line of the automation's first key in the file, from 1"`
	Triggers []AutomationTrigger `json:"triggers" nullable:"false" doc:"Triggers"`
	Flow     json.RawMessage     `json:"flow,omitempty" doc:"How the automation's runs wait for one another: concurrency, debounce, conversation and retry, as in the file"`
	Webhooks []SelectedWebhook   `json:"webhooks" nullable:"false" doc:"Webhooks that the triggers select"`
	Fires    bool                `json:"fires" doc:"Whether a trigger can fire at present"`
	WhyNot   []string            `json:"why_not" nullable:"false" doc:"Why the automation does not fire, or not for all selected webhooks; else empty"`
}

// AutomationTrigger is a trigger of an automation.
type AutomationTrigger struct {
	Provider   string          `json:"provider" doc:"Provider of the event" example:"webhook"`
	Event      string          `json:"event" doc:"Name of the event" example:"received"`
	Supported  bool            `json:"supported" doc:"Whether this server supports the trigger"`
	WebhookIDs []string        `json:"webhook_ids,omitempty" nullable:"false" doc:"Webhook triggers: UIDs of the selected webhooks"`
	Payload    json.RawMessage `json:"payload,omitempty" doc:"Webhook triggers: the payload filter"`
	Headers    json.RawMessage `json:"headers,omitempty" doc:"Webhook triggers: the filter of headers"`
	Cron       string          `json:"cron,omitempty" doc:"Schedule triggers: the cron expression, in UTC"`
	Filter     json.RawMessage `json:"filter,omitempty" doc:"Other triggers: the filter"`
}

// SelectedWebhook is a webhook that an automation selects.
type SelectedWebhook struct {
	UID   string `json:"uid" doc:"UID, as in the automation"`
	Name  string `json:"name" doc:"Name; empty if no webhook has that UID"`
	State string `json:"state" enum:"enabled,disabled,deleted,unknown" doc:"Whether its deliveries start the automation"`
}

// AutomationVerdict is the verdict of an automation on a delivery.
type AutomationVerdict struct {
	AutomationID string              `json:"automation_id" doc:"The automation"`
	Name         string              `json:"name" doc:"Name"`
	Verdict      string              `json:"verdict" enum:"matched,not_matched,disabled,unknown" doc:"Whether the automation starts a run for the payload; unknown if the payload is not stored"`
	Explanation  *schema.Explanation `json:"explanation,omitempty" doc:"Result of the filter; of several triggers, that of the first match"`
	Triggers     []TriggerVerdict    `json:"triggers" nullable:"false" doc:"The verdict of each trigger that selects the webhook; empty if the payload is not stored"`
	NoKey        []string            `json:"no_key,omitempty" doc:"Why a payload that matches has no key for concurrency, debounce or conversation, so that its run joins no others there" example:"concurrency: pull_request.number is not in the payload"`
}

// TriggerVerdict is the verdict of a trigger on a delivery.
type TriggerVerdict struct {
	Provider    string             `json:"provider" doc:"Provider of the event" example:"github"`
	Event       string             `json:"event" doc:"Name of the event" example:"pull_request_opened"`
	Explanation schema.Explanation `json:"explanation" doc:"Whether the delivery is the event and passes the filter, and why not"`
}

// ListAutomationsResponse is a page of automations, by name.
type ListAutomationsResponse struct {
	Automations []Automation `json:"automations" nullable:"false" doc:"The automations, by name"`
	PageInfo    api.PageInfo `json:"page_info" doc:"Whether there is another page"`
}

func (s *service) registerAutomations() {
	api.Handle(s.api, api.Operation(http.MethodGet, "/factory/{uid}/automations", "listAutomations", state.RoleViewer,
		"List a factory's automations, with their webhooks and why they do not fire"), s.listAutomations)
	s.registerFlow()
}

func (s *service) listAutomations(ctx context.Context, in *struct {
	FactoryUID
	PageQuery
},
) (ListAutomationsResponse, error) {
	f, err := s.factory(ctx, in.Factory)
	if err != nil {
		return ListAutomationsResponse{}, err
	}

	cur, err := s.Store.Current(ctx, f.UID)
	if err != nil {
		return ListAutomationsResponse{}, err
	}

	hooks, err := s.Store.Webhooks(ctx, f.UID, true)
	if err != nil {
		return ListAutomationsResponse{}, err
	}

	automations := slices.SortedFunc(
		slices.Values(cur.Tree.Automations),
		func(a, b schema.Automation) int { return cmp.Compare(a.Name, b.Name) },
	)
	rows, info, err := paginate(
		in.PageQuery,
		"automations "+f.UID,
		automations,
		func(a schema.Automation) string { return a.Name },
		false,
	)

	out := ListAutomationsResponse{[]Automation{}, info}
	for _, a := range rows {
		out.Automations = append(out.Automations, newAutomation(cur, hooks, a))
	}

	return out, err
}

func newAutomation(cur state.Current, hooks []state.Webhook, a schema.Automation) Automation {
	out := Automation{
		UID:      cur.UIDs[state.ResourceKey("automation", a.Name)],
		Name:     a.Name,
		Enabled:  a.Enabled,
		Agent:    a.Agent,
		File:     a.Path,
		Line:     max(a.Line, 1),
		Triggers: []AutomationTrigger{}, Webhooks: []SelectedWebhook{}, WhyNot: []string{},
	}
	if a.Flow != (schema.Flow{}) {
		out.Flow, _ = json.Marshal(a.Flow) // what was read is written
	}

	selected := map[string]bool{}
	for _, t := range a.Triggers {
		trigger := AutomationTrigger{
			Provider:   t.Provider,
			Event:      t.Event,
			Supported:  t.Fires(),
			WebhookIDs: t.WebhookIDs,
			Payload:    t.Payload,
			Headers:    t.Headers,
			Filter:     t.Filter,
		}
		if t.Schedule != nil {
			trigger.Cron = t.Schedule.Cron
		}

		out.Triggers = append(out.Triggers, trigger)
		if !t.Fires() {
			out.WhyNot = append(
				out.WhyNot,
				fmt.Sprintf("triggers of %s are not fired by this server", t.Provider+" / "+t.Event),
			)
			continue
		}

		out.Fires = out.Fires || t.Schedule != nil
		uids, why := selectedBy(t, hooks)
		if why != "" && !slices.Contains(out.WhyNot, why) {
			out.WhyNot = append(out.WhyNot, why)
		}
		for _, uid := range uids {
			if selected[uid] {
				continue
			}

			selected[uid] = true
			w, why := selectedWebhook(hooks, uid)
			out.Webhooks = append(out.Webhooks, w)
			if out.Fires = out.Fires || why == ""; why != "" {
				out.WhyNot = append(out.WhyNot, why)
			}
		}
	}

	if cur.Factory.Detached {
		out.Fires, out.WhyNot = false, append([]string{"the factory is no longer configured"}, out.WhyNot...)
	}

	if !a.Enabled {
		out.Fires, out.WhyNot = false, append(
			[]string{"the automation is disabled: " + a.Path + " says enabled: false"},
			out.WhyNot...)
	}

	return out
}

// selectedBy returns the UIDs of the webhooks whose deliveries a trigger judges, and why there are none for an
// event of a provider.
func selectedBy(t schema.Trigger, hooks []state.Webhook) (uids []string, why string) {
	if t.Provider == "webhook" || t.Schedule != nil {
		return t.WebhookIDs, ""
	}

	for _, w := range hooks {
		if w.Deleted == nil && t.Selects(w.UID, w.Spec.Source()) {
			uids = append(uids, w.UID)
		}
	}
	if len(uids) == 0 {
		why = fmt.Sprintf("no webhook receives events of %s: add webhooks/%s.yaml: %s", t.Provider, t.Provider,
			schema.SourceFile(t.Provider))
	}

	return uids, why
}

// selectedWebhook returns the webhook of a UID in webhook_ids, and the reason if its deliveries start
// nothing.
func selectedWebhook(hooks []state.Webhook, uid string) (w SelectedWebhook, why string) {
	i := slices.IndexFunc(hooks, func(w state.Webhook) bool { return w.UID == uid })
	if i < 0 {
		return SelectedWebhook{uid, "", "unknown"}, "this factory has no webhook " + uid
	}

	name := hooks[i].Spec.Name
	switch {
	case hooks[i].Deleted != nil:
		return SelectedWebhook{uid, name, "deleted"}, fmt.Sprintf("webhook %q (%s) is deleted", name, uid)
	case !hooks[i].Spec.Enabled:
		reason := fmt.Sprintf("webhook %q is disabled: %s says enabled: false", name, hooks[i].Spec.Path)
		return SelectedWebhook{uid, name, "disabled"}, reason
	}

	return SelectedWebhook{uid, name, "enabled"}, ""
}

// verdicts returns the verdict on a delivery of each automation that selects its webhook, by name. A nil body
// is not stored.
func (s *service) verdicts(
	ctx context.Context,
	factoryUID string,
	w state.Webhook,
	d *schema.Delivered,
) ([]AutomationVerdict, error) {
	cur, err := s.Store.Current(ctx, factoryUID)
	if err != nil {
		return nil, err
	}

	if d.Body != nil {
		if d.Payload, err = schema.ParsePayload(d.Body); err != nil {
			return nil, err
		}
	}

	all := []AutomationVerdict{}
	for _, a := range cur.Tree.Automations {
		v := AutomationVerdict{
			AutomationID: cur.UIDs[state.ResourceKey("automation", a.Name)],
			Name:         a.Name,
			Triggers:     []TriggerVerdict{},
		}
		for _, t := range a.Triggers {
			if t.Selects(w.UID, w.Spec.Source()) {
				v.judge(t, d)
			}
		}

		if v.Verdict == "" {
			continue
		}
		if v.Verdict == "matched" {
			v.NoKey = a.Flow.Unkeyed(d.Payload)
		}
		if !a.Enabled {
			v.Verdict = "disabled"
		}

		all = append(all, v)
	}

	slices.SortFunc(all, func(a, b AutomationVerdict) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

// judge adds the verdict of a trigger.
func (v *AutomationVerdict) judge(t schema.Trigger, d *schema.Delivered) {
	v.Verdict = cmp.Or(v.Verdict, "not_matched")
	if d.Body == nil {
		v.Verdict = "unknown"
		return
	}

	matcher, err := schema.CompileTrigger(t)
	if err != nil {
		return // such a filter is never applied and never matches
	}

	e := matcher.Explain(d)
	v.Triggers = append(v.Triggers, TriggerVerdict{t.Provider, t.Event, e})
	if v.Explanation == nil || e.Matched && !v.Explanation.Matched {
		v.Explanation = &e
	}
	if v.Explanation.Matched {
		v.Verdict = "matched"
	}
}
