package dashboard

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"millwright/admin"
	"millwright/api"
	"millwright/schema"
	"millwright/state"
)

// automationForm is the page that changes an automation of a managed factory.
type automationForm struct {
	Name     string
	Path     string // of its file
	Base     string // the revision that is edited
	Form     form
	Triggers []triggerForm
	Webhooks []state.Webhook
	Agents   []string
	Runners  []string
	Problems []schema.Problem
	Test     tested
}

// triggerForm is the part of the form for one trigger.
type triggerForm struct {
	schema.TriggerForm
	Index    int
	Testable bool
	Headers  bool // it filters headers, which only its file shows
	spec     schema.Trigger
}

// FilterField names the trigger's filter in the form.
func (t triggerForm) FilterField() string { return "filter-" + strconv.Itoa(t.Index) }

// CronField is FilterField for the schedule.
func (t triggerForm) CronField() string { return "cron-" + strconv.Itoa(t.Index) }

// WebhookField is FilterField for the webhooks.
func (t triggerForm) WebhookField() string { return "webhook-" + strconv.Itoa(t.Index) }

// Schedule reports whether the trigger is a schedule.
func (t triggerForm) Schedule() bool { return t.spec.Schedule != nil }

// Others returns the webhooks that a trigger selects and the factory does not have.
func (v automationForm) Others(t triggerForm) []string {
	return slices.DeleteFunc(slices.Clone(t.WebhookIDs), func(uid string) bool {
		return slices.ContainsFunc(v.Webhooks, func(w state.Webhook) bool { return w.UID == uid })
	})
}

// Testable reports whether a filter can be tested.
func (v automationForm) Testable() bool {
	return slices.ContainsFunc(v.Triggers, func(t triggerForm) bool { return t.Testable })
}

// editAutomation shows an automation's form, or the editor of its file if a form cannot hold it.
func (q *request) editAutomation() error {
	v, now, _, err := q.automationForm()
	if err != nil {
		return err
	}
	if now == nil {
		return q.redirect(editorOf(q.param("factory"), v.Path), "")
	}

	v.Form.Values = map[string]string{
		"enabled": map[bool]string{true: "yes"}[now.Enabled],
		"agent":   now.Agent,
		"model":   now.Model,
		"runner":  now.Runner,
		"prompt":  now.Prompt,
		"payload": "",
	}
	for i, t := range v.Triggers {
		v.Form.Values[t.FilterField()], v.Form.Values[t.CronField()] = t.Filter, now.Triggers[i].Cron
	}

	return q.showAutomationForm(http.StatusOK, v)
}

// editorOf returns the address of the editor of a definition file.
func editorOf(factoryUID, path string) string {
	return "/factories/" + factoryUID + "/files/edit?" + url.Values{"path": {path}}.Encode()
}

// automationForm reads what the form starts from. now is nil if a form cannot hold the automation's file.
func (q *request) automationForm() (v automationForm, now *schema.AutomationForm, text string, err error) {
	_, f, err := q.managedPage("", "")
	if err != nil {
		return v, nil, "", err
	}

	cur, err := q.Store.Current(q.Context(), f.UID)
	if err != nil {
		return v, nil, "", err
	}

	v.Name = q.param("automation")
	i := slices.IndexFunc(cur.Tree.Automations, func(a schema.Automation) bool { return a.Name == v.Name })
	if i < 0 {
		return v, nil, "", api.Problem(
			"resource_not_found", "there is no automation %s in the applied definition", line(v.Name))
	}
	spec := cur.Tree.Automations[i]
	v.Path = spec.Path

	var file admin.FileContent
	if err := q.call(http.MethodGet, filePath(f.UID, v.Path), nil, &file); err != nil {
		return v, nil, "", err
	}
	if v.Webhooks, err = q.Store.Webhooks(q.Context(), f.UID, false); err != nil {
		return v, nil, "", err
	}

	read, err := schema.ReadAutomationFile([]byte(file.Content))
	if err != nil || len(read.Triggers) != len(spec.Triggers) {
		return v, nil, "", nil
	}
	for i, t := range read.Triggers {
		s := spec.Triggers[i]
		testable := s.Fires() && s.Schedule == nil
		v.Triggers = append(v.Triggers, triggerForm{t, i, testable, len(s.Headers) > 0, s})
	}
	for _, a := range cur.Tree.Agents {
		v.Agents = append(v.Agents, a.Name)
	}
	for _, r := range cur.Tree.Runners {
		v.Runners = append(v.Runners, r.Name)
	}

	v.Base = file.Revision
	return v, &read, file.Content, nil
}

func (q *request) showAutomationForm(status int, v automationForm) error {
	p, f, err := q.managedPage("Edit "+line(v.Name), "automations")
	if err != nil {
		return err
	}

	// A value that the definition does not declare stays to be chosen.
	for field, all := range map[string]*[]string{"agent": &v.Agents, "runner": &v.Runners} {
		if value := v.Form.Values[field]; value != "" && !slices.Contains(*all, value) {
			*all = append(*all, value)
		}
	}

	base := "/factories/" + f.UID + "/automations"
	p.Crumbs = append(p.Crumbs, crumb{"Automations", base}, crumb{v.Name, base + "/" + url.PathEscape(v.Name)})
	p.Data = v
	return q.renderStatus(status, "automation-edit", p)
}

// saveAutomation changes an automation's file, or tests the filter of one of its triggers.
func (q *request) saveAutomation() error {
	v, now, text, err := q.automationForm()
	if err != nil {
		return err
	}
	if now == nil {
		return q.redirect(editorOf(q.param("factory"), v.Path), "")
	}

	fields := []string{"enabled", "agent", "model", "runner", "prompt", "payload"}
	for _, t := range v.Triggers {
		fields = append(fields, t.FilterField(), t.CronField())
	}
	v.Form = q.formOf(fields...)
	v.Base = cmp.Or(clip(40, q.PostForm.Get("base")), v.Base)

	want := *now
	want.Enabled = v.Form.Values["enabled"] == "yes"
	want.Agent = strings.TrimSpace(v.Form.Values["agent"])
	want.Model = strings.TrimSpace(v.Form.Values["model"])
	want.Runner = strings.TrimSpace(v.Form.Values["runner"])
	want.Prompt = unixLines(v.Form.Values["prompt"])
	v.Form.Values["prompt"] = want.Prompt
	if strings.TrimSpace(want.Prompt) == "" {
		v.Form.Errors["prompt"] = "write what the agent is to do"
	}
	want.Triggers = slices.Clone(now.Triggers)
	for i := range v.Triggers {
		v.readTrigger(q.PostForm[v.Triggers[i].WebhookField()], i, &want.Triggers[i])
	}

	if i, err := strconv.Atoi(q.PostForm.Get("test")); err == nil && i >= 0 && i < len(v.Triggers) {
		return q.testTrigger(v, i)
	}

	out, err := schema.EditAutomationFile([]byte(text), want)
	if err != nil && len(v.Form.Errors) == 0 {
		v.Form.Error = err.Error()
	}
	if len(v.Form.Errors) > 0 || err != nil {
		return q.showAutomationForm(http.StatusUnprocessableEntity, v)
	}

	factory := q.param("factory")
	address := filePath(factory, v.Path) + "?base_revision=" + url.QueryEscape(v.Base)
	err = q.call(http.MethodPut, address, admin.EditFileRequest{Content: string(out)}, nil)
	if err == nil {
		return q.redirect("/factories/"+factory+"/automations/"+url.PathEscape(v.Name), "saved")
	}

	return q.edited(factory, err, &v.Form, func() error {
		if v.Problems, err = q.refusals(factory, v.Path, string(out)); err != nil {
			return err
		}
		return q.showAutomationForm(http.StatusUnprocessableEntity, v)
	})
}

// readTrigger reads the fields of a trigger into the form, and into what its file shall say.
func (v *automationForm) readTrigger(webhooks []string, i int, want *schema.TriggerForm) {
	t := &v.Triggers[i]
	if t.spec.Schedule != nil {
		want.Cron = strings.TrimSpace(v.Form.Values[t.CronField()])
		if want.Cron == "" {
			v.Form.Errors[t.CronField()] = "write when it starts, such as 0 6 * * *"
		}
		return
	}

	text := unixLines(v.Form.Values[t.FilterField()])
	v.Form.Values[t.FilterField()] = text
	want.Filter = text
	filter, wrong := filterOf(text)
	if wrong != "" {
		v.Form.Errors[t.FilterField()] = wrong
	}
	if t.Provider != "webhook" {
		t.spec.Filter = filter
		return
	}

	t.spec.Payload = filter
	if _, problems := schema.CompileFilter(filter); wrong == "" && len(problems) > 0 {
		v.Form.Errors[t.FilterField()] = strings.Join(append(problems[0].Path, problems[0].Message), ": ")
	}
	if len(webhooks) == 0 {
		v.Form.Errors[t.WebhookField()] = "choose at least one"
	}
	want.WebhookIDs = webhooks[:min(len(webhooks), 64)]
	t.WebhookIDs, t.spec.WebhookIDs = want.WebhookIDs, want.WebhookIDs
}

// testTrigger shows the form again, with what one of its triggers makes of deliveries.
func (q *request) testTrigger(v automationForm, i int) error {
	t := v.Triggers[i]
	wrong := v.Form.Errors[t.FilterField()] != ""
	v.Form.Errors = map[string]string{t.FilterField(): v.Form.Errors[t.FilterField()]}
	if wrong {
		return q.showAutomationForm(http.StatusUnprocessableEntity, v)
	}

	delete(v.Form.Errors, t.FilterField())
	var err error
	if v.Test, err = q.testIn(&v.Form, q.param("factory"), v.Webhooks, t.spec); err != nil {
		return err
	}

	v.Test.Trigger = i
	status := http.StatusOK
	if len(v.Form.Errors) > 0 || v.Form.Error != "" {
		status = http.StatusUnprocessableEntity
	}
	return q.showAutomationForm(status, v)
}

// tested is what a form shows of a test of a trigger.
type tested struct {
	Done    bool
	Trigger int // its index
	Tried   trial
	Result  *admin.FilterTestResponse // of the pasted body, if there is one
}

// Of reports whether the test is of a trigger.
func (t tested) Of(trigger int) bool { return t.Done && t.Trigger == trigger }

// testIn tests a trigger with the body that a form has, or else with stored deliveries.
func (q *request) testIn(
	f *form, factoryUID string, hooks []state.Webhook, t schema.Trigger,
) (done tested, err error) {
	body := strings.TrimSpace(f.Values["payload"])
	if body == "" {
		stored, err := q.storedDeliveries(hooks, t.WebhookIDs)
		return tested{Done: true, Tried: try(t, stored)}, err
	}

	if wrong := schema.NotJSON([]byte(body)); wrong != "" {
		f.Errors["payload"] = wrong
		return done, nil
	}

	in := admin.FilterTestRequest{Filter: t.Filter, Provider: t.Provider, Event: t.Event, Payload: []byte(body)}
	if t.Provider == "webhook" {
		in = admin.FilterTestRequest{Filter: t.Payload, Headers: t.Headers, Payload: []byte(body)}
		if len(t.WebhookIDs) > 0 {
			in.WebhookIDs = &t.WebhookIDs
		}
	}

	var result admin.FilterTestResponse
	if err := q.call(http.MethodPost, "/factory/"+factoryUID+"/filter-tests", in, &result); err != nil {
		if !f.take(err) {
			return done, err
		}
		return done, nil
	}

	return tested{Done: true, Result: &result}, nil
}
