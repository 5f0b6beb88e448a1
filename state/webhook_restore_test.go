package state_test

import (
	"testing"
	"time"

	"millwright/schema"
	"millwright/state"
)

// TestAWebhookIsRestorableForAWhile deletes a webhook and lets the time pass in which its name brings it back.
func TestAWebhookIsRestorableForAWhile(t *testing.T) {
	eachPoisoned(t, func(t *testing.T, p *poisoned) {
		ctx := t.Context()
		f, err := p.EnsureFactory(ctx, "f", state.Source{Kind: "dir", Path: "/x"}, false)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.SetSecret(ctx, "A", []byte("a")); err != nil {
			t.Fatal(err)
		}

		current := func() state.Current {
			t.Helper()
			cur, err := p.Current(ctx, f.UID)
			if err != nil {
				t.Fatal(err)
			}
			return cur
		}
		apply := func(change state.ChangeSet) {
			t.Helper()
			cur := current()
			change.FactoryUID, change.Base = f.UID, cur.Factory.Generation
			change.BaseRevision = cur.Factory.Applied.ID
			if err := p.Apply(ctx, change); err != nil {
				t.Fatal(err)
			}
		}

		uid := state.WebhookUID(current().Key, "a", 0)
		spec := schema.Webhook{Name: "a", Path: "webhooks/a.yaml", AuthMode: schema.AuthToken, SecretName: "A"}
		apply(state.ChangeSet{Webhooks: []state.WebhookChange{{UID: uid, Spec: spec, SecretVersion: 1}}})
		apply(state.ChangeSet{DeleteWebhooks: []string{uid}})

		cur := current()
		w, ok := cur.Restorable["a"]
		if !ok || w.UID != uid || cur.Gone[uid] != "a" || time.Until(*w.Restorable) < 29*24*time.Hour {
			t.Fatalf("restorable %+v, deleted %v", cur.Restorable, cur.Gone)
		}

		p.exec(`UPDATE webhooks SET restorable_until = 1`)
		if cur := current(); len(cur.Restorable) != 0 || cur.Gone[uid] != "a" || cur.Ordinals["a"] != 1 {
			t.Errorf("after that time: restorable %+v, deleted %v, %v", cur.Restorable, cur.Gone, cur.Ordinals)
		}
	})
}
