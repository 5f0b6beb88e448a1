package plan_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"millwright/reconcile/plan"
	"millwright/schema"
	"millwright/state"
)

// TestBacktest judges deliveries by triggers before and after changes.
func TestBacktest(t *testing.T) {
	automation := func(name, payload string, webhooks ...string) schema.Automation {
		return schema.Automation{Name: name, Enabled: true, Triggers: []schema.Trigger{{
			Provider: "webhook", Event: "received", WebhookIDs: webhooks, Payload: []byte(payload),
		}}}
	}
	disabled := automation("off", ``, "wh_a")
	disabled.Enabled = false
	cur := state.Current{
		Tree: schema.Factory{Automations: []schema.Automation{
			automation("edited", `{"n":[0,1]}`, "wh_a"), automation("same", ``, "wh_a"), automation("gone", ``, "wh_b"), disabled,
		}},
		UIDs: map[string]string{state.ResourceKey("automation", "gone"): "auto_gone"},
		Webhooks: []state.Webhook{
			{UID: "wh_a"}, {UID: "wh_b"}, {UID: "wh_c"}, {UID: "wh_d", Deleted: new(time.Time)},
		},
	}
	change := func(a schema.Automation) state.ResourceChange {
		return state.ResourceChange{Kind: "automation", Name: a.Name, Spec: a}
	}
	reworded := automation("same", ``, "wh_a")
	reworded.Prompt = "Other words."
	b := plan.NewBacktester(cur, &state.ChangeSet{
		Resources: []state.ResourceChange{
			change(automation("edited", `{"n":[1,2]}`, "wh_a")), change(reworded), change(disabled),
			change(automation("made", `{"missing":{"exists":true},"n":[1,2,3]}`, "wh_a", "wh_d")),
		},
		DeleteResources: []string{"auto_gone"},
	})
	if got := b.Sources(); !slices.Equal(got, []string{"wh_a", "wh_b"}) {
		t.Fatalf("sources %v", got)
	}

	now := time.Now()
	for i := range 600 {
		hook := map[bool]string{true: "wh_b", false: "wh_a"}[i >= 560]
		b.Add(state.StoredDelivery{
			UID: fmt.Sprintf("dlv_%03d", i), WebhookUID: hook, Body: fmt.Appendf(nil, `{"n":%d}`, i%4),
			Received: now.Add(-time.Duration(i) * 12 * time.Hour / 560),
		})
	}
	b.Add(state.StoredDelivery{UID: "dlv_broken", WebhookUID: "wh_a", Body: []byte(`{`), Received: now})

	all := b.Results(now, true)
	var names []string
	for _, r := range all {
		names = append(names, fmt.Sprintf("%s: %s", r.Automation, r.Summary()))
	}
	want := []string{
		"edited: newly fires for 140, no longer for 140, about 561 runs a day (looked at 560 deliveries)",
		"gone: newly fires for 0, no longer for 40, about 0.0 runs a day (looked at 40 deliveries)",
		"made: newly fires for 0, no longer for 0, about 0.0 runs a day (looked at 560 deliveries)",
	}
	if !slices.Equal(names, want) {
		t.Fatalf("got %q\nwant %q", names, want)
	}
	if r := all[0]; r.Examples.Newly[0] != "dlv_002" || r.Examples.NoLonger[0] != "dlv_000" || len(r.Examples.Newly) != 140 || r.Never != nil {
		t.Errorf("%+v", r)
	}
	if n := all[2].Never; n == nil || n.Key != "missing" || n.Count != 500 || len(n.Seen) != 0 {
		t.Errorf("never: %+v", n)
	}

	var none *state.ChangeSet
	if got := plan.NewBacktester(cur, none).Results(now, true); len(got) != 0 {
		t.Errorf("of nothing: %+v", got)
	}
}
