package dashboard_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"millwright/schema"
	"millwright/state"
	"millwright/state/statetest"
)

// withFile returns repoFiles with one file written anew.
func withFile(path, content string) []schema.File {
	all := []schema.File{{Path: path, Content: content}}
	for _, f := range repoFiles {
		if f.Path != path {
			all = append(all, f)
		}
	}
	return all
}

func TestSecretsAndKeys(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.furnish()
		b := w.signedIn(state.RoleAdmin)
		page := b.page("/secrets")
		says(t, page, "CI_TOKEN", "repo / ci", "SPARE", "nothing")
		saysNot(t, page, ciToken, "Delete CI_TOKEN")
		for _, c := range []struct{ name, value, pending, want string }{
			{"1x", "v", "", "is a letter or _"},
			{"", "v", "", "is a letter or _"},
			{"A-B", "v", "", "is a letter or _"},
			{"X", "", "", "is empty"},
			{"X", "v", "yes", "cannot be true together"},
		} {
			a := b.post("/secrets", "name", c.name, "value", c.value, "pending", c.pending)
			if a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.Text, `class="wrong"`) || !strings.Contains(a.Text, `value="`+c.name+`"`) {
				t.Errorf("%+v: %d %s", c, a.StatusCode, plain(a.Text))
			}
		}
		says(t, b.follow("/secrets", "name", "CI_TOKEN", "value", "a-newer-one\r\n"), "has a new value", "newer value waits")
		if v, err := w.store.SecretValue(t.Context(), "CI_TOKEN"); err != nil || string(v) != "a-newer-one" {
			t.Errorf("value %q, %v", v, err)
		}
		says(t, b.follow("/secrets", "name", "LATER", "pending", "yes"), "The secret is pending", "pending")
		says(t, b.follow("/secrets/SPARE/delete"), "Deleted")
		if a := b.post("/secrets/CI_TOKEN/delete"); a.StatusCode != http.StatusConflict {
			t.Errorf("deleting one in use: %d", a.StatusCode)
		} else {
			says(t, a.Text, "is in use by webhook ci of factory repo")
		}

		b.page("/keys")
		a := b.post("/keys", "name", "", "role", "owner")
		if a.StatusCode != http.StatusUnprocessableEntity || strings.Count(a.Text, `class="wrong"`) != 2 {
			t.Errorf("a bad key: %d %s", a.StatusCode, plain(a.Text))
		}
		a = b.post("/keys", "name", "CI", "role", "viewer", "expires_in", "24h")
		secret := find(t, shownSecret, a.Text)
		key, err := w.store.KeyBySecret(t.Context(), secret)
		if err != nil || key.Role != state.RoleViewer || key.Expires == nil || time.Until(*key.Expires) > 24*time.Hour {
			t.Errorf("key %+v, %v", key, err)
		}
		saysNot(t, b.page("/keys"), secret)
		says(t, b.follow("/keys/"+key.UID+"/revoke"), "Revoked", "revoked")
		if a := b.post("/keys/" + w.uids[state.RoleAdmin] + "/revoke"); a.StatusCode != http.StatusConflict {
			t.Errorf("revoking the last admin key: %d", a.StatusCode)
		}
	})
}

func TestFactoryPages(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.furnish()
		b := w.signedIn(state.RoleAdmin)
		path := "/factories/" + w.repo
		says(t, b.page(path), "Applied", "4b825dc642", "Ada", "git https://git.example.com/acme/repo.git", "+6")
		says(t, b.page(path+"/plan"), "changes nothing", "Unchanged 6")
		says(t, b.page(path), "Plan</a>")
		saysNot(t, w.signedIn(state.RoleViewer).page(path), "Plan</a>")

		// The changes of an attempt are shown as a difference, a prompt by its lines.
		prompt := withFile("automations/triage/automation.md", strings.Replace(repoFiles[3].Content, "Find the cause.", "Find the cause.\n\nThen <mend> it.", 1))
		if a, err := w.apply(t.Context(), w.repo, prompt); err != nil || a.Outcome != state.OutcomeApplied {
			t.Fatal(a.Problems, err)
		}
		attempt := find(t, regexp.MustCompile(`href="(/factories/[^"]*/history/\d+)"`), b.page(path+"/history"))
		says(t, b.page(attempt), "applied", "Ada", "update", "automation triage", `<span class="added">&#43;Then &lt;mend&gt; it.</span>`, `<span class="same"> Find the cause.</span>`)
		for _, missing := range []string{"/history/0", "/history/x", "/history/99999999"} {
			if a := b.get(path + missing); a.StatusCode != http.StatusNotFound {
				t.Errorf("%s: %d", missing, a.StatusCode)
			}
		}
		if a, err := w.apply(t.Context(), w.repo, repoFiles); err != nil || a.Outcome != state.OutcomeApplied {
			t.Fatal(a.Problems, err)
		}
		if a, err := w.apply(t.Context(), w.repo, repoFiles[3:4]); err != nil || a.Outcome != state.OutcomeRefused {
			t.Fatalf("a prune: %+v, %v", a, err)
		}
		page := b.page(path)
		says(t, page, "Refused", "prune-guard", "this would delete 3 of 3 webhooks", "Apply and lose webhooks")
		says(t, b.page("/"), "1 thing needs attention", "Factory repo: Refused")
		says(t, b.page(path+"/history"), "refused", "applied")
		says(t, b.follow(path+"/sync"), "Applied. The new definition is in use.")
		if _, err := w.store.ConfigureFactories(t.Context(), []state.FactorySettings{{Name: "held", Source: state.Source{Kind: "managed"}}}); err != nil {
			t.Fatal(err)
		}
		says(t, b.page(path), "Detached", "webhooks answer 404")
		says(t, b.page("/factories"), "repo", "held")
		if a := b.post(path + "/sync"); a.StatusCode != http.StatusConflict {
			t.Errorf("syncing a detached factory: %d", a.StatusCode)
		}
	})
}

// TestRanges: charts show a day, a week or a month, as the address says.
func TestRanges(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.furnish()
		w.ciDelivery(`{"status":"failed"}`)
		b := w.signedIn(state.RoleViewer)
		for _, path := range []string{"/", "/runs", "/factories/" + w.repo} {
			for query, want := range map[string]string{
				"": "24 hours", "?range=24h": "24 hours", "?range=1h": "hour", "?range=7d": "7 days", "?range=30d": "30 days", "?range=x%22%3E": "24 hours",
			} {
				page := b.page(path + query)
				says(t, page, "in the last "+want+"</h2>", "range=7d")
				if n := strings.Count(page, `aria-current="true">`+strings.NewReplacer("24 hours", "24h", "hour", "1h", " days", "d").Replace(want)+"</a>"); n == 0 {
					t.Errorf("%s%s does not mark its range", path, query)
				}
			}
		}
		statetest.Until(t, "the month's chart has the delivery", func() bool { return strings.Contains(b.page("/?range=30d"), `<b>1</b>`) })
		says(t, b.page("/runs?state=FAILED&range=7d"), "state=FAILED", "range=30d")
		says(t, b.page("/?range=30d"), "In the last 24 hours: 1 request, 1 run.")
	})
}

// TestNewAutomationTest: the form of a new automation tests its filter with stored deliveries, and keeps what
// was typed.
func TestNewAutomationTest(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.furnish()
		b := w.signedIn(state.RoleAdmin)
		base := "/factories/" + w.held
		b.page(base + "/webhooks/new")
		b.post(base+"/webhooks/new", "name", "alerts", "auth_mode", "token", "secret_name", "CI_TOKEN")
		hook := w.webhook(w.held, "alerts")
		for _, body := range []string{`{"level":"page"}`, `{"level":"info"}`} {
			if status := w.deliver(hook.UID, body, "Authorization", "Bearer "+ciToken); status != http.StatusAccepted {
				t.Fatal(status)
			}
		}

		b.page(base + "/automations/new")
		a := b.post(base+"/automations/new", "test", "yes", "name", "half", "webhook", hook.UID, "filter", "level: [page]", "prompt", "")
		says(t, a.Text, "1 of the last 2", "would trigger", "Webhook check", "Payload check", `level is "info"; in ["page"]`, w.deliveries(hook)[0].UID, "&#34;level&#34;: &#34;page&#34;", "level: [page]")
		if a.StatusCode != http.StatusOK || !strings.Contains(a.Text, `value="half"`) || !strings.Contains(a.Text, `value="`+hook.UID+`" checked`) {
			t.Errorf("the form does not keep what was typed: %d %s", a.StatusCode, a.Text)
		}
		for _, wrong := range [][]string{{"filter", "level: ["}, {"filter", "level: {}"}} {
			a := b.post(base+"/automations/new", append([]string{"test", "yes", "webhook", hook.UID}, wrong...)...)
			if a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.Text, `id="filter-error"`) || strings.Contains(a.Text, `id="name-error"`) {
				t.Errorf("%q: %d", wrong, a.StatusCode)
			}
		}
		if a := b.post(base+"/automations/new", "test", "yes"); a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.Text, `id="webhook-error"`) {
			t.Errorf("without a webhook: %d", a.StatusCode)
		}
		says(t, b.follow(base+"/automations/new", "name", "half", "webhook", hook.UID, "filter", "level: [page]", "prompt", "Wake up."), "Saved and applied", `"page"`)
	})
}

// TestNoForeman: the page of a run that a factory without a foreman was given tells so.
func TestNoForeman(t *testing.T) {
	w := newWorld(t, statetest.Open(t, statetest.SQLite(t)), "")
	w.furnish()
	b := w.signedIn(state.RoleViewer)
	r, err := w.store.CreateRun(t.Context(), state.NewRun{FactoryUID: w.repo, Title: "work", Prompt: "do it", Source: "API", Creator: state.Creator{Type: "user", UID: "u", DisplayName: "Ada"}}, nil, state.Idempotency{})
	if err != nil {
		t.Fatal(err)
	}
	says(t, b.page("/runs/"+r.ID), "names no foreman")
	saysNot(t, b.page("/runs/"+w.run("x").ID), "foreman")
	w.ciDelivery(`{"status":"failed"}`)
	runs, _, err := w.store.Runs(t.Context(), state.RunFilter{Sources: []string{"CUSTOM_WEBHOOK"}}, state.RunOrder{}, nil, 1)
	if err != nil || len(runs) != 1 {
		t.Fatal(runs, err)
	}
	saysNot(t, b.page("/runs/"+runs[0].ID), "names no foreman")
}
