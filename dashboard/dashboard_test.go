package dashboard_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"millwright/admin"
	"millwright/api"
	"millwright/api/identity"
	"millwright/dashboard"
	"millwright/ingress"
	"millwright/reconcile/plan"
	"millwright/runs"
	"millwright/schema"
	"millwright/state"
	"millwright/state/statetest"
)

// world is a served dashboard, with the API behind it and an ingress beside it.
type world struct {
	t       *testing.T
	store   *state.Store
	pages   http.Handler
	api     http.Handler
	server  *httptest.Server
	ingress *ingress.Ingress
	keys    map[state.Role]string // secrets
	uids    map[state.Role]string
	held    string // UID of a managed factory
	repo    string // UID of a factory of a git source
	notices []dashboard.Notice
	log     *safeBuffer
	links   *dashboard.Links
	login   *identity.Login
}

type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func each(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	statetest.Each(t, func(t *testing.T, s *state.Store) { f(t, newWorld(t, s, "")) })
}

// newWorld serves a dashboard. publicURL is the server's own address if it is empty.
func newWorld(t *testing.T, s *state.Store, publicURL string) *world {
	t.Helper()
	w := &world{t: t, store: s, keys: map[state.Role]string{}, uids: map[state.Role]string{}, links: &dashboard.Links{}, log: &safeBuffer{}}
	w.server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if w.ingress.Handles(r) {
			w.ingress.ServeHTTP(rw, r)
			return
		}
		if strings.HasPrefix(r.URL.Path, api.Base) {
			w.api.ServeHTTP(rw, r)
			return
		}
		w.pages.ServeHTTP(rw, r)
	}))
	t.Cleanup(w.server.Close)
	if publicURL == "" {
		publicURL = w.server.URL
	}
	log := slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	var err error
	if w.ingress, err = ingress.New(t.Context(), ingress.Config{Store: s, PublicURL: publicURL, DeliveriesPerMinute: -1, FailedAuthPerMinute: -1, Log: log}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.ingress.Close(context.Background()) })
	a := api.New(api.Config{Store: s, PublicURL: publicURL, Log: log})
	w.api = a
	runs.Register(a, runs.Config{Store: s, PublicURL: publicURL, Log: log})
	admin.Register(a, admin.Config{
		Store: s, PublicURL: publicURL, Log: log,
		Sync: w.sync,
		PlanHead: func(ctx context.Context, uid string, _ plan.Allowed) (plan.Plan, error) {
			return w.planned(ctx, uid, repoFiles)
		},
		Replay: func(ctx context.Context, factory, webhook, delivery string, _ state.Key) (string, error) {
			r, err := w.ingress.Replay(ctx, factory, webhook, delivery)
			return r.DeliveryUID, err
		},
	})
	done := make(chan struct{})
	t.Cleanup(func() { close(done) })
	if w.pages, err = dashboard.New(dashboard.Config{
		Store: s, API: a, PublicURL: publicURL, Done: done, LiveCheck: 50 * time.Millisecond, Version: "test", Log: log,
		Notices: func() []dashboard.Notice { return w.notices }, Links: w.links,
		Login: func() *identity.Login { return w.login },
	}); err != nil {
		t.Fatal(err)
	}
	for _, role := range []state.Role{state.RoleViewer, state.RoleRunner, state.RoleAdmin, state.RoleWorker} {
		key, secret, err := s.CreateKey(t.Context(), "the "+string(role), role, nil)
		if err != nil {
			t.Fatal(err)
		}
		w.keys[role], w.uids[role] = secret, key.UID
	}
	return w
}

// repoFiles is the definition of the factory of a git source.
var repoFiles = []schema.File{
	{Path: "webhooks/ci.yaml", Content: "authMode: token\nsecretName: CI_TOKEN\n"},
	{Path: "webhooks/hub.yaml", Content: "authMode: signature\nsignatureScheme: github\nsecretName: HUB\nenabled: false\n"},
	{Path: "webhooks/ping.yaml", Content: "authMode: url_token\nsecretName: PING\n"},
	{Path: "automations/triage/automation.md", Content: "---\ntriggers:\n  - provider: webhook\n    event: received\n    filter:\n      webhook_ids: [CI]\n      payload:\n        status: [failed]\n---\n\nFind the cause.\n"},
	{Path: "automations/off/automation.md", Content: "---\nenabled: false\ntriggers:\n  - provider: webhook\n    event: received\n    filter:\n      webhook_ids: [CI]\n---\n\nNever.\n"},
	{Path: "automations/deaf/automation.md", Content: "---\ntriggers:\n  - provider: webhook\n    event: received\n    filter:\n      webhook_ids: [HUB]\n---\n\nSelects what is disabled.\n"},
}

const ciToken = "ci-token-0123456789"

// furnish makes a factory of each kind, with webhooks, automations and secrets.
func (w *world) furnish() {
	w.t.Helper()
	ctx := w.t.Context()
	for name, value := range map[string]string{"CI_TOKEN": ciToken, "HUB": "hub-secret", "PING": "ping-token", "SPARE": "x"} {
		if _, err := w.store.SetSecret(ctx, name, []byte(value)); err != nil {
			w.t.Fatal(err)
		}
	}
	repo, err := w.store.EnsureFactory(ctx, "repo", state.Source{Kind: "git", URL: "https://user:hunter2@git.example.com/acme/repo.git", Branch: "main", Path: "factory"}, false)
	if err != nil {
		w.t.Fatal(err)
	}
	held, err := w.store.EnsureFactory(ctx, "held", state.Source{Kind: "managed"}, false)
	if err != nil {
		w.t.Fatal(err)
	}
	w.repo, w.held = repo.UID, held.UID
	if a, err := w.sync(ctx, w.repo, admin.SyncRequest{}); err != nil || a.Outcome != state.OutcomeApplied {
		w.t.Fatalf("the definition was not applied: %+v, %v", a, err)
	}
}

// withUIDs puts UIDs of webhooks where a definition has their names in capitals.
func (w *world) withUIDs(ctx context.Context, uid string, all []schema.File) ([]schema.File, error) {
	cur, err := w.store.Current(ctx, uid)
	if err != nil {
		return nil, err
	}
	var out []schema.File
	for _, f := range all {
		for _, name := range []string{"ci", "hub", "ping"} {
			id := state.WebhookUID(cur.Key, name, 0)
			for _, w := range cur.Webhooks {
				if w.Spec.Name == name {
					id = w.UID
				}
			}
			f.Content = strings.ReplaceAll(f.Content, "["+strings.ToUpper(name)+"]", "["+id+"]")
		}
		out = append(out, f)
	}
	return out, nil
}

func (w *world) made(ctx context.Context, uid string, all []schema.File) (plan.Plan, *state.ChangeSet, error) {
	all, err := w.withUIDs(ctx, uid, all)
	if err != nil {
		return plan.Plan{}, nil, err
	}
	tree, err := schema.FilesFS(all)
	if err != nil {
		return plan.Plan{}, nil, err
	}
	cur, err := w.store.Current(ctx, uid)
	if err != nil {
		return plan.Plan{}, nil, err
	}
	p, app := plan.Make(cur, tree, plan.Options{Revision: state.Revision{ID: "4b825dc642cb6eb9a060e54bf8d69288fbee4904", Author: "Ada", Subject: "Add <b>webhooks</b>"}, Now: time.Now()})
	p.Backtester = plan.NewBacktester(cur, app)
	return p, app, nil
}

func (w *world) planned(ctx context.Context, uid string, all []schema.File) (plan.Plan, error) {
	p, _, err := w.made(ctx, uid, all)
	return p, err
}

// sync applies repoFiles, or refuses them.
func (w *world) sync(ctx context.Context, uid string, _ admin.SyncRequest) (state.Attempt, error) {
	return w.apply(ctx, uid, repoFiles)
}

func (w *world) apply(ctx context.Context, uid string, all []schema.File) (state.Attempt, error) {
	p, app, err := w.made(ctx, uid, all)
	a := state.Attempt{FactoryUID: uid, Outcome: state.OutcomeApplied, Problems: p.Problems, Revision: state.Revision{ID: p.HeadRevision}, Started: time.Now(), Finished: time.Now()}
	if err != nil {
		return a, err
	}
	if app == nil {
		a.Outcome, a.Message = state.OutcomeRefused, "it has errors"
		return a, w.store.Refuse(ctx, a)
	}
	if app.Files, err = w.withUIDs(ctx, uid, all); err != nil {
		return a, err
	}
	return a, w.store.Apply(ctx, *app)
}

func (w *world) webhook(factory, name string) state.Webhook {
	w.t.Helper()
	all, err := w.store.Webhooks(w.t.Context(), factory, true)
	if err != nil {
		w.t.Fatal(err)
	}
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].Spec.Name == name {
			return all[i]
		}
	}
	w.t.Fatalf("there is no webhook %q", name)
	return state.Webhook{}
}

// deliver posts a body to a webhook and returns the status. Headers come as pairs.
func (w *world) deliver(path, body string, headers ...string) int {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.server.URL+"/webhooks/w/"+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header[headers[i]] = []string{headers[i+1]}
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// browser is a browser without JavaScript, with cookies.
type browser struct {
	w      *world
	client *http.Client
	csrf   string
	header http.Header // sent with each request
}

// answer is a page, or what came instead.
type answer struct {
	*http.Response
	Text string
}

func (w *world) browser() *browser {
	w.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		w.t.Fatal(err)
	}
	b := &browser{w: w, header: http.Header{"Sec-Fetch-Site": {"same-origin"}}}
	b.client = &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return b
}

// signedIn returns a browser that has signed in with a key of the role.
func (w *world) signedIn(role state.Role) *browser {
	w.t.Helper()
	b := w.browser()
	b.get("/login")
	if a := b.post("/login", "key", w.keys[role]); a.StatusCode != http.StatusSeeOther {
		w.t.Fatalf("signing in as %s: %d %s", role, a.StatusCode, a.Text)
	}
	b.get("/")
	return b
}

var csrfField = regexp.MustCompile(`name="csrf" value="([0-9a-f]{64})"`)

func (b *browser) do(r *http.Request) answer {
	b.w.t.Helper()
	for name, values := range b.header {
		if _, given := r.Header[name]; !given {
			r.Header[name] = values
		}
	}
	resp, err := b.client.Do(r)
	if err != nil {
		b.w.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		b.w.t.Fatal(err)
	}
	if m := csrfField.FindSubmatch(text); m != nil {
		b.csrf = string(m[1])
	}
	return answer{resp, string(text)}
}

func (b *browser) request(method, path string, body io.Reader) *http.Request {
	b.w.t.Helper()
	r, err := http.NewRequestWithContext(b.w.t.Context(), method, b.w.server.URL+path, body)
	if err != nil {
		b.w.t.Fatal(err)
	}
	return r
}

func (b *browser) get(path string) answer {
	b.w.t.Helper()
	return b.do(b.request(http.MethodGet, path, nil))
}

// page gets a page that must be there.
func (b *browser) page(path string) string {
	b.w.t.Helper()
	a := b.get(path)
	if a.StatusCode != http.StatusOK {
		b.w.t.Fatalf("GET %s: %d\n%s\n%s", path, a.StatusCode, a.Text, b.w.log)
	}
	return a.Text
}

// post sends a form with the token of the last page. Fields come as pairs.
func (b *browser) post(path string, fields ...string) answer {
	b.w.t.Helper()
	return b.postRaw(path, append([]string{"csrf", b.csrf}, fields...)...)
}

func (b *browser) postRaw(path string, fields ...string) answer {
	b.w.t.Helper()
	form := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		form.Add(fields[i], fields[i+1])
	}
	r := b.request(http.MethodPost, path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return b.do(r)
}

// follow posts a form and gets the page that it leads to.
func (b *browser) follow(path string, fields ...string) string {
	b.w.t.Helper()
	a := b.post(path, fields...)
	if a.StatusCode != http.StatusSeeOther {
		b.w.t.Fatalf("POST %s: %d, want a redirect\n%s", path, a.StatusCode, plain(a.Text))
	}
	return b.page(a.Header.Get("Location"))
}

var (
	tags   = regexp.MustCompile(`<[^>]*>`)
	spaces = regexp.MustCompile(`\s+`)
)

// plain returns what a page says, without tags.
func plain(page string) string {
	if _, body, ok := strings.Cut(page, "<main"); ok {
		page = body
	}
	return spaces.ReplaceAllString(strings.NewReplacer("&#39;", "'", "&#34;", `"`, "&amp;", "&", "&lt;", "<", "&gt;", ">", "&#43;", "+").Replace(tags.ReplaceAllString(page, " ")), " ")
}

// says fails the test unless the page says all of the texts.
func says(t *testing.T, page string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(plain(page), text) && !strings.Contains(page, text) {
			t.Errorf("the page does not say %q:\n%s", text, plain(page))
		}
	}
}

func saysNot(t *testing.T, page string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(plain(page), text) || strings.Contains(page, text) {
			t.Errorf("the page says %q:\n%s", text, plain(page))
		}
	}
}

// deliveries returns the log of a webhook, newest first.
func (w *world) deliveries(hook state.Webhook) []state.Delivery {
	w.t.Helper()
	all, err := w.store.Deliveries(w.t.Context(), hook.FactoryUID, hook.UID, state.DeliveryFilter{}, "", 100)
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

// ciDelivery posts a body to the webhook ci of the repository's factory and returns its row.
func (w *world) ciDelivery(body string) state.Delivery {
	w.t.Helper()
	ci := w.webhook(w.repo, "ci")
	if status := w.deliver(ci.UID, body, "Authorization", "Bearer "+ciToken); status != http.StatusAccepted {
		w.t.Fatalf("delivery: %d", status)
	}
	return w.deliveries(ci)[0]
}

func (w *world) run(prompt string) state.Run {
	w.t.Helper()
	r, err := w.store.CreateRun(w.t.Context(), state.NewRun{Title: "a run", Prompt: prompt, Source: "API", Creator: state.Creator{Type: "service_account", UID: "key_1", DisplayName: "Ada"}}, nil, state.Idempotency{})
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// finish executes a run as a worker does, with these messages.
func (w *world) finish(id string, result state.RunState, messages ...state.Message) {
	w.t.Helper()
	ctx := w.t.Context()
	c, _, err := w.store.ClaimRun(ctx, id, "w1", "mill-1", time.Minute)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.store.StartRun(ctx, c, time.Minute); err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.store.FinishRun(ctx, c, state.Result{State: result, Messages: messages, Message: "it ended"}); err != nil {
		w.t.Fatal(err)
	}
}

func said(blocks ...state.Block) state.Message {
	return state.Message{Role: state.RoleAssistant, Content: blocks, At: time.Now()}
}

func (w *world) deliveryPath(d state.Delivery) string {
	return fmt.Sprintf("/factories/%s/webhooks/%s/deliveries/%s", d.FactoryUID, d.WebhookUID, d.UID)
}
