package checks_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"millwright/schema"
	"millwright/state"
	"millwright/state/checks"
	"millwright/state/statetest"
)

const source = "https://git.example.com/acme/mill.git"

func factory(t *testing.T, s *state.Store) string {
	t.Helper()
	f, err := s.EnsureFactory(t.Context(), "mill", state.Source{Kind: "git", URL: source}, false)
	if err != nil {
		t.Fatal(err)
	}
	return f.UID
}

// apply applies a revision without changes.
func apply(t *testing.T, s *state.Store, uid, commit string) {
	t.Helper()
	f, err := s.Factory(t.Context(), uid)
	if err != nil {
		t.Fatal(err)
	}
	err = s.Apply(t.Context(), state.ChangeSet{
		FactoryUID: uid, Base: f.Generation, BaseRevision: f.Applied.ID, Started: time.Now(),
		Revision: state.Revision{ID: commit}, Counts: state.Counts{Created: 2, Updated: 1}, CheckURL: source,
	})
	if err != nil {
		t.Fatal(err)
	}
}

// one returns the check of a subject as text.
func one(t *testing.T, s *state.Store, uid, subject string) string {
	t.Helper()
	all, err := s.Checks().Subject(t.Context(), uid, subject)
	if err != nil || len(all) > 1 {
		t.Fatal(all, err)
	}
	if len(all) == 0 {
		return "none"
	}
	c := all[0]
	return fmt.Sprintf("%s %s: %s", c.State, c.Result, c.Description)
}

// drained takes all that is due now, and returns it as text.
func drained(t *testing.T, s *state.Store) (all []checks.Check) {
	t.Helper()
	for {
		c, ok, err := s.Checks().Take(t.Context(), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return all
		}
		all = append(all, c)
	}
}

// TestRevisions owes the forge a status of each attempt, from the transaction that records it.
func TestRevisions(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		ctx, uid := t.Context(), factory(t, s)
		table := s.Checks()
		for range 2 {
			if err := table.Begin(ctx, uid, source, "c1"); err != nil {
				t.Fatal(err)
			}
		}
		if all := drained(t, s); len(all) > 0 {
			t.Errorf("a pending status does not wait for its result: %+v", all)
		}

		apply(t, s, uid, "c1")
		want := "waiting success: applied: 2 created, 1 updated"
		if got := one(t, s, uid, "c1"); got != want {
			t.Errorf("check %q, want %q", got, want)
		}

		if err := table.Begin(ctx, uid, source, "lost"); err != nil {
			t.Fatal(err)
		}
		problems := []schema.Problem{
			{Severity: schema.SeverityWarning, Message: "odd"},
			{Severity: schema.SeverityError, Code: "secret-missing", Path: "a.yaml", Line: 1, Message: "no secret\x00"},
			{Severity: schema.SeverityError, Code: "unknown-key", Path: "b.yaml", Line: 2, Message: "unknown"},
		}
		refused := state.Attempt{
			FactoryUID: uid, Started: time.Now(), Revision: state.Revision{ID: "c2"},
			Outcome: state.OutcomeRefused, Problems: problems, CheckURL: source,
		}
		if err := s.Refuse(ctx, refused); err != nil {
			t.Fatal(err)
		}
		if got := one(t, s, uid, "c2"); !strings.HasPrefix(got, "waiting failure: refused: a.yaml:1: no secret") {
			t.Errorf("check %q", got)
		}
		if got := one(t, s, uid, "lost"); got != "waiting error: a newer revision took its place" {
			t.Errorf("the older pending one is %q", got)
		}

		all := drained(t, s)
		if len(all) != 3 {
			t.Fatalf("%d checks are due, want 3", len(all))
		}
		for _, c := range all {
			if c.Commit == "c2" && c.Public != "refused: b.yaml:2: unknown [unknown-key] and 1 more" {
				t.Errorf("the public learns %q", c.Public)
			}
			if c.Attempt == 0 && c.Commit != "lost" {
				t.Errorf("%s has no attempt", c.Commit)
			}
		}

		// A check that says something else while it is published waits again.
		refused.Problems = problems[2:]
		if err := s.Refuse(ctx, refused); err != nil {
			t.Fatal(err)
		}
		for _, c := range all {
			if err := table.Report(ctx, c, checks.Done, time.Now(), "", true); err != nil {
				t.Fatal(err)
			}
		}
		if again := drained(t, s); len(again) != 1 || again[0].Commit != "c2" || again[0].Attempts != 1 {
			t.Errorf("due again: %+v", again)
		}

		// Without an address, nothing is owed.
		refused.Revision.ID, refused.CheckURL = "c3", ""
		if err := s.Refuse(ctx, refused); err != nil {
			t.Fatal(err)
		}
		if got := one(t, s, uid, "c3"); got != "none" {
			t.Errorf("check %q", got)
		}

		for i := range 250 {
			apply(t, s, uid, fmt.Sprint("many", i))
			for _, c := range drained(t, s) {
				if err := table.Report(ctx, c, checks.Done, time.Now(), "", true); err != nil {
					t.Fatal(err)
				}
			}
		}
		if old, last := one(t, s, uid, "c1"), one(t, s, uid, "many249"); old != "none" || last == "none" {
			t.Errorf("the oldest is %q, the newest %q", old, last)
		}
	})
}

// TestPulls sees pull requests open, move, close and open again.
func TestPulls(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		ctx, uid := context.Background(), factory(t, s)
		table := s.Checks()
		see := func(whole bool, open ...checks.Check) []checks.Check {
			t.Helper()
			all, err := table.See(ctx, uid, open, whole)
			if err != nil {
				t.Fatal(err)
			}
			return all
		}
		first := checks.Check{Number: 1, URL: source, Commit: "h1", Pull: checks.Pull{Title: "One\x00", Fork: true}}
		second := checks.Check{Number: 2, URL: source, Commit: "h2"}

		open := see(true, first, second)
		if len(open) != 2 || open[0].Basis != "" {
			t.Fatalf("open: %+v", open)
		}
		done := open[0]
		done.Result, done.Description, done.Comment, done.Basis = checks.Success, "fine", "### fine", "b1"
		if err := table.Checked(ctx, done); err != nil {
			t.Fatal(err)
		}
		published := drained(t, s)
		if len(published) != 1 || published[0].Comment != "### fine" || !published[0].Pull.Fork {
			t.Fatalf("due: %+v", published)
		}
		published[0].CommentID, published[0].Comments = 77, 1
		if err := table.Report(ctx, published[0], checks.Done, time.Now(), "", true); err != nil {
			t.Fatal(err)
		}
		if open = see(true, first, second); open[0].Basis != "b1" || open[0].State != checks.Done {
			t.Errorf("the same head: %+v", open[0])
		}

		// Another head: what is known of the comment stays, and a late check of the old head is refused.
		first.Commit = "h1b"
		see(true, first)
		if err := table.Checked(ctx, done); !errors.Is(err, checks.ErrConflict) {
			t.Errorf("a check of an old head: %v", err)
		}
		if got := one(t, s, uid, "#1"); got != "waiting pending: checking the pull request" {
			t.Errorf("the new head is %q", got)
		}
		if got := one(t, s, uid, "#2"); got != "dropped pending: checking the pull request" {
			t.Errorf("the closed one is %q", got)
		}
		done.Commit, done.Number = "h2", 2
		if err := table.Checked(ctx, done); !errors.Is(err, checks.ErrConflict) {
			t.Errorf("a check of a closed pull request: %v", err)
		}

		// A list that was cut closes nothing, and one that opens again is checked again.
		see(false, second)
		all, err := table.Pulls(ctx, uid, 10)
		if err != nil || len(all) != 2 || !all[0].Open || !all[1].Open || all[1].CommentID != 77 {
			t.Errorf("pull requests %+v, %v", all, err)
		}
		counts, err := table.Counts(ctx)
		if err != nil || counts[checks.Waiting] != 2 {
			t.Errorf("counts %v, %v", counts, err)
		}
	})
}

// TestManyPulls bounds the pull requests that stay open while the forge's list is cut: none of them is checked again
// and again.
func TestManyPulls(t *testing.T) {
	s := statetest.Open(t, statetest.SQLite(t))
	ctx, uid := context.Background(), factory(t, s)
	for from := range 3 {
		var listed []checks.Check
		for i := range checks.MaxPulls {
			n := from*checks.MaxPulls + i + 1
			listed = append(listed, checks.Check{Number: n, URL: source, Commit: fmt.Sprint("h", n)})
		}

		for again := range 2 {
			all, err := s.Checks().See(ctx, uid, listed, false)
			if err != nil || len(all) != len(listed) {
				t.Fatalf("%d pull requests: %v", len(all), err)
			}
			if again == 0 {
				c := all[0]
				c.Result, c.Description, c.Basis = checks.Success, "fine", "b"
				if err := s.Checks().Checked(ctx, c); err != nil {
					t.Fatal(err)
				}
			} else if all[0].Basis != "b" {
				t.Errorf("pull request %d is checked again", all[0].Number)
			}
		}
	}

	all, err := s.Checks().Pulls(ctx, uid, 4*checks.MaxPulls)
	if err != nil {
		t.Fatal(err)
	}
	open := 0
	for _, c := range all {
		if c.Open {
			open++
		}
	}
	if open != 2*checks.MaxPulls {
		t.Errorf("%d are open", open)
	}
}
