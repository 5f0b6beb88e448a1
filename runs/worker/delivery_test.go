package worker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"millwright/forge"
	"millwright/ingress"
	"millwright/runs/dispatch"
	"millwright/runs/wire"
	"millwright/schema"
	"millwright/schema/provider"
	"millwright/signature"
	"millwright/state"
	"millwright/state/statetest"
)

const hookSecret = "the secret of all webhooks"

// commits are the commits of an origin that deliveries name.
type commits struct {
	main, topic string // heads of these branches
	forced      string // topic was at it
	gone        string // of a branch that is deleted
	fork        string // the forge has it as the head of a pull request alone
}

// deliverable makes acme/shop with these commits.
func (o origin) deliverable() (c commits) {
	o.t.Helper()
	const name = "acme/shop"
	c.main = o.commit(name, map[string]string{"a": "main"})
	work := o.t.TempDir()
	o.git("/", "clone", "--quiet", o.bare(name), work)
	push := func(message, to string, args ...string) string {
		o.git(work, "checkout", "--quiet", "--detach", c.main)
		o.git(work, "commit", "--quiet", "--allow-empty", "--message="+message)
		o.git(work, append(append([]string{"push", "--quiet"}, args...), "origin", "HEAD:"+to)...)
		return o.git(work, "rev-parse", "HEAD")
	}

	c.forced = push("before", "refs/heads/topic")
	c.topic = push("after", "refs/heads/topic", "--force")
	c.gone = push("gone", "refs/heads/gone")
	o.git(work, "push", "--quiet", "origin", ":refs/heads/gone")
	c.fork = push("of a fork", "refs/pull/7/head")
	o.git(o.bare(name), "config", "uploadpack.allowAnySHA1InWant", "true")
	return c
}

// hooks applies webhooks of the three providers to a factory, and an automation that starts on their pushes
// and pull requests, after changes. It returns the address of each webhook.
func (b *bench) hooks(factory string, changes ...func(*schema.Automation)) map[string]string {
	b.t.Helper()
	ctx := b.t.Context()
	if _, err := b.store.SetSecret(ctx, "HOOK", []byte(hookSecret)); err != nil {
		b.t.Fatal(err)
	}
	cur, err := b.store.Current(ctx, factory)
	if err != nil {
		b.t.Fatal(err)
	}

	look := schema.Automation{
		Name: "look", Enabled: true, Prompt: "Look.",
		Execution: schema.Execution{Secrets: []string{"HOOK"}, Runner: "small", MCPServers: map[string]json.RawMessage{
			"closed": json.RawMessage(`{"url":"https://mcp.example.com","headers":{"X-Key":"${secret:HOOK}"}}`),
			"plain":  json.RawMessage(`{"url":"https://mcp.example.org"}`),
		}},
		Triggers: []schema.Trigger{
			{Provider: "github", Event: "push"},
			{Provider: "github", Event: "pull_request_opened"},
			{Provider: "github", Event: "pull_request_reopened", Checkout: schema.CheckoutHead},
			{Provider: "gitlab", Event: "push"},
			{Provider: "gitlab", Event: "merge_request"},
		},
	}
	for _, change := range changes {
		change(&look)
	}

	change := state.ChangeSet{
		FactoryUID: factory, Base: cur.Factory.Generation, BaseRevision: cur.Factory.Applied.ID, Started: time.Now(),
		Revision: state.Revision{ID: state.NewID("rev")},
		Resources: []state.ResourceChange{
			{UID: state.NewID(state.PrefixAutomation), Kind: "automation", Name: look.Name, Spec: look},
		},
	}
	at := map[string]string{}
	for _, scheme := range []string{"github", "gitlab", "gitea"} {
		uid := state.NewID(state.PrefixWebhook)
		at[scheme] = "/webhooks/w/" + uid
		change.Webhooks = append(change.Webhooks, state.WebhookChange{UID: uid, SecretVersion: 1, Spec: schema.Webhook{
			Name: scheme, Path: "webhooks/" + scheme + ".yaml", AuthMode: schema.AuthSignature,
			SignatureScheme: scheme, SecretName: "HOOK", Enabled: true,
		}})
	}
	if err := b.store.Apply(ctx, change); err != nil {
		b.t.Fatal(err)
	}

	in, err := ingress.New(ctx, ingress.Config{Store: b.store, DeliveriesPerMinute: -1})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = in.Close(context.Background()) })
	server := httptest.NewServer(in)
	b.t.Cleanup(server.Close)
	for scheme, path := range at {
		at[scheme] = server.URL + path
	}
	return at
}

// send sends the example of an event with other values at some places, signed, and returns the run that it
// starts.
func (b *bench) send(url, scheme, event string, values map[string]string) string {
	b.t.Helper()
	named, example, ok := provider.Example(scheme, event)
	var payload map[string]any
	if err := json.Unmarshal(example, &payload); !ok || err != nil {
		b.t.Fatalf("example of %s/%s: %v", scheme, event, err)
	}
	for path, value := range values {
		at := payload
		parts := strings.Split(path, ".")
		for _, part := range parts[:len(parts)-1] {
			at = at[part].(map[string]any)
		}
		at[parts[len(parts)-1]] = value
	}
	body, err := json.Marshal(payload)
	if err != nil {
		b.t.Fatal(err)
	}

	s, _ := signature.Lookup(scheme)
	m := signature.Message{Method: http.MethodPost, URL: url, Body: body, Header: map[string][]string{}}
	headers, err := s.Sign([]byte(hookSecret), m, state.NewID("evt"), time.Now())
	if err != nil {
		b.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	r.Header.Set(provider.EventHeader(scheme), named)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	var accepted struct {
		DeliveryID string `json:"delivery_id"`
	}
	if err := json.NewDecoder(res.Body).Decode(&accepted); err != nil || res.StatusCode != http.StatusAccepted {
		b.t.Fatalf("%s: %v", res.Status, err)
	}

	runs, err := b.store.RunsOfDeliveries(b.t.Context(), accepted.DeliveryID)
	if err != nil || len(runs[accepted.DeliveryID]) != 1 {
		b.t.Fatalf("%s/%s started %v, %v", scheme, event, runs, err)
	}
	return runs[accepted.DeliveryID][0].ID
}

// TestDeliveredCommit has signed deliveries start runs in a checkout of exactly the commit that they name, if
// a branch of the repository has it, and otherwise of their base.
func TestDeliveredCommit(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		o := newOrigin(t)
		c := o.deliverable()
		b := newBenchWith(t, s, o)
		at := b.hooks(b.with([]string{"echo set up"}, "acme/shop"))
		cfg := configOf(sh(`echo "in $(git rev-parse HEAD) on $(git branch --show-current)."`))
		cfg.Slots = 4
		stop := b.work(cfg)

		pull := func(commit, branch string) map[string]string {
			return map[string]string{"pull_request.head.sha": commit, "pull_request.head.ref": branch, "pull_request.base.ref": "main"}
		}
		merge := func(commit, branch string) map[string]string {
			return map[string]string{
				"object_attributes.last_commit.id": commit, "object_attributes.source_branch": branch,
				"object_attributes.target_branch": "main",
			}
		}
		push := func(commit, branch string) map[string]string {
			return map[string]string{"after": commit, "ref": "refs/heads/" + branch}
		}
		cases := []struct {
			name, scheme, event string
			values              map[string]string
			commit, branch      string
			untrusted           bool
		}{
			{"push", "github", "push", push(c.topic, "topic"), c.topic, "topic", false},
			{"push", "gitlab", "push", push(c.topic, "topic"), c.topic, "topic", false},
			{"push", "gitea", "push", push(c.topic, "topic"), c.topic, "topic", false},
			{"pull request", "github", "pull_request_opened", pull(c.topic, "topic"), c.topic, "topic", false},
			{"merge request", "gitlab", "merge_request", merge(c.topic, "topic"), c.topic, "topic", false},
			{"pull request", "gitea", "pull_request_opened", pull(c.topic, "topic"), c.topic, "topic", false},
			{"head asked for", "github", "pull_request_reopened", pull(c.topic, "topic"), c.topic, "topic", false},
			{"a fork", "github", "pull_request_opened", pull(c.fork, "topic"), c.main, "main", true},
			{"a fork", "gitlab", "merge_request", merge(c.fork, "topic"), c.main, "main", true},
			{"a fork", "gitea", "pull_request_opened", pull(c.fork, "main"), c.main, "main", true},
			{"force-pushed since", "github", "push", push(c.forced, "topic"), c.main, "main", true},
			{"branch deleted since", "gitlab", "push", push(c.gone, "gone"), c.main, "main", true},
			{"on another branch", "gitea", "push", push(c.topic, "gone"), c.topic, "", false},
		}
		var ids []string
		for _, tt := range cases {
			ids = append(ids, b.send(at[tt.scheme], tt.scheme, tt.event, tt.values))
		}
		for i, tt := range cases {
			r := b.succeeded(ids[i])
			wantIn(t, b.said(r), "in "+tt.commit+" on "+tt.branch+".")
			repos, err := s.Repositories(t.Context(), r.ID)
			if err != nil || len(repos) != 1 || repos[0].BaseCommit != tt.commit || repos[0].BaseBranch != tt.branch ||
				repos[0].Untrusted != tt.untrusted || repos[0].Foreign {
				t.Errorf("%s of %s: %+v, %v", tt.name, tt.scheme, repos, err)
			}
		}

		// The head of a fork, where no sandbox limits what the harness reaches.
		r := b.end(b.send(at["github"], "github", "pull_request_reopened", pull(c.fork, "topic")))
		const want = `harness "h" needs a sandbox that limits its network`
		if r.State != state.RunError || r.ErrorCode != "environment_setup_failed" || !strings.Contains(r.StatusMessage, want) {
			t.Errorf("the head of a fork: %s %s: %s", r.State, r.ErrorCode, r.StatusMessage)
		}
		repos, err := s.Repositories(t.Context(), r.ID)
		if err != nil || len(repos) != 1 || !repos[0].Foreign || !repos[0].Untrusted {
			t.Errorf("the head of a fork: %+v, %v", repos, err)
		}

		stop()
		own := b.order(b.send(at["github"], "github", "pull_request_reopened", pull(c.topic, "topic")))
		if own.Confined || own.Secrets["HOOK"] != hookSecret || len(own.Runner.Setup) != 1 ||
			!strings.Contains(b.file(own, wire.ServersFile), hookSecret) {
			t.Errorf("the order for a branch: %+v", own)
		}
		foreign := b.order(b.send(at["github"], "github", "pull_request_reopened", pull(c.fork, "topic")))
		repo := foreign.Checkout.Repositories[0]
		if !foreign.Confined || len(foreign.Secrets) > 0 || len(foreign.Runner.Setup) > 0 || repo.Commit != c.fork ||
			repo.Ref != "main" || repo.Proven || foreign.NotApplied["secrets"] == "" || foreign.NotApplied["setup_commands"] == "" {
			t.Errorf("the order for a fork: %+v", foreign)
		}
		if text := b.file(foreign, wire.ServersFile); strings.Contains(text, hookSecret) || !strings.Contains(text, "plain") {
			t.Errorf("the MCP servers for a fork: %s", text)
		}
	})
}

// TestRetriesOfADelivery has a worker execute the run of a delivery, which fails twice. The comment of the last
// attempt alone is left, and the status stays pending until then.
func TestRetriesOfADelivery(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		o := newOrigin(t)
		c := o.deliverable()
		b := newBenchWith(t, s, o)
		at := b.hooks(b.with(nil, "acme/shop"), func(a *schema.Automation) {
			a.Outputs = &schema.Outputs{Comment: &schema.CommentOutput{Max: 1}, Status: &schema.StatusOutput{Context: "look"}}
			a.Flow.Retry = &schema.Retry{Attempts: 4, On: []string{"FAILED"}, Backoff: "0s"}
		})
		tried := filepath.Join(t.TempDir(), "tried")
		b.work(configOf(sh(strings.ReplaceAll(`n=$(($(cat TRIED 2>/dev/null | wc -c) + 1)); printf x >> TRIED
			echo "{\"type\": \"comment\", \"body\": \"attempt $n\"}" > .millwright/outputs.jsonl; [ $n = 3 ]`, "TRIED", tried))))

		left := func(id string) string {
			all, err := s.Outputs().Of(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			var texts []string
			for _, o := range all {
				var body struct{ Body, State string }
				if err := json.Unmarshal(o.Body, &body); err != nil {
					t.Fatal(err)
				}
				texts = append(texts, string(o.Kind)+" "+body.State+body.Body)
			}
			return strings.Join(texts, ", ")
		}

		id := b.send(at["github"], "github", "pull_request_opened", map[string]string{
			"pull_request.head.sha": c.topic, "pull_request.head.ref": "topic", "pull_request.base.ref": "main",
		})
		for _, next := range []int{2, 3} {
			r := b.until(id, func(r state.Run) bool { return r.WaitsFor == "retry" && r.Execution == next || r.State.Ended() })
			if got := left(id); r.State.Ended() || got != "status pending" {
				t.Fatalf("before attempt %d the run is %s (%s), and left %q", next, r.State, r.StatusMessage, got)
			}
			if _, err := s.ReleaseDue(t.Context()); err != nil {
				t.Fatal(err)
			}
		}

		b.succeeded(id)
		if got := left(id); got != "status success, comment attempt 3" {
			t.Errorf("the run left %q", got)
		}
	})
}

// TestDeliveriesOfAnotherForge starts runs in the commits that deliveries name only if the repository is at a
// forge of the sender's kind.
func TestDeliveriesOfAnotherForge(t *testing.T) {
	commit := strings.Repeat("ab", 20)
	for _, kind := range []string{forge.GitHub, forge.GitLab, forge.Gitea} {
		t.Run(kind, func(t *testing.T) {
			forges, err := forge.Open(forge.Config{
				Forges:  map[string]forge.Settings{"mine": {Kind: kind, URL: "http://127.0.0.1:1", TokenSecret: "T"}},
				Allowed: map[string][]string{"f": nil},
				Secret:  func(context.Context, string) ([]byte, error) { return []byte("t0ken"), nil },
			})
			if err != nil {
				t.Fatal(err)
			}

			b := &bench{t: t, store: statetest.Open(t, statetest.SQLite(t)), dir: t.TempDir()}
			b.d, err = dispatch.Start(t.Context(), dispatch.Config{Store: b.store, Forges: forges})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { b.d.Close(context.Background()) })

			at := b.hooks(b.with(nil, "acme/shop"))
			for _, scheme := range []string{"github", "gitlab", "gitea"} {
				values := map[string]string{"after": commit, "ref": "refs/heads/main"}
				o := b.order(b.send(at[scheme], scheme, "push", values))
				if got := o.Checkout.Repositories[0].Commit; (got == commit) != (scheme == kind) {
					t.Errorf("a delivery of %s: the run starts in %q", scheme, got)
				}
			}
		})
	}
}

// TestHeadOfAForkInASandbox executes a run in the commit of a fork in a sandbox that reaches nothing.
func TestHeadOfAForkInASandbox(t *testing.T) {
	wantSandbox(t)
	o := newOrigin(t)
	c := o.deliverable()
	b := newBenchWith(t, statetest.Open(t, statetest.SQLite(t)), o)
	at := b.hooks(b.with([]string{"echo set up"}, "acme/shop"))
	b.work(configOf(boxed(`echo "in $(git rev-parse HEAD), secret: ${HOOK:-none}."`)))

	r := b.succeeded(b.send(at["github"], "github", "pull_request_reopened", map[string]string{
		"pull_request.head.sha": c.fork, "pull_request.head.ref": "topic", "pull_request.base.ref": "main",
	}))
	wantIn(t, b.said(r), "in "+c.fork+", secret: none.")
}

// order claims a run.
func (b *bench) order(id string) *wire.Order {
	b.t.Helper()
	client, err := b.d.Client()
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(client.Close)
	o, err := client.Claim(b.t.Context(), "by hand", time.Minute)
	if err != nil || o == nil || o.RunID != id {
		b.t.Fatalf("run %s: %+v, %v", id, o, err)
	}
	return o
}

// file returns a file of an order.
func (b *bench) file(o *wire.Order, name string) string {
	b.t.Helper()
	i := slices.IndexFunc(o.Files, func(f wire.File) bool { return f.Name == name })
	if i < 0 || !o.Files[i].Inline {
		b.t.Fatalf("the order has no %s", name)
	}
	return string(o.Files[i].Data)
}
