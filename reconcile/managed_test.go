package reconcile_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"millwright/reconcile"
	"millwright/reconcile/plan"
	"millwright/schema"
	"millwright/state"
	"millwright/state/statetest"
)

func managed(tb testing.TB, s *state.Store) reconcile.Source {
	tb.Helper()
	source, err := reconcile.Managed(reconcile.ManagedConfig{Store: s, Factory: "default"})
	must(tb, err)
	return source
}

// edit makes t the next revision of the factory's definition and applies it, as an editor does.
func (t tree) edit(s *state.Store, factoryUID string) error {
	ctx := context.Background()
	for {
		cur, err := s.Current(ctx, factoryUID)
		if err != nil {
			return err
		}
		head, err := s.ManagedHead(ctx, factoryUID)
		if err != nil {
			return err
		}
		old, err := s.ManagedFiles(ctx, factoryUID, head.Number)
		if err != nil {
			return err
		}
		edit := &state.ManagedEdit{Base: head.Number}
		for _, f := range old {
			if _, kept := t[f.Path]; !kept {
				edit.Delete = append(edit.Delete, f.Path)
			}
		}
		for path, content := range t {
			edit.Write = append(edit.Write, schema.File{Path: path, Content: content})
		}
		fsys, err := schema.FilesFS(edit.Write)
		if err != nil {
			return err
		}
		revision := state.Revision{ID: state.ManagedID(head.Number + 1), Author: "ada", Subject: "edit", Tree: state.ManagedTree(edit.Write), Managed: true}
		p, app := plan.Make(cur, fsys, plan.Options{Revision: revision, Now: time.Now()})
		if app == nil {
			return errors.New(p.Problems[0].Message)
		}
		app.Edit = edit
		if err := s.Apply(ctx, *app); !errors.Is(err, state.ErrMoved) {
			return err
		}
	}
}

func TestManaged(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		b := newBench(t, s, managed(t, s), nil)
		b.once(state.OutcomeUnchanged, true) // the empty definition is served
		if f := b.now(); f.SyncState != state.SyncApplied || f.Applied.ID != "r0" || f.Source.Kind != "managed" {
			t.Errorf("before the first edit: %s %+v", f.SyncState, f.Applied)
		}
		b.once(state.OutcomeUnchanged, false)
		must(t, two.edit(s, b.factory.UID))
		b.wantWebhooks("a", "b")
		b.once(state.OutcomeUnchanged, false)
		if f := b.now(); f.Applied.ID != "r1" || f.Applied.Author != "ada" {
			t.Errorf("after the first edit: %+v", f.Applied)
		}

		// An explicit sync picks up secrets, and a new process continues where the last one was.
		secret(t, s, "A", "new value")
		again := reconcile.New(reconcile.Config{Store: s, Factory: b.factory, Source: managed(t, s)})
		r, err := again.Sync(t.Context(), reconcile.SyncOptions{})
		must(t, err)
		if b.check(r, state.OutcomeApplied, true); r.Counts.Secrets != 1 || r.Revision.ID != "r1" {
			t.Errorf("sync: %+v", r)
		}
		p, err := again.Plan(t.Context(), plan.Allowed{})
		must(t, err)
		if !p.WouldApply || p.HeadRevision != "r1" || p.BaseRevision != "r1" {
			t.Errorf("plan: %+v", p)
		}
	})
}

// TestManagedDoesNotUndoAnEdit lets an edit come between an attempt's look at the source and its apply.
func TestManagedDoesNotUndoAnEdit(t *testing.T) {
	for name, first := range map[string]tree{"before the first revision": nil, "later": two} {
		statetest.Each(t, func(t *testing.T, s *state.Store) {
			source := &behind{Source: managed(t, s)}
			b := newBench(t, s, source, nil)
			if first != nil {
				must(t, first.edit(s, b.factory.UID))
			}
			source.then = func() {
				must(t, tree{"webhooks/a.yaml": hook("A"), "webhooks/new.yaml": hook("C")}.edit(s, b.factory.UID))
			}
			r := b.Once(t.Context(), reconcile.Request{Force: true})
			if b.check(r, state.OutcomeUnchanged, true); r.Revision.Tree != b.now().Applied.Tree {
				t.Errorf("%s: it applied %+v over %+v", name, r.Revision, b.now().Applied)
			}
			b.wantWebhooks("a", "new")
		})
	}
}

// behind does something once, after a look at the source.
type behind struct {
	reconcile.Source
	then func()
}

func (s *behind) Fetch(ctx context.Context) (reconcile.Snapshot, error) {
	snap, err := s.Source.Fetch(ctx)
	if then := s.then; then != nil {
		s.then = nil
		then()
	}
	return snap, err
}

func TestManagedAndSyncAtOnce(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		b := newBench(t, s, managed(t, s), nil)
		var wg sync.WaitGroup
		wg.Go(func() {
			for range 10 {
				b.Once(context.Background(), reconcile.Request{Force: true})
			}
		})
		for i := range 10 {
			want := tree{"webhooks/a.yaml": hook("A"), "README.md": strings.Repeat("x", i+1)}
			if i%2 == 0 {
				want["webhooks/b.yaml"] = hook("B")
			}
			must(t, want.edit(s, b.factory.UID))
		}
		wg.Wait()
		b.once(state.OutcomeUnchanged, false)
		b.wantWebhooks("a")
		if f := b.now(); f.Applied.ID != "r10" {
			t.Errorf("applied %+v", f.Applied)
		}
	})
}

// TestManagedAfterADirectory: a factory whose definition came from elsewhere keeps it until its files are
// imported.
func TestManagedAfterADirectory(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		root := t.TempDir()
		one := tree{"webhooks/a.yaml": hook("A")}
		one.writeNew(t, root)
		b := newBench(t, s, dir(t, root), nil)
		b.once(state.OutcomeApplied, true)

		b = newBench(t, s, managed(t, s), nil)
		r := b.once(state.OutcomeFailed, true)
		if !strings.Contains(r.Message, "import") || !strings.Contains(r.Message, b.factory.UID) {
			t.Errorf("message %q", r.Message)
		}
		b.wantWebhooks("a")
		uid := b.hookUID("a")
		must(t, one.edit(s, b.factory.UID))
		b.once(state.OutcomeUnchanged, false)
		if b.wantWebhooks("a"); b.hookUID("a") != uid {
			t.Error("the webhook got another UID")
		}
	})
}

func (b *bench) hookUID(name string) string {
	b.Helper()
	all, err := b.store.Webhooks(context.Background(), b.factory.UID, false)
	must(b, err)
	for _, w := range all {
		if w.Spec.Name == name {
			return w.UID
		}
	}
	b.Fatalf("no webhook %s", name)
	return ""
}

func TestManagedNeedsItsConfig(t *testing.T) {
	if _, err := reconcile.Managed(reconcile.ManagedConfig{Factory: "x"}); err == nil {
		t.Error("no state, no error")
	}
}
