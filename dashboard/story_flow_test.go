package dashboard_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"millwright/schema"
	"millwright/state"
)

// TestFlowPages shows what waits, what was skipped and the deliveries of a burst where people look, and drops what
// waits.
func TestFlowPages(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.furnish()
		automation := func(name, flow string) schema.File {
			return schema.File{Path: "automations/" + name + "/automation.md", Content: "---\ntriggers:\n" +
				"  - {provider: webhook, event: received, filter: {webhook_ids: [CI], payload: {to: [" + name + "]}}}\n" +
				flow + "\n---\nGo.\n"}
		}
		files := append(slices.Clone(repoFiles),
			automation("line", "concurrency: {key: [id]}"), automation("skip", "concurrency: {key: [id], whenBusy: skip}"),
			automation("burst", "debounce: {wait: 1h}"), automation("talk", "conversation: {key: [id]}"),
		)
		if a, err := w.apply(t.Context(), w.repo, files); err != nil || a.Outcome != state.OutcomeApplied {
			t.Fatalf("%+v, %v", a, err)
		}

		b := w.signedIn(state.RoleRunner)
		var skipped state.Delivery
		base := "/factories/" + w.repo + "/automations/"
		for _, name := range []string{"line", "skip", "burst", "talk"} {
			w.ciDelivery(`{"to":"` + name + `","id":7}`)
			second := w.ciDelivery(`{"to":"` + name + `","id":7,"n":2}`)
			page := b.page(w.deliveryPath(second))
			says(t, page, map[string][]string{
				"line":  {"QUEUED", "waits for other runs of its key"},
				"skip":  {"skipped: concurrency", "whenBusy is skip"},
				"burst": {"debounced", "are one run"},
				"talk":  {"follow-up", "an earlier delivery of its key started"},
			}[name]...)
			if name == "skip" {
				skipped = second
			}
		}
		keyless := w.ciDelivery(`{"to":"line","id":[7]}`)
		says(t, b.page(w.deliveryPath(keyless)), "No key for concurrency: id is a list. The run joins no others there.")
		says(t, b.page("/factories/"+w.repo+"/deliveries"), "skipped: concurrency", "debounced", "follow-up")

		says(t, b.page(base+"skip"), `"whenBusy": "skip"`, "Skipped", "skipped: concurrency", "No run waits")
		says(t, b.page(base+"talk"), "Conversations", "talk from ci")
		says(t, b.page(base+"burst"), "debounce", "Drop what waits")
		says(t, b.page(base+"line"), "Drop what waits", "line from ci")
		asked := w.undecided("skip")
		says(t, b.page(base+"skip"), "Deliveries that wait for the forge", asked)
		saysNot(t, b.page(base+"skip"), "No run waits")

		burst := w.deliveries(w.webhook(w.repo, "ci"))[4].Flow[0].RunID // behind the newest: talk, talk, burst
		says(t, b.page("/runs/"+burst), "It waits for more deliveries of the same burst", "All deliveries", "debounced")
		says(t, b.follow(base+"line/drop"), "Dropped", "No run waits")
		if a := w.signedIn(state.RoleViewer).post(base + "burst/drop"); a.StatusCode != 403 {
			t.Errorf("a viewer drops runs: %d", a.StatusCode)
		}
		if page := b.page(base + "burst"); !strings.Contains(plain(page), "Drop what waits") {
			t.Error("what a viewer may not drop is gone")
		}

		says(t, b.page("/factories/"+w.repo+"/plan"), "What the changed triggers would have done",
			"line : newly fires for 0, no longer for 3", "No longer, for example: "+skipped.UID)
		if a, err := w.apply(t.Context(), w.repo, repoFiles); err != nil || a.Outcome != state.OutcomeApplied {
			t.Fatalf("%+v, %v", a, err)
		}
		says(t, b.page(w.deliveryPath(skipped)), "skipped: concurrency", "The automation no longer exists")
	})
}

// undecided accepts a delivery whose forge decides on an automation, in an hour, and returns its UID.
func (w *world) undecided(automation string) string {
	w.t.Helper()
	f, err := w.store.Current(w.t.Context(), w.repo)
	if err != nil {
		w.t.Fatal(err)
	}

	ci := w.webhook(w.repo, "ci")
	a := state.Acceptance{
		UID: state.NewID(state.PrefixDelivery), FactoryUID: w.repo, Generation: f.Factory.Generation,
		WebhookID: ci.ID, WebhookUID: ci.UID, Sender: "192.0.2.7", Body: []byte("{}"), Received: time.Now().Add(time.Hour),
		Undecided: []string{f.UIDs[state.ResourceKey("automation", automation)]},
	}
	if _, err := w.store.Accept(w.t.Context(), a); err != nil {
		w.t.Fatal(err)
	}
	return a.UID
}
