package dashboard_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"millwright/schema"
	"millwright/state"
)

// TestNewRun starts runs for a factory, for an agent and for neither, each form once, and refuses the rest.
func TestNewRun(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.furnish()
		fix := "---\nagentType: CUSTOM\n---\n\nYou mend.\n"
		agent := schema.File{Path: "agents/fixer/agent.md", Content: fix}
		if a, err := w.apply(t.Context(), w.repo, append([]schema.File{agent}, repoFiles...)); err != nil ||
			a.Outcome != state.OutcomeApplied {
			t.Fatalf("%+v, %v", a, err)
		}

		b := w.signedIn(state.RoleRunner)
		page := b.page("/runs/new?to=factory:" + w.repo)
		says(t, page, "repo / fixer", `value="factory:`+w.repo+`" selected`)
		says(t, b.page("/runs"), `href="/runs/new"`)
		says(t, b.page("/factories/"+w.repo), `href="/runs/new?to=factory:`+w.repo)
		fixer := find(t, regexp.MustCompile(`value="agent:([^"]+)"`), page)

		says(t, b.follow("/runs/new", "to", "factory:"+w.repo, "prompt", "Clean up.\r\nAll of it.", "once", "1"),
			"Started.", "Clean up. All of it.", "WEB_APP", "names no foreman")
		says(t, b.follow("/runs/new", "to", "agent:"+fixer, "prompt", "Mend it", "title", "<b>it</b>", "model_id", "m-1"),
			"&lt;b&gt;it&lt;/b&gt;", "You mend.", "m-1")
		first := b.post("/runs/new", "prompt", "Once", "once", "2").Header.Get("Location")
		if again := b.post("/runs/new", "prompt", "Once", "once", "2").Header.Get("Location"); again != first {
			t.Errorf("a form sent twice starts %q and %q", first, again)
		}

		for name, wrong := range map[string][]string{
			"no prompt":       {"prompt-error", "prompt", " \r\n "},
			"no such agent":   {"to-error", "prompt", "x", "to", "agent:none"},
			"no factory":      {"to-error", "prompt", "x", "to", "factory:../../keys"},
			"a long title":    {"title-error", "prompt", "x", "title", strings.Repeat("t", 121)},
			"another factory": {"", "prompt", "x", "to", "factory:" + state.NewID(state.PrefixFactory)},
		} {
			a := b.post("/runs/new", wrong[1:]...)
			refused := a.StatusCode == http.StatusUnprocessableEntity && strings.Contains(a.Text, `id="`+wrong[0]+`"`)
			if !refused && (wrong[0] != "" || a.StatusCode != http.StatusNotFound) {
				t.Errorf("%s: %d %s", name, a.StatusCode, plain(a.Text))
			}
		}

		says(t, w.signedIn(state.RoleViewer).page("/runs/new"), "sign in with a key of role runner")
	})
}
