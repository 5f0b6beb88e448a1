package events_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"millwright/bounds/address/addresstest"
	sending "millwright/outbox/events"
	"millwright/schema"
	"millwright/signature"
	"millwright/state"
	"millwright/state/events"
	"millwright/state/statetest"
)

// secret signs the events of the tests.
var secret = "whsec_" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("k"), 32))

// world is a factory with notifications.
type world struct {
	*testing.T
	store   *state.Store
	factory string
	cfg     sending.Config
	log     bytes.Buffer
}

func newWorld(t *testing.T, s *state.Store) *world {
	t.Helper()
	f, err := s.EnsureFactory(t.Context(), "mill", state.Source{Kind: "managed"}, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.SetSecret(t.Context(), "SIGN", []byte(secret)); err != nil {
		t.Fatal(err)
	}

	w := &world{T: t, store: s, factory: f.UID}
	w.cfg = sending.Config{
		Store:     s,
		PublicURL: "https://mill.example.com",
		Allow:     func(string) []netip.Prefix { return []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")} },
		Log:       slog.New(slog.NewTextHandler(&w.log, nil)),
	}
	return w
}

// apply makes these the notifications of the factory.
func (w *world) apply(all ...schema.Notification) {
	w.Helper()
	ctx := w.Context()
	cur, err := w.store.Current(ctx, w.factory)
	if err != nil {
		w.Fatal(err)
	}

	change := state.ChangeSet{
		FactoryUID: w.factory, Base: cur.Factory.Generation, BaseRevision: cur.Factory.Applied.ID,
		Started: time.Now(), Revision: state.Revision{ID: state.NewID("rev")},
	}
	kept := map[string]bool{}
	for _, n := range all {
		if n.Events == nil {
			n.Events = []string{schema.EventRunFailed, schema.EventRunSucceeded}
		}
		if n.SecretName == "" && n.Format == "" {
			n.SecretName = "SIGN"
		}
		n.Enabled = true
		uid := cur.UIDs[state.ResourceKey("notification", n.Name)]
		kept[uid] = true
		change.Resources = append(change.Resources,
			state.ResourceChange{UID: uid, Kind: "notification", Name: n.Name, Spec: n})
	}
	for _, n := range cur.Tree.Notifications {
		if uid := cur.UIDs[state.ResourceKey("notification", n.Name)]; !kept[uid] {
			change.DeleteResources = append(change.DeleteResources, uid)
		}
	}
	if err := w.store.Apply(ctx, change); err != nil {
		w.Fatal(err)
	}
}

// run ends a run as FAILED, and returns its ID.
func (w *world) run() string {
	w.Helper()
	ctx := w.Context()
	r, err := w.store.CreateRun(ctx, state.NewRun{
		FactoryUID: w.factory, Title: "Look at the build", Prompt: "the secret plan", Source: "API",
		Creator: state.Creator{Type: "user"},
	}, nil, state.Idempotency{})
	if err != nil {
		w.Fatal(err)
	}
	c, _, err := w.store.ClaimRun(ctx, r.ID, "wrk_1", "here", time.Minute)
	if err != nil {
		w.Fatal(err)
	}
	if _, err := w.store.StartRun(ctx, c, time.Minute); err != nil {
		w.Fatal(err)
	}
	_, err = w.store.FinishRun(ctx, c, state.Result{State: state.RunFailed, Message: "said the agent"})
	if err != nil {
		w.Fatal(err)
	}
	return r.ID
}

// send runs a sender until the function that it returns is called, or the test ends.
func (w *world) send() (stop func()) {
	w.Helper()
	s, err := sending.New(w.cfg)
	if err != nil {
		w.Fatal(err)
	}

	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); s.Run(ctx) }()
	stop = sync.OnceFunc(func() { cancel(); <-ended })
	w.Cleanup(stop)
	return stop
}

func (w *world) list(f events.Filter) []events.Event {
	w.Helper()
	all, err := w.store.Events().List(w.Context(), w.factory, f, "", 10_000)
	if err != nil {
		w.Fatal(err)
	}
	return all
}

// attempted waits until the only event of a notification was attempted, and returns it with its last attempt.
func (w *world) attempted(name string) (e events.Event, a events.Attempt) {
	w.Helper()
	statetest.Until(w.T, "an attempt at "+name, func() bool {
		e = w.list(events.Filter{Notification: name})[0]
		return e.Attempts > 0
	})
	all, err := w.store.Events().Attempts(w.Context(), e.UID)
	if err != nil || len(all) == 0 {
		w.Fatalf("%d attempts: %v", len(all), err)
	}
	return e, all[len(all)-1]
}

// receiver is a server that hands over what it gets and answers 204.
func receiver(t *testing.T) (url string, got <-chan *http.Request, bodies <-chan []byte) {
	t.Helper()
	requests, texts := make(chan *http.Request, 10_000), make(chan []byte, 10_000)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		requests <- r
		texts <- body
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(s.Close)
	return s.URL, requests, texts
}

// TestSend sends the event of a run, which the library of Standard Webhooks and our own verifier take. It has
// neither prompt nor conversation, and the log has no URL.
func TestSend(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		w := newWorld(t, s)
		url, got, bodies := receiver(t)
		slackURL, _, messages := receiver(t)
		if _, err := s.SetSecret(t.Context(), "SLACK_URL", []byte(slackURL+"/services/T0/s3cret\n")); err != nil {
			t.Fatal(err)
		}
		w.apply(schema.Notification{Name: "ops", URL: url + "/hook?team=a"},
			schema.Notification{Name: "chat", URLSecretName: "SLACK_URL", Format: schema.FormatSlack},
			schema.Notification{Name: "deaf", URL: url, Events: []string{schema.EventRunSucceeded}},
			schema.Notification{Name: "narrow", URL: url, Filter: schema.NotificationFilter{Automation: []string{"x"}}})
		stop := w.send()
		run := w.run()

		r, _ := statetest.Receive(t, "the event", got)
		body, _ := statetest.Receive(t, "its body", bodies)
		library, err := standardwebhooks.NewWebhook(secret)
		if err != nil {
			t.Fatal(err)
		}
		if err := library.Verify(body, r.Header); err != nil {
			t.Errorf("the library: %v", err)
		}
		scheme, _ := signature.Lookup("standard_webhooks")
		verifier, err := scheme.Verifier([]byte(secret))
		if err != nil {
			t.Fatal(err)
		}
		if _, refusal := verifier.Verify(signature.Message{Method: "POST", Header: r.Header, Body: body}, time.Now()); refusal != nil {
			t.Errorf("our verifier: %v", refusal)
		}

		var p struct {
			Type string
			Data struct {
				Run   struct{ State, Title string }
				Links map[string]string
			}
		}
		if err := json.Unmarshal(body, &p); err != nil {
			t.Fatal(err)
		}
		if p.Type != "run.failed" || p.Data.Run.State != "FAILED" || p.Data.Run.Title != "Look at the build" ||
			p.Data.Links["page"] != "https://mill.example.com/runs/"+run || r.URL.String() != "/hook?team=a" {
			t.Errorf("%s to %s", body, r.URL)
		}
		if strings.Contains(string(body), "secret plan") || strings.Contains(string(body), "said the agent") {
			t.Errorf("the payload has the prompt, or what the agent said: %s", body)
		}

		message, _ := statetest.Receive(t, "the message", messages)
		if !strings.Contains(string(message), "A run of factory mill failed") {
			t.Errorf("%s", message)
		}
		statetest.Until(t, "two sent events", func() bool { return len(w.list(events.Filter{State: events.Sent})) == 2 })
		if all := w.list(events.Filter{}); len(all) != 2 {
			t.Errorf("%d events", len(all))
		}
		stop()
		if text := w.log.String(); strings.Contains(text, "127.0.0.1") || strings.Contains(text, "s3cret") {
			t.Errorf("the log has the address of a receiver: %s", text)
		}
	})
}

// TestHostileReceivers sends one event to each of many receivers that do not take it. None delays the good one,
// none is followed elsewhere, and what is kept of their answers is bounded.
func TestHostileReceivers(t *testing.T) {
	w := newWorld(t, statetest.Open(t, statetest.SQLite(t)))
	w.cfg.Timeout = time.Second
	inside := atomic.Int64{}
	trap := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { inside.Add(1) }))
	defer trap.Close()
	port := trap.URL[strings.LastIndexByte(trap.URL, ':'):]
	t.Setenv("HTTP_PROXY", trap.URL)
	t.Setenv("HTTPS_PROXY", trap.URL)
	dns := &addresstest.Names{Answers: map[string][]string{
		"loopback.example.com": {"127.0.0.2"}, "metadata.example.com": {"169.254.169.254"},
		"shared.example.com": {"100.64.0.1"}, "any.example.com": {"0.0.0.0"},
		"public.example.com": {"8.8.8.8"},
	}}
	w.cfg.Resolver = dns.Resolver(t)

	serve := func(answer http.HandlerFunc) string {
		s := httptest.NewServer(answer)
		t.Cleanup(s.Close)
		return s.URL
	}
	status := func(code int) string {
		return serve(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) })
	}
	held := make(chan struct{})
	defer close(held)
	const private = "its address is not public: the operator lists such addresses in outbound.allow"
	rows := []struct {
		name, url, reason string
		status            int
		state             events.State
		least             time.Duration // until the next attempt
	}{
		{"slow", serve(func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-held:
			case <-r.Context().Done():
			}
		}), "it did not answer within 1s", 0, events.Pending, 4 * time.Second},
		{"drips", serve(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(200)
			w.(http.Flusher).Flush()
			select {
			case <-held:
			case <-r.Context().Done():
			}
		}), "", 200, events.Sent, 0},
		{"moved", serve(func(rw http.ResponseWriter, r *http.Request) {
			http.Redirect(rw, r, trap.URL, http.StatusTemporaryRedirect)
		}), "it answered 307: redirects are not followed", 307, events.Pending, 4 * time.Second},
		{"gone", status(410), "it answered 410: it wants no more events", 410, events.Dead, 0},
		{"broken", status(500), "it answered 500", 500, events.Pending, 4 * time.Second},
		{"busy", serve(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "600")
			w.WriteHeader(429)
		}), "it answered 429", 429, events.Pending, 599 * time.Second},
		{"later", serve(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", time.Now().Add(2*time.Hour).UTC().Format(http.TimeFormat))
			w.WriteHeader(503)
		}), "it answered 503", 503, events.Pending, 119 * time.Minute},
		{"never", serve(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "99999999999")
			w.WriteHeader(503)
		}), "it answered 503", 503, events.Dead, 0},
		{"huge", serve(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(502)
			for range 10_240 {
				if _, err := w.Write(bytes.Repeat([]byte("\xffx"), 512)); err != nil {
					return
				}
			}
		}), "it answered 502", 502, events.Pending, 4 * time.Second},
		{"headers", serve(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X", strings.Repeat("x", 1<<20))
		}), "the connection broke before it answered", 0, events.Pending, 4 * time.Second},
		{"closed", "http://127.0.0.1:1", "it refused the connection", 0, events.Pending, 4 * time.Second},
		{"plain", "https://" + strings.TrimPrefix(trap.URL, "http://"), "it does not speak TLS", 0, events.Pending, 0},
		{"unknown", "https://nowhere.example.com", "its name cannot be resolved", 0, events.Pending, 0},
		{"loopback", "http://loopback.example.com" + port, private, 0, events.Pending, 4 * time.Second},
		{"metadata", "http://metadata.example.com/latest", private, 0, events.Pending, 4 * time.Second},
		{"shared", "https://shared.example.com", private, 0, events.Pending, 0},
		{"any", "http://any.example.com" + port, private, 0, events.Pending, 0},
		{"http", "http://public.example.com", "http is for addresses that the operator lists in outbound.allow: use https", 0, events.Pending, 0},
		{"literal", "http://[::ffff:127.0.0.2]" + port, private, 0, events.Pending, 0},
	}

	url, _, bodies := receiver(t)
	var all []schema.Notification
	for _, row := range rows {
		all = append(all, schema.Notification{Name: row.name, URL: row.url})
	}
	w.apply(append(all, schema.Notification{Name: "zz-good", URL: url})...)
	w.run()
	w.send()
	statetest.Receive(t, "the event of the good receiver", bodies)

	for _, row := range rows {
		e, a := w.attempted(row.name)
		if e.State != row.state || e.Reason != row.reason || a.Error != row.reason || a.Status != row.status {
			t.Errorf("%s: %s, %d, %q", row.name, e.State, a.Status, e.Reason)
		}
		if len(a.Answer) > 4*events.MaxAnswer || row.name == "huge" && len(a.Answer) < events.MaxAnswer {
			t.Errorf("%s: %d bytes of the answer are kept", row.name, len(a.Answer))
		}
		if pause := e.NextAt.Sub(e.Updated); row.state == events.Pending && pause < row.least-time.Second {
			t.Errorf("%s: the next attempt is %s later", row.name, pause)
		}
	}
	if n := inside.Load(); n > 0 {
		t.Errorf("%d requests arrived at an address that is not allowed", n)
	}
}

// TestRebinding sends to a name that has an allowed address first and another one afterwards. It also sends to
// addresses that no resolver is asked for.
func TestRebinding(t *testing.T) {
	w := newWorld(t, statetest.Open(t, statetest.SQLite(t)))
	var hosts sync.Map
	ln, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &httptest.Server{Listener: ln, Config: &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		at, _, _ := net.SplitHostPort(r.Context().Value(http.LocalAddrContextKey).(net.Addr).String())
		hosts.Store(at, true)
	})}}
	s.Start()
	defer s.Close()
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	dns := &addresstest.Names{Answers: map[string][]string{"ops.example.com": {"127.0.0.1", "127.0.0.2"}}}
	w.cfg.Resolver = dns.Resolver(t)
	w.apply(schema.Notification{Name: "ops", URL: "http://ops.example.com:" + port})
	w.run()
	w.send()
	statetest.Until(t, "the first event", func() bool { return len(w.list(events.Filter{State: events.Sent})) == 1 })

	w.run()
	statetest.Until(t, "the refusal", func() bool {
		e := w.list(events.Filter{})[0]
		return e.State == events.Pending && strings.Contains(e.Reason, "not public")
	})
	if _, reached := hosts.Load("127.0.0.2"); reached {
		t.Error("the other address was reached")
	}
}

// TestSlowReceiver sends everything to a good receiver while others hold all their requests.
func TestSlowReceiver(t *testing.T) {
	w := newWorld(t, statetest.Open(t, statetest.SQLite(t)))
	w.cfg.Timeout = time.Minute
	held := make(chan struct{})
	most := atomic.Int64{}
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		most.Add(1)
		<-held
	}))
	defer slow.Close()
	url, _, bodies := receiver(t)
	w.apply(schema.Notification{Name: "a-slow", URL: slow.URL}, schema.Notification{Name: "good", URL: url})
	for range 20 {
		w.run()
	}
	w.send()

	for i := range 20 {
		statetest.Receive(t, fmt.Sprintf("event %d", i), bodies)
	}
	if n := most.Load(); n > 4 {
		t.Errorf("%d requests at once", n)
	}
	close(held)
}

// TestKill stops a sender before, during and after sends. Each event arrives, at least once.
func TestKill(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		w := newWorld(t, s)
		arrived := sync.Map{}
		var n atomic.Int64
		r := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if n.Add(1)%5 == 0 { // the answer is lost
				panic(http.ErrAbortHandler)
			}
			arrived.Store(r.Header.Get("webhook-id"), true)
		}))
		defer r.Close()
		w.apply(schema.Notification{Name: "ops", URL: r.URL})

		want := 0
		for range 5 {
			for range 5 {
				w.run()
				want++
			}
			w.send()()
		}
		all := w.list(events.Filter{})
		if len(all) != want {
			t.Fatalf("%d events of %d runs", len(all), want)
		}
		w.send()
		statetest.Until(t, "every event", func() bool {
			for _, e := range w.list(events.Filter{State: events.Pending}) {
				w.due(e)
			}
			return len(w.list(events.Filter{State: events.Sent})) == want
		})
		for _, e := range all {
			if _, ok := arrived.Load(e.UID); !ok {
				t.Errorf("%s did not arrive", e.UID)
			}
		}
	})
}

// due makes an event that waits for its next attempt due now.
func (w *world) due(e events.Event) {
	w.Helper()
	if e.Attempts == 0 {
		return
	}
	if err := w.store.Events().Attempted(w.Context(), e, events.Attempt{At: time.Now()}, events.Pending, time.Now()); err != nil {
		w.Fatal(err)
	}
}

// TestReplay gives up an event, lists it, and sends it again; a deleted notification drops what waits.
func TestReplay(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		w := newWorld(t, s)
		code := atomic.Int64{}
		code.Store(410)
		r := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
			rw.WriteHeader(int(code.Load()))
			io.WriteString(rw, "no, thank you")
		}))
		defer r.Close()
		w.apply(schema.Notification{Name: "ops", URL: r.URL})
		w.run()
		w.run()
		w.send()
		table, ctx := s.Events(), t.Context()
		dead := func() []events.Event { return w.list(events.Filter{State: events.Dead}) }
		statetest.Until(t, "two dead events", func() bool { return len(dead()) == 2 })
		e, a := w.attempted("ops")
		if a.Answer != "no, thank you" {
			t.Errorf("the answer is %q", a.Answer)
		}
		standings, err := table.Standings(ctx)
		if err != nil || len(standings) != 1 || standings[0].Dead != 2 {
			t.Errorf("%+v, %v", standings, err)
		}

		code.Store(200)
		if _, err := table.Replay(ctx, w.factory, e.UID); err != nil {
			t.Fatal(err)
		}
		statetest.Until(t, "one sent event", func() bool { return len(w.list(events.Filter{State: events.Sent})) == 1 })
		if n, err := table.ReplayDead(ctx, w.factory, "ops"); err != nil || n != 1 {
			t.Errorf("%d, %v", n, err)
		}
		statetest.Until(t, "both", func() bool { return len(w.list(events.Filter{State: events.Sent})) == 2 })
		if _, err := table.Replay(ctx, w.factory, "evt_nothing"); err != events.ErrNotFound {
			t.Errorf("an unknown event: %v", err)
		}

		code.Store(500)
		w.run()
		statetest.Until(t, "a failure", func() bool { return w.list(events.Filter{})[0].Attempts == 1 })
		if _, err := table.Replay(ctx, w.factory, w.list(events.Filter{})[0].UID); err != events.ErrConflict {
			t.Errorf("a pending event: %v", err)
		}
		w.apply()
		statetest.Until(t, "the dropped event", func() bool {
			all := w.list(events.Filter{State: events.Dropped})
			return len(all) == 1 && all[0].Reason == "the notification was deleted"
		})
		if _, err := table.Ask(ctx, state.NewID(state.PrefixEvent), w.factory, "ops"); err != events.ErrNotFound {
			t.Errorf("a test of a deleted notification: %v", err)
		}
	})
}
