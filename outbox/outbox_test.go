package outbox_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"code.gitea.io/sdk/gitea"

	"millwright/forge"
	"millwright/forge/forgetest"
	"millwright/outbox"
	"millwright/outbox/request"
	"millwright/runs/dispatch"
	"millwright/runs/wire"
	"millwright/schema"
	"millwright/state"
	"millwright/state/outputs"
	"millwright/state/statetest"
)

// world is a server of runs with an outbox, at a real Gitea. The test is the worker.
type world struct {
	t       *testing.T
	gitea   *forgetest.Server
	refuse  atomic.Pointer[func(http.ResponseWriter, *http.Request) bool]
	lose    atomic.Pointer[func(*http.Request) bool]
	before  atomic.Pointer[func(*http.Request)] // the answer of the forge is sent
	store   *state.Store
	factory string
	hook    state.Webhook
	worker  *wire.Client
	out     *outbox.Outbox
	address string // of the forge that loses and refuses requests
	base    string // commit
	foreign bool   // workers find the commit of the delivery on no branch
	dir     string // clone
}

const title = "Mend the flaky test"

// worldOf returns a world whose automation has these outputs, beside a repository with an issue.
func worldOf(t *testing.T, s *state.Store, o *schema.Outputs) *world {
	t.Helper()
	w := &world{t: t, gitea: forgetest.Start(t), store: s, dir: t.TempDir()}
	w.gitea.Organization("acme")
	w.base = w.gitea.Repository("acme", "shop", map[string]string{"test.sh": "exit 1\n", "README.md": "Shop\n"})
	forgetest.Git(t, w.dir, "clone", "--quiet", w.gitea.Remote("acme", "shop"), ".")
	if _, _, err := w.gitea.API().CreateIssue("acme", "shop", gitea.CreateIssueOption{Title: title}); err != nil {
		t.Fatal(err)
	}

	w.address = w.proxy()
	forges, err := forge.Open(forge.Config{
		Forges:  map[string]forge.Settings{"acme": {Kind: forge.Gitea, URL: w.address, TokenSecret: "GITEA_TOKEN"}},
		Allowed: map[string][]string{"mill": {"acme/*"}},
		Secret:  w.store.SecretValue,
	})
	if err != nil {
		t.Fatal(err)
	}
	w.define(o)

	d, err := dispatch.Start(t.Context(), dispatch.Config{Store: w.store, Forges: forges})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close(context.Background()) })
	if w.worker, err = d.Client(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.worker.Close)

	w.out, err = outbox.New(outbox.Config{
		Store: w.store, Forges: forges, PublicURL: "https://mill.example.com", Checks: func(string) bool { return true },
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); w.out.Run(ctx) }()
	t.Cleanup(func() { stop(); <-ended })
	return w
}

// proxy returns the address of a forge that loses and refuses requests as the test wants.
func (w *world) proxy() string {
	to, err := url.Parse(w.gitea.URL)
	if err != nil {
		w.t.Fatal(err)
	}
	forward := httputil.NewSingleHostReverseProxy(to)
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if refuse := w.refuse.Load(); refuse != nil && (*refuse)(rw, r) {
			return
		}
		if lose := w.lose.Load(); lose != nil && (*lose)(r) {
			forward.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler) // it was made, and nobody hears of it
		}
		if before := w.before.Load(); before != nil {
			answer := httptest.NewRecorder()
			forward.ServeHTTP(answer, r)
			(*before)(r)
			maps.Copy(rw.Header(), answer.Header())
			rw.WriteHeader(answer.Code)
			_, _ = rw.Write(answer.Body.Bytes())
			return
		}
		forward.ServeHTTP(rw, r)
	}))
	w.t.Cleanup(s.Close)
	return s.URL
}

// define applies the automation triage with these outputs.
func (w *world) define(o *schema.Outputs) {
	w.t.Helper()
	ctx := w.t.Context()
	for name, value := range map[string]string{"GITEA_TOKEN": w.gitea.Token, "HOOK": "h00k-s3cret", "NPM_TOKEN": "npm-t0ken-value"} {
		if _, err := w.store.SetSecret(ctx, name, []byte(value)); err != nil {
			w.t.Fatal(err)
		}
	}
	f, err := w.store.EnsureFactory(ctx, "mill", state.Source{Kind: "managed"}, false)
	if err != nil {
		w.t.Fatal(err)
	}
	w.factory = f.UID
	cur, err := w.store.Current(ctx, f.UID)
	if err != nil {
		w.t.Fatal(err)
	}

	change := state.ChangeSet{
		FactoryUID: f.UID, Base: cur.Factory.Generation, BaseRevision: cur.Factory.Applied.ID, Started: time.Now(),
		Revision:    state.Revision{ID: state.NewID("rev")},
		File:        &schema.FactoryFile{Name: "mill", Repositories: []schema.Repository{{Owner: "acme", Name: "shop"}}},
		FileChanged: true,
		Resources: []state.ResourceChange{{
			UID: cur.UIDs[state.ResourceKey("automation", "triage")], Kind: "automation", Name: "triage",
			Spec: schema.Automation{
				Name: "triage", Enabled: true, Outputs: o, Prompt: "Mend.",
				Execution: schema.Execution{Secrets: []string{"NPM_TOKEN"}},
			},
		}},
	}
	if len(cur.Webhooks) == 0 {
		change.Webhooks = []state.WebhookChange{{
			UID: state.NewID(state.PrefixWebhook), SecretVersion: 1,
			Spec: schema.Webhook{
				Name: "forge", Path: "webhooks/forge.yaml", AuthMode: schema.AuthSignature, SignatureScheme: "gitea",
				SecretName: "HOOK", Enabled: true,
			},
		}}
	}
	if err := w.store.Apply(ctx, change); err != nil {
		w.t.Fatal(err)
	}
	if cur, err = w.store.Current(ctx, f.UID); err != nil {
		w.t.Fatal(err)
	}
	w.hook = cur.Webhooks[0]
}

// deliver accepts a delivery that starts a run, and returns the run's ID.
func (w *world) deliver(payload string) string {
	w.t.Helper()
	ctx := w.t.Context()
	cur, err := w.store.Current(ctx, w.factory)
	if err != nil {
		w.t.Fatal(err)
	}
	run := state.NewRunID()
	a := state.Acceptance{
		UID: state.NewID(state.PrefixDelivery), FactoryUID: w.factory, Generation: cur.Factory.Generation,
		WebhookID: w.hook.ID, WebhookUID: w.hook.UID, Identity: state.IdentityOf(state.IdentityServiceHeader, run),
		Sender: "192.0.2.1", Body: []byte(payload), Received: time.Now(),
	}
	a.Runs = []state.NewRun{{
		ID: run, RootRunID: run, ConversationID: run, FactoryUID: w.factory, Title: title, Prompt: "Mend.", Source: "CUSTOM_WEBHOOK",
		Creator: state.Creator{Type: "service_account"}, WebhookUID: w.hook.UID, DeliveryUID: a.UID, At: a.Received,
		AutomationUID: cur.UIDs[state.ResourceKey("automation", "triage")], Config: json.RawMessage(`{}`), Secrets: []string{"NPM_TOKEN"},
	}}
	if _, err := w.store.Accept(ctx, a); err != nil {
		w.t.Fatal(err)
	}
	return run
}

// opened is the payload of an opened issue.
func opened(n int) string {
	return fmt.Sprintf(`{"action":"opened","issue":{"number":%d},"repository":{"full_name":"acme/shop"}}`, n)
}

// execute is an execution that changes files and asks for outputs.
func (w *world) execute(files map[string]string, lines ...string) {
	w.t.Helper()
	ctx := w.t.Context()
	o := w.claim()
	if _, err := w.worker.Start(ctx, o); err != nil {
		w.t.Fatal(err)
	}
	if err := w.worker.CheckedOut(ctx, o, []wire.Base{{Commit: w.base, Branch: "main", Untrusted: w.foreign}}); err != nil {
		w.t.Fatal(err)
	}
	if len(files) > 0 {
		w.leave(o, files)
	}

	result := wire.Result{State: "SUCCEEDED"}
	for _, l := range lines {
		result.Outputs = append(result.Outputs, json.RawMessage(l))
	}
	if _, err := w.worker.Finish(ctx, o, result); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) claim() *wire.Order {
	w.t.Helper()
	var o *wire.Order
	statetest.Until(w.t, "a run to claim", func() bool {
		var err error
		if o, err = w.worker.Claim(w.t.Context(), "tester", time.Second); err != nil {
			w.t.Fatal(err)
		}
		return o != nil
	})
	return o
}

// leave commits files on top of what was there, and sends the changes.
func (w *world) leave(o *wire.Order, files map[string]string) {
	w.t.Helper()
	for name, text := range files {
		path := filepath.Join(w.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			w.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			w.t.Fatal(err)
		}
	}
	forgetest.Git(w.t, w.dir, "add", "--all")
	forgetest.Git(w.t, w.dir, "commit", "--quiet", "--message", "Mend")
	file := filepath.Join(w.t.TempDir(), "changes.bundle")
	forgetest.Git(w.t, w.dir, "bundle", "create", "--quiet", file, "main")
	body, err := os.ReadFile(file)
	if err != nil {
		w.t.Fatal(err)
	}
	sum := sha256.Sum256(body)
	err = w.worker.PutArtifact(w.t.Context(), o, 0, wire.Artifact{
		Path: "changes.bundle", Kind: wire.ArtifactBundle, Size: int64(len(body)), Digest: hex.EncodeToString(sum[:]),
		Repository: "acme/shop", Base: w.base,
	}, bytes.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
}

// settled waits until no output of a run is to be performed, and returns them as "kind state".
func (w *world) settled(run string) []outputs.Output {
	w.t.Helper()
	var all []outputs.Output
	statetest.Until(w.t, "the outputs of run "+run, func() bool {
		var err error
		all, err = w.store.Outputs().Of(context.Background(), run)
		if errors.Is(err, state.ErrUnavailable) {
			return false
		}
		if err != nil {
			w.t.Fatal(err)
		}
		return !slices.ContainsFunc(all, func(o outputs.Output) bool {
			return o.State == outputs.Pending || o.State == outputs.Doing
		})
	})
	return all
}

// states writes outputs as "kind state", with the reason of those that are not done.
func states(all []outputs.Output) string {
	var out []string
	for _, o := range all {
		text := string(o.Kind) + " " + string(o.State)
		if o.Reason != "" {
			text += ": " + o.Reason
		}
		out = append(out, text)
	}
	return strings.Join(out, "\n")
}

func (w *world) comments() []*gitea.Comment {
	w.t.Helper()
	all, _, err := w.gitea.API().ListRepoIssueComments("acme", "shop", gitea.ListIssueCommentOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

func (w *world) pulls() []*gitea.PullRequest {
	w.t.Helper()
	all, _, err := w.gitea.API().ListRepoPullRequests("acme", "shop", gitea.ListPullRequestsOptions{State: gitea.StateAll})
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

// commitsOf returns how many commits a pull request has.
func (w *world) commitsOf(number int64) int {
	w.t.Helper()
	all, _, err := w.gitea.API().ListPullRequestCommits("acme", "shop", number, gitea.ListPullRequestCommitsOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return len(all)
}

func everything() *schema.Outputs {
	return &schema.Outputs{
		PullRequest: &schema.PullRequestOutput{Branch: schema.DefaultBranch, Draft: true, Labels: []string{"agent"}},
		Comment:     &schema.CommentOutput{Max: 2},
		Labels:      &schema.LabelsOutput{Allow: []string{"triaged"}, Max: 1},
		Status:      &schema.StatusOutput{Context: schema.DefaultStatusContext},
		Review:      &schema.ReviewOutput{Max: 1, Events: []string{"COMMENT"}},
	}
}

const (
	askPull    = `{"type":"pull_request","title":"Let the test pass","body":"It ended with 1."}`
	askComment = `{"type":"comment","body":"See the pull request."}`
)

// TestAcceptanceOutputs performs each kind once, and a follow-up goes on with its pull request.
func TestAcceptanceOutputs(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) { worldOf(t, s, everything()).performs() })
}

func (w *world) performs() {
	t := w.t
	run := w.deliver(opened(1))
	w.execute(map[string]string{"test.sh": "exit 0\n"}, askPull, askComment, `{"type":"label","add":["triaged"]}`,
		`{"type":"reference","url":"https://example.com/trace","title":"Trace"}`)
	want := "status done\npull_request done\ncomment done\nlabel done\nreference done"
	if got := states(w.settled(run)); got != want {
		t.Fatalf("got\n%s\nwant\n%s", got, want)
	}

	pulls := w.pulls()
	if len(pulls) != 1 {
		t.Fatalf("%d pull requests", len(pulls))
	}
	pull := pulls[0]
	if pull.Head.Name != "agent/triage/"+run || pull.Base.Name != "main" || !strings.HasSuffix(pull.Title, "Let the test pass") ||
		!pull.Draft || !strings.HasPrefix(pull.Body, "It ended with 1.") || len(pull.Labels) != 1 {
		t.Errorf("%+v", pull)
	}
	if n := w.commitsOf(pull.Index); n != 1 {
		t.Errorf("%d commits", n)
	}
	status, _, err := w.gitea.API().GetCombinedStatus("acme", "shop", pull.Head.Sha)
	if err != nil || len(status.Statuses) != 1 || status.Statuses[0].State != gitea.StatusSuccess ||
		status.Statuses[0].Context != "agent/triage" || status.Statuses[0].TargetURL != "https://mill.example.com/runs/"+run {
		t.Errorf("status %+v, %v", status, err)
	}
	if all := w.comments(); len(all) != 1 || !strings.HasPrefix(all[0].Body, "See the pull request.\n\n<!-- millwright:out_") {
		t.Errorf("comments %+v", all)
	}
	issue, _, err := w.gitea.API().GetIssue("acme", "shop", 1)
	if err != nil || len(issue.Labels) != 1 || issue.Labels[0].Name != "triaged" {
		t.Errorf("issue %+v, %v", issue, err)
	}

	links, err := w.store.Artifacts(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	var types []string
	for _, a := range links[run] {
		types = append(types, string(a.Type)+" "+a.Path)
	}
	made := func(text string) bool {
		return strings.HasPrefix(text, "PULL_REQUEST http") && strings.HasSuffix(text, fmt.Sprintf("/acme/shop/pulls/%d", pull.Index))
	}
	if !slices.ContainsFunc(types, made) || !slices.Contains(types, "EXTERNAL_REFERENCE https://example.com/trace") {
		t.Errorf("artifacts %q", types)
	}

	// A follow-up without a request goes on with the pull request.
	if _, _, err := w.store.Followup(t.Context(), run, "Also the README", state.Idempotency{}); err != nil {
		t.Fatal(err)
	}
	w.execute(map[string]string{"README.md": "The shop\n"})
	if got := states(w.settled(run)); got != want+"\npull_request done" {
		t.Fatalf("after the follow-up\n%s", got)
	}
	if pulls := w.pulls(); len(pulls) != 1 || w.commitsOf(pull.Index) != 2 || len(w.comments()) != 1 {
		t.Errorf("%d pull requests with %d commits", len(pulls), w.commitsOf(pull.Index))
	}
}

// TestAcceptanceDatabaseRestarts has the database end all connections after the forge made something, and
// before the server recorded it. Nothing is made twice.
func TestAcceptanceDatabaseRestarts(t *testing.T) {
	dsn := statetest.Postgres(t)
	admin, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()

	w := worldOf(t, statetest.Open(t, dsn+"&application_name=outbox"), everything())
	var restarts, ended atomic.Int64
	before := func(r *http.Request) {
		if r.Method != http.MethodPost || restarts.Add(1) > 3 {
			return
		}
		var n int64
		err := admin.QueryRow(`SELECT count(pg_terminate_backend(pid))
			FROM pg_stat_activity
			WHERE application_name = 'outbox'`).Scan(&n)
		if err != nil {
			t.Error(err)
		}
		ended.Add(n)
	}
	w.before.Store(&before)

	run := w.deliver(opened(1))
	w.execute(map[string]string{"test.sh": "exit 0\n"}, askPull, askComment, `{"type":"label","add":["triaged"]}`)
	const want = "status done\npull_request done\ncomment done\nlabel done"
	if got := states(w.settled(run)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if pulls, comments := w.pulls(), w.comments(); len(pulls) != 1 || len(comments) != 1 || ended.Load() == 0 {
		t.Errorf("%d pull requests, %d comments, %d connections ended", len(pulls), len(comments), ended.Load())
	}
}

// TestAcceptanceMadeAndNotRecorded loses the answer to each request that makes something. Nothing is made twice.
func TestAcceptanceMadeAndNotRecorded(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) { worldOf(t, s, everything()).losesAnswers() })
}

func (w *world) losesAnswers() {
	t := w.t
	var lost atomic.Int64
	seen := make(chan string, 100)
	lose := func(r *http.Request) bool {
		made := r.Method == http.MethodPost && (strings.HasSuffix(r.URL.Path, "/comments") ||
			strings.HasSuffix(r.URL.Path, "/pulls") || strings.HasSuffix(r.URL.Path, "/reviews"))
		if made && lost.Add(1) <= 3 {
			seen <- r.URL.Path
			return true
		}
		return false
	}
	w.lose.Store(&lose)

	run := w.deliver(opened(1))
	w.execute(map[string]string{"test.sh": "exit 0\n"}, askPull, askComment, `{"type":"comment","body":"A second one."}`)
	if got, want := states(w.settled(run)), "status done\npull_request done\ncomment done\ncomment done"; got != want {
		t.Fatalf("got\n%s\nwant\n%s", got, want)
	}
	if len(seen) != 3 {
		t.Errorf("%d answers were lost", len(seen))
	}
	if pulls, comments := w.pulls(), w.comments(); len(pulls) != 1 || len(comments) != 2 {
		t.Errorf("%d pull requests, %d comments", len(pulls), len(comments))
	}

	// A review of the pull request that was made.
	lost.Store(2)
	pull := w.pulls()[0]
	review := w.deliver(fmt.Sprintf(`{"action":"opened","number":%d,"pull_request":{"number":%[1]d,"head":{"sha":%q,"ref":%q,`+
		`"repo":{"full_name":"acme/shop"}},"base":{"ref":"main"}},"repository":{"full_name":"acme/shop"}}`, pull.Index, pull.Head.Sha, pull.Head.Ref))
	w.execute(nil, `{"type":"review","event":"COMMENT","body":"Looks right.","comments":[{"path":"test.sh","line":1,"body":"Here."}]}`)
	if got := states(w.settled(review)); got != "status done\nreview done" {
		t.Fatal(got)
	}
	reviews, _, err := w.gitea.API().ListPullReviews("acme", "shop", pull.Index, gitea.ListPullReviewsOptions{})
	if err != nil || len(reviews) != 1 {
		t.Errorf("%d reviews, %v", len(reviews), err)
	}
}

// TestAcceptanceForgedMarker holds that a marker counts only in what our own account wrote.
func TestAcceptanceForgedMarker(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) { worldOf(t, s, everything()).knowsItsOwn() })
}

func (w *world) knowsItsOwn() {
	t := w.t
	mallory := w.gitea.APIOf(w.gitea.User("mallory"))
	var forged atomic.Bool
	refuse := func(rw http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/comments") || forged.Swap(true) {
			return false
		}
		all, err := w.store.Outputs().Of(context.Background(), w.newestRun())
		if err != nil {
			t.Error(err)
		}
		for _, o := range all {
			body := "Nothing to see" + request.Mark(w.store.DeriveKey("outputs"), o.UID, "")
			if _, _, err := mallory.CreateIssueComment("acme", "shop", 1, gitea.CreateIssueCommentOption{Body: body}); err != nil {
				t.Error(err)
			}
		}
		rw.WriteHeader(http.StatusBadGateway)
		return true
	}
	w.refuse.Store(&refuse)
	run := w.deliver(opened(1))
	w.execute(nil, askComment)
	if got := states(w.settled(run)); got != "status done\ncomment done" {
		t.Fatal(got)
	}
	ours := 0
	for _, c := range w.comments() {
		if c.Poster.UserName == w.gitea.Admin {
			ours++
		}
	}
	if !forged.Load() || ours != 1 {
		t.Errorf("%d comments of our account", ours)
	}
}

func (w *world) newestRun() string {
	runs, _, err := w.store.Runs(context.Background(), state.RunFilter{}, state.RunOrder{}, nil, 1)
	if err != nil || len(runs) == 0 {
		w.t.Errorf("no run: %v", err)
		return ""
	}
	return runs[0].ID
}

// TestAcceptanceStagedChanges holds that changes of protected files wait for a person, and leave once that one
// agreed.
func TestAcceptanceStagedChanges(t *testing.T) {
	o := everything()
	o.Protect = []string{"deploy/"}
	for file, want := range map[string]string{
		".github/workflows/ci.yml": "staged", "sub/CodeOwners": "staged", "deploy/prod.yaml": "staged",
		".gitlab-ci.yml": "staged", "docs/github/ci.yml": "done",
	} {
		t.Run(strings.ReplaceAll(file, "/", "-"), func(t *testing.T) {
			statetest.Each(t, func(t *testing.T, s *state.Store) { worldOf(t, s, o).stages(file, want) })
		})
		if testing.Short() {
			return
		}
	}
}

// stages changes a file. Its pull request is staged, and leaves when a person agrees, or is done at once.
func (w *world) stages(file, want string) {
	t := w.t
	run := w.deliver(opened(1))
	w.execute(map[string]string{file: "x\n"}, askPull)
	all := w.settled(run)
	pull := all[len(all)-1]
	if string(pull.State) != want || want == "staged" && !strings.Contains(pull.Reason, file) {
		t.Fatalf("%s", states(all))
	}
	if want == "done" {
		return
	}
	if n := len(w.pulls()); n != 0 {
		t.Errorf("%d pull requests before approval", n)
	}

	if _, err := w.store.Outputs().Approve(t.Context(), run, pull.UID, "ada"); err != nil {
		t.Fatal(err)
	}
	if got := states(w.settled(run)); got != "status done\npull_request done" {
		t.Fatal(got)
	}
	if n := len(w.pulls()); n != 1 {
		t.Errorf("%d pull requests", n)
	}
}

// pullOfFork opens a pull request of mallory's fork, and returns the payload of its delivery with its commit.
func (w *world) pullOfFork() (payload, commit string) {
	w.t.Helper()
	mallory := w.gitea.APIOf(w.gitea.User("mallory"))
	if _, _, err := mallory.CreateFork("acme", "shop", gitea.CreateForkOption{}); err != nil {
		w.t.Fatal(err)
	}
	file, _, err := mallory.CreateFile("mallory", "shop", "evil.sh", gitea.CreateFileOptions{
		FileOptions: gitea.FileOptions{Message: "Mine", BranchName: "main"}, Content: "ZWNobwo=",
	})
	if err != nil {
		w.t.Fatal(err)
	}
	pull, _, err := mallory.CreatePullRequest("acme", "shop", gitea.CreatePullRequestOption{
		Head: "mallory:main", Base: "main", Title: "Mine",
	})
	if err != nil {
		w.t.Fatal(err)
	}

	return fmt.Sprintf(`{"action":"opened","number":%d,"pull_request":{"number":%[1]d,"head":{"sha":%q,"ref":"main",`+
		`"repo":{"full_name":"mallory/shop"}},"base":{"ref":"main"}},"repository":{"full_name":"acme/shop"}}`,
		pull.Index, file.Commit.SHA), file.Commit.SHA
}

// TestAcceptanceFork holds that nothing leaves a run that a fork's commit started before a person agreed,
// also no status.
func TestAcceptanceFork(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) { worldOf(t, s, everything()).waitsForAPerson() })
}

func (w *world) waitsForAPerson() {
	t := w.t
	payload, commit := w.pullOfFork()
	w.foreign = true
	run := w.deliver(payload)
	w.execute(nil, askComment)
	want := "status staged: " + request.OfFork + "\ncomment staged: " + request.OfFork
	all := w.settled(run)
	if got := states(all); got != want || len(w.comments()) != 0 {
		t.Fatalf("%d comments\n%s", len(w.comments()), got)
	}
	status, _, err := w.gitea.API().GetCombinedStatus("acme", "shop", commit)
	if err != nil || len(status.Statuses) != 0 {
		t.Errorf("status %+v, %v", status, err)
	}

	for _, o := range all {
		if _, err := w.store.Outputs().Approve(t.Context(), run, o.UID, "ada"); err != nil {
			t.Fatal(err)
		}
	}
	if got := states(w.settled(run)); got != "status done\ncomment done" || len(w.comments()) != 1 {
		t.Fatalf("%d comments\n%s", len(w.comments()), got)
	}
	status, _, err = w.gitea.API().GetCombinedStatus("acme", "shop", commit)
	if err != nil || len(status.Statuses) != 1 || status.State != gitea.StatusSuccess {
		t.Errorf("status %+v, %v", status, err)
	}
}

// TestAcceptanceRefusedAtTheForge holds what becomes of outputs that the forge, the definition or a secret does not allow.
func TestAcceptanceRefusedAtTheForge(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) { worldOf(t, s, everything()).reportsRefusals() })
}

func (w *world) reportsRefusals() {
	t := w.t
	answer := func(status int, header, body string) {
		refuse := func(rw http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodGet {
				return false
			}
			if header != "" {
				rw.Header().Set("Retry-After", header)
				w.refuse.Store(nil) // once
			}
			if strings.HasPrefix(body, "{") {
				rw.Header().Set("Content-Type", "application/json")
			}
			rw.WriteHeader(status)
			fmt.Fprint(rw, body)
			return true
		}
		w.refuse.Store(&refuse)
	}

	answer(http.StatusForbidden, "", `{"message":"you shall\nnot \u001b[31mpass"}`)
	run := w.deliver(opened(1))
	w.execute(nil, askComment)
	all := w.settled(run)
	comment := all[len(all)-1]
	if comment.State != outputs.Failed || !strings.Contains(comment.Reason, "you shall not") || strings.Contains(comment.Reason, "\x1b") {
		t.Fatal(states(all))
	}
	if r, err := w.store.Run(t.Context(), run); err != nil || r.State != state.RunSucceeded {
		t.Errorf("the run is %s, %v", r.State, err)
	}

	answer(http.StatusTooManyRequests, "1", `<html>slow down</html>`)
	for _, o := range all {
		if o.State == outputs.Failed {
			if _, err := w.store.Outputs().Retry(t.Context(), run, o.UID); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := states(w.settled(run)); got != "status done\ncomment done" || len(w.comments()) != 1 {
		t.Fatalf("%s, %d comments", got, len(w.comments()))
	}

	// Answers that pass by themselves: the reason has the words, nothing is made, and then it is once.
	for words, body := range map[string]func(http.ResponseWriter){
		"database is down (500)": func(rw http.ResponseWriter) {
			rw.Header().Set("Content-Type", "application/json")
			rw.WriteHeader(http.StatusInternalServerError)
			fmt.Fprint(rw, `{"message":"database is down"}`)
		},
		"the answer is text/html, not JSON": func(rw http.ResponseWriter) {
			rw.Header().Set("Content-Type", "text/html")
			fmt.Fprint(rw, "<html>Sign in")
		},
		"the answer is empty": func(rw http.ResponseWriter) { rw.Header().Set("Content-Type", "application/json") },
	} {
		refuse := func(rw http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodGet {
				body(rw)
			}
			return r.Method != http.MethodGet
		}
		before := len(w.comments())
		w.refuse.Store(&refuse)
		run = w.deliver(opened(1))
		w.execute(nil, askComment)
		statetest.Until(t, "the reason "+words, func() bool {
			all, err := w.store.Outputs().Of(t.Context(), run)
			return err == nil && len(all) == 2 && all[1].State == outputs.Pending && strings.Contains(all[1].Reason, words)
		})
		if n := len(w.comments()); n != before {
			t.Errorf("%s: %d comments", words, n-before)
		}
		w.refuse.Store(nil)
		if got := states(w.settled(run)); got != "status done\ncomment done" || len(w.comments()) != before+1 {
			t.Errorf("%s: %s, %d comments", words, got, len(w.comments())-before)
		}
	}

	// A token that is revoked in the middle.
	answer(http.StatusUnauthorized, "", `{"message":"the token `+w.gitea.Token+` is revoked"}`)
	run = w.deliver(opened(1))
	w.execute(nil, askComment)
	all = w.settled(run)
	if o := all[len(all)-1]; o.State != outputs.Failed || !strings.Contains(o.Reason, "the token *** is revoked (401)") {
		t.Error(states(all))
	}

	// A branch that somebody else made, and one that is protected.
	w.refuse.Store(nil)
	run = w.deliver(opened(1))
	branch := "agent/triage/" + run
	forgetest.Git(t, w.dir, "push", "--quiet", "origin", "HEAD:refs/heads/"+branch)
	w.execute(map[string]string{"test.sh": "exit 0\n"}, askPull)
	if got := states(w.settled(run)); !strings.Contains(got, "has commits that are not of this run") || len(w.pulls()) != 0 {
		t.Error(got)
	}
	if b, _, err := w.gitea.API().GetRepoBranch("acme", "shop", branch); err != nil || b.Commit.ID != w.base {
		t.Errorf("the branch of somebody else is at %+v, %v", b, err)
	}
	if _, _, err := w.gitea.API().CreateBranchProtection("acme", "shop", gitea.CreateBranchProtectionOption{RuleName: "agent/**"}); err != nil {
		t.Fatal(err)
	}
	run = w.deliver(opened(1))
	w.execute(map[string]string{"test.sh": "exit 0 # again\n"}, askPull)
	if got := states(w.settled(run)); !strings.Contains(got, "pull_request failed: ") || !strings.Contains(got, "protected") || len(w.pulls()) != 0 {
		t.Error(got)
	}

	// A secret in a changed file.
	w.refuse.Store(nil)
	run = w.deliver(opened(1))
	w.execute(map[string]string{"npmrc": "token=npm-t0ken-value\n"}, askPull)
	if got := states(w.settled(run)); !strings.Contains(got, "pull_request refused: a changed file") || len(w.pulls()) != 0 {
		t.Error(got)
	}

	// A definition that allows less when the output is performed again.
	answer(http.StatusServiceUnavailable, "", "busy")
	run = w.deliver(opened(1))
	w.execute(nil, askComment)
	statetest.Until(t, "the first attempt at the comment", func() bool {
		all, err := w.store.Outputs().Of(t.Context(), run)
		return err == nil && len(all) == 2 && all[1].State == outputs.Pending && all[1].Reason != ""
	})
	w.define(&schema.Outputs{Labels: &schema.LabelsOutput{Allow: []string{"x"}, Max: 1}})
	w.refuse.Store(nil)
	if got := states(w.settled(run)); !strings.Contains(got, "comment refused: the outputs of the automation do not allow comments") {
		t.Error(got)
	}
}
