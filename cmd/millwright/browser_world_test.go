package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"millwright/admin"
	"millwright/api"
	"millwright/cmd/cli"
	"millwright/reconcile/plan"
	"millwright/state"
	"millwright/state/events"
	"millwright/state/outputs"
	"millwright/state/statetest"
)

// browserWorld is a server of the real program with a day behind it: a factory of a directory that has had
// deliveries and runs, one that the server holds, and one whose source has errors.
type browserWorld struct {
	t     *testing.T
	store *state.Store // before the server starts
	dir   string
	url   string

	acme, ops, mobile string // UIDs of the factories
	hooks             map[string]state.Webhook
	delivery, refused state.Delivery
	other             state.Delivery // accepted, too
	run, talked       string
	changed           string // a run that left changes
	asks              string // a run whose agent waits for an answer
	event             string // that a notification of acme has
	pipe              string // from which the harness named tells has its words
	alerts            string // secret of the webhook alerts of ops
}

// yesterday is the revision that was applied before the server started.
const yesterday = "yesterday"

// longName is as wide as the name of a webhook or automation can be.
const longName = "WIDEST_WEBHOOK_AND_AUTOMATION_WHOSE_NAME_HAS_64_CHARACTERS_WWWWW"

const browserKey = "mw_browser-test-key-of-thirty-two-chars"

// newBrowserWorld starts the server on a port, any if it is empty.
func newBrowserWorld(t *testing.T, port string) *browserWorld {
	t.Helper()
	if port == "" {
		var err error
		if port, err = statetest.FreePort(); err != nil {
			t.Fatal(err)
		}
	}
	w := &browserWorld{t: t, dir: t.TempDir(), url: "http://127.0.0.1:" + port, hooks: map[string]state.Webhook{}}
	dsn := filepath.Join(w.dir, "state.db")
	w.pipe = filepath.Join(w.dir, "words")
	w.must(syscall.Mkfifo(w.pipe, 0o600))
	t.Setenv("MILLWRIGHT_MASTER_KEY", base64.StdEncoding.EncodeToString(statetest.MasterKey()))
	w.must(cli.InitDemo(t.Context(), cli.Streams{Out: io.Discard, Err: io.Discard}, filepath.Join(w.dir, "acme"), dsn, w.url, "acme"))
	var err error
	w.store, err = state.Open(t.Context(), state.Config{DSN: dsn, MasterKey: statetest.MasterKey()})
	w.must(err)
	w.furnish()
	w.must(w.store.Close())
	statetest.Age(t, dsn)
	w.must(cli.WriteNew(filepath.Join(w.dir, "millwright.yaml"), []byte("listen: 127.0.0.1:"+port+"\nfactories:\n"+
		"  - {name: acme, source: {dir: acme}}\n  - {name: mobile, source: {dir: mobile}}\n  - {name: ops, source: {managed: {}}}\n"+
		"limits: {budget: {usdPerDay: 100, runsPerDay: 5000}}\n"+
		"harnesses: {tells: {command: [sh, -c, 'while read -r line && [ \"$line\" != \"the end\" ]; do echo \"$line\"; done < "+w.pipe+"'], sameUser: true}}\n")))

	p := exec.Command(os.Args[0], "serve", "--config", filepath.Join(w.dir, "millwright.yaml"), "--state", dsn)
	p.Env = append(os.Environ(), runMain+"=1", "TMPDIR="+w.dir)
	var log bytes.Buffer
	p.Stdout, p.Stderr = io.Discard, &log
	w.must(p.Start())
	t.Cleanup(func() {
		p.Process.Kill()
		p.Wait()
		if t.Failed() {
			t.Logf("the server said:\n%s", log.String())
		}
	})
	c := cli.Client{Server: w.url, Key: browserKey, HTTP: http.DefaultClient}
	statetest.Until(w.t, "every source was read", func() bool {
		var list admin.ListFactoriesResponse
		if c.Get(t.Context(), "/factory", &list) != nil || len(list.Factories) != 3 {
			return false
		}
		acme, mobile := list.Factories[0].Sync, list.Factories[1].Sync
		return acme.AttemptedRevision != yesterday && acme.State == "applied" && mobile.State == "refused"
	})
	return w
}

func (w *browserWorld) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// furnish fills the state.
func (w *browserWorld) furnish() {
	w.t.Helper()
	ctx := w.t.Context()
	_, err := w.store.Bootstrap(ctx, browserKey)
	w.must(err)
	began := time.Now().Add(-23 * time.Hour)
	w.must(cli.WriteNew(filepath.Join(w.dir, "acme/notifications/chat.yaml"), []byte("url: https://chat.invalid/hooks/builds\nsecretName: CHAT_SECRET\nevents: [run.failed]\n")))
	_, err = w.store.SetSecret(ctx, "CHAT_SECRET", []byte("whsec_"+base64.StdEncoding.EncodeToString(statetest.MasterKey())))
	w.must(err)
	w.acme = w.apply("acme", state.Source{Kind: "dir", Path: filepath.Join(w.dir, "acme")}, began)
	for name, content := range map[string]string{
		"webhooks/store.yaml":              "authMode: signature\nsignatureScheme: sentry\nsecretName: SENTRY_SECRET\n",
		"automations/crash/automation.md":  "---\ntriggers:\n  - provider: github\n    event: push\n---\n\nRead the crash.\n",
		"automations/weekly/automation.md": "---\ntriggers:\n  - provider: cron\n    event: fired\n    filter:\n      cron: \"0 6 * * 1\"\n---\n\nSum up the week.\n",
	} {
		w.must(cli.WriteNew(filepath.Join(w.dir, "mobile", name), []byte(content)))
	}
	_, err = w.store.SetSecret(ctx, "SENTRY_SECRET", []byte("made-up"))
	w.must(err)
	w.mobile = w.apply("mobile", state.Source{Kind: "dir", Path: filepath.Join(w.dir, "mobile")}, began)
	w.must(cli.WriteNew(filepath.Join(w.dir, "mobile/webhooks/pager.yaml"), []byte("# Who is on call\nauthMode: bearer\nsecretName: PAGER_SECRET\n")))
	w.hold()
	w.day(began)
}

// apply applies the tree of a directory, as the server did yesterday.
func (w *browserWorld) apply(name string, source state.Source, at time.Time) (uid string) {
	w.t.Helper()
	ctx := w.t.Context()
	f, err := w.store.EnsureFactory(ctx, name, source, false)
	w.must(err)
	cur, err := w.store.Current(ctx, f.UID)
	w.must(err)
	p, app := plan.Make(cur, os.DirFS(source.Path), plan.Options{Revision: state.Revision{ID: yesterday}, Now: at})
	if app == nil {
		w.t.Fatalf("%s would be refused: %v", name, p.Problems)
	}
	app.Started = at
	w.must(w.store.Apply(ctx, *app))
	hooks, err := w.store.Webhooks(ctx, f.UID, false)
	w.must(err)
	for _, h := range hooks {
		w.hooks[h.Spec.Name] = h
	}
	return f.UID
}

// hold makes the factory that the server itself holds, with a few revisions, and names as long as they may be.
func (w *browserWorld) hold() {
	w.t.Helper()
	ctx := w.t.Context()
	f, err := w.store.EnsureFactory(ctx, "ops", state.Source{Kind: "managed"}, false)
	w.must(err)
	w.ops = f.UID
	keys, err := w.store.Keys(ctx)
	w.must(err)
	a := api.New(api.Config{Store: w.store})
	admin.Register(a, admin.Config{Store: w.store, PublicURL: w.url})
	call := func(method, path string, in, out any) {
		w.t.Helper()
		w.must(a.Call(ctx, api.Caller{Key: keys[0], Kind: api.CallerKey}, method, "/factory/"+w.ops+path, in, out))
	}
	var made admin.WebhookWithSecret
	call("POST", "/webhooks", admin.CreateWebhookRequest{Name: "pages", AuthMode: "signature", SignatureScheme: "notion"}, nil)
	call("POST", "/webhooks", admin.CreateWebhookRequest{Name: "old-alerts", AuthMode: "url_token"}, &made)
	call("DELETE", "/webhooks/"+made.UID, nil, nil)
	call("POST", "/webhooks", admin.CreateWebhookRequest{Name: "alerts", AuthMode: "token", DeliveryIDHeader: "X-Alert-Id"}, &made)
	call("PUT", "/files/automations/page/automation.md", admin.EditFileRequest{Content: "---\ntriggers:\n  - provider: webhook\n    event: received\n    filter:\n      webhook_ids: [" + made.UID + "]\n      payload:\n        severity: [critical]\n---\n\nFind out what fails.\n"}, nil)
	w.alerts = made.Secret
	call("POST", "/webhooks", admin.CreateWebhookRequest{Name: longName, AuthMode: "url_token"}, &made)
	call("PUT", "/files/automations/"+longName+"/automation.md", admin.EditFileRequest{Content: "---\ntriggers:\n  - provider: webhook\n    event: received\n    filter:\n      webhook_ids: [" + made.UID + "]\n      payload:\n        " + strings.Repeat("a_key_without_an_end_", 6) + ": [" + strings.Repeat("and_its_value_", 8) + "]\n---\n\nLook.\n"}, nil)
	hooks, err := w.store.Webhooks(ctx, w.ops, false)
	w.must(err)
	for _, h := range hooks {
		w.hooks[h.Spec.Name] = h
	}
	w.must(w.store.OfferSecret(ctx, w.ops, w.hooks["pages"].UID, state.OfferedSecret{Value: "secret_tMrlL1qK5vuQAh1b6cZGhFChZTSYJlce98V0pYn7yBl", Sender: "203.0.113.4", Received: time.Now()}))
}

// day fills the log of a day: what came in each hour, and what its runs did.
func (w *browserWorld) day(began time.Time) {
	w.t.Helper()
	ctx := w.t.Context()
	cur, err := w.store.Current(ctx, w.acme)
	w.must(err)
	generation := cur.Factory.Generation
	branches := []string{"main", "release/4.2", "login-form", "faster-cache"}
	n := 0
	for hour := range 23 {
		at := began.Add(time.Duration(hour) * time.Hour)
		busy := 2 + (hour*7)%5
		if h := at.Hour(); h >= 8 && h < 19 {
			busy += 6
		}
		for i := range busy {
			n++
			hook, sender, reason := w.hooks["ci"], "192.0.2.17", "the bearer token is not this webhook's secret"
			body := fmt.Sprintf(`{"build":%d,"branch":%q,"status":%q,"duration":%d,"tests":{"run":%d,"failed":%d}}`, 1700+n, branches[n%4], []string{"passed", "failed", "passed"}[n%3], 90+n%40, 2210+n, n%3%2*3)
			identity := state.IdentityOf(state.IdentityBodyHash, fmt.Sprintf("%x", sha256.Sum256([]byte(body))))
			if n%4 == 1 {
				hook, sender, reason = w.hooks["github"], "198.51.100.8", "X-Hub-Signature-256 does not fit the body and the webhook's secret"
				body = fmt.Sprintf(`{"action":"opened","number":%d,"pull_request":{"draft":false,"title":"Make the login form faster"}}`, 400+n)
				identity = state.IdentityOf(state.IdentityProvider, fmt.Sprintf("72d3162e-cc78-11e3-81ab-%012d", n))
			}
			received := at.Add(time.Duration(i) * 4 * time.Minute)
			if n%9 == 0 {
				size := int64(len(body))
				w.must(w.store.RecordRejected(ctx, state.Rejection{
					FactoryUID: w.acme, WebhookID: hook.ID, WebhookUID: hook.UID, Outcome: state.DeliveryRejectedAuth,
					Reason: reason, Size: &size, Sender: "203.0.113.90", Received: received, Generation: generation,
				}))
				continue
			}
			d := state.Acceptance{
				UID: state.NewID(state.PrefixDelivery), FactoryUID: w.acme, Generation: generation, WebhookID: hook.ID, WebhookUID: hook.UID,
				Identity: identity, Sender: sender, Body: []byte(body), Received: received,
			}
			if hook.Spec.Name == "github" || strings.Contains(body, "failed\",") {
				d.Runs = []state.NewRun{w.newRun(cur, hook, d.UID, received)}
			}
			done, err := w.store.Accept(ctx, d)
			w.must(err)
			if len(d.Runs) > 0 && !done.Duplicate {
				w.finish(d.Runs[0].ID, n, received)
			}
			if i == 0 && hour%5 == 2 { // the sender sends it again
				d.UID, d.Runs, d.Received = state.NewID(state.PrefixDelivery), nil, received.Add(2*time.Second)
				_, err := w.store.Accept(ctx, d)
				w.must(err)
			}
		}
	}
	all, err := w.store.Deliveries(ctx, w.acme, w.hooks["ci"].UID, state.DeliveryFilter{Outcome: state.DeliveryAccepted}, "", 50)
	w.must(err)
	for _, d := range all {
		runs, err := w.store.RunsOfDeliveries(ctx, d.UID)
		w.must(err)
		if len(runs[d.UID]) > 0 && runs[d.UID][0].State == string(state.RunSucceeded) {
			w.delivery, w.run = d, runs[d.UID][0].ID
			break
		}
	}
	w.talk()
	w.change(cur)
	w.ask()
	rejected, err := w.store.Deliveries(ctx, w.acme, w.hooks["ci"].UID, state.DeliveryFilter{Outcome: state.DeliveryRejectedAuth}, "", 1)
	w.must(err)
	w.refused, w.other = rejected[0], all[len(all)-1]
	told, err := w.store.Events().List(ctx, w.acme, events.Filter{}, "", 1)
	w.must(err)
	w.event = told[0].UID
}

func (w *browserWorld) newRun(cur state.Current, hook state.Webhook, delivery string, at time.Time) state.NewRun {
	name := map[string]string{"ci": "triage-failed-build", "github": "review-pull-request"}[hook.Spec.Name]
	r := state.NewRun{
		ID: state.NewRunID(), FactoryUID: w.acme, Title: name + " from " + hook.Spec.Name, Source: "CUSTOM_WEBHOOK", ConversationID: state.NewRunID(),
		AutomationUID: cur.UIDs[state.ResourceKey("automation", name)], WebhookUID: hook.UID, DeliveryUID: delivery, At: at,
		Creator: state.Creator{Type: "service_account", UID: "auto", DisplayName: name},
	}
	id := uuid.MustParse(r.ID) // its first 48 bits are the time, which orders runs
	binary.BigEndian.PutUint64(id[:8], uint64(at.UnixMilli())<<16|uint64(binary.BigEndian.Uint16(id[6:8])))
	r.ID, r.RootRunID = id.String(), id.String()
	for _, a := range cur.Tree.Automations {
		if a.Name == name {
			r.Prompt = a.Prompt
		}
	}
	return r
}

// finish executes a run as a worker does.
func (w *browserWorld) finish(id string, n int, at time.Time) {
	w.t.Helper()
	said := func(blocks ...state.Block) state.Message {
		return state.Message{Role: state.RoleAssistant, Content: blocks, At: at}
	}
	result := state.Result{State: state.RunSucceeded, Messages: []state.Message{
		said(state.Text("I read the report and the log of the last green build.")),
		said(state.Block{Type: "action", ID: "1", Category: "skill", Name: "read_skill", Input: json.RawMessage(`{"skill_path":"skills/bisect/SKILL.md","bundled_skill_id":"pr-comments"}`)},
			state.Block{Type: "action", ID: "2", Category: "shell", Name: "git bisect run make test", Input: json.RawMessage(`{"command":"git bisect run make test"}`)},
			state.Block{Type: "action_result", ActionID: "2", Name: "git bisect run make test", State: "succeeded", Output: json.RawMessage(`"8c0ffee is the first bad commit"`)}),
		said(state.Text("Commit `8c0ffee` broke the build: it renames `cache.Key` to `cache.ID`, and `session_test.go` still has the old name.\n\n1. Rename it there, in lines 41 and 77.\n2. Run `make test`: the **three tests** that fail are the ones that use it.\n\nSee [the log](https://ci.example.com/builds/1774).")),
	}}
	switch n % 11 {
	case 3:
		result.State, result.Message = state.RunFailed, "exit status 2"
	case 7:
		result.State, result.Message = state.RunBlocked, "which branch should it go to?"
	}
	w.execute(id, result)
}

// post sends a delivery and returns the status.
func (w *browserWorld) post(address, token, body string) int {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, address, strings.NewReader(body))
	w.must(err)
	r.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(r)
	w.must(err)
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	w.must(err)
	return resp.StatusCode
}

func (w *browserWorld) factory(uid string, path ...string) string {
	return "/factories/" + uid + strings.Join(path, "")
}

// talk makes a run that was reopened by a follow-up, of a harness that puts out lines.
func (w *browserWorld) talk() {
	w.t.Helper()
	ctx := w.t.Context()
	r, err := w.store.CreateRun(ctx, state.NewRun{
		Title: "Nightly build", Prompt: "Build the nightly, and say which tests are slow.", Source: "API",
		Creator: state.Creator{Type: "service_account", UID: "key_1", DisplayName: "Ada"},
	}, nil, state.Idempotency{})
	w.must(err)
	w.talked = r.ID

	var lines []state.Message
	for i := range 12 {
		lines = append(lines, state.Message{Role: state.RoleAssistant, Content: []state.Block{state.Text(fmt.Sprintf("ok  \tacme/app/pkg%02d\t%d.%ds", i, i%4, i))}, At: time.Now()})
	}
	w.execute(r.ID, state.Result{State: state.RunSucceeded, Messages: lines})

	_, _, err = w.store.Followup(ctx, r.ID, "Only the three slowest, please.", state.Idempotency{})
	w.must(err)
	answer := state.Text("| package | seconds |\n| --- | --- |\n| pkg11 | 3.11 |\n| pkg07 | 3.7 |\n| pkg03 | 3.3 |\n\n> All of them wait for the network.")
	w.execute(r.ID, state.Result{State: state.RunSucceeded, Messages: []state.Message{{Role: state.RoleAssistant, Content: []state.Block{answer}, At: time.Now()}}})
}

// change makes a run that left changes, files, links and outputs.
func (w *browserWorld) change(cur state.Current) {
	w.t.Helper()
	ctx := w.t.Context()
	r, err := w.store.CreateRun(ctx, state.NewRun{
		Title: "Repair the failing test", Prompt: "Repair the failing test.", Source: "API", FactoryUID: w.acme,
		AutomationUID: cur.UIDs[state.ResourceKey("automation", "triage-failed-build")],
		Creator:       state.Creator{Type: "service_account", UID: "key_1", DisplayName: "Ada"},
	}, nil, state.Idempotency{})
	w.must(err)
	w.changed = r.ID

	c, _, err := w.store.ClaimRun(ctx, r.ID, "w1", "mill-1", time.Minute)
	w.must(err)
	_, err = w.store.StartRun(ctx, c, time.Minute)
	w.must(err)
	for i, a := range []struct {
		state.Artifact
		content string
	}{
		{state.Artifact{Kind: state.KindPatch, Repository: "acme/app", Path: "changes.patch"}, changesPatch},
		{state.Artifact{Kind: state.KindBundle, Repository: "acme/app", Path: "changes.bundle", Facts: state.ArtifactFacts{Head: "8c0ffee", Shown: true}}, "bundle"},
		{state.Artifact{Path: "coverage/" + longName + ".html"}, strings.Repeat("covered ", 9000)},
	} {
		statetest.Leave(w.t, w.store, c, i, a.Artifact, []byte(a.content))
	}
	_, err = w.store.FinishRun(ctx, c, state.Result{State: state.RunSucceeded, Messages: []state.Message{{
		Role: state.RoleAssistant, Content: []state.Block{state.Text("The test has the new name of the key.")}, At: time.Now(),
	}}, Outputs: performed(r.ID)})
	w.must(err)
	w.must(w.store.PutLink(ctx, r.ID, state.Artifact{
		Type: state.ArtifactPullRequest, Repository: "acme/app", Path: pullAddress,
		Facts: state.ArtifactFacts{Branch: "agent/repair", Status: "open"},
	}))
}

const pullAddress = "https://git.example.com/acme/app/pulls/41"

// performed are outputs of a run that the forge has.
func performed(run string) []outputs.Output {
	var all []outputs.Output
	for _, o := range []struct {
		kind      outputs.Kind
		body, url string
	}{
		{
			outputs.PullRequest, `{"repository": {"owner": "acme", "name": "app"}, "title": "Use the new name of the key",
				"branch": "agent/triage-failed-build/` + run[:8] + `", "draft": true}`, pullAddress,
		},
		{
			outputs.Comment, `{"repository": {"owner": "acme", "name": "app"}, "number": 40,
				"body": "The pull request repairs the test."}`, "https://git.example.com/acme/app/issues/40#comment-7",
		},
		{outputs.Label, `{"repository": {"owner": "acme", "name": "app"}, "number": 40, "add": ["triaged"]}`, ""},
	} {
		all = append(all, outputs.Output{
			UID: state.NewID(state.PrefixOutput), Kind: o.kind, State: outputs.Done, Body: json.RawMessage(o.body), URL: o.url,
		})
	}
	return all
}

// ask makes a run whose agent got a part of its configuration, used a model, and waits for an answer.
func (w *browserWorld) ask() {
	w.t.Helper()
	ctx := w.t.Context()
	r, err := w.store.CreateRun(ctx, state.NewRun{
		Title: "Clean up the builds", Prompt: "Clean up.", Source: "API",
		Creator: state.Creator{Type: "service_account", UID: "key_1", DisplayName: "Ada"},
		Config: json.RawMessage(`{"model_id": "claude-sonnet-4-5", "base_prompt": "Be brief.", "harness": {"reasoning_level": "high"},
			"mcp_servers": {"tickets": {"url": "https://tickets.example.com/a/path/that/is/long/enough/to/wrap"}}}`),
	}, nil, state.Idempotency{})
	w.must(err)
	w.asks = r.ID

	c, _, err := w.store.ClaimRun(ctx, r.ID, "w1", "mill-1", time.Minute)
	w.must(err)
	_, err = w.store.StartRun(ctx, c, time.Minute)
	w.must(err)
	event := func(name, data string) state.Block {
		return state.Block{Type: "event", Name: name, Data: json.RawMessage(data)}
	}
	told := state.Message{Role: state.RoleAssistant, At: time.Now(), Content: []state.Block{
		event("config_not_applied", `{"field": "reasoning_level", "harness": "agent", "reason": "it has no reasoning level"}`),
		event("config_applied", `{"harness": "agent", "preset": "gemini", "session": "new", "fields": ["base_prompt", "model_id", "mcp_servers.tickets"]}`),
		event("session", `{"model": "claude-sonnet-4-5", "tools": ["Bash", "Read"]}`),
	}}
	w.must(w.store.AppendEntries(ctx, c, 0, []state.Message{told}))
	cost := 0.75
	_, _, err = w.store.SetUsage(ctx, c, []state.ModelUsage{{Model: "large", InputTokens: 9000, OutputTokens: 800, CachedTokens: 4000, CostUSD: &cost}})
	w.must(err)
	_, err = w.store.AskQuestion(ctx, c, state.Question{
		Title: "rm -r build", Input: json.RawMessage(`{"command": "rm -r build"}`),
		Choices: []state.Choice{{ID: "yes", Name: "Allow", Kind: "allow_once"}, {ID: "no", Name: "Reject", Kind: "reject_once"}},
	})
	w.must(err)
	_, err = w.store.FinishRun(ctx, c, state.Result{State: state.RunBlocked, Message: "the agent waits for an answer", From: 1})
	w.must(err)
}

const changesPatch = `diff --git a/cache/session_test.go b/cache/session_test.go
index 1111111111111111111111111111111111111111..2222222222222222222222222222222222222222 100644
--- a/cache/session_test.go
+++ b/cache/session_test.go
@@ -38,7 +38,8 @@ func TestSession(t *testing.T) {
 	s := Open(t.TempDir())
 	defer s.Close()
 	count := 0
-	key := s.Put("one", cache.Key{Tenant: "acme", Name: "a name that is long enough to take more than one line on a telephone"})
+	id := s.Put("one", cache.ID{Tenant: "acme", Name: "a name that is long enough to take more than one line on a telephone"})
+	t.Logf("the session has the ID %s", id)
 	if got := s.Len(); got != 1 {
 		t.Errorf("%d sessions", got)
 	}
diff --git a/docs/cache.md b/docs/cache.md
new file mode 100644
index 0000000000000000000000000000000000000000..3333333333333333333333333333333333333333
--- /dev/null
+++ b/docs/cache.md
@@ -0,0 +1,2 @@
+# Cache
+A session has an ID.
diff --git a/logo.png b/logo.png
deleted file mode 100644
index 4444444444444444444444444444444444444444..0000000000000000000000000000000000000000
Binary files a/logo.png and /dev/null differ
`

// execute runs a run to its end as a worker does.
func (w *browserWorld) execute(id string, result state.Result) {
	w.t.Helper()
	c, _, err := w.store.ClaimRun(w.t.Context(), id, "w1", "mill-1", time.Minute)
	w.must(err)
	_, err = w.store.StartRun(w.t.Context(), c, time.Minute)
	w.must(err)
	_, err = w.store.FinishRun(w.t.Context(), c, result)
	w.must(err)
}
