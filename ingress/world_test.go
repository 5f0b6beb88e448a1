package ingress_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"millwright/ingress"
	"millwright/schema"
	"millwright/state"
	"millwright/state/statetest"
)

// world is a served ingress with one factory.
type world struct {
	t       testing.TB
	store   *state.Store
	in      *ingress.Ingress
	factory string
	addr    string
	log     *lockedBuffer
	uids    map[string]string // of the webhooks by name
}

// lockedBuffer is a log that goroutines write to.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

const tokenSecret = "t0ken-secret_for.tests"

// newWorld serves an ingress on s until the test ends.
func newWorld(t testing.TB, s *state.Store, cfg ingress.Config) *world {
	t.Helper()
	w := makeWorld(t, s, cfg)
	w.serve(w.in)
	t.Cleanup(func() {
		if err := w.in.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return w
}

// makeWorld is newWorld without a server.
func makeWorld(t testing.TB, s *state.Store, cfg ingress.Config) *world {
	t.Helper()
	w := &world{t: t, store: s, log: &lockedBuffer{}, uids: map[string]string{}}
	f, err := s.EnsureFactory(context.Background(), "acme", state.Source{Kind: "managed"}, false)
	if err != nil {
		t.Fatal(err)
	}
	w.factory = f.UID
	w.secret("KEY", tokenSecret)
	cfg.Store, cfg.Log = s, slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if cfg.PublicURL == "" {
		cfg.PublicURL = "https://hooks.example.com"
	}
	if w.in, err = ingress.New(context.Background(), cfg); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) serve(in *ingress.Ingress) {
	w.t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	w.addr = ln.Addr().String()
	srv := ingress.NewServer(ingress.ServerConfig{Ingress: in, Log: slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	go func() { _ = srv.Serve(ingress.Limit(ln, ingress.ServerConfig{})) }()
	w.t.Cleanup(func() { _ = srv.Close() })
}

func (w *world) secret(name, value string) int64 {
	w.t.Helper()
	var bytes []byte
	if value != "" {
		bytes = []byte(value)
	}
	info, err := w.store.SetSecret(context.Background(), name, bytes)
	if err != nil {
		w.t.Fatal(err)
	}
	return info.Version
}

// hook creates or replaces a webhook; what spec leaves out is token, KEY and enabled.
func (w *world) hook(spec schema.Webhook) string {
	w.t.Helper()
	if spec.AuthMode == "" {
		spec.AuthMode = schema.AuthToken
	}
	if spec.SecretName == "" {
		spec.SecretName = "KEY"
	}
	spec.Path = "webhooks/" + spec.Name + ".yaml"
	secrets, err := w.store.Secrets(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	uid := w.uids[spec.Name]
	if uid == "" {
		uid = state.NewID(state.PrefixWebhook)
		w.uids[spec.Name] = uid
	}
	w.apply(state.ChangeSet{Webhooks: []state.WebhookChange{{UID: uid, Spec: spec, SecretVersion: secrets[spec.SecretName].Version}}})
	return uid
}

// enabled is the spec of an enabled webhook.
func enabled(name string) schema.Webhook { return schema.Webhook{Name: name, Enabled: true} }

// signed is the spec of an enabled webhook that scheme signs for with the secret named so.
func signed(name, scheme, secret string) schema.Webhook {
	return schema.Webhook{Name: name, Enabled: true, AuthMode: schema.AuthSignature, SignatureScheme: scheme, SecretName: secret}
}

// automation creates an automation with one webhook trigger.
func (w *world) automation(name, webhook, filter string) {
	w.t.Helper()
	trigger := schema.Trigger{Provider: "webhook", Event: "received", WebhookIDs: []string{w.uids[webhook]}}
	if filter != "" {
		trigger.Payload = json.RawMessage(filter)
	}
	w.automationOf(schema.Automation{Name: name, Enabled: true, Triggers: []schema.Trigger{trigger}, Prompt: "look into it"})
}

func (w *world) automationOf(a schema.Automation) {
	w.t.Helper()
	a.Path = "automations/" + a.Name + "/automation.md"
	w.apply(state.ChangeSet{Resources: []state.ResourceChange{{Kind: "automation", Name: a.Name, Spec: a}}})
}

func (w *world) apply(a state.ChangeSet) {
	w.t.Helper()
	c, err := w.store.Current(context.Background(), w.factory)
	if err != nil {
		w.t.Fatal(err)
	}
	a.FactoryUID, a.Base, a.BaseRevision, a.Started = w.factory, c.Factory.Generation, c.Factory.Applied.ID, time.Now()
	a.Revision = state.Revision{ID: state.NewID("rev")}
	ctx, cancel := context.WithTimeout(context.Background(), statetest.Patience)
	defer cancel()
	if err := w.store.Apply(ctx, a); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) url(name string) string { return "http://" + w.addr + "/webhooks/w/" + w.uids[name] }

// reply is an answer in full.
type reply struct {
	*http.Response
	body string
}

func (r reply) deliveryID() string {
	var v struct {
		DeliveryID string `json:"delivery_id"`
	}
	_ = json.Unmarshal([]byte(r.body), &v)
	return v.DeliveryID
}

func (r reply) duplicate() bool { return strings.Contains(r.body, `"duplicate":true`) }

// post sends a body with headers given as name, value, name, value.
func (w *world) post(url, body string, headers ...string) reply {
	w.t.Helper()
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header[http.CanonicalHeaderKey(headers[i])] = append(req.Header[http.CanonicalHeaderKey(headers[i])], headers[i+1])
	}
	return w.do(req)
}

func (w *world) do(req *http.Request) reply {
	w.t.Helper()
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return reply{resp, string(body)}
}

// deliver posts with the right token.
func (w *world) deliver(name, body string, headers ...string) reply {
	w.t.Helper()
	return w.post(w.url(name), body, append([]string{"Authorization", "Bearer " + tokenSecret}, headers...)...)
}

func (w *world) rows(name string) []state.Delivery {
	w.t.Helper()
	all, err := w.store.Deliveries(context.Background(), w.factory, w.uids[name], state.DeliveryFilter{}, "", 500)
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

func (w *world) runs(delivery string) []state.DeliveryRun {
	w.t.Helper()
	m, err := w.store.RunsOfDeliveries(context.Background(), delivery)
	if err != nil {
		w.t.Fatal(err)
	}
	return m[delivery]
}

// raw sends bytes over TCP and returns the connection to read answers from.
func (w *world) raw(send string) (net.Conn, *bufio.Reader) {
	w.t.Helper()
	c, err := net.Dial("tcp", w.addr)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(statetest.Patience))
	if _, err := io.WriteString(c, send); err != nil {
		w.t.Fatal(err)
	}
	return c, bufio.NewReader(c)
}

// answer reads one answer from a raw connection.
func (w *world) answer(r *bufio.Reader) reply {
	w.t.Helper()
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		w.t.Fatalf("no answer: %v", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatalf("answer %s: %v", resp.Status, err)
	}
	return reply{resp, string(body)}
}

// closed fails the test unless the server ends the connection without another byte.
func (w *world) closed(r *bufio.Reader) {
	w.t.Helper()
	if b, err := r.ReadByte(); err == nil {
		w.t.Errorf("the connection goes on with %q", b)
	} else if ne, ok := err.(net.Error); ok && ne.Timeout() {
		w.t.Error("the connection stays open")
	}
}

// each runs f in a world on each database.
func each(t *testing.T, cfg ingress.Config, f func(t *testing.T, w *world)) {
	t.Helper()
	statetest.Each(t, func(t *testing.T, s *state.Store) { f(t, newWorld(t, s, cfg)) })
}

// onSQLite runs f in a world on SQLite.
func onSQLite(t testing.TB, cfg ingress.Config) *world {
	t.Helper()
	return newWorld(t, statetest.Open(t, statetest.SQLite(t)), cfg)
}

func want(t testing.TB, r reply, status int) {
	t.Helper()
	if r.StatusCode != status {
		t.Errorf("status %d %q, want %d", r.StatusCode, r.body, status)
	}
}

func hmacOf(key, message string) []byte {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(message))
	return mac.Sum(nil)
}

func hmacHex(key, message string) string { return hex.EncodeToString(hmacOf(key, message)) }
