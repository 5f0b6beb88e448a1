package dashboard_test

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"millwright/api"
	"millwright/state"
	"millwright/state/audit"
	"millwright/state/outputs"
)

// auditCanary is in every secret of TestAuditOperations.
const auditCanary = "c4n4ryc4n4ry"

// unaudited are the changing operations without a row in the audit log, each with the reason.
var unaudited = map[string]string{
	"createRun":                  "the run names its creator",
	"createRunAlias":             "the run names its creator",
	"createFactoryRun":           "the run names its creator",
	"retryRun":                   "the new run names its creator",
	"createFollowup":             "the conversation has it",
	"createConversationFollowup": "the conversation has it",
	"answerQuestion":             "the conversation has it",
	"validateFactoryFiles":       "changes nothing",
	"planFactory":                "changes nothing",
	"testFilter":                 "changes nothing",
	"testNotification":           "the events of the notification have it",
	"replayEvent":                "the attempts of the event have it",
	"replayDeadEvents":           "the attempts of the events have it",
	"notifyPush":                 "the apply that may follow has a row",
}

// auditedCall is a call of an operation that changes something, and one of the same that fails.
type auditedCall struct {
	operation, action  string
	method, path, body string
	badPath, badBody   string // empty: as in the call
}

// auditedCalls returns calls of all operations that have rows, in an order in which they succeed.
func (w *world) auditedCalls() []auditedCall {
	w.t.Helper()
	held, repo := "/factory/"+w.held, "/factory/"+w.repo
	unknown := "/factory/" + state.NewID(state.PrefixFactory)
	hook := `{"name":"alerts","auth_mode":"signature","signature_scheme":"github","secret":"` + auditCanary + `"}`

	delivery := w.ciDelivery(`{"status":"failed"}`)
	ci := repo + "/webhooks/" + w.webhook(w.repo, "ci").UID
	run := w.run("work").ID
	outputsPath := "/agent/runs/" + w.run("output").ID + "/outputs/"
	w.ciDelivery(`{"to":"burst"}`)

	return []auditedCall{
		{"createKey", audit.KeyCreate, "POST", "/keys", `{"name":"ci","role":"viewer"}`, "", `{"name":"ci","role":"x"}`},
		{"revokeKey", audit.KeyRevoke, "DELETE", "/keys/" + w.uids[state.RoleViewer], "", "/keys/key_none", ""},
		{"setSecret", audit.SecretSet, "PUT", "/secrets/NEW", `{"value":"` + auditCanary + `"}`, "", `{"value":""}`},
		{"deleteSecret", audit.SecretDelete, "DELETE", "/secrets/NEW", "", "/secrets/CI_TOKEN", ""},
		{"syncFactory", audit.FactoryApply, "POST", repo + "/sync", "", unknown + "/sync", ""},
		{"importFiles", audit.FactoryEdit, "PUT", held + "/files", `{"files":[{"path":"skills/a/SKILL.md","content":"---\nname: a\ndescription: A.\n---\nDo."}]}`, "", `{"files":[{"path":"webhooks/a.yaml","content":"x: 1"}]}`},
		{"importTar", audit.FactoryEdit, "PUT", held + "/files.tar", tarOf("skills/b/SKILL.md", "---\nname: b\ndescription: B.\n---\nDo."), "", "no tar"},
		{"putFile", audit.FactoryEdit, "PUT", held + "/files/skills/c/SKILL.md", `{"content":"---\nname: c\ndescription: C.\n---\nDo."}`, held + "/files/webhooks/c.yaml", `{"content":"x: 1"}`},
		{"deleteFile", audit.FactoryEdit, "DELETE", held + "/files/skills/c/SKILL.md", "", held + "/files/none", ""},
		{"restoreRevision", audit.FactoryRestore, "POST", held + "/revisions/r1/restore", "", held + "/revisions/r99/restore", ""},
		{"createWebhook", audit.WebhookCreate, "POST", held + "/webhooks", hook, repo + "/webhooks", ""},
		{"updateWebhook", audit.WebhookDisable, "PATCH", held + "/webhooks/HOOK", `{"enabled":false}`, "", `{"name":"/"}`},
		{"updateWebhook", audit.WebhookEnable, "PATCH", held + "/webhooks/HOOK", `{"enabled":true}`, "", `{"auth_mode":"x"}`},
		{"updateWebhook", audit.WebhookUpdate, "PATCH", held + "/webhooks/HOOK", `{"name":"alarms"}`, ci, ""},
		{"rotateSecret", audit.WebhookRotate, "POST", held + "/webhooks/HOOK/rotate", `{"secret":"` + auditCanary + `2"}`, "", `{"secret":""}`},
		{"deleteWebhook", audit.WebhookDelete, "DELETE", held + "/webhooks/HOOK", "", "", ""},
		{"replayDelivery", audit.DeliveryReplay, "POST", ci + "/deliveries/" + delivery.UID + "/replay", "", ci + "/deliveries/dlv_none/replay", ""},
		{"cancelRun", audit.RunCancel, "POST", "/agent/runs/" + run + "/cancel", "", "", ""},
		{"dropWaitingRuns", audit.RunCancel, "DELETE", repo + "/automations/burst/waiting", "", repo + "/automations/none/waiting", ""},
		{"rollbackFactory", audit.FactoryRollback, "POST", repo + "/rollback", `{}`, "", `{"revision":"unknown-1"}`},
		{"resumeFactory", audit.FactoryResume, "POST", repo + "/resume", "", "", ""},
		{"approveRunOutput", audit.OutputApprove, "POST", outputsPath + w.output(outputsPath, outputs.Staged) + "/approve", "", "", ""},
		{"rejectRunOutput", audit.OutputReject, "POST", outputsPath + w.output(outputsPath, outputs.Staged) + "/reject", "", "", ""},
		{"retryRunOutput", audit.OutputRetry, "POST", outputsPath + w.output(outputsPath, outputs.Failed) + "/retry", "", "", ""},
	}
}

// output adds an output of the run in an address, which is the row of openPullRequest.
func (w *world) output(path string, as outputs.State) string {
	w.t.Helper()
	before := len(w.audited())
	uid := state.NewID(state.PrefixOutput)
	run := outputs.Run{ID: strings.Split(path, "/")[3]}
	_, err := w.store.Outputs().AddOnce(w.t.Context(), run, outputs.Output{
		UID: uid, Kind: outputs.PullRequest, State: as, Body: json.RawMessage(`{"title":"` + uid + `"}`),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	if rows := w.audited(); len(rows) != before+1 || rows[0].Action != audit.OutputOpen || rows[0].Subject != uid {
		w.t.Errorf("openPullRequest: %+v", rows)
	}
	return uid
}

// audited returns the audit log, newest first.
func (w *world) audited() []audit.Entry {
	w.t.Helper()
	all, err := w.store.Audit().List(w.t.Context(), audit.Filter{}, audit.Position{}, 1000)
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

// ask calls the API as the administrator.
func (w *world) ask(method, path, body string) (int, string) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.server.URL+api.Base+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+w.keys[state.RoleAdmin])
	r.Header.Set("Content-Type", "application/json")
	if strings.HasSuffix(path, ".tar") {
		r.Header.Set("Content-Type", "application/x-tar")
	}
	a := w.browser().do(r)
	return a.StatusCode, a.Text
}

func tarOf(path, content string) string {
	var out bytes.Buffer
	t := tar.NewWriter(&out)
	t.WriteHeader(&tar.Header{Name: path, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(content))})
	t.Write([]byte(content))
	t.Close()
	return out.String()
}

var hookUID = regexp.MustCompile(`"uid":"(wh_[0-9a-z]{26})"`)

// TestAuditOperations calls each operation of the API that changes something: it leaves one row in the audit
// log, or is an exception with a reason. A call that fails leaves none. No row has a secret.
func TestAuditOperations(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.furnish()
		files := withFile("automations/burst/automation.md", "---\ntriggers:\n  - {provider: webhook, event: received, filter: {webhook_ids: [CI], payload: {to: [burst]}}}\ndebounce: {wait: 1h}\n---\nGo.\n")
		if a, err := w.apply(t.Context(), w.repo, files); err != nil || a.Outcome != state.OutcomeApplied {
			t.Fatalf("%+v, %v", a, err)
		}

		calls := w.auditedCalls()
		seen := map[string]bool{"openPullRequest": true} // see output
		hook := ""
		for _, c := range calls {
			if c.operation == "syncFactory" { // which deletes the automation burst
				continue
			}
			w.leavesOneRow(c, &hook)
			seen[c.operation] = true
		}
		for _, c := range calls {
			if !seen[c.operation] {
				w.leavesOneRow(c, &hook)
				seen[c.operation] = true
			}
		}

		_, document := w.ask("GET", "/openapi.yaml", "")
		method := ""
		for line := range strings.Lines(document) {
			line = strings.TrimSpace(line)
			switch line {
			case "get:", "put:", "post:", "patch:", "delete:":
				method = line
			}
			id, ok := strings.CutPrefix(line, "operationId: ")
			if !ok || method == "get:" {
				continue
			}
			if seen[id] == (unaudited[id] != "") {
				t.Errorf("operation %s: add a call to auditedCalls, or to unaudited with the reason", id)
			}
		}

		all, err := json.Marshal(w.audited())
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{auditCanary, ciToken, "hunter2", w.keys[state.RoleAdmin]} {
			if strings.Contains(string(all), secret) {
				t.Errorf("the audit log has the secret %s", secret)
			}
		}
	})
}

func (w *world) leavesOneRow(c auditedCall, hook *string) {
	w.t.Helper()
	c.path = strings.ReplaceAll(c.path, "HOOK", *hook)
	before := len(w.audited())
	status, text := w.ask(c.method, c.path, c.body)
	if status >= 300 {
		w.t.Errorf("%s: %d %s", c.operation, status, text)
		return
	}
	if c.operation == "createWebhook" {
		*hook = hookUID.FindStringSubmatch(text)[1]
	}

	rows := w.audited()
	got := rows[0]
	if len(rows) != before+1 || got.Action != c.action || got.Subject == "" || got.Actor != (audit.Actor{
		Kind: "key", UID: w.uids[state.RoleAdmin], Name: "the admin", Source: "127.0.0.1",
	}) {
		w.t.Errorf("%s leaves %d rows, the last %+v; want one, %s", c.operation, len(rows)-before, got, c.action)
	}

	if c.badPath != "" {
		c.path = c.badPath
	}
	if c.badBody != "" {
		c.body = c.badBody
	}
	if status, text = w.ask(c.method, c.path, c.body); status < 400 {
		w.t.Errorf("%s: the bad call is answered %d %s", c.operation, status, text)
	}
	if after := w.audited(); len(after) != len(rows) {
		w.t.Errorf("%s: a failed call leaves %+v", c.operation, after[0])
	}
}

// TestAuditPage shows sign-ins and refused keys in the log, which strangers cannot fill, and filters it.
func TestAuditPage(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.furnish()
		if a := w.signedIn(state.RoleRunner).get("/audit"); a.StatusCode != http.StatusForbidden {
			t.Errorf("a runner reads the audit log: %d", a.StatusCode)
		}

		b := w.signedIn(state.RoleAdmin)
		for range 20 {
			stranger := w.browser()
			stranger.get("/login")
			stranger.post("/login", "key", "mw_"+auditCanary)
		}
		page := b.page("/audit")
		says(t, page, "Audit log", "session.create", "the admin", "session.refuse", "refused keys: 1,", "factory.apply", "source", "Ada")
		saysNot(t, page, auditCanary)
		if err := w.store.Audit().Flush(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		says(t, b.page("/audit?action=session"), "refused keys: 1,", "refused keys: 19,")
		saysNot(t, b.page("/audit?action=session"), "factory.apply")
		says(t, b.page("/audit?factory="+w.held), "factory.settings")
		saysNot(t, b.page("/audit?factory="+w.held), "factory.apply")
		says(t, b.page("/audit?actor=the+admin&from=2000-01-01T00:00"), "session.create")
		says(t, b.page("/audit?to=2000-01-01T00:00"), "No change matches")
		says(t, b.page("/audit?action=X&from=nonsense"), "is no kind of change", "is not a time")

		for i := range 60 {
			name := fmt.Sprintf("N%d", i)
			if _, err := w.store.SetSecret(t.Context(), name, []byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		next := regexp.MustCompile(`href="(/audit\?[^"]*cursor=[^"]*)"`)
		page = b.page("/audit?action=secret")
		says(t, page, "N59", "N10")
		older := b.page(strings.ReplaceAll(find(t, next, page), "&amp;", "&"))
		says(t, older, "N9", "Newest")
		saysNot(t, older, ">N10<")
	})
}

// TestAuditOfFailedTransaction rolls a change back after its row was added.
func TestAuditOfFailedTransaction(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		before := w.audited()
		if _, err := w.store.CreateSession(t.Context(), "key_none", 1); err == nil {
			t.Error("a session of no key")
		}
		if err := w.store.RevokeKey(t.Context(), "key_none"); err == nil {
			t.Error("a revoked key that does not exist")
		}
		if after := w.audited(); len(after) != len(before) {
			t.Errorf("failed changes leave %+v", after[0])
		}
	})
}
