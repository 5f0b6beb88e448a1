package state_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"millwright/schema"
	"millwright/state"
	"millwright/state/notice"
	"millwright/state/statetest"
)

// held makes a managed factory.
func held(t *testing.T, s *state.Store) string {
	t.Helper()
	f, err := s.EnsureFactory(t.Context(), "ops", state.Source{Kind: "managed"}, false)
	if err != nil {
		t.Fatal(err)
	}
	return f.UID
}

// edit plans the next revision of a held definition: content "" deletes the file.
func edit(t *testing.T, s *state.Store, factoryUID, author string, files map[string]string) state.ChangeSet {
	t.Helper()
	head, err := s.ManagedHead(t.Context(), factoryUID)
	if err != nil {
		t.Fatal(err)
	}
	app := application(t, s, factoryUID)
	app.Edit = &state.ManagedEdit{Base: head.Number}
	for path, content := range files {
		if content == "" {
			app.Edit.Delete = append(app.Edit.Delete, path)
		} else {
			app.Edit.Write = append(app.Edit.Write, schema.File{Path: path, Content: content})
		}
	}
	now := time.Now()
	app.Revision = state.Revision{ID: state.ManagedID(head.Number + 1), Author: author, Subject: "edit by " + author, At: &now, Tree: "tree", Managed: true}
	return app
}

func filesOf(t *testing.T, s *state.Store, factoryUID string, number int64) map[string]string {
	t.Helper()
	files, err := s.ManagedFiles(t.Context(), factoryUID, number)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, f := range files {
		all[f.Path] = f.Content
	}
	return all
}

func TestManagedRevisions(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		ctx := t.Context()
		uid := held(t, s)
		other, err := s.EnsureFactory(ctx, "other", state.Source{Kind: "managed"}, false)
		if err != nil {
			t.Fatal(err)
		}
		head, err := s.ManagedHead(ctx, uid)
		if err != nil || head.Number != 0 || head.ID != "r0" || !head.Managed || head.Tree != state.ManagedTree(nil) {
			t.Fatalf("before the first edit: %+v, %v", head, err)
		}
		if files := filesOf(t, s, uid, 0); len(files) != 0 {
			t.Errorf("files of r0: %v", files)
		}
		text := "a\r\nb\x00\u00e9\n" // bytes stay as they are
		want := []map[string]string{
			nil,
			{"README.md": "one", "webhooks/a.yaml": text},
			{"README.md": "two", "webhooks/a.yaml": text},
			{"webhooks/a.yaml": text, "webhooks/B.yaml": "b"},
			{"README.md": "one", "webhooks/a.yaml": text, "webhooks/B.yaml": "b"},
		}
		for i, files := range []map[string]string{
			{"README.md": "one", "webhooks/a.yaml": text},
			{"README.md": "two"},
			{"README.md": "", "webhooks/B.yaml": "b"},
			{"README.md": "one"},
		} {
			if err := s.Apply(ctx, edit(t, s, uid, fmt.Sprint("ada", i), files)); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Apply(ctx, edit(t, s, other.UID, "eve", map[string]string{"README.md": "other"})); err != nil {
			t.Fatal(err)
		}
		for number := int64(1); number <= 4; number++ {
			if diff := cmp.Diff(want[number], filesOf(t, s, uid, number)); diff != "" {
				t.Errorf("files of r%d (-want +got):\n%s", number, diff)
			}
		}
		list, err := s.ManagedRevisions(ctx, uid, 0, 3)
		if err != nil || len(list) != 3 || list[0].ID != "r4" || list[0].Author != "ada3" || list[0].Subject != "edit by ada3" || list[0].At == nil || list[1].Files != 2 {
			t.Errorf("revisions: %+v, %v", list, err)
		}
		if rest, err := s.ManagedRevisions(ctx, uid, list[2].Number, 3); err != nil || len(rest) != 1 || rest[0].ID != "r1" {
			t.Errorf("the rest: %+v, %v", rest, err)
		}
		ptr := func(s string) *string { return &s }
		for number, want := range map[int64][]state.ManagedChange{
			1: {{Path: "README.md", New: ptr("one")}, {Path: "webhooks/a.yaml", New: &text}},
			2: {{Path: "README.md", Old: ptr("one"), New: ptr("two")}},
			3: {{Path: "README.md", Old: ptr("two")}, {Path: "webhooks/B.yaml", New: ptr("b")}},
			4: {{Path: "README.md", New: ptr("one")}},
		} {
			got, err := s.ManagedChanges(ctx, uid, number)
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("changes of r%d: %v (-want +got):\n%s", number, err, diff)
			}
		}
		for _, f := range []func() error{
			func() error { _, err := s.ManagedFiles(ctx, uid, 5); return err },
			func() error { _, err := s.ManagedChanges(ctx, uid, 5); return err },
			func() error { _, err := s.ManagedRevision(ctx, uid, 5); return err },
			func() error { _, err := s.ManagedFiles(ctx, other.UID, 2); return err },
		} {
			if err := f(); !errors.Is(err, state.ErrNotFound) {
				t.Errorf("a revision that is not there: %v", err)
			}
		}
		f, err := s.Factory(ctx, uid)
		if err != nil || f.Applied.ID != "r4" || !f.Applied.Managed || f.SyncState != state.SyncApplied {
			t.Errorf("factory: %+v, %v", f.Applied, err)
		}
	})
}

// TestManagedRevisionsAreKeptWithinBounds makes more revisions than are kept, and more bytes.
func TestManagedRevisionsAreKeptWithinBounds(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		ctx := t.Context()
		uid := held(t, s)
		for i := range 205 {
			if err := s.Apply(ctx, edit(t, s, uid, "ada", map[string]string{"a": fmt.Sprint("v", i+1), "b": "same"})); err != nil {
				t.Fatal(err)
			}
		}
		list, err := s.ManagedRevisions(ctx, uid, 0, 500)
		if err != nil || len(list) != 200 || list[199].ID != "r6" {
			t.Fatalf("%d revisions: %v", len(list), err)
		}
		if got := filesOf(t, s, uid, 6); got["a"] != "v6" || got["b"] != "same" {
			t.Errorf("files of the oldest: %v", got)
		}
		changes, err := s.ManagedChanges(ctx, uid, 6)
		if err != nil || len(changes) != 2 || changes[0].Old == nil || *changes[0].Old != "v5" {
			t.Errorf("changes of the oldest: %+v, %v", changes, err)
		}

		big := strings.Repeat("x", 8<<20)
		for i := range 12 {
			if err := s.Apply(ctx, edit(t, s, uid, "ada", map[string]string{"a": fmt.Sprint(i, big)})); err != nil {
				t.Fatal(err)
			}
		}
		list, err = s.ManagedRevisions(ctx, uid, 0, 500)
		if err != nil || list[0].ID != "r217" || len(list) < 7 || len(list) > 9 {
			t.Fatalf("%d revisions of 8 MiB are kept: %v", len(list), err)
		}
		for _, r := range []state.ManagedRevision{list[0], list[len(list)-1]} {
			if got := filesOf(t, s, uid, r.Number); len(got["a"]) < 8<<20 || got["b"] != "same" {
				t.Errorf("files of %s: %d bytes", r.ID, len(got["a"]))
			}
		}
	})
}

func TestOnlyTheNewestManagedRevisionIsApplied(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		ctx := t.Context()
		uid := held(t, s)
		first := edit(t, s, uid, "ada", map[string]string{"a": "1"})
		second := edit(t, s, uid, "eve", map[string]string{"a": "2"})
		reapply := application(t, s, uid)
		reapply.Revision = state.Revision{ID: "r0", Managed: true}
		if err := s.Apply(ctx, first); err != nil {
			t.Fatal(err)
		}
		for name, app := range map[string]state.ChangeSet{"another edit of r0": second, "r0 itself": reapply} {
			if err := s.Apply(ctx, app); !errors.Is(err, state.ErrMoved) {
				t.Errorf("%s: %v, want ErrMoved", name, err)
			}
			// The same when nothing but the revision moved.
			again := application(t, s, uid)
			again.Revision, again.Edit = app.Revision, app.Edit
			if err := s.Apply(ctx, again); !errors.Is(err, state.ErrSuperseded) || !errors.Is(err, state.ErrMoved) {
				t.Errorf("%s, planned anew: %v, want ErrSuperseded", name, err)
			}
		}
		wrong := edit(t, s, uid, "ada", map[string]string{"a": "3"})
		wrong.Revision.ID = "r7"
		if err := s.Apply(ctx, wrong); err == nil || errors.Is(err, state.ErrMoved) {
			t.Errorf("an edit whose revision has another name: %v", err)
		}
		gone := edit(t, s, uid, "ada", map[string]string{"nothing": ""})
		if err := s.Apply(ctx, gone); !errors.Is(err, state.ErrMoved) {
			t.Errorf("deleting a file that is not there: %v", err)
		}
		if got := filesOf(t, s, uid, 1); got["a"] != "1" {
			t.Errorf("files: %v", got)
		}
		refusal := state.Attempt{FactoryUID: uid, Started: time.Now(), Revision: reapply.Revision, Outcome: state.OutcomeRefused}
		if err := s.Refuse(ctx, refusal); !errors.Is(err, state.ErrSuperseded) {
			t.Errorf("refusing r0: %v, want ErrSuperseded", err)
		}
		if f, err := s.Factory(ctx, uid); err != nil || f.SyncState != state.SyncApplied || f.Attempted.ID != "r1" {
			t.Errorf("factory after a refusal that came too late: %s %+v, %v", f.SyncState, f.Attempted, err)
		}
		if list, err := s.ManagedRevisions(ctx, uid, 0, 10); err != nil || len(list) != 1 {
			t.Errorf("refused edits left %+v, %v", list, err)
		}
	})
}

// TestManagedEditsAtOnce lets many edit one file at the same time: each edit is kept, in some order.
func TestManagedEditsAtOnce(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		ctx := t.Context()
		uid := held(t, s)
		var wg sync.WaitGroup
		for i := range 6 {
			wg.Go(func() {
				for {
					err := s.Apply(context.WithoutCancel(ctx), edit(t, s, uid, fmt.Sprint("author", i), map[string]string{"log": fmt.Sprint(i)}))
					if err == nil {
						return
					}
					if !errors.Is(err, state.ErrMoved) {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		list, err := s.ManagedRevisions(ctx, uid, 0, 10)
		if err != nil || len(list) != 6 {
			t.Fatalf("%+v, %v", list, err)
		}
		var authors []string
		for _, r := range list {
			authors = append(authors, r.Author)
			if got := filesOf(t, s, uid, r.Number)["log"]; "author"+got != r.Author {
				t.Errorf("%s by %s says %q", r.ID, r.Author, got)
			}
		}
		slices.Sort(authors)
		if len(slices.Compact(authors)) != 6 {
			t.Errorf("authors: %v", authors)
		}
	})
}

func TestSecretsChangeTogetherWithTheDefinition(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		ctx := t.Context()
		f, uids := factory(t, s, "ci")
		rotate := func(version int64) error {
			app := application(t, s, f.UID)
			w := change(t, s, f.UID, "ci")
			w.SecretVersion = version
			app.Webhooks = append(app.Webhooks, w)
			app.Secrets = []state.SecretChange{{Name: "TOKEN", Value: []byte("second"), Version: version}}
			return s.Apply(ctx, app)
		}
		routed := func() string {
			r, err := s.Routing(ctx)
			if err != nil {
				t.Fatal(err)
			}
			return string(r.Factories[0].Webhooks[0].Secret)
		}
		for _, version := range []int64{1, 3} { // somebody else came first, or it was deleted meanwhile
			if err := rotate(version); !errors.Is(err, state.ErrMoved) {
				t.Errorf("version %d: %v, want ErrMoved", version, err)
			}
		}
		if got := routed(); got != "first" {
			t.Errorf("after a refused change the secret is %q", got)
		}
		notices, end := s.Subscribe(4, notice.Secret)
		defer end()
		if err := rotate(2); err != nil {
			t.Fatal(err)
		}
		if got := routed(); got != "second" {
			t.Errorf("the secret is %q", got)
		}
		if n, _ := statetest.Receive(t, "the notice of the secret", notices); n.ID != "TOKEN" {
			t.Errorf("notice %+v", n)
		}

		app := application(t, s, f.UID)
		app.Secrets = []state.SecretChange{{Name: "LATER", Version: 1}}
		w := change(t, s, f.UID, "later")
		w.Spec.SecretName, w.SecretVersion = "LATER", 1
		app.Webhooks = append(app.Webhooks, w)
		if err := s.Apply(ctx, app); err != nil {
			t.Fatal(err)
		}
		hook, err := s.Webhook(ctx, f.UID, w.UID)
		if err != nil || !hook.SecretPending {
			t.Errorf("webhook with a pending secret: %+v, %v", hook, err)
		}
		app = application(t, s, f.UID)
		app.DeleteWebhooks = []string{uids["ci"]}
		app.Secrets = []state.SecretChange{{Name: "EMPTY", Value: []byte{}, Version: 1}}
		if err := s.Apply(ctx, app); err == nil {
			t.Error("an empty secret was taken")
		}
		if hook, err := s.Webhook(ctx, f.UID, uids["ci"]); err != nil || hook.Deleted != nil {
			t.Errorf("the refused change deleted the webhook: %+v, %v", hook, err)
		}
	})
}

func TestManagedIDs(t *testing.T) {
	for id, want := range map[string]int64{"r0": 0, "r1": 1, "r12": 12, "r9223372036854775807": 1<<63 - 1} {
		if got, ok := state.ParseManagedID(id); !ok || got != want || state.ManagedID(want) != id {
			t.Errorf("%s is %d, %v", id, got, ok)
		}
	}
	for _, id := range []string{"", "r", "12", "r-1", "r01", "R1", "r+1", "r1 ", "r9223372036854775808", "rr1"} {
		if n, ok := state.ParseManagedID(id); ok {
			t.Errorf("%q is taken for %d", id, n)
		}
	}
	a, b := schema.File{Path: "a", Content: "1"}, schema.File{Path: "b", Content: "2"}
	if state.ManagedTree([]schema.File{a, b}) != state.ManagedTree([]schema.File{b, a}) {
		t.Error("the order of files changes the tree")
	}
	if state.ManagedTree([]schema.File{a}) == state.ManagedTree([]schema.File{{Path: "a", Content: "2"}}) {
		t.Error("the content does not change the tree")
	}
}
