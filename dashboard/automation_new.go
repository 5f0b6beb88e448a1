package dashboard

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"millwright/admin"
	"millwright/schema"
	"millwright/state"
)

type newAutomationView struct {
	Form     form
	Webhooks []state.Webhook
	Chosen   []string
	Problems []schema.Problem
	Test     tested
}

// newAutomation shows a form that writes the file of a first version of an automation.
func (q *request) newAutomation() error {
	return q.showNewAutomation(
		http.StatusOK,
		newAutomationView{Form: form{Values: map[string]string{}}, Chosen: q.URL.Query()["webhook"]},
	)
}

func (q *request) showNewAutomation(status int, v newAutomationView) error {
	p, f, err := q.managedPage("New automation", "automations")
	if err != nil {
		return err
	}
	if v.Webhooks, err = q.Store.Webhooks(q.Context(), f.UID, false); err != nil {
		return err
	}
	p.Crumbs = append(p.Crumbs, crumb{"Automations", "/factories/" + f.UID + "/automations"})
	p.Data = v
	return q.renderStatus(status, "automation-new", p)
}

// createAutomation writes automations/<name>/automation.md.
func (q *request) createAutomation() error {
	_, f, err := q.managedPage("", "")
	if err != nil {
		return err
	}

	v := newAutomationView{Form: q.formOf("name", "filter", "prompt", "payload"), Chosen: q.PostForm["webhook"]}
	name := strings.TrimSpace(v.Form.Values["name"])
	a := schema.Automation{
		Name:     name,
		Path:     "automations/" + name + "/automation.md",
		Enabled:  true,
		Prompt:   strings.Trim(unixLines(v.Form.Values["prompt"]), "\n"),
		Triggers: []schema.Trigger{{Provider: "webhook", Event: "received", WebhookIDs: v.Chosen}},
	}
	if strings.TrimSpace(a.Prompt) == "" {
		v.Form.Errors["prompt"] = "write what the agent is to do"
	}
	if v.Chosen = v.Chosen[:min(len(v.Chosen), 64)]; len(v.Chosen) == 0 {
		v.Form.Errors["webhook"] = "choose at least one"
	}
	if name == "" || strings.ContainsAny(name, "/\\") {
		v.Form.Errors["name"] = "is a name of letters, digits, dots, _ and -"
	}

	v.Form.Values["filter"] = unixLines(v.Form.Values["filter"])
	filter, unreadable := filterOf(v.Form.Values["filter"])
	if unreadable != "" {
		v.Form.Errors["filter"] = unreadable
	} else if _, wrong := schema.CompileFilter(filter); len(wrong) > 0 {
		v.Form.Errors["filter"] = strings.Join(append(wrong[0].Path, wrong[0].Message), ": ")
	}
	a.Triggers[0].Payload = filter

	if q.PostForm.Get("test") == "yes" {
		return q.tryNewFilter(f.UID, v, filter)
	}

	text, err := schema.AutomationFile(a)
	if err != nil && len(v.Form.Errors) == 0 {
		v.Form.Error = err.Error()
	}
	if len(v.Form.Errors) > 0 || v.Form.Error != "" {
		return q.showNewAutomation(http.StatusUnprocessableEntity, v)
	}

	list, err := q.heldFiles(f.UID)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(list.Files, func(file admin.HeldFile) bool { return file.Path == a.Path }) {
		v.Form.Errors["name"] = "there is an automation of this name already"
		return q.showNewAutomation(http.StatusUnprocessableEntity, v)
	}

	err = q.call(http.MethodPut, filePath(f.UID, a.Path), admin.EditFileRequest{Content: string(text)}, nil)
	if err == nil {
		return q.redirect("/factories/"+f.UID+"/automations/"+url.PathEscape(name), "saved")
	}

	return q.edited(f.UID, err, &v.Form, func() error {
		if v.Problems, err = q.refusals(f.UID, a.Path, string(text)); err != nil {
			return err
		}
		return q.showNewAutomation(http.StatusUnprocessableEntity, v)
	})
}

// tryNewFilter shows the form again, with the results of its filter for stored deliveries or a pasted body. The
// other fields may still be empty.
func (q *request) tryNewFilter(factoryUID string, v newAutomationView, filter json.RawMessage) error {
	delete(v.Form.Errors, "name")
	delete(v.Form.Errors, "prompt")
	if len(v.Form.Errors) > 0 {
		return q.showNewAutomation(http.StatusUnprocessableEntity, v)
	}

	hooks, err := q.Store.Webhooks(q.Context(), factoryUID, false)
	if err != nil {
		return err
	}

	trigger := schema.Trigger{Provider: "webhook", Event: "received", WebhookIDs: v.Chosen, Payload: filter}
	if v.Test, err = q.testIn(&v.Form, factoryUID, hooks, trigger); err != nil {
		return err
	}
	if len(v.Form.Errors) > 0 || v.Form.Error != "" {
		return q.showNewAutomation(http.StatusUnprocessableEntity, v)
	}

	return q.showNewAutomation(http.StatusOK, v)
}
