package dashboard_test

import (
	"net/http"
	"strings"
	"testing"

	"millwright/state"
)

// TestLimitedKey opens every page with a key that is limited to another factory.
func TestLimitedKey(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.furnish()
		d := w.ciDelivery(`{"status":"failed"}`)
		w.run("of no factory")
		_, secret, err := w.store.CreateLimitedKey(t.Context(), "limited", state.RoleAdmin, nil, []string{w.held})
		if err != nil {
			t.Fatal(err)
		}

		runs, _, err := w.store.Runs(t.Context(), state.RunFilter{}, state.RunOrder{}, nil, 10)
		if err != nil || len(runs) != 2 {
			t.Fatalf("runs %v, %v", runs, err)
		}

		w.keys["limited"] = secret
		b := w.signedIn("limited")
		for _, path := range append(w.everyPage(), "/keys", "/factories/"+w.repo+"/plan", "/runs?factory="+w.repo) {
			a := b.get(path)
			for _, theirs := range []string{w.repo, ">repo<", "CI_TOKEN", "Find the cause", d.UID, runs[0].ID, runs[1].ID} {
				if strings.Contains(a.Text, theirs) && !strings.Contains(path, theirs) {
					t.Errorf("%s has %q", path, theirs)
				}
			}
			if ofAnother := strings.Contains(path, w.repo) && !strings.HasPrefix(path, "/runs?"); ofAnother &&
				a.StatusCode != http.StatusNotFound {
				t.Errorf("%s: %d", path, a.StatusCode)
			}
		}

		says(t, b.page("/factories"), "held")
		says(t, b.page("/factories/"+w.held+"/webhooks/new"), "New webhook")
		if a := b.get("/"); a.Header.Get("Location") != "/factories" {
			t.Errorf("the overview: %d to %q", a.StatusCode, a.Header.Get("Location"))
		}

		// No form changes what it does not see.
		for _, path := range w.changes() {
			if path == "/logout" {
				continue
			}
			a := b.post(path, "prompt", "x", "to", "factory:"+w.repo)
			if a.StatusCode != http.StatusNotFound && a.StatusCode != http.StatusForbidden {
				t.Errorf("POST %s: %d %s", path, a.StatusCode, plain(a.Text))
			}
		}
	})
}
