package dashboard_test

import (
	"slices"
	"testing"
	"time"

	"millwright/schema"
	"millwright/state"
	"millwright/state/registrations"
)

// TestRegistration shows how a webhook stands at its forge: about to be made, there, and changed by somebody.
func TestRegistration(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.furnish()
		b := w.signedIn(state.RoleViewer)
		hooks := "/factories/" + w.repo + "/webhooks/"
		saysNot(t, b.page(hooks+w.webhook(w.repo, "hub").UID), "At the forge")

		_, err := w.apply(t.Context(), w.repo, append(slices.Clone(repoFiles), schema.File{
			Path: "webhooks/shop.yaml",
			Content: "authMode: signature\nsignatureScheme: github\nsecretName: HUB\n" +
				"register: {forge: github, repository: acme/shop, events: [push, issues]}\n",
		}))
		if err != nil {
			t.Fatal(err)
		}
		path := hooks + w.webhook(w.repo, "shop").UID
		says(t, b.page(path), "At the forge", "pending", "acme/shop:")

		row, ok, err := w.store.Registrations().Take(t.Context(), time.Minute)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		for state, reason := range map[registrations.State]string{
			registrations.Registered: "", registrations.Drifted: "someone removed <b>issues</b> there",
			registrations.Failed: "the token may not manage webhooks",
		} {
			row.State, row.Reason, row.NextAt = state, reason, time.Now().Add(-time.Second)
			if err := w.store.Registrations().Report(t.Context(), row); err != nil {
				t.Fatal(err)
			}
			says(t, b.page(path), string(state), "checked", reason)
			if row, ok, err = w.store.Registrations().Take(t.Context(), time.Minute); err != nil || !ok {
				t.Fatal(ok, err)
			}
		}
	})
}
