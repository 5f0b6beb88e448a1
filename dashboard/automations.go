package dashboard

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
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
	Used   string   // on the last days; empty for nothing
	agent  string   // UID of the agent that it names
	Pretty []string // the filter of each trigger
}

// Filtered reports whether a filter keeps deliveries away.
func (a automationRow) Filtered() bool {
	return slices.ContainsFunc(a.Triggers, func(t admin.AutomationTrigger) bool {
		return len(t.Payload) > 0 || len(t.Headers) > 0 || len(t.Filter) > 0
	})
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
		row := automationRow{
			Automation: a,
			Why:        strings.Join(a.WhyNot, "; "),
			agent:      cur.UIDs[state.ResourceKey("agent", a.Agent)],
		}
		same := func(s schema.Automation) bool { return s.Name == a.Name }
		if i := slices.IndexFunc(cur.Tree.Automations, same); i >= 0 {
			row.Spec = cur.Tree.Automations[i]
		}

		for _, t := range a.Triggers {
			row.Pretty = append(row.Pretty, pretty(filterIn(t)))
		}

		rows = append(rows, row)
	}

	return rows, nil
}

// filterIn returns the filter of a trigger: of a custom webhook the payload filter or, with headers, all of
// it.
func filterIn(t admin.AutomationTrigger) json.RawMessage {
	switch {
	case t.Provider != "webhook":
		return t.Filter
	case len(t.Headers) == 0:
		return t.Payload
	}

	text, err := json.Marshal(struct {
		WebhookIDs []string        `json:"webhook_ids"`
		Headers    json.RawMessage `json:"headers"`
		Payload    json.RawMessage `json:"payload,omitempty"`
	}{t.WebhookIDs, t.Headers, t.Payload})
	if err != nil {
		return t.Payload
	}
	return text
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

	used, err := q.Store.UseByAutomation(q.Context(), f.UID, usedDays)
	if err != nil {
		return err
	}
	for i, row := range rows {
		if u := used[row.UID]; u.Runs > 0 {
			rows[i].Used = fmt.Sprintf("%s, %d tokens, %s", count(int(u.Runs), "run", "runs"), u.Tokens,
				dollars(u.USD, u.Unpriced))
		}
	}

	p.Live = []string{"sync." + f.UID, "run"}
	p.Data = automationsView{rows, managed(f), placeOf(f, "automations/<name>/automation.md")}
	return q.render("automations", p)
}

type automationView struct {
	automationRow
	Managed  bool
	Where    place
	Runs     []state.Run
	Pulls    map[string][]state.Artifact
	Flow     admin.AutomationFlow
	FlowText string // its flow, as the file says it
	Use      useView
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

	v := automationView{
		automationRow: rows[i],
		Managed:       managed(f),
		Where:         placeOf(f, rows[i].File).at(rows[i].Line),
	}
	started := state.RunFilter{AutomationUID: v.UID}
	if v.Runs, _, err = q.Store.Runs(q.Context(), started, state.RunOrder{}, nil, 10); err != nil {
		return err
	}
	if v.Pulls, err = q.pullsOf(v.Runs); err != nil {
		return err
	}

	if err := q.call(http.MethodGet, "/factory/"+f.UID+"/automations/"+v.UID+"/flow", nil, &v.Flow); err != nil {
		return err
	}
	v.FlowText = pretty(v.Automation.Flow)
	if v.Use, err = q.use(v.UID, "", f.UID, v.agent); err != nil {
		return err
	}

	p.Title = v.Name
	p.Crumbs = append(p.Crumbs, crumb{"Automations", "/factories/" + f.UID + "/automations"})
	p.Live, p.Data = []string{"sync." + f.UID, "run"}, v
	return q.render("automation", p)
}

// dropWaiting cancels the runs of an automation that wait.
func (q *request) dropWaiting() error {
	_, f, err := q.factoryPage("", "automations")
	if err != nil {
		return err
	}

	path := "/factories/" + f.UID + "/automations/" + url.PathEscape(q.param("automation"))
	var dropped admin.DroppedRuns
	call := strings.Replace(path, "/factories/", "/factory/", 1) + "/waiting"
	if err := q.call(http.MethodDelete, call, nil, &dropped); err != nil {
		return err
	}

	return q.redirect(path, "dropped")
}
