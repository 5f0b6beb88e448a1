package dashboard

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"millwright/admin"
	"millwright/api"
	"millwright/schema"
	"millwright/schema/provider"
	"millwright/state"
)

// Bounds of a test of a filter.
const (
	testedDeliveries = 50      // the latest
	maxTestedBytes   = 4 << 20 // of their payloads
	maxLook          = 2000    // bytes that are shown of one payload
)

type filterView struct {
	Form     form
	Webhooks []state.Webhook
	Chosen   []string
	Stored   []storedDelivery // to choose from
	Result   *admin.FilterTestResponse
	Tested   bool
	Tried    trial
	Events   []string // of providers, as provider/event
	trigger  schema.Trigger
}

// Listed reports whether a delivery is among those to choose from.
func (v filterView) Listed(uid string) bool {
	return slices.ContainsFunc(v.Stored, func(d storedDelivery) bool { return d.UID == uid })
}

// storedDelivery is an accepted delivery whose payload is kept.
type storedDelivery struct {
	deliveryRow
	Look    string // the beginning of the payload, pretty-printed
	body    []byte
	headers []byte
}

// trial is a trigger tested with stored deliveries.
type trial struct {
	Rows  []triedDelivery
	Fired int
}

// triedDelivery is a stored delivery that a trigger was tested with.
type triedDelivery struct {
	storedDelivery
	Webhooks string // the webhook check: passes, disabled or no source
	Matched  bool   // the payload check
	Why      string // the first leaf that failed
}

// Fires reports whether the delivery would start a run.
func (t triedDelivery) Fires() bool { return t.Webhooks == "passes" && t.Matched }

// showFilter shows the filter tester, filled from an automation or with a delivery if the address names one.
func (q *request) showFilter() error {
	in := q.URL.Query()
	f := form{Values: map[string]string{"filter": "", "delivery": clip(64, in.Get("delivery")), "payload": ""}}
	chosen := in["webhook"]
	if name := in.Get("automation"); name != "" {
		rows, err := q.automationRows(q.param("factory"))
		if err != nil {
			return err
		}

		for _, a := range rows {
			for i, t := range a.Triggers {
				wanted := cmp.Or(clip(128, in.Get("event")), "webhook/received")
				if a.Name == name && t.Provider+"/"+t.Event == wanted && f.Values["automation"] == "" {
					f.Values["automation"], f.Values["filter"], chosen = a.Name, a.Pretty[i], t.WebhookIDs
					if t.Provider != "webhook" {
						f.Values["event"] = wanted
					}
				}
			}
		}
	}

	return q.showFilterForm(http.StatusOK, filterView{Form: f, Chosen: chosen[:min(len(chosen), 64)]})
}

func (q *request) showFilterForm(status int, v filterView) error {
	p, f, err := q.factoryPage("Filter tester", "filter")
	if err != nil {
		return err
	}

	for _, name := range provider.Names() {
		for _, event := range provider.Events(name) {
			v.Events = append(v.Events, name+"/"+event)
		}
	}
	if v.Webhooks, err = q.Store.Webhooks(q.Context(), f.UID, false); err != nil {
		return err
	}
	if v.Stored, err = q.storedDeliveries(v.Webhooks, v.Chosen); err != nil {
		return err
	}
	if v.Tested {
		v.Tried = try(v.trigger, v.Stored)
	}

	p.Data = v
	return q.renderStatus(status, "filter", p)
}

// storedDeliveries returns the latest accepted deliveries to the chosen webhooks, or to all when none is chosen.
func (q *request) storedDeliveries(hooks []state.Webhook, chosen []string) (all []storedDelivery, err error) {
	if len(chosen) > 0 {
		hooks = slices.DeleteFunc(
			slices.Clone(hooks),
			func(w state.Webhook) bool { return !slices.Contains(chosen, w.UID) },
		)
	}

	accepted := state.DeliveryFilter{Outcome: state.DeliveryAccepted}
	rows, err := q.deliveryRows(q.Context(), hooks, accepted, "", testedDeliveries)
	if err != nil {
		return nil, err
	}

	read := 0
	for _, row := range rows {
		headers, body, err := q.Store.Request(q.Context(), row.FactoryUID, row.UID)
		if errors.Is(err, state.ErrNotFound) {
			continue
		} else if err != nil {
			return nil, err
		}

		if read += len(body); read > maxTestedBytes {
			break
		}
		all = append(all, storedDelivery{row, clip(maxLook, pretty(body)), body, headers})
	}

	return all, nil
}

// testFilter tests a filter: with one delivery or body, through the API, and with the latest deliveries.
func (q *request) testFilter() error {
	v := filterView{
		Form:   q.formOf("filter", "delivery", "payload", "automation", "event"),
		Chosen: q.PostForm["webhook"],
	}
	v.Chosen = v.Chosen[:min(len(v.Chosen), 64)]
	v.Form.Values["filter"] = unixLines(v.Form.Values["filter"])

	filter, wrong := filterOf(v.Form.Values["filter"])
	if wrong != "" {
		v.Form.Errors["filter"] = wrong
		return q.showFilterForm(http.StatusUnprocessableEntity, v)
	}

	in := admin.FilterTestRequest{Filter: filter}
	in.Provider, in.Event, _ = strings.Cut(v.Form.Values["event"], "/")
	v.trigger = schema.Trigger{Provider: in.Provider, Event: in.Event, Filter: filter}
	if in.Provider == "" {
		parts := schema.FilterParts(filter)
		in.Filter, in.Headers = parts.Payload, parts.Headers
		if len(v.Chosen) == 0 {
			v.Chosen = parts.Webhooks
		}
		if len(v.Chosen) > 0 {
			in.WebhookIDs = &v.Chosen
		}

		v.trigger = schema.Trigger{
			Provider: "webhook", Event: "received", Payload: parts.Payload,
			Headers: parts.Headers,
		}
	}

	switch body := strings.TrimSpace(v.Form.Values["payload"]); {
	case body != "":
		if wrong := schema.NotJSON([]byte(body)); wrong != "" {
			v.Form.Errors["payload"] = wrong
			return q.showFilterForm(http.StatusUnprocessableEntity, v)
		}

		in.Payload = json.RawMessage(body)
		v.Form.Values["delivery"] = ""

	case v.Form.Values["delivery"] != "":
		in.DeliveryID = v.Form.Values["delivery"]
	case in.Provider != "":
		in.Example = true
	default:
		in.Payload = json.RawMessage("{}") // to have the filter checked
	}

	var result admin.FilterTestResponse
	if err := q.call(http.MethodPost, "/factory/"+q.param("factory")+"/filter-tests", in, &result); err != nil {
		if api.IsNotFound(err) && in.DeliveryID != "" {
			v.Form.Errors["delivery"] = "does not exist in this factory"
		} else if !v.Form.take(err) {
			return err
		}

		return q.showFilterForm(http.StatusUnprocessableEntity, v)
	}

	if v.Form.Values["delivery"] != "" || strings.TrimSpace(v.Form.Values["payload"]) != "" || in.Example {
		v.Result = &result
	}

	v.Tested = true
	return q.showFilterForm(http.StatusOK, v)
}

// filterOf reads a payload filter that was typed as YAML or JSON. It is nil for none; wrong is why it cannot
// be read.
func filterOf(text string) (filter json.RawMessage, wrong string) {
	if strings.TrimSpace(text) == "" {
		return nil, ""
	}

	filter, problems := schema.FilterText("filter", []byte(text))
	if len(problems) == 0 {
		return filter, ""
	}

	if wrong := schema.NotJSON([]byte(text)); wrong != "" && strings.HasPrefix(strings.TrimSpace(text), "{") {
		return nil, wrong
	}
	return nil, fmt.Sprintf("cannot be read: line %d: %s", problems[0].Line, problems[0].Message)
}

// try tests a trigger with stored deliveries.
func try(trigger schema.Trigger, stored []storedDelivery) (t trial) {
	matcher, err := schema.CompileTrigger(trigger)
	if err != nil {
		return t // the API has reported it
	}

	for _, d := range stored {
		delivered := admin.DeliveredOf(d.Webhook, d.Event, d.headers, d.body)
		if delivered.Payload, err = schema.ParsePayload(d.body); err != nil {
			continue
		}

		row := triedDelivery{storedDelivery: d, Webhooks: "passes", Matched: matcher.Match(delivered)}
		switch w := d.Webhook; {
		case !w.Spec.Enabled || w.Deleted != nil:
			row.Webhooks = "disabled"
		case trigger.Provider != "webhook" && w.Spec.Source() != trigger.Provider:
			row.Webhooks = "no source"
		}
		if !row.Matched {
			row.Why = whyNot(matcher.Explain(delivered))
		}
		if row.Fires() {
			t.Fired++
		}

		t.Rows = append(t.Rows, row)
	}

	return t
}

// whyNot says in a line why a filter does not match.
func whyNot(e schema.Explanation) string {
	for _, l := range e.Leaves {
		if !l.Passed {
			found := "absent"
			if l.Present {
				found = l.Found
			}
			return fmt.Sprintf("%s is %s; %s %s", l.Where, found, l.Operator, l.Expected)
		}
	}
	return e.Reason
}
