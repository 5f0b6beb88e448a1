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
	Cron       string          `json:"cron,omitempty" doc:"Schedule triggers: the times, in UTC"`
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
	Explanation  *schema.Explanation `json:"explanation,omitempty" doc:"Result of the payload filter; of several triggers, that of the first match"`
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
		for _, uid := range t.WebhookIDs {
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

// verdicts returns the verdict on a payload of each automation that selects the webhook, by name. A nil
// payload is not stored.
func (s *service) verdicts(
	ctx context.Context,
	factoryUID, webhookUID string,
	payload []byte,
) ([]AutomationVerdict, error) {
	cur, err := s.Store.Current(ctx, factoryUID)
	if err != nil {
		return nil, err
	}

	var parsed schema.Payload
	if payload != nil {
		if parsed, err = schema.ParsePayload(payload); err != nil {
			return nil, err
		}
	}

	all := []AutomationVerdict{}
	for _, a := range cur.Tree.Automations {
		v := AutomationVerdict{AutomationID: cur.UIDs[state.ResourceKey("automation", a.Name)], Name: a.Name}
		for _, t := range a.Triggers {
			if t.Provider != "webhook" || !t.Fires() || !slices.Contains(t.WebhookIDs, webhookUID) {
				continue
			}

			v.Verdict = cmp.Or(v.Verdict, "not_matched")
			if payload == nil {
				v.Verdict = "unknown"
				continue
			}

			filter, problems := schema.CompileFilter(t.Payload)
			if len(problems) > 0 {
				continue // such a filter is never applied and never matches
			}
			if e := filter.Explain(parsed); v.Explanation == nil || e.Matched && !v.Explanation.Matched {
				v.Explanation = &e
			}
			if v.Explanation.Matched {
				v.Verdict = "matched"
			}
		}

		if v.Verdict == "" {
			continue
		}
		if !a.Enabled {
			v.Verdict = "disabled"
		}

		all = append(all, v)
	}

	slices.SortFunc(all, func(a, b AutomationVerdict) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}
