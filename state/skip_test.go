package state_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"millwright/schema"
	"millwright/state"
	"millwright/state/seal"
	"millwright/state/statetest"
)

// poisoned is a state with rows that its own methods would not have written.
type poisoned struct {
	*state.Store
	t   *testing.T
	dsn string
	db  *sql.DB
}

func eachPoisoned(t *testing.T, f func(t *testing.T, p *poisoned)) {
	statetest.EachDSN(t, func(t *testing.T, dsn string) {
		s := statetest.Open(t, dsn)
		f(t, &poisoned{s, t, dsn, openDB(t, dsn)})
	})
}

func (p *poisoned) exec(query string, args ...any) {
	p.t.Helper()
	if _, err := p.db.Exec(query, args...); err != nil {
		p.t.Fatalf("%s: %v", query, err)
	}
}

var triggers int

// forbid makes the database refuse every change of one kind to one row.
func (p *poisoned) forbid(event, table, column, value string) {
	p.t.Helper()
	triggers++
	if _, lite := state.SQLitePath(p.dsn); lite {
		p.exec(fmt.Sprintf(`CREATE TRIGGER poison%d BEFORE %s ON %s WHEN OLD.%s = '%s' BEGIN SELECT RAISE(ABORT, 'poisoned'); END`, triggers, event, table, column, value))
		return
	}
	p.exec(fmt.Sprintf(`CREATE FUNCTION poison%d() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'poisoned'; END $$`, triggers))
	p.exec(fmt.Sprintf(`CREATE TRIGGER poison%d BEFORE %s ON %s FOR EACH ROW WHEN (OLD.%s = '%s') EXECUTE FUNCTION poison%d()`, triggers, event, table, column, value, triggers))
}

// long is text that no database makes shorter, with the widest characters that there are.
func long(characters int) string {
	var b strings.Builder
	for range characters {
		b.WriteRune(rune(0x10000 + rand.IntN(0x4000)))
	}
	return b.String()
}

// skipped returns the rows that are skipped, as text.
func (p *poisoned) skipped() string {
	var all []string
	for _, s := range p.Skipped() {
		all = append(all, fmt.Sprintf("%s: %s of %q: %s", s.Loop, s.Row, s.FactoryUID, s.Err))
	}
	return strings.Join(all, "\n")
}

func of(factory string) state.NewRun {
	n := newRun("a prompt")
	n.FactoryUID, n.Metadata = factory, map[string]string{"ticket": "7"}
	return n
}

// TestPoisonedLeases takes runs back from lost workers while rows of one factory cannot be read, changed or
// indexed: those of another go on, and the bad ones end or are named.
func TestPoisonedLeases(t *testing.T) {
	eachPoisoned(t, func(t *testing.T, p *poisoned) {
		var bad, good []string
		for i := range 6 {
			bad = append(bad, create(t, p.Store, of("fac_bad")).ID)
			if i%2 == 0 {
				good = append(good, create(t, p.Store, of("fac_good")).ID)
			}
		}
		for _, id := range slices.Concat(bad, good) {
			start(t, p.Store, id)
		}
		p.exec(`UPDATE runs SET metadata = '{' WHERE id = $1`, bad[0])
		p.exec(`UPDATE runs SET model_id = $2, environment_id = $3, attempt = 3 WHERE id = $1`, bad[1], long(3000), long(3000))
		p.exec(`UPDATE runs SET config = 'no JSON', secrets = 'x', attempt = 3 WHERE id = $1`, bad[2])
		for _, id := range bad[3:] {
			p.forbid("UPDATE", "runs", "id", id)
		}
		p.exec(`UPDATE runs SET attempt = 3 WHERE id = $1`, good[0])

		reaped := map[string]state.RunState{}
		for range 4 { // the bad ones are first, and fill a page
			runs, err := p.ReapRuns(t.Context(), past(), 2)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range runs {
				reaped[r.ID] = r.State
			}
		}
		for i, id := range slices.Concat(bad[:3], good) {
			want := []state.RunState{state.RunQueued, state.RunError, state.RunError, state.RunError, state.RunQueued, state.RunQueued}[i]
			if reaped[id] != want || run(t, p.Store, id).State != want {
				t.Errorf("run %d was reaped as %q and is %s, want %s", i, reaped[id], run(t, p.Store, id).State, want)
			}
		}
		for _, id := range bad[3:] {
			if text := p.skipped(); reaped[id] != "" || !strings.Contains(text, "lease recovery: run "+id+` of "fac_bad"`) || !strings.Contains(text, "poisoned") {
				t.Errorf("run %s is %q; skipped: %s", id, reaped[id], text)
			}
		}
		if len(p.Skipped()) != 3 {
			t.Errorf("skipped: %s", p.skipped())
		}
		if got := changes(t, p.Store, bad[1]); got != "CLAIMED INPROGRESS ERROR" {
			t.Errorf("a run with a long text went through %s", got)
		}
	})
}

// TestPoisonedClaims claims runs whose rows cannot be read: each ends with the reason.
func TestPoisonedClaims(t *testing.T) {
	eachPoisoned(t, func(t *testing.T, p *poisoned) {
		for column, value := range map[string]string{"metadata": "[", "secrets": "{}", "config": "'", "skills": "-"} {
			id := create(t, p.Store, of("fac_bad")).ID
			p.exec(`UPDATE runs SET `+column+` = $2 WHERE id = $1`, id, value)
			if _, _, err := p.ClaimRun(t.Context(), id, "key_w", "worker", lease); !errors.Is(err, state.ErrConflict) {
				t.Errorf("claim with bad %s: %v", column, err)
			}
			r := run(t, p.Store, id)
			if r.State != state.RunError || r.ErrorCode != "internal_error" || !strings.Contains(r.StatusMessage, column) {
				t.Errorf("bad %s: %s, %s %q", column, r.State, r.ErrorCode, r.StatusMessage)
			}
			if got := changes(t, p.Store, id); got != "ERROR" {
				t.Errorf("bad %s: went through %s", column, got)
			}
		}
		claim(t, p.Store, create(t, p.Store, of("fac_good")).ID)
		found, _, err := p.Runs(t.Context(), state.RunFilter{}, state.RunOrder{}, nil, 50)
		if err != nil || len(found) != 5 {
			t.Errorf("a list of %d runs: %v", len(found), err)
		}
	})
}

// TestRunsEndWhateverTheyHold ends runs whose texts are as long as any, in each way that a run ends.
func TestRunsEndWhateverTheyHold(t *testing.T) {
	eachPoisoned(t, func(t *testing.T, p *poisoned) {
		for name, end := range map[string]func(id string) state.RunState{
			"finish": func(id string) state.RunState {
				if _, err := p.FinishRun(t.Context(), start(t, p.Store, id), state.Result{State: state.RunSucceeded, Message: "a\x00b\xff"}); err != nil {
					t.Error(err)
				}
				return state.RunSucceeded
			},
			"cancel": func(id string) state.RunState {
				if _, err := p.RequestCancel(t.Context(), id, "tester"); err != nil {
					t.Error(err)
				}
				return state.RunCancelled
			},
			"release": func(id string) state.RunState {
				c := start(t, p.Store, id)
				if _, err := p.RequestCancel(t.Context(), id, "tester"); err != nil {
					t.Error(err)
				}
				if err := p.ReleaseRun(t.Context(), c); err != nil {
					t.Error(err)
				}
				return state.RunCancelled
			},
		} {
			for _, raw := range []bool{false, true} { // as a definition gave it, or written behind our back
				n := of("fac_1")
				text := long(3000) + "\x00\xff"
				if !raw {
					n.Title, n.Prompt, n.Envelope, n.ConfigName, n.ModelID, n.EnvironmentID, n.SkillSpec = text, text, text, text, text, text, text
					n.Metadata = map[string]string{"schedule": text}
					n.Creator.DisplayName, n.TriggerURL = text, text
				}
				id := create(t, p.Store, n).ID
				if raw {
					p.exec(`UPDATE runs SET model_id = $2, environment_id = $2, skill_spec = $2 WHERE id = $1`, id, long(3000))
				}
				if want := end(id); run(t, p.Store, id).State != want {
					t.Errorf("%s, raw %v: %s, want %s", name, raw, run(t, p.Store, id).State, want)
				}
			}
		}
	})
}

// TestPoisonedRouting reads the routing facts while rows of several factories cannot be read: the others' are
// as they were, and the bad ones are told from them.
func TestPoisonedRouting(t *testing.T) {
	eachPoisoned(t, func(t *testing.T, p *poisoned) {
		uids := map[string]string{}
		for _, name := range []string{"file", "webhook", "secret", "automation", "server", "good"} {
			uids[name] = p.factory(name)
		}
		p.exec(`UPDATE factories SET spec = '{"name":' WHERE uid = $1`, uids["file"])
		p.exec(`UPDATE webhooks SET spec = '' WHERE factory_uid = $1 AND name = 'first'`, uids["webhook"])
		p.exec(`UPDATE secret_versions SET sealed = $1 WHERE name = 'KEY_secret'`, []byte("not sealed at all, and long enough"))
		p.exec(`UPDATE resources SET spec = '{"name":1}' WHERE factory_uid = $1 AND kind = 'automation'`, uids["automation"])
		p.exec(`UPDATE resources SET spec = $2 WHERE factory_uid = $1 AND kind = 'automation'`, uids["server"],
			`{"name":"look","enabled":true,"triggers":[],"prompt":"p","mcpServers":{"docs":{"env":[1]}}}`)

		s := statetest.Open(t, p.reopened()) // nothing is remembered
		r, err := s.Routing(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range r.Factories {
			bad := 0
			for _, w := range f.Webhooks {
				if w.Err != nil {
					bad++
				}
			}
			want := map[string]int{"file": 2, "webhook": 1, "secret": 2, "automation": 2, "server": 2}[f.Name]
			whole := f.Name != "webhook" && f.Name != "secret" && f.Name != "good"
			if bad != want || len(f.Webhooks) != 2 || (f.Err != nil) != whole || whole != (len(f.Automations) == 0) {
				t.Errorf("factory %s: %d bad webhooks of %d, %d automations, %v", f.Name, bad, len(f.Webhooks), len(f.Automations), f.Err)
			}
		}
		if n := len(s.Skipped()); n != 6 || len(r.Factories) != 6 {
			t.Errorf("%d factories, skipped %d: %+v", len(r.Factories), n, s.Skipped())
		}
	})
}

// reopened closes the state and returns its address.
func (p *poisoned) reopened() string {
	p.t.Helper()
	if err := p.Close(); err != nil {
		p.t.Fatal(err)
	}
	return p.dsn
}

// factory applies a factory with two webhooks and an automation.
func (p *poisoned) factory(name string) string {
	p.t.Helper()
	ctx := p.t.Context()
	if _, err := p.SetSecret(ctx, "KEY_"+name, []byte("k3y")); err != nil {
		p.t.Fatal(err)
	}
	f, err := p.EnsureFactory(ctx, name, state.Source{Kind: "managed"}, false)
	if err != nil {
		p.t.Fatal(err)
	}
	a := state.ChangeSet{FactoryUID: f.UID, Base: f.Generation, Started: time.Now(), Revision: state.Revision{ID: "r1"}}
	for _, webhook := range []string{"first", "second"} {
		spec := schema.Webhook{Name: webhook, Path: "webhooks/" + webhook + ".yaml", AuthMode: schema.AuthToken, SecretName: "KEY_" + name, Enabled: true}
		a.Webhooks = append(a.Webhooks, state.WebhookChange{UID: state.NewID(state.PrefixWebhook), SecretVersion: 1, Spec: spec})
	}
	a.Resources = []state.ResourceChange{{Kind: "automation", Name: "look", Spec: schema.Automation{Name: "look", Enabled: true, Triggers: []schema.Trigger{}, Prompt: "p"}}}
	if err := p.Apply(ctx, a); err != nil {
		p.t.Fatal(err)
	}
	return f.UID
}

// TestPoisonedFactories reads and configures factories while the row of one cannot be read. Its next apply
// writes the row anew.
func TestPoisonedFactories(t *testing.T) {
	eachPoisoned(t, func(t *testing.T, p *poisoned) {
		ctx := t.Context()
		bad, good := p.factory("bad"), p.factory("good")
		p.exec(`UPDATE factories SET spec = 'x', source = 'x', problems = 'x', attempted_revision = 'x', applied_revision = 'x' WHERE uid = $1`, bad)
		all, err := p.Factories(ctx)
		if err != nil || len(all) != 2 || all[0].SyncState != state.SyncFailed || !strings.Contains(all[0].Message, "cannot be read") || all[1].UID != good || all[1].SyncState != state.SyncApplied {
			t.Fatalf("factories: %+v %v", all, err)
		}
		source := state.Source{Kind: "managed"}
		if _, err := p.ConfigureFactories(ctx, []state.FactorySettings{{Name: "bad", Source: source}, {Name: "good", Source: source}}); err != nil {
			t.Fatal(err)
		}
		cur, err := p.Current(ctx, bad)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Apply(ctx, state.ChangeSet{FactoryUID: bad, Base: cur.Factory.Generation, BaseRevision: cur.Factory.Applied.ID, Started: time.Now(), Revision: state.Revision{ID: "r2"}}); err != nil {
			t.Fatal(err)
		}
		f, err := p.Factory(ctx, bad)
		if err != nil || f.SyncState != state.SyncApplied || f.Applied.ID != "r2" || f.Source != source || f.Message != "" {
			t.Errorf("after an apply: %+v %v", f, err)
		}
		r, err := p.Routing(ctx)
		if err != nil || r.Factories[0].Err != nil || len(r.Factories[0].Automations) != 1 {
			t.Errorf("routing after an apply: %+v %v", r.Factories, err)
		}
	})
}

// TestPoisonedRetention forgets old runs and deliveries while single ones of them cannot be deleted.
func TestPoisonedRetention(t *testing.T) {
	eachPoisoned(t, func(t *testing.T, p *poisoned) {
		ctx := t.Context()
		h := newHooks(t, p.Store, "alerts", "other")
		var deliveries, runs []string
		for i := range 8 {
			a := h.acceptance([]string{"alerts", "other"}[i%2], fmt.Sprint(i), 0)
			if _, err := p.Accept(ctx, a); err != nil {
				t.Fatal(err)
			}
			deliveries = append(deliveries, a.UID)
			id := create(t, p.Store, of("fac_1")).ID
			if _, err := p.RequestCancel(ctx, id, "tester"); err != nil {
				t.Fatal(err)
			}
			runs = append(runs, id)
		}
		p.forbid("DELETE", "deliveries", "uid", deliveries[0])
		p.forbid("DELETE", "runs", "id", runs[0])
		for range 2 { // what cannot be forgotten does not come between
			if _, err := p.ExpireDeliveries(ctx, 1, -time.Hour); err != nil {
				t.Fatal(err)
			}
			if _, err := p.ExpireRuns(ctx, -time.Hour); err != nil {
				t.Fatal(err)
			}
		}
		left, _, err := p.Runs(ctx, state.RunFilter{}, state.RunOrder{}, nil, 50)
		if err != nil || len(left) != 1 || left[0].ID != runs[0] {
			t.Errorf("%d runs are left: %v", len(left), err)
		}
		if n := len(h.log("alerts")) + len(h.log("other")); n != 3 { // the newest of each is kept
			t.Errorf("%d deliveries are left, want 3", n)
		}
		text := p.skipped()
		if !strings.Contains(text, "delivery "+deliveries[0]) || !strings.Contains(text, "run "+runs[0]) || len(p.Skipped()) != 2 {
			t.Errorf("skipped: %s", text)
		}
	})
}

// TestPoisonedRotation rotates the master key while single values cannot be opened.
func TestPoisonedRotation(t *testing.T) {
	eachPoisoned(t, func(t *testing.T, p *poisoned) {
		p.factory("good")
		if _, err := p.SetSecret(t.Context(), "LOST", []byte("value")); err != nil {
			t.Fatal(err)
		}
		p.exec(`UPDATE secret_versions SET sealed = $1 WHERE name = 'LOST'`, []byte("\x01 what is not sealed by any key"))
		dsn := p.reopened()
		file := t.TempDir() + "/next-key"
		r, err := seal.Rotate(t.Context(), dsn, statetest.MasterKey(), "", file)
		if err != nil || !slices.Equal(r.Unreadable, []string{"secret LOST"}) || r.Values != 3 {
			t.Fatalf("rotation: %+v %v", r, err)
		}
		key, err := seal.LoadKey(dsn, "", file)
		if err != nil {
			t.Fatal(err)
		}
		s, err := state.Open(t.Context(), state.Config{DSN: dsn, MasterKey: key})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if v, err := s.SecretValue(context.Background(), "KEY_good"); err != nil || string(v) != "k3y" {
			t.Errorf("a secret after the rotation: %q %v", v, err)
		}
	})
}
