package plan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"millwright/reconcile/plan"
	"millwright/schema"
	"millwright/state"
	"millwright/state/statetest"
)

// accept stores a delivery to a webhook.
func (b *bench) accept(w state.Webhook) {
	b.t.Helper()
	_, err := b.store.Accept(b.t.Context(), state.Acceptance{
		UID: state.NewID(state.PrefixDelivery), FactoryUID: b.uid, Generation: b.current().Factory.Generation,
		WebhookID: w.ID, WebhookUID: w.UID, Sender: "192.0.2.1", Body: []byte("{}"), Received: time.Now(),
		Identity: state.IdentityOf(state.IdentityServiceHeader, "1"),
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

// make plans a tree with options and applies it.
func (b *bench) make(t tree, opts plan.Options, change func(*state.ChangeSet)) plan.Plan {
	b.t.Helper()
	p, app := plan.Make(b.current(), t.fs(), opts)
	if app == nil {
		b.t.Fatalf("refused: %+v", p.Problems)
	}
	if change != nil {
		change(app)
	}
	if err := b.store.Apply(b.t.Context(), *app); err != nil {
		b.t.Fatal(err)
	}
	return p
}

// TestANameThatReturnsIsTheSameWebhook reverts the deletion of a webhook.
func TestANameThatReturnsIsTheSameWebhook(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		b := newBench(t, s)
		files := tree{"webhooks/a.yaml": hook("A"), "webhooks/b.yaml": hook("B")}
		b.apply(files, "r1")
		a := b.current().Webhooks[0]
		b.accept(a)

		b.apply(files.with("webhooks/a.yaml", ""), "r2")
		if _, err := s.ExpireDeliveries(t.Context(), 50, time.Hour); err != nil { // it forgets no identity
			t.Fatal(err)
		}
		p := b.apply(files.with("webhooks/a.yaml", hook("A", "deliveryIdHeader: X-Id")), "r3")
		if got := actions(p); got != "restore webhook a, unchanged webhook b" {
			t.Errorf("planned %s", got)
		}
		if c := p.Changes[0]; c.UID != a.UID || len(c.Fields) != 1 || c.Fields[0].Name != "deliveryIdHeader" {
			t.Errorf("change %+v", c)
		}

		again := b.current().Webhooks[0]
		if again.UID != a.UID || again.ID != a.ID || again.Deleted != nil || again.SecretVersion == 0 {
			t.Errorf("the webhook is %+v", again)
		}
		done, err := s.Accept(t.Context(), state.Acceptance{
			UID: state.NewID(state.PrefixDelivery), FactoryUID: b.uid, Generation: b.current().Factory.Generation,
			WebhookID: a.ID, WebhookUID: a.UID, Sender: "192.0.2.1", Body: []byte("{}"), Received: time.Now(),
			Identity: state.IdentityOf(state.IdentityServiceHeader, "1"),
		})
		if err != nil || !done.Duplicate {
			t.Errorf("an identity of before: %+v, %v", done, err)
		}
	})
}

// TestAForgottenWebhookDoesNotReturn deletes a webhook for good.
func TestAForgottenWebhookDoesNotReturn(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		b := newBench(t, s)
		files := tree{"webhooks/a.yaml": hook("A")}
		old := uidOf(t, b.apply(files, "r1"), "a")
		b.make(tree{}, plan.Options{}, func(app *state.ChangeSet) { app.ForgetWebhooks = []string{old} })

		files["automations/go/automation.md"] = automation("Go.", old)
		p := b.apply(files, "r2")
		now := uidOf(t, p, "a")
		if now == old || !strings.HasPrefix(actions(p), "create webhook a") {
			t.Errorf("%s: UID %s, and before %s", actions(p), now, old)
		}

		// The problem of an automation that selects the old one names the new one as a repair.
		i := slices.IndexFunc(p.Problems, func(q schema.Problem) bool { return q.Code == "webhook-unknown" })
		if i < 0 || p.Problems[i].Fix == nil || strings.Trim(p.Problems[i].Fix.Text, `"`) != now || p.Gone[old] != "a" {
			t.Errorf("problems %+v, deleted %v", p.Problems, p.Gone)
		}
		if f := b.current().Factory; ready(f) != "False Degraded" {
			t.Errorf("with an automation that selects a deleted webhook: %s", ready(f))
		}
		files["automations/go/automation.md"] = automation("Go.", now)
		if b.apply(files, "r3"); ready(b.current().Factory) != "True Applied" {
			t.Errorf("mended: %s", ready(b.current().Factory))
		}
	})
}

func ready(f state.Factory) string {
	for _, c := range f.Conditions() {
		if c.Type == "Ready" {
			return c.Status + " " + c.Reason
		}
	}
	return ""
}

// TestTheRevertOfARenameIsNoRename renames a webhook as allowed, and takes that back.
func TestTheRevertOfARenameIsNoRename(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		b := newBench(t, s)
		one, two := tree{"webhooks/a.yaml": hook("A")}, tree{"webhooks/z.yaml": hook("A")}
		uid := uidOf(t, b.apply(one, "r1"), "a")
		b.make(two, plan.Options{AllowRename: true}, nil)
		if p := b.apply(one, "r3"); actions(p) != "restore webhook a, delete webhook z" || uidOf(t, p, "a") != uid {
			t.Errorf("planned %s", actions(p))
		}
	})
}

// TestTheLastWebhookWarns deletes the only webhook, with and without deliveries.
func TestTheLastWebhookWarns(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		b := newBench(t, s)
		b.apply(tree{"webhooks/a.yaml": hook("A")}, "r1")
		moved := tree{"integrations/a.yaml": hook("A")}
		if p, _ := b.plan(moved, plan.Options{}); slices.Contains(codes(p, schema.SeverityWarning), "webhook-last") {
			t.Errorf("a webhook that nobody used: %+v", p.Problems)
		}

		b.accept(b.current().Webhooks[0])
		p, _ := b.plan(moved, plan.Options{})
		if !p.WouldApply || !slices.Contains(codes(p, schema.SeverityWarning), "webhook-last") {
			t.Errorf("would apply %v, %+v", p.WouldApply, p.Problems)
		}
		for _, other := range []plan.Options{{AllowPrune: true}, {AllowPrune: true, AllowRename: true}} {
			if p, _ := b.plan(moved, other); slices.Contains(codes(p, schema.SeverityWarning), "webhook-last") {
				t.Errorf("allowed: %+v", p.Problems)
			}
		}
	})
}

// TestAWebhookCanKeepItsUIDUnderANewName is what a managed factory's API may do, and no definition file.
func TestAWebhookCanKeepItsUIDUnderANewName(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		b := newBench(t, s)
		uid := uidOf(t, b.apply(tree{"webhooks/a.yaml": hook("A")}, "r1"), "a")
		opts := plan.Options{Renamed: map[string]string{"z": "a"}}
		p := b.make(tree{"webhooks/z.yaml": hook("A")}, opts, nil)
		if actions(p) != "update webhook z" || uidOf(t, p, "z") != uid {
			t.Errorf("planned %s, UID %s, want %s", actions(p), uidOf(t, p, "z"), uid)
		}

		// A new webhook of the old name is another one.
		p = b.apply(tree{"webhooks/z.yaml": hook("A"), "webhooks/a.yaml": hook("B")}, "r3")
		if actions(p) != "create webhook a, unchanged webhook z" || uidOf(t, p, "a") == uid {
			t.Errorf("planned %s, UID of a %s", actions(p), uidOf(t, p, "a"))
		}
	})
}
