package dashboard_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"millwright/reconcile/plan"
	"millwright/schema"
	"millwright/state"
)

// revise applies files as a revision of the factory of a git source.
func (w *world) revise(id string, files ...schema.File) {
	w.t.Helper()
	cur, err := w.store.Current(w.t.Context(), w.repo)
	if err != nil {
		w.t.Fatal(err)
	}
	tree, err := schema.FilesFS(files)
	if err != nil {
		w.t.Fatal(err)
	}
	p, app := plan.Make(cur, tree, plan.Options{
		Revision: state.Revision{ID: id, Author: "Ada", Tree: "tree of " + id}, Now: time.Now(), AllowPrune: true,
	})
	if app == nil {
		w.t.Fatalf("revision %s: %+v", id, p.Problems)
	}
	app.Files = files
	if err := w.store.Apply(w.t.Context(), *app); err != nil {
		w.t.Fatal(err)
	}
}

func hookFile(name, secret string) schema.File {
	return schema.File{Path: "webhooks/" + name + ".yaml", Content: "authMode: token\nsecretName: " + secret + "\n"}
}

func skillFile(text string) schema.File {
	return schema.File{Path: "skills/a/SKILL.md", Content: "---\nname: a\ndescription: A.\n---\n" + text}
}

// TestRollback rolls back by the page and by the API, with every kind of revision that cannot serve.
func TestRollback(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.furnish()
		w.revise("aaaaaaaa-1", hookFile("ci", "CI_TOKEN"), hookFile("gone", "SPARE"), skillFile("One."))
		gone := w.webhook(w.repo, "gone").UID
		w.revise("bbbbbbbb-2", hookFile("ci", "CI_TOKEN"), skillFile("Two."))
		w.revise("cccccccc-3", hookFile("ci", "CI_TOKEN"), hookFile("hub", "HUB"), hookFile("ping", "PING"), hookFile("more", "CI_TOKEN"), skillFile("Three."))
		refused := state.Attempt{FactoryUID: w.repo, Started: time.Now(), Outcome: state.OutcomeRefused, Revision: state.Revision{ID: "dddddddd-4"}}
		if err := w.store.Refuse(t.Context(), refused); err != nil {
			t.Fatal(err)
		}

		path := "/factory/" + w.repo + "/rollback"
		for _, c := range []struct {
			body   string
			status int
			says   string
		}{
			{`{"revision":"eeeeeeee"}`, 404, "no revision"},
			{`{"revision":"aaaaaa"}`, 404, "no revision"}, // too short
			{`{"revision":"dddddddd-4"}`, 409, "was never applied"},
			{`{"revision":"cccccccc-3"}`, 409, "is the applied one"},
			{`{"revision":"bbbbbbbb-2"}`, 400, "prune-guard"},
			{`{"revision":["b"]}`, 400, "revision"},
		} {
			if status, text := w.ask("POST", path, c.body); status != c.status || !strings.Contains(text, c.says) {
				t.Errorf("%s: %d %s; want %d, %s", c.body, status, text, c.status, c.says)
			}
		}
		if status, text := w.ask("POST", "/factory/"+w.held+"/rollback", `{"revision":"aaaaaaaa-1"}`); status != 404 {
			t.Errorf("a revision of another factory: %d %s", status, text)
		}
		if status, text := w.ask("POST", "/factory/"+w.held+"/resume", ""); status != 409 {
			t.Errorf("resume what is not suspended: %d %s", status, text)
		}

		// The page shows the plan, and asks for the permission that it needs.
		b := w.signedIn(state.RoleAdmin)
		pages := "/factories/" + w.repo
		says(t, b.page(pages), "Roll back…", "Sync now")
		says(t, b.page(pages+"/rollback"), "bbbbbbbb-2", "cannot be applied now", "prune-guard", "Roll back to", "webhook ping", "skill a")
		saysNot(t, w.signedIn(state.RoleViewer).page(pages), "Roll back…")
		if a := b.post(pages+"/rollback", "revision", "bbbbbbbb-2"); a.StatusCode != 400 {
			t.Errorf("without permission: %d", a.StatusCode)
		}
		says(t, b.follow(pages+"/rollback", "revision", "bbbbbbbb-2", "allow_prune", "yes"),
			"Rolled back", "Suspended", "suspended at revision bbbbbbbb-2 since the admin rolled back", "Resume")
		saysNot(t, b.page(pages), "Sync now")

		// A second one goes further back; the webhook returns with its UID. No other change is made meanwhile.
		if status, text := w.ask("POST", "/factory/"+w.repo+"/sync", ""); status != 409 || !strings.Contains(text, "suspended at revision") {
			t.Errorf("sync: %d %s", status, text)
		}
		if status, text := w.ask("POST", path, ""); status != 200 || !strings.Contains(text, `"revision":"aaaaaaaa-1"`) {
			t.Errorf("a second rollback: %d %s", status, text)
		}
		if again := w.webhook(w.repo, "gone"); again.UID != gone || again.Deleted != nil {
			t.Errorf("the webhook returned as %+v, not as %s", again, gone)
		}
		cur, err := w.store.Current(t.Context(), w.repo)
		if err != nil {
			t.Fatal(err)
		}
		late := state.ChangeSet{FactoryUID: w.repo, Base: cur.Factory.Generation, BaseRevision: cur.Factory.Applied.ID, Revision: state.Revision{ID: "late"}}
		if err := w.store.Apply(t.Context(), late); err == nil || !strings.Contains(err.Error(), "suspended") {
			t.Errorf("an apply during the suspension: %v", err)
		}

		says(t, b.follow(pages+"/resume"), "Resumed", "Sync now")
		if status, text := w.ask("POST", "/factory/"+w.repo+"/resume", ""); status != 409 {
			t.Errorf("a second resume: %d %s", status, text)
		}

		// A revision whose secret is gone, and one whose files are no longer kept.
		w.revise("ffffffff-5", hookFile("ci", "CI_TOKEN"), skillFile("Five."))
		if status, text := w.ask("DELETE", "/secrets/SPARE", ""); status != 204 {
			t.Fatalf("%d %s", status, text)
		}
		if status, text := w.ask("POST", path, `{"revision":"aaaaaaaa-1"}`); status != 400 || !strings.Contains(text, "SPARE") {
			t.Errorf("a revision whose secret is gone: %d %s", status, text)
		}
		if f, err := w.store.Factory(t.Context(), w.repo); err != nil || f.Pin != nil || f.Applied.ID != "ffffffff-5" {
			t.Errorf("after a refused rollback: %+v, %v", f, err)
		}
		for i := range 52 {
			w.revise(fmt.Sprintf("many-many-%d", i), hookFile("ci", "CI_TOKEN"), skillFile(fmt.Sprint(i)))
		}
		if status, text := w.ask("POST", path, `{"revision":"aaaaaaaa-1"}`); status != 409 || !strings.Contains(text, "no longer kept") {
			t.Errorf("an expired revision: %d %s", status, text)
		}
		if status, text := w.ask("GET", "/factory/"+w.repo+"/applied", ""); status != http.StatusOK || strings.Count(text, "applied_at") > 51 {
			t.Errorf("%d revisions are kept, %d", strings.Count(text, "applied_at"), status)
		}
	})
}
