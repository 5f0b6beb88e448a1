package reconcile_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"millwright/reconcile"
	"millwright/reconcile/plan"
	"millwright/schema"
	"millwright/state"
	"millwright/state/statetest"
)

// tree is a definition tree: content by path.
type tree map[string]string

// write makes dir hold the tree and nothing else, each file by an atomic rename as editors do.
func (t tree) write(tb testing.TB, dir string) {
	tb.Helper()
	must(tb, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if rel, _ := filepath.Rel(dir, path); t[filepath.ToSlash(rel)] == "" {
			return os.Remove(path)
		}
		return nil
	}))
	for name, content := range t {
		put(tb, filepath.Join(dir, name), content)
	}
}

// put writes a file by an atomic rename.
func put(tb testing.TB, path, content string) {
	tb.Helper()
	must(tb, os.MkdirAll(filepath.Dir(path), 0o755))
	temp := filepath.Join(filepath.Dir(path), ".#new")
	must(tb, os.WriteFile(temp, []byte(content), 0o644))
	must(tb, os.Rename(temp, path))
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func hook(secret string, extra ...string) string {
	return "secretName: " + secret + "\n" + strings.Join(extra, "\n") + "\n"
}

var two = tree{"webhooks/a.yaml": hook("A"), "webhooks/b.yaml": hook("B")}

// bench is a factory in a state, with a loop on a source.
type bench struct {
	testing.TB
	*reconcile.Loop
	store   *state.Store
	factory state.Factory
}

func newBench(tb testing.TB, s *state.Store, source reconcile.Source, change func(*reconcile.Config)) *bench {
	tb.Helper()
	f, err := s.EnsureFactory(context.Background(), "default", source.Describe(), false)
	must(tb, err)
	for _, name := range []string{"A", "B", "C"} {
		secret(tb, s, name, "value-of-"+name)
	}
	cfg := reconcile.Config{Store: s, Factory: f, Source: source, Interval: time.Hour}
	if change != nil {
		change(&cfg)
	}
	return &bench{tb, reconcile.New(cfg), s, f}
}

func secret(tb testing.TB, s *state.Store, name, value string) {
	tb.Helper()
	_, err := s.SetSecret(context.Background(), name, []byte(value))
	must(tb, err)
}

// once makes an attempt that should end as said.
func (b *bench) once(want state.Outcome, recorded bool) reconcile.Result {
	b.Helper()
	return b.check(b.Once(context.Background(), reconcile.Request{}), want, recorded)
}

func (b *bench) check(r reconcile.Result, want state.Outcome, recorded bool) reconcile.Result {
	b.Helper()
	if r.Outcome != want || r.Recorded != recorded {
		b.Fatalf("outcome %s, recorded %v (%s), want %s, %v", r.Outcome, r.Recorded, r.Message, want, recorded)
	}
	return r
}

func (b *bench) now() state.Factory {
	b.Helper()
	f, err := b.store.Factory(context.Background(), b.factory.UID)
	must(b, err)
	return f
}

// webhooks returns the names of the live webhooks.
func (b *bench) webhooks() []string {
	b.Helper()
	all, err := b.store.Webhooks(context.Background(), b.factory.UID, false)
	must(b, err)
	var names []string
	for _, w := range all {
		names = append(names, w.Spec.Name)
	}
	return names
}

func (b *bench) wantWebhooks(want ...string) {
	b.Helper()
	if got := b.webhooks(); !slices.Equal(got, want) {
		b.Fatalf("webhooks %v, want %v", got, want)
	}
}

// outcomes returns the history, oldest first.
func (b *bench) outcomes() string {
	b.Helper()
	all, err := b.store.Attempts(context.Background(), b.factory.UID, 0, 500)
	must(b, err)
	var out []string
	for _, a := range slices.Backward(all) {
		out = append(out, string(a.Outcome))
	}
	return strings.Join(out, " ")
}

// run runs the loop until the test ends.
func (b *bench) run() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = b.Run(ctx)
	}()
	b.Cleanup(func() {
		cancel()
		<-done
	})
}

func dir(tb testing.TB, path string) reconcile.Source {
	tb.Helper()
	source, err := reconcile.Dir(reconcile.DirConfig{Dir: path})
	must(tb, err)
	return source
}

func TestOutcomes(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		root := t.TempDir()
		b := newBench(t, s, dir(t, root), nil)
		two.write(t, root)
		first := b.once(state.OutcomeApplied, true)
		if first.Counts.Created != 2 || first.Revision.ID == "" {
			t.Errorf("first apply: %+v", first)
		}
		b.wantWebhooks("a", "b")
		b.once(state.OutcomeUnchanged, false)

		put(t, filepath.Join(root, "webhooks/b.yaml"), "secretName: B\nauthmode: token\n")
		refused := b.once(state.OutcomeRefused, true)
		if !strings.Contains(refused.Message, "webhooks/b.yaml:2:1: ") || !strings.Contains(refused.Message, "[unknown-key]") {
			t.Errorf("message %q", refused.Message)
		}
		b.once(state.OutcomeRefused, false)
		if f := b.now(); f.SyncState != state.SyncRefused || f.Attempted.ID != refused.Revision.ID || f.Applied.ID != first.Revision.ID || len(f.Problems) != 1 {
			t.Errorf("after the refusal: %+v", f)
		}
		b.wantWebhooks("a", "b")

		put(t, filepath.Join(root, "webhooks/b.yaml"), hook("B", "enabled: false"))
		if fixed := b.once(state.OutcomeApplied, true); fixed.Counts.Updated != 1 || fixed.Counts.Unchanged != 1 {
			t.Errorf("the fix: %+v", fixed.Counts)
		}
		must(t, os.RemoveAll(root))
		failed := b.once(state.OutcomeFailed, true)
		if failed.Err == nil || !strings.Contains(failed.Message, "cannot be opened") {
			t.Errorf("without a root: %q", failed.Message)
		}
		b.once(state.OutcomeFailed, false)
		b.wantWebhooks("a", "b")
		if f := b.now(); f.SyncState != state.SyncFailed || f.Attempted.ID == "" {
			t.Errorf("without a root: %+v", f)
		}
		tree{"webhooks/a.yaml": hook("A"), "webhooks/b.yaml": hook("B", "enabled: false")}.writeNew(t, root)
		b.once(state.OutcomeUnchanged, true)
		if f := b.now(); f.SyncState != state.SyncApplied || f.Message != "" {
			t.Errorf("after the root is back: %+v", f)
		}
		if got, want := b.outcomes(), "applied refused applied failed unchanged"; got != want {
			t.Errorf("history %q, want %q", got, want)
		}
	})
}

// writeNew is write for a directory that does not exist.
func (t tree) writeNew(tb testing.TB, dir string) {
	tb.Helper()
	must(tb, os.MkdirAll(dir, 0o755))
	t.write(tb, dir)
}

func TestRefusalIsRememberedAcrossRestarts(t *testing.T) {
	root := t.TempDir()
	s := statetest.Open(t, statetest.SQLite(t))
	tree{"webhooks/a.yaml": "secretname: A\n"}.write(t, root) // an error that could be mended by itself
	newBench(t, s, dir(t, root), nil).once(state.OutcomeRefused, true)
	newBench(t, s, dir(t, root), nil).once(state.OutcomeRefused, false)
	must(t, os.RemoveAll(root))
	newBench(t, s, dir(t, root), nil).once(state.OutcomeFailed, true)
	newBench(t, s, dir(t, root), nil).once(state.OutcomeFailed, false)
}

func TestASecretThatAppearsMendsARefusal(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		root := t.TempDir()
		b := newBench(t, s, dir(t, root), nil)
		tree{"webhooks/a.yaml": hook("LATER"), "webhooks/b.yaml": hook("LAST")}.write(t, root)
		if r := b.once(state.OutcomeRefused, true); len(r.Problems) != 2 || r.Problems[0].Code != "secret-missing" {
			t.Fatalf("problems %+v", r.Problems)
		}
		secret(t, s, "OTHER", "x")
		b.once(state.OutcomeRefused, false)
		secret(t, s, "LATER", "x")
		b.once(state.OutcomeRefused, true) // with one problem less
		secret(t, s, "LAST", "x")
		b.once(state.OutcomeApplied, true)
	})
}

func TestRunMendsARefusalWhenTheSecretAppears(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		root := t.TempDir()
		b := newBench(t, s, dir(t, root), nil)
		tree{"webhooks/a.yaml": hook("LATER")}.write(t, root)
		b.run()
		statetest.Until(t, "refused", func() bool { return b.now().SyncState == state.SyncRefused })
		secret(t, s, "LATER", "x")
		statetest.Until(t, "applied", func() bool { return b.now().SyncState == state.SyncApplied })
	})
}

func TestSyncPicksUpSecrets(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		root := t.TempDir()
		b := newBench(t, s, dir(t, root), nil)
		two.write(t, root)
		b.once(state.OutcomeApplied, true)
		secret(t, s, "A", "another")
		b.once(state.OutcomeUnchanged, false)
		p, err := b.Plan(t.Context(), plan.Allowed{})
		must(t, err)
		if len(p.Secrets) != 1 || p.Secrets[0].Name != "A" {
			t.Errorf("planned secrets %+v", p.Secrets)
		}
		r, err := b.Sync(t.Context(), reconcile.SyncOptions{})
		must(t, err)
		if b.check(r, state.OutcomeApplied, true); r.Counts.Secrets != 1 {
			t.Errorf("counts %+v", r.Counts)
		}
		all, err := s.Webhooks(t.Context(), b.factory.UID, false)
		must(t, err)
		for _, w := range all {
			if w.SecretStale {
				t.Errorf("webhook %s is stale after the sync", w.Spec.Name)
			}
		}
		r, err = b.Sync(t.Context(), reconcile.SyncOptions{})
		must(t, err)
		b.check(r, state.OutcomeUnchanged, true)
	})
}

func TestSyncOverridesTheGuards(t *testing.T) {
	root := t.TempDir()
	b := newBench(t, statetest.Open(t, statetest.SQLite(t)), dir(t, root), nil)
	two.write(t, root)
	b.once(state.OutcomeApplied, true)
	must(t, os.RemoveAll(filepath.Join(root, "webhooks")))
	if r := b.once(state.OutcomeRefused, true); r.Problems[0].Code != "prune-guard" {
		t.Fatalf("problems %+v", r.Problems)
	}
	b.wantWebhooks("a", "b")
	r, err := b.Sync(t.Context(), reconcile.SyncOptions{AllowPrune: true})
	must(t, err)
	b.check(r, state.OutcomeApplied, true)
	b.wantWebhooks()

	put(t, filepath.Join(root, "webhooks/a.yaml"), hook("A"))
	b.once(state.OutcomeApplied, true)
	must(t, os.Rename(filepath.Join(root, "webhooks/a.yaml"), filepath.Join(root, "webhooks/z.yaml")))
	if r := b.once(state.OutcomeRefused, true); r.Problems[0].Code != "webhook-renamed" {
		t.Fatalf("problems %+v", r.Problems)
	}
	r, err = b.Sync(t.Context(), reconcile.SyncOptions{AllowRename: true})
	must(t, err)
	b.check(r, state.OutcomeApplied, true)
	b.wantWebhooks("z")
}

// TestAPermissionCountsForOneRevision allows what was refused, while the source moves on.
func TestAPermissionCountsForOneRevision(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		root := t.TempDir()
		b := newBench(t, s, dir(t, root), nil)
		two.write(t, root)
		b.once(state.OutcomeApplied, true)
		must(t, os.RemoveAll(filepath.Join(root, "webhooks")))

		// Nothing was refused yet, so that nothing is allowed.
		r, err := b.Sync(t.Context(), reconcile.SyncOptions{AllowPrune: true})
		must(t, err)
		b.check(r, state.OutcomeRefused, true)
		b.wantWebhooks("a", "b")

		seen := r.Revision.ID
		put(t, filepath.Join(root, "skills/x/SKILL.md"), "---\nname: x\ndescription: d\n---\nx\n")
		for _, opts := range []reconcile.SyncOptions{
			{AllowPrune: true},
			{AllowPrune: true, Revision: seen},
			{Revision: seen[:20]},
			{AllowPrune: true, Revision: "sha256:"},
		} {
			if _, err := b.Sync(t.Context(), opts); !errors.Is(err, state.ErrConflict) {
				t.Errorf("%+v: %v", opts, err)
			}
		}
		b.wantWebhooks("a", "b")

		r, err = b.Sync(t.Context(), reconcile.SyncOptions{})
		must(t, err)
		b.check(r, state.OutcomeRefused, true)
		r, err = b.Sync(t.Context(), reconcile.SyncOptions{AllowPrune: true, Revision: r.Revision.ID[:14]})
		must(t, err)
		b.check(r, state.OutcomeApplied, true)
		b.wantWebhooks()
	})
}

func TestSyncWithoutWaiting(t *testing.T) {
	root := t.TempDir()
	b := newBench(t, statetest.Open(t, statetest.SQLite(t)), dir(t, root), nil)
	two.write(t, root)
	b.once(state.OutcomeApplied, true)
	must(t, os.RemoveAll(filepath.Join(root, "webhooks")))
	b.once(state.OutcomeRefused, true)
	_, err := b.Sync(t.Context(), reconcile.SyncOptions{AllowPrune: true})
	must(t, err)
	_, err = b.Sync(t.Context(), reconcile.SyncOptions{}) // joins the one before
	must(t, err)
	b.run()
	statetest.Until(t, "pruned", func() bool { return len(b.webhooks()) == 0 })
}

func TestSuspended(t *testing.T) {
	root := t.TempDir()
	two.write(t, root)
	b := newBench(t, statetest.Open(t, statetest.SQLite(t)), dir(t, root), func(c *reconcile.Config) { c.Factory.Suspended = true })
	if _, err := b.Sync(t.Context(), reconcile.SyncOptions{}); err == nil {
		t.Error("a suspended factory was synced")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	must(t, b.Run(ctx))
	b.wantWebhooks()
}

// TestRolledBack rolls a factory back: new revisions are checked and wait, and the forge is owed that for each.
func TestRolledBack(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		root, ctx := t.TempDir(), t.Context()
		b := newBench(t, s, dir(t, root), func(c *reconcile.Config) {
			c.CheckURL = func() string { return "https://git.example.com/acme/factory.git" }
		})
		attempt := func(tr tree, want state.Outcome) string {
			t.Helper()
			tr.write(t, root)
			b.once(want, true)
			return b.now().Attempted.ID
		}
		check := func(revision, want string) {
			t.Helper()
			all, err := s.Checks().Subject(ctx, b.factory.UID, revision)
			must(t, err)
			if len(all) != 1 || !strings.Contains(string(all[0].Result)+": "+all[0].Description, want) {
				t.Errorf("the forge is owed %+v of %s, want %s", all, revision, want)
			}
		}

		two.write(t, root)
		first := attempt(two, state.OutcomeApplied)
		three := tree{"webhooks/a.yaml": hook("A"), "webhooks/b.yaml": hook("B"), "webhooks/c.yaml": hook("C")}
		second := attempt(three, state.OutcomeApplied)
		check(second, "success: applied: 1 created")

		kept, err := s.Trees().All(ctx, b.factory.UID)
		must(t, err)
		files, err := s.Trees().Files(ctx, b.factory.UID, kept[1].Digest)
		must(t, err)
		earlier, err := schema.FilesFS(files)
		must(t, err)
		cur, err := s.Current(ctx, b.factory.UID)
		must(t, err)
		p, back := plan.Make(cur, earlier, plan.Options{
			KeepSecrets: true, Now: time.Now(), Revision: state.Revision{ID: first},
		})
		if back == nil {
			t.Fatalf("the rollback is refused: %+v", p.Problems)
		}
		back.Rollback = kept[1].Digest
		must(t, s.Apply(ctx, *back))
		b.wantWebhooks("a", "b")

		b.once(state.OutcomeSuspended, true)
		check(second, "pending: valid, and not applied while the factory is suspended")
		b.once(state.OutcomeSuspended, false)
		bad := attempt(tree{"webhooks/a.yaml": "no"}, state.OutcomeRefused)
		check(bad, "failure: refused: ")
		delete(three, "webhooks/a.yaml")
		third := attempt(three, state.OutcomeSuspended)
		check(third, "pending: valid, and not applied while the factory is suspended")
		b.wantWebhooks("a", "b")

		must(t, s.Resume(ctx, b.factory.UID))
		b.once(state.OutcomeApplied, true)
		b.wantWebhooks("b", "c")
		check(third, "success: applied: 1 created, 1 deleted")
	})
}

func TestAnEndedContextIsNoFailure(t *testing.T) {
	root := t.TempDir()
	two.write(t, root)
	b := newBench(t, statetest.Open(t, statetest.SQLite(t)), dir(t, root), nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r := b.Once(ctx, reconcile.Request{}); r.Err == nil || r.Recorded {
		t.Errorf("result %+v", r)
	}
	if got := b.outcomes(); got != "" {
		t.Errorf("history %q", got)
	}
}

func TestHistoryIsBounded(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		root := t.TempDir()
		b := newBench(t, s, dir(t, root), nil)
		two.write(t, root)
		for range 205 {
			_, err := b.Sync(t.Context(), reconcile.SyncOptions{})
			must(t, err)
		}
		all, err := s.Attempts(t.Context(), b.factory.UID, 0, 1000)
		must(t, err)
		if len(all) != 200 || all[0].ID < all[199].ID {
			t.Errorf("%d attempts, from %d to %d", len(all), all[0].ID, all[len(all)-1].ID)
		}
	})
}

func TestConditions(t *testing.T) {
	root := t.TempDir()
	b := newBench(t, statetest.Open(t, statetest.SQLite(t)), dir(t, root), nil)
	want := func(ready, reconciling, stalled, reason string) {
		t.Helper()
		got := b.now().Conditions()
		if got[0].Status != ready || got[1].Status != reconciling || got[2].Status != stalled || got[0].Reason != reason || got[0].Since.IsZero() {
			t.Errorf("conditions %+v", got)
		}
	}
	want("False", "True", "False", "Pending")
	two.write(t, root)
	b.once(state.OutcomeApplied, true)
	want("True", "False", "False", "Applied")
	since := b.now().SyncSince
	put(t, filepath.Join(root, "webhooks/c.yaml"), hook("C"))
	b.once(state.OutcomeApplied, true)
	if !b.now().SyncSince.Equal(since) {
		t.Error("applied twice: the condition counts from the second time")
	}
	put(t, filepath.Join(root, "webhooks/c.yaml"), "no")
	b.once(state.OutcomeRefused, true)
	want("False", "False", "True", "Refused")
	must(t, os.RemoveAll(root))
	b.once(state.OutcomeFailed, true)
	want("False", "True", "False", "Retrying")
}

// TestTwoLoopsNeverInterleave has two replicas apply different trees as fast as they can: each attempt
// ends on the tree that it was made for, and UIDs never move.
func TestTwoLoopsNeverInterleave(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		one, other := t.TempDir(), t.TempDir()
		tree{"webhooks/keep.yaml": hook("A"), "webhooks/x.yaml": hook("A")}.write(t, one)
		tree{"webhooks/keep.yaml": hook("B"), "webhooks/y.yaml": hook("B")}.write(t, other)
		allow := func(c *reconcile.Config) { c.AllowPrune = true }
		loops := []*bench{newBench(t, s, dir(t, one), allow), newBench(t, s, dir(t, other), allow)}
		loops[0].once(state.OutcomeApplied, true)
		uid := func() string {
			all, err := s.Webhooks(context.Background(), loops[0].factory.UID, false)
			must(t, err)
			for _, w := range all {
				if w.Spec.Name == "keep" {
					return w.UID
				}
			}
			return ""
		}
		was := uid()
		done := make(chan struct{})
		for _, l := range loops {
			go func() {
				defer func() { done <- struct{}{} }()
				for range 20 {
					if r := l.Once(context.Background(), reconcile.Request{}); r.Outcome == state.OutcomeRefused {
						t.Errorf("refused: %s", r.Message)
					}
				}
			}()
		}
		<-done
		<-done
		got := strings.Join(loops[0].webhooks(), " ")
		if got != "keep x" && got != "keep y" || uid() != was {
			t.Errorf("webhooks %s, UID %s was %s", got, uid(), was)
		}
	})
}

func TestProblemsKeepTheirPlace(t *testing.T) {
	root := t.TempDir()
	b := newBench(t, statetest.Open(t, statetest.SQLite(t)), dir(t, root), nil)
	tree{"webhooks/a.yml": "x", "webhook/b.yaml": "y", "README.md": "z", "webhooks/c.yaml": "\nsecretName: NONE\n"}.write(t, root)
	r := b.once(state.OutcomeRefused, true)
	var got []string
	for _, p := range r.Problems {
		if p.Severity == schema.SeverityError {
			got = append(got, p.Path+" "+p.Code)
		}
	}
	want := []string{"webhook/b.yaml unsupported-path", "webhooks/a.yml unsupported-path", "webhooks/c.yaml secret-missing"}
	if !slices.Equal(got, want) {
		t.Errorf("problems %v, want %v", got, want)
	}
}
