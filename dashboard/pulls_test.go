package dashboard_test

import (
	"strings"
	"testing"

	"millwright/state"
	"millwright/state/checks"
)

// TestPullRequests lists the checked pull requests of a factory, whatever their authors wrote.
func TestPullRequests(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.furnish()
		b := w.signedIn(state.RoleViewer)
		path := "/factories/" + w.repo
		if page := b.page(path); strings.Contains(page, "Pull requests") {
			t.Errorf("a factory without pull requests: %s", plain(page))
		}

		open := []checks.Check{
			{Number: 7, URL: "https://git.example.com/acme/repo.git", Commit: strings.Repeat("a", 40), Pull: checks.Pull{
				Title: "Add a webhook", Author: "ada", URL: "https://git.example.com/acme/repo/pulls/7",
			}},
			{Number: 8, URL: "https://git.example.com/acme/repo.git", Commit: markup, Pull: checks.Pull{
				Title: markup + control, Author: markup, URL: "javascript:alert(1)", Fork: true,
			}},
		}
		rows, err := w.store.Checks().See(t.Context(), w.repo, open, true)
		if err != nil {
			t.Fatal(err)
		}
		for i, result := range []checks.Result{checks.Success, checks.Failure} {
			rows[i].Result, rows[i].Description = result, "would be "+string(result)+markup
			if err := w.store.Checks().Checked(t.Context(), rows[i]); err != nil {
				t.Fatal(err)
			}
		}

		page := b.page(path)
		hostile(t, path, page)
		says(t, page, "#7 Add a webhook by ada", "success would be success", "failure would be failure", "from a fork")
		if !strings.Contains(page, `href="https://git.example.com/acme/repo/pulls/7"`) || strings.Contains(page, "javascript:") {
			t.Errorf("links: %s", page)
		}

		if _, err := w.store.Checks().See(t.Context(), w.repo, nil, true); err != nil {
			t.Fatal(err)
		}
		says(t, b.page(path), "#7 Add a webhook by ada closed")
	})
}
