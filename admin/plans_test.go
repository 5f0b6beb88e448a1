package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"millwright/admin"
	"millwright/reconcile/plan"
	"millwright/schema"
	"millwright/state"
)

// files returns the request body that carries a tree.
func files(tree map[string]string) string {
	list := []map[string]string{}
	for path, content := range tree {
		list = append(list, map[string]string{"path": path, "content": content})
	}
	return string(mustJSON(map[string]any{"files": list}))
}

func TestPlan(t *testing.T) {
	headErr := error(nil)
	each(t, admin.Config{
		HarnessTypes:  []string{"echo"},
		ForgeKinds:    func() []string { return []string{} },
		SourceSecrets: func() (used, reserved map[string]string) { return nil, map[string]string{"GIT": "the source's"} },
		Allowed:       func(string) (bool, bool) { return false, true },
		PlanHead: func(_ context.Context, uid string, allow plan.Allowed) (plan.Plan, error) {
			return plan.Plan{HeadRevision: "head", WouldApply: allow.Prune && !allow.Rename, Changes: []plan.Change{}, Secrets: []plan.Secret{}, Problems: []schema.Problem{}}, headErr
		},
	}, func(w *world) {
		headErr = nil
		f, byName := w.withHooks("payments")
		path := "/factory/" + f.UID + "/plan"
		before, err := w.store.Current(context.Background(), f.UID)
		if err != nil {
			t.Fatal(err)
		}
		w.secret("A", "newer")
		r := w.call(state.RoleViewer, "POST", path, files(map[string]string{
			"webhooks/bearer.yaml": "secretName: A\n", "webhooks/fresh.yaml": "secretName: C\nauthMode: url_token\n", "webhooks/linked.yaml": hooks["webhooks/linked.yaml"],
			"README.md": "ignored",
		})).want(200)
		r.hasKeys("would_apply base_revision head_revision changes secrets problems webhook_uids")
		if r.at("would_apply") != true || r.at("base_revision") != before.Factory.Applied.ID {
			t.Errorf("answer %s", r.body)
		}
		actions := map[string]string{}
		for i := range r.at("changes").([]any) {
			r.hasKeys("kind name action fields uid file line", "changes", i)
			actions[r.at("changes", i, "name").(string)] = r.at("changes", i, "action").(string)
			if r.at("changes", i, "name") == "fresh" && r.at("changes", i, "uid") != state.WebhookUID(before.Key, "fresh", 0) {
				t.Errorf("planned UID %v", r.at("changes", i, "uid"))
			}
		}
		if got := fmt.Sprint(actions); got != "map[bearer:update fresh:create linked:unchanged signed:delete waiting:delete]" {
			t.Errorf("changes %s", got)
		}
		r.hasKeys("name old new", "changes", 0, "fields", 0)
		r.hasKeys("name version webhooks", "secrets", 0)

		// Changes that the settings allow are allowed; others are problems.
		renamed := map[string]string{"webhooks/carrier.yaml": hooks["webhooks/bearer.yaml"]}
		for name, text := range hooks {
			if name != "webhooks/bearer.yaml" {
				renamed[name] = text
			}
		}
		if r := w.call(state.RoleViewer, "POST", path, files(renamed)).want(200); r.at("would_apply") != true {
			t.Errorf("renamed: %s", r.body)
		}
		r = w.call(state.RoleViewer, "POST", path, `{"files": []}`).want(200)
		if r.at("would_apply") != false || r.at("problems", 0, "code") != "prune-guard" {
			t.Errorf("empty tree: %s", r.body)
		}
		r.hasKeys("path line column end_line end_column severity code message hint", "problems", 0)

		// A secret that does not exist, and the file name of a webhook that is new in the same tree.
		r = w.call(state.RoleViewer, "POST", path, files(map[string]string{
			"webhooks/fresh.yaml": "secretName: MISSING\n", "automations/a/automation.md": automation("fresh", ""),
		})).want(200)
		if r.at("would_apply") != false || !strings.Contains(string(r.body), "secret-missing") || !strings.Contains(string(r.body), state.WebhookUID(before.Key, "fresh", 0)) {
			t.Errorf("answer %s", r.body)
		}
		r.length(0, "changes")

		after, err := w.store.Current(context.Background(), f.UID)
		if err != nil || after.Factory.Generation != before.Factory.Generation || len(after.Webhooks) != len(byName) {
			t.Errorf("the plan changed something: %v", err)
		}

		for _, body := range []string{"", "{}", `{"files": null}`} {
			w.call(state.RoleViewer, "POST", path, body).problem(403, "not_authorized")
			if r := w.call(state.RoleRunner, "POST", path, body).want(200); r.at("head_revision") != "head" {
				t.Errorf("head: %s", r.body)
			}
		}
		headErr = errors.New("git: connection refused")
		w.call(state.RoleRunner, "POST", path, "").problem(503, "resource_unavailable")
		headErr = fmt.Errorf("suspended: %w", state.ErrConflict)
		w.call(state.RoleRunner, "POST", path, "").problem(409, "conflict")
		w.call(state.RoleViewer, "POST", "/factory/nonsense/plan", `{"files": []}`).problem(404, "resource_not_found")
		w.call("", "POST", path, `{"files": []}`).problem(401, "authentication_required")
	})
	each(t, admin.Config{}, func(w *world) {
		f := w.factory("payments", state.Source{Kind: "dir", Path: "/srv"}, nil)
		w.call(state.RoleRunner, "POST", "/factory/"+f.UID+"/plan", "").problem(422, "operation_not_supported")
	})
}

// TestPlanOfWhatIsAllowed plans a deletion and a rename as an apply that may do so would find them.
func TestPlanOfWhatIsAllowed(t *testing.T) {
	each(t, admin.Config{}, func(w *world) {
		f, _ := w.withHooks("payments")
		path := "/factory/" + f.UID + "/plan"
		for _, c := range []struct {
			allow string
			apply bool
		}{{``, false}, {`, "allow_rename": true`, false}, {`, "allow_prune": true`, true}} {
			r := w.call(state.RoleViewer, "POST", path, `{"files": []`+c.allow+`}`).want(200)
			if r.at("would_apply") != c.apply {
				t.Errorf("%q: %s", c.allow, r.body)
			}
		}
	})
}

func TestPlanTellsNoValueOfAnMCPServer(t *testing.T) {
	agent := func(token string) map[string]string {
		return map[string]string{
			"agents/a/agent.md": "---\nmcpServers:\n  tracker: {url: 'https://mcp.example.com', headers: {Authorization: '" + token + "', X-Team: '${secret:TEAM}'}}\n---\nx\n",
		}
	}
	each(t, admin.Config{}, func(w *world) {
		w.secret("TEAM", "value")
		f := w.factory("payments", state.Source{Kind: "dir", Path: "/srv"}, agent("Bearer 0ld-token"))
		r := w.call(state.RoleViewer, "POST", "/factory/"+f.UID+"/plan", files(agent("Bearer n3w-token"))).want(200)
		if r.at("changes", 0, "action") != "update" || strings.Contains(string(r.body), "-token") || !strings.Contains(string(r.body), "https://mcp.example.com") || !strings.Contains(string(r.body), "${secret:TEAM}") {
			t.Errorf("answer %s", r.body)
		}
	})
}

func TestTreesThatAreNone(t *testing.T) {
	each(t, admin.Config{}, func(w *world) {
		f := w.factory("payments", state.Source{Kind: "dir", Path: "/srv"}, nil)
		many := make([]map[string]string, 2001)
		for i := range many {
			many[i] = map[string]string{"path": fmt.Sprintf("webhooks/w%d.yaml", i), "content": ""}
		}
		for _, body := range []string{
			`{"files": {}}`, `{"files": [1]}`, `{"files": [{"path": "a"}]}`, `{"files": [{"content": "a"}]}`, `{"files": [{"path": 1, "content": ""}]}`,
			`{"files": [{"path": "", "content": ""}]}`, `{"files": [{"path": "/etc/passwd", "content": ""}]}`, `{"files": [{"path": "../a", "content": ""}]}`,
			`{"files": [{"path": "webhooks/../a", "content": ""}]}`, `{"files": [{"path": "webhooks//a", "content": ""}]}`, `{"files": [{"path": "webhooks/", "content": ""}]}`,
			`{"files": [{"path": "webhooks\\a.yaml", "content": ""}]}`, `{"files": [{"path": ".", "content": ""}]}`,
			`{"files": [{"path": "a", "content": ""}, {"path": "a", "content": ""}]}`,
			`{"files": [{"path": "webhooks", "content": ""}, {"path": "webhooks/a.yaml", "content": ""}]}`,
			`{"files": [{"path": "` + strings.Repeat("a/", 600) + `a", "content": ""}]}`,
			`{"files": [{"path": "` + strings.Repeat("a/", 40) + `a", "content": ""}]}`,
			string(mustJSON(map[string]any{"files": many})), `[]`, `{`, `"x"`,
		} {
			w.call(state.RoleViewer, "POST", "/factory/"+f.UID+"/plan", body).problem(400, "invalid_request")
		}
		r := w.call(state.RoleViewer, "POST", "/factory/"+f.UID+"/plan", `{"files": [{"path": "ok", "content": ""}, {"path": "b/../c", "content": ""}]}`).problem(400, "invalid_request")
		if r.at("errors", 0, "field") != "files[1].path" {
			t.Errorf("answer %s", r.body)
		}
		huge := files(map[string]string{"webhooks/a.yaml": strings.Repeat("#", 9<<20)})
		w.call(state.RoleViewer, "POST", "/factory/"+f.UID+"/plan", huge).problem(413, "payload_too_large")
		w.call("", "POST", "/factory-files/validate", huge).problem(413, "payload_too_large")
		w.call("", "POST", "/factory-files/validate", "").problem(400, "invalid_request")
		w.call("", "POST", "/factory-files/validate", "{}").problem(400, "invalid_request")
	})
}

func TestValidate(t *testing.T) {
	each(t, admin.Config{}, func(w *world) {
		r := w.call("", "POST", "/factory-files/validate", files(map[string]string{
			"webhooks/a.yaml": "secretNam: A\n", "webhooks/b.yml": "secretName: A\n", "automations/a/automation.md": "no front matter", "README.md": "x",
		})).want(200)
		r.hasKeys("schema_version valid diagnostics infos state_dependent_checks_not_run deferred_resolutions validation_scope")
		if r.at("schema_version") != schema.SchemaVersion || r.at("valid") != false {
			t.Errorf("answer %s", r.body)
		}
		last := ""
		for i := range r.at("diagnostics").([]any) {
			if p := r.at("diagnostics", i, "path").(string); p < last {
				t.Errorf("not sorted: %s", r.body)
			} else {
				last = p
			}
		}
		if !strings.Contains(string(mustJSON(r.at("state_dependent_checks_not_run"))), "secret-missing") {
			t.Errorf("answer %s", r.body)
		}

		// A key is not asked, and a wrong one does no harm; the answer never depends on the state.
		good := files(map[string]string{"webhooks/a.yaml": "secretName: A\n"})
		w.keys["wrong"] = "mw_wrong"
		for _, role := range []state.Role{"", "wrong", state.RoleViewer} {
			r := w.call(role, "POST", "/factory-files/validate", good).want(200)
			if r.at("valid") != true {
				t.Errorf("answer %s", r.body)
			}
			r.length(0, "diagnostics")
		}
		if r := w.call("", "POST", "/factory-files/validate", `{"files": []}`).want(200); r.at("valid") != true {
			t.Errorf("empty tree: %s", r.body)
		}

		// Infos are no diagnostics: clients count those.
		r = w.call("", "POST", "/factory-files/validate", files(map[string]string{
			"automations/a/automation.md": "---\ntriggers: [{provider: factory, event: work_item_stage_changed}]\n---\nLook.\n",
		})).want(200)
		r.length(0, "diagnostics")
		r.length(1, "infos")
		r.length(0, "deferred_resolutions")
		if r.at("valid") != true || r.at("infos", 0, "severity") != "info" {
			t.Errorf("answer %s", r.body)
		}
	})
}

func TestValidateBoundsItsAnswer(t *testing.T) {
	each(t, admin.Config{}, func(w *world) {
		tree := map[string]string{}
		for i := range 2000 {
			tree[fmt.Sprintf("webhooks/w%d.yaml", i)] = "a: 1\nb: 1\nc: 1\nd: 1\n"
		}
		r := w.call("", "POST", "/factory-files/validate", files(tree))
		if r.status == 503 {
			r.problem(503, "resource_unavailable") // on a slow machine
			return
		}
		r.want(200).hasKeys("schema_version valid diagnostics diagnostics_omitted infos state_dependent_checks_not_run deferred_resolutions validation_scope")
		r.length(5000, "diagnostics")
		if n, err := r.at("diagnostics_omitted").(json.Number).Int64(); err != nil || n < 1 {
			t.Errorf("omitted %v", r.at("diagnostics_omitted"))
		}
	})
}

func TestValidateIsRationed(t *testing.T) {
	each(t, admin.Config{}, func(w *world) {
		limited := 0
		for range 40 {
			r := w.call("", "POST", "/factory-files/validate", `{"files": []}`)
			if r.status == 200 {
				continue
			}
			if r.problem(429, "rate_limited"); r.header.Get("Retry-After") < "1" || r.at("retryable") != true {
				t.Errorf("Retry-After %q: %s", r.header.Get("Retry-After"), r.body)
			}
			limited++
		}
		if limited == 0 { // unless a minute ended in between
			for range 40 {
				if w.call("", "POST", "/factory-files/validate", `{"files": []}`).status == 429 {
					limited++
				}
			}
		}
		if limited < 9 {
			t.Errorf("only %d of 40 were refused", limited)
		}
		f := w.factory("payments", state.Source{Kind: "dir", Path: "/srv"}, nil)
		w.call(state.RoleViewer, "POST", "/factory/"+f.UID+"/plan", `{"files": []}`).want(200) // has a key
	})
}

func TestValidateManyAtOnce(t *testing.T) {
	each(t, admin.Config{}, func(w *world) {
		tree := map[string]string{}
		for i := range 300 {
			tree[fmt.Sprintf("automations/a%d/automation.md", i)] = automation("wh_00000000000000000000000000", "")
		}
		body := files(tree)
		var group sync.WaitGroup
		var mu sync.Mutex
		statuses := map[int]int{}
		for range 20 {
			group.Go(func() {
				r := w.call("", "POST", "/factory-files/validate", body)
				mu.Lock()
				defer mu.Unlock()
				statuses[r.status]++
			})
		}
		group.Wait()
		if statuses[200] == 0 || statuses[200]+statuses[503] != 20 {
			t.Errorf("statuses %v", statuses)
		}
	})
}
