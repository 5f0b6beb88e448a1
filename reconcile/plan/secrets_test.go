package plan_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"millwright/reconcile/plan"
	"millwright/schema"
	"millwright/schema/agefile"
	"millwright/state"
	"millwright/state/statetest"
)

// TestSealedSecrets applies trees with secrets in them, on both databases.
func TestSealedSecrets(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		b := newBench(t, s)
		ctx := t.Context()
		const name = "DEPLOY_TOKEN"
		path := "secrets/" + name + ".age"
		sealed := func(value string) string {
			t.Helper()
			cur := b.current()
			file, err := agefile.Seal(cur.Factory.Recipient, cur.Factory.UID, name, []byte(value))
			if err != nil {
				t.Fatal(err)
			}
			return string(file)
		}
		opts := func(revision string) plan.Options {
			return plan.Options{OpenSecrets: true, Used: map[string]string{}, Revision: state.Revision{ID: revision}, Now: time.Now()}
		}
		apply := func(tr tree, revision string) {
			t.Helper()
			p, app := plan.Make(b.current(), tr.fs(), opts(revision))
			if app == nil {
				t.Fatalf("refused: %+v", p.Problems)
			}
			if err := s.Apply(ctx, *app); err != nil {
				t.Fatal(err)
			}
		}
		value := func(factory, want string) {
			t.Helper()
			got, err := s.SecretValueFor(ctx, factory, name)
			if want == "" && errors.Is(err, state.ErrNotFound) {
				return
			}
			if err != nil || string(got) != want {
				t.Fatalf("value of factory %q: %q, %v; want %q", factory, got, err, want)
			}
		}

		first := tree{path: sealed("first"), "webhooks/ci.yaml": "secretName: " + name + "\n"}
		uid := b.current().Factory.UID

		// A plan that opens nothing takes the file for what it is, and its change set cannot be made.
		unopened := opts("r0")
		unopened.OpenSecrets = false
		p, app := plan.Make(b.current(), first.fs(), unopened)
		if !p.WouldApply || !strings.Contains(strings.Join(p.NotChecked, " "), "secret-file-unreadable") {
			t.Fatalf("plan without opening: %+v", p)
		}
		if err := s.Apply(ctx, *app); err == nil {
			t.Fatal("a file that was not opened was applied")
		}
		value(uid, "")

		apply(first, "r1")
		value(uid, "first")
		value("", "")
		value("fac_01h455vb4pex5vsknk084sn02q", "")
		own := b.current().Own[name]
		if own.Version != 1 || own.Revision != "r1" || own.FactoryUID != uid {
			t.Fatalf("stored as %+v", own)
		}

		// The same tree changes nothing; a new file is a new version, in the same apply for the webhook.
		if _, app := plan.Make(b.current(), first.fs(), opts("r1")); app == nil || !app.Empty() {
			t.Fatalf("planned again: %+v", app)
		}
		second := tree{path: sealed("second"), "webhooks/ci.yaml": first["webhooks/ci.yaml"]}
		p, _ = plan.Make(b.current(), second.fs(), opts("r2"))
		if len(p.Secrets) != 1 || p.Secrets[0].Version != 2 || p.Secrets[0].Webhooks[0] != "ci" {
			t.Fatalf("picked up: %+v", p.Secrets)
		}
		apply(second, "r2")
		value(uid, "second")
		if w := b.current().Webhooks[0]; w.SecretVersion != 2 || w.SecretStale || !w.SecretOwn {
			t.Fatalf("webhook %+v", w)
		}
		routing, err := s.Routing(ctx)
		if err != nil || string(routing.Factories[0].Webhooks[0].Secret) != "second" {
			t.Fatalf("routed with another value: %v", err)
		}

		// An earlier revision keeps the present value.
		kept := opts("r1")
		kept.OpenSecrets, kept.KeepSecrets = false, true
		if _, app := plan.Make(b.current(), first.fs(), kept); app == nil || !app.Empty() {
			t.Fatalf("kept: %+v", app)
		}

		// The team may take the name: the factory goes on with its own, and gets new values of that.
		if _, err := s.SetSecret(ctx, name, []byte("team")); err != nil {
			t.Fatal(err)
		}
		value("", "team")
		value("fac_01h455vb4pex5vsknk084sn02q", "team")
		value(uid, "second")
		second[path] = sealed("third")
		apply(second, "r2a")
		value(uid, "third")
		second[path] = sealed("second")
		apply(second, "r2b")
		if err := s.DeleteSecret(ctx, name); err != nil {
			t.Fatal(err)
		}
		value(uid, "second")

		// A definition does not take the name of a team secret.
		if _, err := s.SetSecret(ctx, "TEAM", []byte("team")); err != nil {
			t.Fatal(err)
		}
		cur := b.current()
		taken, err := agefile.Seal(cur.Factory.Recipient, uid, "TEAM", []byte("own"))
		if err != nil {
			t.Fatal(err)
		}
		p, _ = plan.Make(cur, second.with("secrets/TEAM.age", string(taken)).fs(), opts("r3"))
		if got := codes(p, schema.SeverityError); len(got) != 1 || got[0] != "secret-file-taken" {
			t.Fatalf("taken: %v", got)
		}

		// One bad file keeps all of the revision from being applied.
		p, app = plan.Make(cur, second.with("secrets/COPY.age", second[path], "webhooks/ci.yaml", "").fs(), opts("r4"))
		if got := codes(p, schema.SeverityError); app != nil || len(got) != 1 || got[0] != "secret-file-unreadable" {
			t.Fatalf("copied: %v", got)
		}

		// A secret goes with its file, and an earlier revision that needs it is refused then.
		apply(tree{}, "r5")
		value(uid, "")
		p, _ = plan.Make(b.current(), first.fs(), kept)
		if got := codes(p, schema.SeverityError); len(got) != 1 || got[0] != "secret-missing" {
			t.Fatalf("gone: %v", got)
		}
		if _, err := s.SetSecret(ctx, name, []byte("team")); err != nil {
			t.Fatal(err)
		}
	})
}
