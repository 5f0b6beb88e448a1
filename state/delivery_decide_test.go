package state_test

import (
	"fmt"
	"slices"
	"testing"

	"millwright/schema"
	"millwright/state"
	"millwright/state/statetest"
)

// TestUndecidedByTurns holds that the deliveries of a factory which wait for its forge do not keep those of another
// from being decided on.
func TestUndecidedByTurns(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		many := newHooks(t, s, "many")
		f, err := s.EnsureFactory(t.Context(), "other", state.Source{Kind: "managed"}, false)
		if err != nil {
			t.Fatal(err)
		}
		few := &hooks{t, s, f.UID}
		few.apply(state.ChangeSet{Webhooks: []state.WebhookChange{{
			UID: state.NewID(state.PrefixWebhook), SecretVersion: 1,
			Spec: schema.Webhook{
				Name: "few", Path: "webhooks/few.yaml", AuthMode: schema.AuthToken, SecretName: "KEY", Enabled: true,
			},
		}}})

		accept := func(name, id string, automations int) {
			a := many.acceptance(name, id, 0)
			for i := range automations {
				a.Undecided = append(a.Undecided, fmt.Sprint("auto_", name, i))
			}
			if _, err := s.Accept(t.Context(), a); err != nil {
				t.Fatal(err)
			}
		}
		accept("many", "one", 10)
		accept("many", "two", 10)
		accept("few", "three", 2)

		due, err := s.Undecided(t.Context(), 5)
		if err != nil || len(due) != 5 {
			t.Fatalf("%d are due: %v", len(due), err)
		}
		of := func(factory string) (all []state.Undecided) {
			for _, u := range due {
				if u.FactoryUID == factory {
					all = append(all, u)
				}
			}
			return all
		}
		if mine, theirs := of(many.factory), of(few.factory); len(mine) != 3 || len(theirs) != 2 ||
			slices.ContainsFunc(mine, func(u state.Undecided) bool { return u.DeliveryUID != mine[0].DeliveryUID }) {
			t.Errorf("due are %+v", due)
		}
	})
}
