package admin_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"millwright/admin"
	"millwright/schema"
	"millwright/state"
)

// full is a tree with a resource of each kind.
var full = map[string]string{
	"factory.yaml": `schemaVersion: v1alpha1
name: Payments factory
alias: Money
description: Takes care of payments.
repositories: [{owner: acme, name: payments}]
agentDefaults: {model: large}
`,
	"agents/lead/agent.md":               "---\nagentType: FOREMAN\n---\nLead the others.\n",
	"agents/reviewer/agent.md":           "---\nagentType: REVIEW\n---\nReview.\n",
	"runners/small.yaml":                 "platform: {os: macos}\n",
	"skills/deploy/SKILL.md":             "---\nname: deploy\ndescription: Deploys.\n---\nDeploy.\n",
	"webhooks/alerts.yaml":               "secretName: ALERTS\n",
	"automations/on-alert/automation.md": "---\ntriggers:\n  - provider: github\n    event: push\n---\nLook at the alert.\n",
}

func TestFactory(t *testing.T) {
	each(t, admin.Config{}, func(w *world) {
		w.secret("ALERTS", "value")
		f := w.factory("payments", state.Source{Kind: "git", URL: "https://user:pass@git.example.com/acme/factory.git", Branch: "main", Path: "ops"}, full)
		r := w.call(state.RoleViewer, "GET", "/factory/"+f.UID, "").want(200)
		r.hasKeys("uid name display_name alias description created_at updated_at repositories source sync agents counts suspended detached conditions " +
			"team_uid agent_defaults default_model default_environment credential_strategy code_forge code_forges integrations scoring scorer_defaults recipient unregistered")
		r.hasKeys("kind url branch path", "source")
		r.hasKeys("state attempted_revision applied_revision applied_signer last_applied_at last_attempted_at problems message", "sync")
		r.hasKeys("uid name type", "agents", 0)
		r.hasKeys("owner name repo", "repositories", 0)
		r.hasKeys("webhooks automations agents runners skills", "counts")
		r.hasKeys("type status reason message last_transition_time", "conditions", 0)
		for path, want := range map[string]any{"uid": f.UID, "name": "payments", "display_name": "Payments factory", "alias": "Money", "description": "Takes care of payments.", "detached": false} {
			if r.at(path) != want {
				t.Errorf("%s is %v", path, r.at(path))
			}
		}
		if r.at("source", "url") != "https://git.example.com/acme/factory.git" || r.at("sync", "state") != "applied" {
			t.Errorf("answer %s", r.body)
		}
		r.length(2, "agents")
		if r.at("agents", 0, "type") != "FOREMAN" || !state.ValidID(state.PrefixAgent, r.at("agents", 0, "uid").(string)) {
			t.Errorf("agents %v", r.at("agents"))
		}
		if got := fmt.Sprint(r.at("counts")); got != "map[agents:2 automations:1 runners:1 skills:1 webhooks:1]" {
			t.Errorf("counts %s", got)
		}

		for _, uid := range []string{"payments", "fac_00000000000000000000000000", "fac_X", "%00", strings.Repeat("x", 5000), "wh_00000000000000000000000000"} {
			w.call(state.RoleViewer, "GET", "/factory/"+uid, "").problem(404, "resource_not_found")
		}
	})
}

func TestNewFactoryHasEveryMember(t *testing.T) {
	each(t, admin.Config{}, func(w *world) {
		f := w.factory("empty", state.Source{Kind: "dir", Path: "/srv"}, nil)
		r := w.call(state.RoleViewer, "GET", "/factory/"+f.UID, "").want(200)
		for _, list := range []string{"repositories", "agents"} {
			r.length(0, list)
		}
		r.length(0, "sync", "problems")
		if r.at("sync", "state") != "pending" || r.at("sync", "last_applied_at") != nil || r.at("sync", "applied_revision") != "" {
			t.Errorf("sync %v", r.at("sync"))
		}
	})
}

func TestFactoriesAreListed(t *testing.T) {
	each(t, admin.Config{}, func(w *world) {
		w.secret("ALERTS", "value")
		names := []string{"alpha", "beta", "gamma", "payments", "zeta"}
		for _, name := range names {
			w.factory(name, state.Source{Kind: "dir", Path: "/" + name}, nil)
		}
		f, _ := w.store.Factory(context.Background(), "payments")
		w.apply(f.UID, full)
		for _, limit := range []int{1, 2, 500} {
			if got := w.all("/factory", "factories", "name", limit); !slices.Equal(got, names) {
				t.Errorf("limit %d: %v", limit, got)
			}
		}
		for search, want := range map[string][]string{"ETA": {"beta", "zeta"}, "mon": {"payments"}, "PAY": {"payments"}, "": names, "nothing": nil, "%25": nil, "_": nil} {
			if got := w.all("/factory?search="+search, "factories", "name", 1); !slices.Equal(got, want) {
				t.Errorf("search %q: %v", search, got)
			}
		}
		if _, err := w.store.ConfigureFactories(context.Background(), []state.FactorySettings{{Name: "alpha"}, {Name: "beta"}}); err != nil {
			t.Fatal(err)
		}
		if got := w.all("/factory", "factories", "name", 10); !slices.Equal(got, []string{"alpha", "beta"}) {
			t.Errorf("attached: %v", got)
		}
		if got := w.all("/factory?include_detached=true", "factories", "name", 10); !slices.Equal(got, names) {
			t.Errorf("with detached: %v", got)
		}
		if r := w.call(state.RoleViewer, "GET", "/factory/"+f.UID, "").want(200); r.at("detached") != true {
			t.Errorf("answer %s", r.body)
		}
		w.call(state.RoleViewer, "GET", "/factory?include_detached=perhaps", "").problem(400, "invalid_request")
	})
}

func TestSyncs(t *testing.T) {
	each(t, admin.Config{}, func(w *world) {
		f := w.factory("payments", state.Source{Kind: "dir", Path: "/srv"}, map[string]string{})
		other := w.factory("other", state.Source{Kind: "dir", Path: "/srv2"}, map[string]string{})
		at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
		for i := range 4 {
			err := w.store.Refuse(context.Background(), state.Attempt{
				FactoryUID: f.UID, Started: time.Now(), Outcome: state.OutcomeRefused, Message: "1 error",
				Revision: state.Revision{ID: fmt.Sprintf("r%d", i), Author: "Ann", Subject: "Change", At: &at},
				Problems: []schema.Problem{{Path: "webhooks/a.yaml", Line: 2, Column: 1, EndLine: 2, EndColumn: 4, Severity: schema.SeverityError, Code: "unknown-key", Message: "m"}},
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		r := w.call(state.RoleViewer, "GET", "/factory/"+f.UID+"/syncs", "").want(200)
		r.length(5, "syncs")
		r.hasKeys("started_at finished_at source outcome revision author signer subject committed_at counts problems message", "syncs", 0)
		r.hasKeys("kind url branch path", "syncs", 0, "source")
		r.hasKeys("created updated deleted unchanged secrets", "syncs", 0, "counts")
		r.hasKeys("path line column end_line end_column severity code message", "syncs", 0, "problems", 0)
		if r.at("syncs", 0, "revision") != "r3" || r.at("syncs", 0, "outcome") != "refused" || r.at("syncs", 0, "committed_at") != "2026-05-01T12:00:00Z" {
			t.Errorf("first %v", r.at("syncs", 0))
		}
		r.length(0, "syncs", 4, "problems")
		got := w.all("/factory/"+f.UID+"/syncs", "syncs", "revision", 2)
		if len(got) != 5 || !slices.Equal(got[:4], []string{"r3", "r2", "r1", "r0"}) {
			t.Errorf("pages %v", got)
		}
		next := w.call(state.RoleViewer, "GET", "/factory/"+f.UID+"/syncs?limit=2", "").at("page_info", "next_cursor").(string)
		w.call(state.RoleViewer, "GET", "/factory/"+other.UID+"/syncs?cursor="+next, "").problem(400, "invalid_request")
		w.call(state.RoleViewer, "GET", "/factory/fac_00000000000000000000000000/syncs", "").problem(404, "resource_not_found")
	})
}

func TestSync(t *testing.T) {
	var asked []string
	var attempt state.Attempt
	var answer error
	each(t, admin.Config{
		Sync: func(_ context.Context, uid string, allow admin.SyncRequest) (state.Attempt, error) {
			asked = append(asked, fmt.Sprint(allow.AllowPrune, allow.AllowRename, allow.Revision))
			return attempt, answer
		},
	}, func(w *world) {
		asked, answer = nil, nil
		attempt = state.Attempt{Outcome: state.OutcomeRefused, Revision: state.Revision{ID: "abc"}, Message: "1 error"}
		f := w.factory("payments", state.Source{Kind: "dir", Path: "/srv"}, nil)
		path := "/factory/" + f.UID + "/sync"
		r := w.call(state.RoleAdmin, "POST", path, "").want(200)
		r.hasKeys("started_at finished_at source outcome revision author signer subject committed_at counts problems message")
		if r.at("outcome") != "refused" || r.at("revision") != "abc" || !strings.HasPrefix(r.at("started_at").(string), "2") {
			t.Errorf("answer %s", r.body)
		}
		w.call(state.RoleAdmin, "POST", path, `{"allow_prune": true}`).want(200)
		w.call(state.RoleAdmin, "POST", path, `{"allow_rename": true, "revision": "abc", "more": {}}`).want(200)
		if !slices.Equal(asked, []string{"false false", "true false", "false trueabc"}) {
			t.Errorf("asked %v", asked)
		}
		for _, body := range []string{`{"allow_prune": "yes"}`, `[]`, `{`, `"yes"`} {
			w.call(state.RoleAdmin, "POST", path, body).problem(400, "invalid_request")
		}
		w.call(state.RoleAdmin, "POST", "/factory/nonsense/sync", "").problem(404, "resource_not_found")
		answer = fmt.Errorf("the controller: %w", state.ErrUnavailable)
		w.call(state.RoleAdmin, "POST", path, "").problem(503, "resource_unavailable")
		answer = errors.New("open /etc/master-key: permission denied")
		if r := w.call(state.RoleAdmin, "POST", path, "").problem(500, "internal_error"); strings.Contains(string(r.body), "master-key") {
			t.Errorf("answer %s", r.body)
		}
		attempt = state.Attempt{Outcome: state.OutcomeFailed, Message: "git: connection refused"} // an outcome with any error
		if r := w.call(state.RoleAdmin, "POST", path, "").want(200); r.at("outcome") != "failed" || r.at("message") != "git: connection refused" {
			t.Errorf("answer %s", r.body)
		}
		answer = fmt.Errorf("the controller: %w", state.ErrUnavailable)
		w.call(state.RoleAdmin, "POST", path, "").problem(503, "resource_unavailable")
		answer = nil
		if _, err := w.store.EnsureFactory(context.Background(), "payments", state.Source{Kind: "dir", Path: "/srv"}, true); err != nil {
			t.Fatal(err)
		}
		w.call(state.RoleAdmin, "POST", path, "").problem(409, "conflict")
		if _, err := w.store.ConfigureFactories(context.Background(), nil); err != nil {
			t.Fatal(err)
		}
		w.call(state.RoleAdmin, "POST", path, "").problem(409, "conflict")
	})
	each(t, admin.Config{}, func(w *world) {
		f := w.factory("payments", state.Source{Kind: "dir", Path: "/srv"}, nil)
		w.call(state.RoleAdmin, "POST", "/factory/"+f.UID+"/sync", "").problem(422, "operation_not_supported")
	})
}

// TestFactorySettings reads the defaults of factory.yaml for all runs, with every key and with none.
func TestFactorySettings(t *testing.T) {
	each(t, admin.Config{}, func(w *world) {
		w.secret("TOKEN", "value")
		f := w.factory("whole", state.Source{Kind: "git", URL: "git@github.com:acme/factory.git"}, map[string]string{
			"factory.yaml": `schemaVersion: v1alpha1
name: Whole
repositories: [{owner: acme, name: shop}]
credentialStrategy: CREATOR
secrets: [TOKEN]
mcpServers: {docs: {url: "https://docs", headers: {X: hunter2, Y: "${secret:TOKEN}"}}}
integrations: [{type: linear}]
agentDefaults:
  harness: {type: claude, model: opus, reasoningLevel: high}
  environmentId: env
  workerHost: here
`,
			"agents/lead/agent.md": full["agents/lead/agent.md"],
		})
		r := w.call(state.RoleViewer, "GET", "/factory/"+f.UID, "").want(200)
		for path, want := range map[string]string{
			"team_uid": "", "default_model": "opus", "default_environment": "env", "credential_strategy": "CREATOR", "code_forge": "GITHUB",
			"code_forges": "[GITHUB]", "integrations": "[map[type:linear]]", "scoring": "map[]", "scorer_defaults": "map[]",
			"agent_defaults": "map[default_runner_uid: harness:map[model_id:opus reasoning_level:high type:claude] " +
				"mcp_servers:map[docs:map[headers:map[X:*** Y:${secret:TOKEN}] url:https://docs]] secrets:[map[name:TOKEN]] worker_host:here]",
		} {
			if got := fmt.Sprint(r.at(path)); got != want {
				t.Errorf("%s is %s, want %s", path, got, want)
			}
		}

		empty := w.factory("empty", state.Source{Kind: "dir", Path: "x"}, map[string]string{})
		r = w.call(state.RoleViewer, "GET", "/factory/"+empty.UID, "").want(200)
		for path, want := range map[string]string{
			"default_model": "<nil>", "credential_strategy": "EXECUTOR", "code_forge": "NONE", "integrations": "[]",
			"agent_defaults": "map[default_runner_uid: mcp_servers:map[] secrets:[] worker_host:]",
		} {
			if got := fmt.Sprint(r.at(path)); got != want {
				t.Errorf("%s is %s, want %s", path, got, want)
			}
		}
	})
}
