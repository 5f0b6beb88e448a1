package dashboard

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"millwright/admin"
	"millwright/api"
	"millwright/schema"
	"millwright/state"
)

// automationRow is an automation with its prompt.
type automationRow struct {
	admin.Automation
	Spec   schema.Automation
	Why    string   // why it does not fire, or not for all
	Pretty []string // the payload filter of each trigger
}

// Filtered reports whether a payload filter keeps deliveries away.
func (a automationRow) Filtered() bool {
	return slices.ContainsFunc(a.Triggers, func(t admin.AutomationTrigger) bool { return len(t.Payload) > 0 })
}

// automationRows returns the automations of a factory's applied definition, by name.
func (q *request) automationRows(factoryUID string) ([]automationRow, error) {
	var list admin.ListAutomationsResponse
	if err := q.call(http.MethodGet, "/factory/"+factoryUID+"/automations?limit=500", nil, &list); err != nil {
		return nil, err
	}

	cur, err := q.Store.Current(q.Context(), factoryUID)
	if err != nil {
		return nil, err
	}

	var rows []automationRow
	for _, a := range list.Automations {
		row := automationRow{Automation: a, Why: strings.Join(a.WhyNot, "; ")}
		if i := slices.IndexFunc(cur.Tree.Automations, func(s schema.Automation) bool { return s.Name == a.Name }); i >= 0 {
			row.Spec = cur.Tree.Automations[i]
		}

		for _, t := range a.Triggers {
			row.Pretty = append(row.Pretty, pretty(t.Payload))
		}

		rows = append(rows, row)
	}

	return rows, nil
}

type automationsView struct {
	Automations []automationRow
	Managed     bool
	Where       place
}

func (q *request) automations() error {
	p, f, err := q.factoryPage("Automations", "automations")
	if err != nil {
		return err
	}

	rows, err := q.automationRows(f.UID)
	if err != nil {
		return err
	}

	p.Live = []string{"sync." + f.UID}
	p.Data = automationsView{rows, managed(f), placeOf(f, "automations/<name>/automation.md")}
	return q.render("automations", p)
}

type automationView struct {
	automationRow
	Managed bool
	Where   place
	Runs    []state.Run
}

func (q *request) automation() error {
	p, f, err := q.factoryPage("", "automations")
	if err != nil {
		return err
	}

	rows, err := q.automationRows(f.UID)
	if err != nil {
		return err
	}

	name := q.param("automation")
	i := slices.IndexFunc(rows, func(a automationRow) bool { return a.Name == name || a.UID == name })
	if i < 0 {
		return api.Problem("resource_not_found", "there is no automation %s in the applied definition", line(name))
	}

	v := automationView{automationRow: rows[i], Managed: managed(f), Where: placeOf(f, rows[i].File).at(rows[i].Line)}
	if v.Runs, _, err = q.Store.Runs(q.Context(), state.RunFilter{AutomationUID: v.UID}, state.RunOrder{}, nil, 10); err != nil {
		return err
	}

	p.Title = v.Name
	p.Crumbs = append(p.Crumbs, crumb{"Automations", "/factories/" + f.UID + "/automations"})
	p.Live, p.Data = []string{"sync." + f.UID, "run"}, v
	return q.render("automation", p)
}

// testedDeliveries is how many of the latest deliveries a filter is tested with.
const testedDeliveries = 50

// maxTestedBytes bounds the payloads that one test reads.
const maxTestedBytes = 4 << 20

type filterView struct {
	Form     form
	Webhooks []state.Webhook
	Chosen   []string
	Stored   []deliveryRow // to choose from
	Result   *admin.FilterTestResponse
	Tried    []triedDelivery
	Fired    int
	Tested   bool
}

// triedDelivery is a stored delivery that a filter was tested with.
type triedDelivery struct {
	deliveryRow
	Matched bool
	Why     string // the first leaf that failed
}

// showFilter shows the filter tester, filled from an automation or with a delivery if the address says so.
func (q *request) showFilter() error {
	in := q.URL.Query()
	f := form{Values: map[string]string{"filter": "{\n}", "delivery": clip(64, in.Get("delivery")), "payload": ""}}
	chosen := in["webhook"]
	if name := in.Get("automation"); name != "" {
		rows, err := q.automationRows(q.param("factory"))
		if err != nil {
			return err
		}

		for _, a := range rows {
			for i, t := range a.Triggers {
				if a.Name == name && t.Provider == "webhook" && f.Values["automation"] == "" {
					f.Values["automation"] = a.Name
					if chosen = t.WebhookIDs; len(t.Payload) > 0 {
						f.Values["filter"] = a.Pretty[i]
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
	if v.Webhooks, err = q.Store.Webhooks(q.Context(), f.UID, false); err != nil {
		return err
	}

	selected := v.Webhooks
	if len(v.Chosen) > 0 {
		selected = slices.DeleteFunc(
			slices.Clone(v.Webhooks),
			func(w state.Webhook) bool { return !slices.Contains(v.Chosen, w.UID) },
		)
	}

	if v.Stored, err = q.deliveryRows(q.Context(), selected, state.DeliveryFilter{Outcome: state.DeliveryAccepted}, "", testedDeliveries); err != nil {
		return err
	}

	if v.Tested {
		if err := q.tryFilter(&v); err != nil {
			return err
		}
	}

	p.Data = v
	return q.renderStatus(status, "filter", p)
}

// testFilter tests a filter: with one delivery or body, through the API, and with the latest deliveries.
func (q *request) testFilter() error {
	v := filterView{Form: q.formOf("filter", "delivery", "payload", "automation"), Chosen: q.PostForm["webhook"]}
	v.Chosen = v.Chosen[:min(len(v.Chosen), 64)]
	in := admin.FilterTestRequest{}
	if text := strings.TrimSpace(v.Form.Values["filter"]); text != "" {
		if wrong := notJSON(text); wrong != "" {
			v.Form.Errors["filter"] = wrong
			return q.showFilterForm(http.StatusUnprocessableEntity, v)
		}
		in.Filter = json.RawMessage(text)
	}

	if len(v.Chosen) > 0 {
		in.WebhookIDs = &v.Chosen
	}

	switch body := strings.TrimSpace(v.Form.Values["payload"]); {
	case body != "":
		if wrong := notJSON(body); wrong != "" {
			v.Form.Errors["payload"] = wrong
			return q.showFilterForm(http.StatusUnprocessableEntity, v)
		}

		in.Payload = json.RawMessage(body)
		v.Form.Values["delivery"] = ""

	case v.Form.Values["delivery"] != "":
		in.DeliveryID = v.Form.Values["delivery"]
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

	if v.Form.Values["delivery"] != "" || strings.TrimSpace(v.Form.Values["payload"]) != "" {
		v.Result = &result
	}

	v.Tested = true
	return q.showFilterForm(http.StatusOK, v)
}

// notJSON says what keeps a text of a form from being JSON, nothing if it is.
func notJSON(text string) string {
	if err := schema.ValidJSON([]byte(text)); err != nil {
		return strings.TrimPrefix(err.Error(), "the body ")
	}
	return ""
}

// tryFilter tests the filter with the latest accepted deliveries.
func (q *request) tryFilter(v *filterView) error {
	text := bytes.TrimSpace([]byte(v.Form.Values["filter"]))
	filter, wrong := schema.CompileFilter(text)
	if len(wrong) > 0 {
		return nil // the API has said so
	}

	read := 0
	for _, row := range v.Stored {
		body, err := q.Store.Payload(q.Context(), row.FactoryUID, row.UID)
		if errors.Is(err, state.ErrNotFound) {
			continue
		} else if err != nil {
			return err
		}

		if read += len(body); read > maxTestedBytes {
			break
		}

		payload, err := schema.ParsePayload(body)
		if err != nil {
			continue
		}

		t := triedDelivery{deliveryRow: row, Matched: filter.Match(payload)}
		if t.Matched {
			v.Fired++
		} else {
			t.Why = whyNot(filter.Explain(payload))
		}

		v.Tried = append(v.Tried, t)
	}

	return context.Cause(q.Context())
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
