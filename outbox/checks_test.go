package outbox_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"code.gitea.io/sdk/gitea"

	"millwright/forge/forgetest"
	"millwright/schema/provider"
	"millwright/state"
	"millwright/state/checks"
	"millwright/state/statetest"
)

// TestAcceptanceChecks publishes the checks of a revision and a pull request, while the forge makes things whose
// answers are lost, and asks to wait.
func TestAcceptanceChecks(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) { worldOf(t, s, nil).publishes() })
}

func (w *world) publishes() {
	t := w.t
	ctx, url := t.Context(), w.address+"/acme/shop.git"
	f, err := w.store.EnsureFactory(ctx, "checked", state.Source{Kind: "git", URL: url}, false)
	if err != nil {
		t.Fatal(err)
	}

	// The forge asks to wait, makes the first status and the first comment, and nobody hears of it.
	var waited, statuses, comments atomic.Int64
	refuse := func(rw http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost || waited.Add(1) > 2 {
			return false
		}
		rw.Header().Set("Content-Type", "application/json")
		rw.Header().Set("Retry-After", "1")
		rw.WriteHeader(http.StatusTooManyRequests)
		_, _ = rw.Write([]byte(`{"message":"Slow down"}`))
		return true
	}
	lose := func(r *http.Request) bool {
		switch {
		case r.Method == http.MethodPost && strings.Contains(r.URL.Path, "/statuses/"):
			return statuses.Add(1) == 1
		case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/comments"):
			return comments.Add(1) == 1
		}
		return false
	}
	w.refuse.Store(&refuse)
	w.lose.Store(&lose)

	err = w.store.Apply(ctx, state.ChangeSet{
		FactoryUID: f.UID, Base: f.Generation, Started: time.Now(), Revision: state.Revision{ID: w.base},
		Counts: state.Counts{Created: 2}, CheckURL: url,
	})
	if err != nil {
		t.Fatal(err)
	}
	shown := w.published(f.UID, w.base)
	if shown.State != checks.Done || shown.Reason != "" {
		t.Fatalf("the revision: %+v", shown)
	}
	status, _, err := w.gitea.API().GetCombinedStatus("acme", "shop", w.base)
	if err != nil || len(status.Statuses) != 1 || status.Statuses[0].Context != "millwright/checked" ||
		status.Statuses[0].Description != "applied: 2 created" || status.State != gitea.StatusSuccess ||
		!strings.HasPrefix(status.Statuses[0].TargetURL, "https://mill.example.com/factories/"+f.UID+"/history/") {
		t.Errorf("status %+v, %v", status, err)
	}

	forgetest.Git(t, w.dir, "checkout", "--quiet", "-b", "change")
	forgetest.Git(t, w.dir, "commit", "--quiet", "--allow-empty", "--message", "Change")
	forgetest.Git(t, w.dir, "push", "--quiet", "origin", "change")
	head := forgetest.Git(t, w.dir, "rev-parse", "HEAD")
	pull, _, err := w.gitea.API().CreatePullRequest("acme", "shop", gitea.CreatePullRequestOption{
		Head: "change", Base: "main", Title: "Change",
	})
	if err != nil {
		t.Fatal(err)
	}

	check := func(commit, comment string) checks.Check {
		t.Helper()
		number := int(pull.Index)
		rows, err := w.store.Checks().See(ctx, f.UID, []checks.Check{{Number: number, URL: url, Commit: commit}}, true)
		if err != nil {
			t.Fatal(err)
		}
		c := rows[0]
		c.Result, c.Description, c.Public, c.Comment, c.Basis = checks.Success, "fine", "fine", comment, comment
		if err := w.store.Checks().Checked(ctx, c); err != nil {
			t.Fatal(err)
		}
		return w.published(f.UID, c.Subject())
	}

	first := check(head, "### first")
	second := check(head, "### second")
	if first.CommentID == 0 || second.CommentID != first.CommentID || second.State != checks.Done {
		t.Errorf("comments %d and %d, %s", first.CommentID, second.CommentID, second.State)
	}
	all := w.comments()
	if len(all) != 1 || !strings.HasPrefix(all[0].Body, "### second\n\n<!-- millwright:check-") {
		t.Fatalf("%d comments: %+v", len(all), all)
	}
	if comments.Load() != 1 {
		t.Errorf("%d comments were made", comments.Load())
	}

	if old := check(w.base, "### of another head"); old.State != checks.Dropped || old.Reason == "" {
		t.Errorf("the check of a head that is not the pull request's: %+v", old)
	}

	// Its own events are known, also those of edits. The same text from others is not its own.
	for want, d := range map[string]provider.Origin{
		"created": {Sender: w.gitea.Admin, Object: "comment", Action: "created", Text: all[0].Body},
		"edited":  {Sender: w.gitea.Admin, Object: "comment", Action: "edited", Text: all[0].Body},
		"status": {
			Sender: w.gitea.Admin, Object: "status", Context: "millwright/checked", URL: status.Statuses[0].TargetURL,
			Target: provider.Target{Commit: w.base},
		},
		"":  {Sender: "mallory", Object: "comment", Action: "created", Text: all[0].Body},
		" ": {Sender: w.gitea.Admin, Object: "comment", Action: "created", Text: "### second"},
	} {
		why, err := w.out.Own(ctx, d)
		if err != nil || (why != "") != (strings.TrimSpace(want) != "") {
			t.Errorf("%q is its own event: %q, %v", want, why, err)
		}
	}
}

// published waits until a check is not to be published any more, and returns it.
func (w *world) published(factory, subject string) (c checks.Check) {
	w.t.Helper()
	statetest.Until(w.t, "the check of "+subject, func() bool {
		rows, err := w.store.Checks().Subject(w.t.Context(), factory, subject)
		if err != nil || len(rows) != 1 {
			w.t.Fatal(rows, err)
		}
		c = rows[0]
		return c.State != checks.Waiting && c.State != checks.Doing
	})
	return c
}
