package state_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"millwright/schema"
	"millwright/state"
	"millwright/state/statetest"
)

// factory makes a factory with a webhook per name, all on the secret TOKEN.
func factory(t *testing.T, s *state.Store, names ...string) (state.Factory, map[string]string) {
	t.Helper()
	ctx := t.Context()
	if _, err := s.SetSecret(ctx, "TOKEN", []byte("first")); err != nil {
		t.Fatal(err)
	}
	f, err := s.EnsureFactory(ctx, "main", state.Source{Kind: "dir", Path: "/x"}, false)
	if err != nil {
		t.Fatal(err)
	}
	uids := map[string]string{}
	app := application(t, s, f.UID)
	for _, name := range names {
		w := change(t, s, f.UID, name)
		uids[name] = w.UID
		app.Webhooks = append(app.Webhooks, w)
	}
	if err := s.Apply(ctx, app); err != nil {
		t.Fatal(err)
	}
	return f, uids
}

func application(t *testing.T, s *state.Store, uid string) state.ChangeSet {
	t.Helper()
	cur, err := s.Current(t.Context(), uid)
	if err != nil {
		t.Fatal(err)
	}
	return state.ChangeSet{FactoryUID: uid, Base: cur.Factory.Generation, BaseRevision: cur.Factory.Applied.ID, Started: time.Now(), Revision: state.Revision{ID: fmt.Sprint("r", cur.Factory.Generation)}}
}

func change(t *testing.T, s *state.Store, factoryUID, name string) state.WebhookChange {
	t.Helper()
	cur, err := s.Current(t.Context(), factoryUID)
	if err != nil {
		t.Fatal(err)
	}
	ordinal := cur.Ordinals[name]
	uid := state.WebhookUID(cur.Key, name, ordinal)
	for _, w := range cur.Webhooks {
		if w.Spec.Name == name {
			uid, ordinal = w.UID, w.Ordinal
		}
	}
	return state.WebhookChange{
		UID: uid, Ordinal: ordinal, SecretVersion: cur.Secrets["TOKEN"].Version,
		Spec: schema.Webhook{Name: name, Path: "webhooks/" + name + ".yaml", AuthMode: "token", SecretName: "TOKEN", Enabled: true},
	}
}

func TestApplyAndRouting(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		ctx := t.Context()
		f, uids := factory(t, s, "ci", "uptime")
		r, err := s.Routing(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Factories) != 1 || len(r.Factories[0].Webhooks) != 2 || r.Factories[0].Generation != r.Generation {
			t.Fatalf("routing = %+v", r)
		}
		w := r.Factories[0].Webhooks[0]
		if w.UID != uids["ci"] || string(w.Secret) != "first" || w.Spec.Name != "ci" {
			t.Errorf("webhook = %+v", w)
		}
		if !schema.ParseUID(w.UID) {
			t.Errorf("UID %q has not the form of one", w.UID)
		}

		stale := application(t, s, f.UID)
		if err := s.Apply(ctx, func() state.ChangeSet {
			a := application(t, s, f.UID)
			a.DeleteWebhooks = []string{uids["ci"]}
			return a
		}()); err != nil {
			t.Fatal(err)
		}
		stale.DeleteWebhooks = []string{uids["uptime"]}
		if err := s.Apply(ctx, stale); !errors.Is(err, state.ErrMoved) {
			t.Errorf("apply of a plan against an older generation: %v, want ErrMoved", err)
		}
		live, err := s.Webhooks(ctx, f.UID, false)
		if err != nil || len(live) != 1 || live[0].UID != uids["uptime"] {
			t.Errorf("live webhooks = %+v, %v", live, err)
		}

		again := change(t, s, f.UID, "ci")
		if again.UID == uids["ci"] || again.Ordinal != 1 {
			t.Errorf("a webhook that comes back gets UID %s, ordinal %d; it had %s", again.UID, again.Ordinal, uids["ci"])
		}
	})
}

func TestSecretVersionsArePickedUpByApplyOnly(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		ctx := t.Context()
		f, _ := factory(t, s, "ci")
		for _, value := range []string{"second", "third"} {
			if _, err := s.SetSecret(ctx, "TOKEN", []byte(value)); err != nil {
				t.Fatal(err)
			}
		}
		routed := func() string {
			r, err := s.Routing(ctx)
			if err != nil {
				t.Fatal(err)
			}
			return string(r.Factories[0].Webhooks[0].Secret)
		}
		if got := routed(); got != "first" {
			t.Errorf("before the apply the webhook uses %q", got)
		}
		if live, _ := s.Webhooks(ctx, f.UID, false); !live[0].SecretStale || live[0].SecretVersion != 1 {
			t.Errorf("webhook = %+v, want a stale secret of version 1", live[0])
		}
		app := application(t, s, f.UID)
		app.Webhooks = []state.WebhookChange{change(t, s, f.UID, "ci")}
		if err := s.Apply(ctx, app); err != nil {
			t.Fatal(err)
		}
		if got := routed(); got != "third" {
			t.Errorf("after the apply the webhook uses %q", got)
		}

		if err := s.DeleteSecret(ctx, "TOKEN"); !errors.Is(err, state.ErrConflict) {
			t.Errorf("deleting a secret in use: %v, want ErrConflict", err)
		}
		gone := application(t, s, f.UID)
		live, _ := s.Webhooks(ctx, f.UID, false)
		gone.DeleteWebhooks = []string{live[0].UID}
		if err := s.Apply(ctx, gone); err != nil {
			t.Fatal(err)
		}
		if err := s.DeleteSecret(ctx, "TOKEN"); err != nil {
			t.Errorf("deleting a secret that only a deleted webhook used: %v", err)
		}
		if err := s.DeleteSecret(ctx, "TOKEN"); !errors.Is(err, state.ErrNotFound) {
			t.Errorf("deleting it again: %v, want ErrNotFound", err)
		}
	})
}

func TestApplyNeedsItsSecret(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		f, uids := factory(t, s, "ci")
		app := application(t, s, f.UID)
		w := change(t, s, f.UID, "ci")
		w.SecretVersion = 99
		app.Webhooks = []state.WebhookChange{w}
		if err := s.Apply(t.Context(), app); !errors.Is(err, state.ErrMoved) {
			t.Errorf("apply with a secret version that is gone: %v, want ErrMoved", err)
		}
		live, err := s.Webhooks(t.Context(), f.UID, false)
		if err != nil || len(live) != 1 || live[0].UID != uids["ci"] || live[0].SecretVersion != 1 {
			t.Errorf("webhooks = %+v, %v: want them unchanged", live, err)
		}
	})
}

func TestApplyWaitsForReplicas(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		ctx := t.Context()
		f, _ := factory(t, s, "ci")
		r, err := s.Routing(ctx)
		if err != nil {
			t.Fatal(err)
		}
		replica, err := s.Join(ctx, r.Generation)
		if err != nil {
			t.Fatal(err)
		}
		app := application(t, s, f.UID)
		app.DeleteWebhooks = []string{r.Factories[0].Webhooks[0].UID}
		applied := make(chan error, 1)
		go func() { applied <- s.Apply(context.WithoutCancel(ctx), app) }()

		now := r
		statetest.Until(t, "the change is stored", func() bool {
			if err := replica.Renew(ctx); err != nil {
				t.Fatal(err)
			}
			if now, err = s.Routing(ctx); err != nil {
				t.Fatal(err)
			}
			return now.Generation != r.Generation
		})

		// Who finds nothing to change waits for the change before, too.
		same := application(t, s, f.UID)
		same.Revision = state.Revision{ID: "same"}
		unchanged, served := make(chan error, 1), make(chan error, 1)
		go func() { unchanged <- s.Apply(context.WithoutCancel(ctx), same) }()
		go func() { served <- s.Served(context.WithoutCancel(ctx), f.UID) }()
		statetest.Until(t, "the second revision is stored", func() bool {
			c, err := s.Current(ctx, f.UID)
			if err != nil {
				t.Fatal(err)
			}
			if err := replica.Renew(ctx); err != nil {
				t.Fatal(err)
			}
			return c.Factory.Applied.ID == "same"
		})

		select {
		case err := <-applied:
			t.Fatalf("apply returned (%v) before the replica had loaded it", err)
		case err := <-unchanged:
			t.Fatalf("the second apply returned (%v) before the replica had loaded the first", err)
		case err := <-served:
			t.Fatalf("Served returned (%v) before the replica had loaded the change", err)
		default:
		}

		if err := replica.Loaded(ctx, now.Generation); err != nil {
			t.Fatal(err)
		}
		for _, end := range []chan error{applied, unchanged, served} {
			if err, _ := statetest.Receive(t, "the end of a call", end); err != nil {
				t.Fatal(err)
			}
		}
		if err := replica.Leave(ctx); err != nil {
			t.Fatal(err)
		}
	})
}

// TestReplicaThatMissedAChange holds that a replica whose lease ran out judges nothing by what it knew before: a
// change that returned meanwhile did not wait for it.
func TestReplicaThatMissedAChange(t *testing.T) {
	statetest.EachDSN(t, func(t *testing.T, dsn string) {
		s := statetest.Open(t, dsn)
		ctx := t.Context()
		f, _ := factory(t, s, "ci")
		before, err := s.Routing(ctx)
		if err != nil {
			t.Fatal(err)
		}
		app := application(t, s, f.UID)
		app.DeleteWebhooks = []string{before.Factories[0].Webhooks[0].UID}
		if err := s.Apply(ctx, app); err != nil {
			t.Fatal(err)
		}

		replica, err := s.Join(ctx, before.Generation)
		if err != nil {
			t.Fatal(err)
		}
		if replica.Live() && strings.Contains(dsn, "://") {
			t.Error("it is live before it has loaded the change")
		}
		now, err := s.RoutingGeneration(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := replica.Loaded(ctx, now); err != nil || !replica.Live() {
			t.Errorf("it is not live after it has loaded the change: %v", err)
		}
	})
}

func TestHistoryIsBounded(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		ctx := t.Context()
		f, _ := factory(t, s)
		for i := range 205 {
			err := s.Refuse(ctx, state.Attempt{
				FactoryUID: f.UID, Started: time.Now(), Outcome: state.OutcomeRefused, Revision: state.Revision{ID: fmt.Sprint(i)},
				Problems: []schema.Problem{{Path: "webhooks/ci.yaml", Line: 1, Column: 2, Severity: "error", Code: "unknown-key", Message: "m"}},
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		all, err := s.Attempts(ctx, f.UID, 0, 500)
		if err != nil || len(all) != 200 || all[0].Revision.ID != "204" || len(all[0].Problems) != 1 {
			t.Fatalf("%d attempts, first %+v, %v; want the newest 200", len(all), all[0], err)
		}
		rest, err := s.Attempts(ctx, f.UID, all[9].ID, 10)
		if err != nil || len(rest) != 10 || rest[0].ID != all[10].ID {
			t.Errorf("the next page begins with %+v, %v", rest, err)
		}
		got, err := s.Factory(ctx, "main")
		if err != nil || got.SyncState != state.SyncRefused || got.Attempted.ID != "204" || got.Applied.ID == "204" {
			t.Errorf("factory = %+v, %v", got, err)
		}
	})
}

func TestDetachedFactoryKeepsItsUIDs(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		ctx := t.Context()
		f, uids := factory(t, s, "ci")
		if _, err := s.ConfigureFactories(ctx, []state.FactorySettings{{Name: "another"}}); err != nil {
			t.Fatal(err)
		}
		if r, err := s.Routing(ctx); err != nil || len(r.Factories) != 1 || r.Factories[0].Name != "another" {
			t.Fatalf("routing of a detached factory = %+v, %v", r, err)
		}
		back, err := s.EnsureFactory(ctx, "main", state.Source{Kind: "dir", Path: "/elsewhere"}, false)
		if err != nil || back.UID != f.UID {
			t.Fatalf("factory = %+v, %v", back, err)
		}
		r, err := s.Routing(ctx)
		if err != nil || len(r.Factories) != 2 || r.Factories[1].Webhooks[0].UID != uids["ci"] {
			t.Errorf("routing = %+v, %v", r, err)
		}
	})
}

// TestFactoriesAreConfiguredWholly has the database refuse one of the changes that a new settings file
// asks for: the others are not made either.
func TestFactoriesAreConfiguredWholly(t *testing.T) {
	dsn := statetest.SQLite(t)
	s := statetest.Open(t, dsn)
	configure := func(suspended bool, names ...string) ([]state.Factory, error) {
		var want []state.FactorySettings
		for _, name := range names {
			want = append(want, state.FactorySettings{Name: name, Source: state.Source{Kind: "dir", Path: "/x"}, Suspended: suspended})
		}
		return s.ConfigureFactories(t.Context(), want)
	}
	before, err := configure(false, "c", "a", "b")
	if err != nil || len(before) != 3 || before[0].Name != "c" || before[1].Name != "a" {
		t.Fatalf("%+v, %v", before, err)
	}
	execAll(t, openDB(t, dsn), `CREATE TRIGGER refuse BEFORE UPDATE ON factories WHEN new.name = 'c' AND new.detached = 1 BEGIN SELECT RAISE(ABORT, 'no'); END`)
	if _, err := configure(true, "a", "b", "new"); err == nil {
		t.Fatal("the change that the database refuses was made")
	}
	all, err := s.Factories(t.Context())
	if err != nil || len(all) != 3 {
		t.Fatalf("%+v, %v", all, err)
	}
	for _, f := range all {
		if f.Suspended || f.Detached {
			t.Errorf("%s changed: %+v", f.Name, f)
		}
	}
	execAll(t, openDB(t, dsn), `DROP TRIGGER refuse`)
	after, err := configure(true, "a", "b", "new")
	if err != nil || after[0].UID != before[1].UID || !after[0].Suspended || after[2].Name != "new" {
		t.Errorf("%+v, %v", after, err)
	}
	if again, err := configure(true, "a", "b", "new"); err != nil || again[0].Generation != after[0].Generation {
		t.Errorf("the same once more: %+v, %v", again, err)
	}
}

func TestLease(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		ctx := t.Context()
		take := func(holder string, ttl time.Duration) bool {
			ok, err := s.Lease(ctx, "reconcile/x", holder, ttl)
			if err != nil {
				t.Fatal(err)
			}
			return ok
		}
		for _, what := range []string{"take", "prolong"} {
			if !take("a", time.Hour) {
				t.Errorf("a cannot %s a free lease", what)
			}
		}
		if take("b", time.Hour) {
			t.Error("b took a's lease")
		}
		if !take("a", -time.Second) || !take("b", time.Hour) {
			t.Error("b cannot take a lease that ran out")
		}
		if err := s.Release(ctx, "reconcile/x", "a"); err != nil || take("a", time.Hour) {
			t.Error("a released b's lease", err)
		}
	})
}
