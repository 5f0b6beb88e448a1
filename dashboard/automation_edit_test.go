package dashboard_test

import (
	"net/http"
	"strings"
	"testing"

	"millwright/state"
	"millwright/state/statetest"
)

// TestEditAutomation changes an automation of a managed factory by its form.
func TestEditAutomation(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.furnish()
		b := w.signedIn(state.RoleAdmin)
		base := "/factories/" + w.held
		b.page(base + "/webhooks/new")
		for _, name := range []string{"alerts", "builds"} {
			b.post(base+"/webhooks/new", "name", name, "auth_mode", "token", "secret_name", "CI_TOKEN")
		}
		alerts, builds := w.webhook(w.held, "alerts"), w.webhook(w.held, "builds")
		if status := w.deliver(alerts.UID, `{"status":"failed"}`, "Authorization", "Bearer "+ciToken); status != http.StatusAccepted {
			t.Fatal(status)
		}

		file := base + "/files/edit"
		const name = "automations/triage/automation.md"
		b.follow(file, "new", "yes", "path", name, "content", "---\n# ours\ntriggers:\n  - provider: webhook\n    event: received\n"+
			"    filter:\n      webhook_ids:\n        - "+alerts.UID+" # alerts\n      payload:\n        status: [broken] # only\n"+
			"  - provider: schedule\n    event: cron_fired\n    schedule: {cron: '0 6 * * *', name: daily}\n"+
			"retry:\n  attempts: 2 # at most\n---\n\nFind the cause.\n")

		edit := base + "/automations/triage/edit"
		says(t, b.page(base+"/automations/triage"), `href="`+edit+`"`, "Edit the file")
		page := b.page(edit)
		says(t, page, "status: [broken] # only", "0 6 * * *", "Find the cause.", `value="`+alerts.UID+`" checked`)
		revision := `name="base" value="`
		base0 := page[strings.Index(page, revision)+len(revision):]
		base0 = base0[:strings.Index(base0, `"`)]
		fields := func(more ...string) []string {
			return append([]string{
				"base", base0, "enabled", "yes", "filter-0", "status: [failed] # now", "webhook-0", alerts.UID,
				"cron-1", "0 7 * * *", "prompt", "Find it.\r\nSay it.",
			}, more...)
		}

		// The filter is tested where it is typed, and nothing changes.
		says(t, b.post(edit, fields("test", "0")...).Text, "1 of the last 1", "to the chosen webhooks would trigger", "# now")
		says(t, b.post(edit, fields("test", "0", "payload", `{"status":"<b>"}`)...).Text, "Would not trigger", "Value found", "&lt;b&gt;")
		for name, c := range map[string]struct {
			field string
			more  []string
		}{
			"payload": {"payload", []string{"test", "0", "payload", "{"}},
			"filter":  {"filter-0", []string{"filter-0", "a: ["}},
			"rule":    {"filter-0", []string{"filter-0", "a: {maybe: 1}"}},
			"prompt":  {"prompt", []string{"prompt", " "}},
			"cron":    {"cron-1", []string{"cron-1", ""}},
		} {
			a := b.post(edit, append(c.more, fields()...)...)
			if a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.Text, `id="`+c.field+`-error"`) {
				t.Errorf("%s: %d %s", name, a.StatusCode, plain(a.Text))
			}
		}
		says(t, b.post(edit, "cron-1", "0 7 * * *", "prompt", "Go.").Text, `id="webhook-0-error"`)
		a := b.post(edit, append([]string{"cron-1", "at noon"}, fields()...)...)
		if a.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("a bad schedule: %d %s", a.StatusCode, plain(a.Text))
		}
		says(t, a.Text, "Nothing was saved", name+":", `value="at noon"`)

		says(t, b.follow(edit, fields("webhook-0", builds.UID)...), "Saved and applied", "Find it.", "0 7 * * *")
		want := "---\n# ours\ntriggers:\n  - provider: webhook\n    event: received\n" +
			"    filter:\n      webhook_ids:\n        - " + alerts.UID + " # alerts\n        - " + builds.UID + "\n" +
			"      payload:\n        status: [failed] # now\n" +
			"  - provider: schedule\n    event: cron_fired\n    schedule: {cron: \"0 7 * * *\", name: daily}\n" +
			"retry:\n  attempts: 2 # at most\n---\n\nFind it.\nSay it.\n"
		files, err := w.store.ManagedFiles(t.Context(), w.held, mustHead(t, w))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if f.Path == name && f.Content != want {
				t.Errorf("got %s\nwant %s", f.Content, want)
			}
		}

		// Another edit came first.
		a = b.post(edit, fields("filter-0", "")...)
		if a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.Text, "was changed after") {
			t.Errorf("an edit of an old revision: %d %s", a.StatusCode, plain(a.Text))
		}

		viewer := w.signedIn(state.RoleViewer)
		viewer.page(base)
		if a := viewer.post(edit, fields()...); a.StatusCode != http.StatusForbidden {
			t.Errorf("a viewer may edit: %d %s", a.StatusCode, plain(a.Text))
		}
		if a := viewer.get(base + "/automations/none/edit"); a.StatusCode != http.StatusNotFound {
			t.Errorf("no such automation: %d", a.StatusCode)
		}
		if a := b.get("/factories/" + w.repo + "/automations/triage/edit"); a.StatusCode != http.StatusNotFound {
			t.Errorf("of a repository: %d", a.StatusCode)
		}
	})
}

func mustHead(t *testing.T, w *world) int64 {
	t.Helper()
	head, err := w.store.ManagedHead(t.Context(), w.held)
	if err != nil {
		t.Fatal(err)
	}
	return head.Number
}

// TestNewAutomationPayload tests the filter of a new automation with a pasted body.
func TestNewAutomationPayload(t *testing.T) {
	w := newWorld(t, statetest.Open(t, statetest.SQLite(t)), "")
	w.furnish()
	b := w.signedIn(state.RoleAdmin)
	base := "/factories/" + w.held
	b.page(base + "/webhooks/new")
	b.post(base+"/webhooks/new", "name", "alerts", "auth_mode", "token", "secret_name", "CI_TOKEN")
	fields := []string{"test", "yes", "webhook", w.webhook(w.held, "alerts").UID, "filter", "n: [1]", "payload"}
	says(t, b.post(base+"/automations/new", append(fields, `{"n":1}`)...).Text, "Would trigger", "Value found")
	says(t, b.post(base+"/automations/new", append(fields, `{"n":`)...).Text, `id="payload-error"`)
}
