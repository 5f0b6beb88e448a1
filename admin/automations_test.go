package admin_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"millwright/admin"
	"millwright/state"
)

func TestAutomations(t *testing.T) {
	each(t, admin.Config{}, func(w *world) {
		f, byName := w.withHooks("payments")
		gone := byName["waiting"].UID
		tree := maps.Clone(hooks)
		delete(tree, "webhooks/waiting.yaml")
		unknown := "wh_00000000000000000000000000"
		tree["automations/a/automation.md"] = automation(byName["bearer"].UID, "")
		tree["automations/b/automation.md"] = automation(byName["bearer"].UID, "enabled: false\n")
		tree["automations/c/automation.md"] = automation(byName["linked"].UID+", "+gone+", "+unknown, "")
		tree["automations/d/automation.md"] = "---\ntriggers: [{provider: factory, event: work_item_stage_changed, filter: {stages: [REVIEW]}}]\n---\nX\n"
		tree["automations/e/automation.md"] = "---\ntriggers: [{provider: schedule, event: cron_fired, schedule: {cron: '@daily'}}]\n---\nX\n"
		tree["automations/f/automation.md"] = "---\ntriggers: [{provider: github, event: push, filter: {branches: [main]}}]\n---\nX\n"
		tree["automations/g/automation.md"] = "---\ntriggers: [{provider: gitlab, event: push}]\n---\nX\n"
		w.apply(f.UID, tree)
		base := "/factory/" + f.UID + "/automations"
		r := w.call(state.RoleViewer, "GET", base, "").want(200)
		r.hasKeys("automations page_info")
		r.length(7, "automations")
		for i, want := range []struct {
			fires bool
			why   []any
			hooks string
		}{
			{true, []any{}, "enabled"},
			{false, []any{"the automation is disabled: automations/b/automation.md says enabled: false"}, "enabled"},
			{false, []any{
				`webhook "linked" is disabled: webhooks/linked.yaml says enabled: false`,
				`webhook "waiting" (` + gone + `) is deleted`, "this factory has no webhook " + unknown,
			}, "disabled deleted unknown"},
			{false, []any{"triggers of factory / work_item_stage_changed are not fired by this server"}, ""},
			{true, []any{}, ""},
			{true, []any{}, "enabled"},
			{false, []any{"no webhook receives events of gitlab: add webhooks/gitlab.yaml: {authMode: signature, signatureScheme: gitlab, secretName: GITLAB_WEBHOOK_SECRET}"}, ""},
		} {
			r.hasKeys("uid name enabled agent file line triggers webhooks fires why_not", "automations", i)
			var states string
			for j := range r.at("automations", i, "webhooks").([]any) {
				r.hasKeys("uid name state", "automations", i, "webhooks", j)
				states += fmt.Sprint(r.at("automations", i, "webhooks", j, "state"), " ")
			}
			if states != "" {
				states = states[:len(states)-1]
			}
			why := r.at("automations", i, "why_not").([]any)
			if r.at("automations", i, "fires") != want.fires || !slices.Equal(why, want.why) || states != want.hooks {
				t.Errorf("automation %d: %v", i, r.at("automations", i))
			}
			if uid := r.at("automations", i, "uid").(string); !state.ValidID(state.PrefixAutomation, uid) {
				t.Errorf("uid %q", uid)
			}
		}
		r.hasKeys("provider event supported webhook_ids payload", "automations", 0, "triggers", 0)
		r.hasKeys("provider event supported filter", "automations", 3, "triggers", 0)
		r.hasKeys("provider event supported cron", "automations", 4, "triggers", 0)
		if got := fmt.Sprint(r.at("automations", 0, "triggers", 0, "payload")); got != "map[action:[opened] n:map[in:[1]]]" {
			t.Errorf("payload %s", got)
		}
		for _, limit := range []int{1, 2, 7} {
			if got := w.all(base, "automations", "name", limit); !slices.Equal(got, []string{"a", "b", "c", "d", "e", "f", "g"}) {
				t.Errorf("limit %d: %v", limit, got)
			}
		}
		w.call(state.RoleViewer, "GET", "/factory/nonsense/automations", "").problem(404, "resource_not_found")
		if _, err := w.store.ConfigureFactories(context.Background(), nil); err != nil {
			t.Fatal(err)
		}
		if r := w.call(state.RoleViewer, "GET", base, "").want(200); r.at("automations", 0, "fires") != false {
			t.Errorf("detached: %v", r.at("automations", 0))
		}
	})
}
