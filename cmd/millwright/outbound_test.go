package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"millwright/admin"
	"millwright/cmd/cli"
	"millwright/state"
	"millwright/state/events"
	"millwright/state/statetest"
)

const (
	happenings = 200 // of each factory; with one event for each receiver
	receivers  = 50
	deaths     = 10 // of the server
)

// deadly are receivers that never take an event.
var deadly = map[int]http.HandlerFunc{
	0:  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
	11: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	22: func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/23", http.StatusFound) },
	33: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) },
	44: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
}

// outbound is a server that sends events to many receivers, and what these get.
type outbound struct {
	*crashWorld
	factories []string // UIDs
	secret    string

	mu     sync.Mutex
	bodies map[string][]byte // by receiver and webhook-id
	waits  []time.Duration   // from what happened to its first arrival
	again  int               // arrivals of what had arrived
	wrong  []string
}

func newOutbound(t *testing.T) *outbound {
	t.Helper()
	o := &outbound{
		crashWorld: &crashWorld{dir: t.TempDir(), dsn: statetest.SQLite(t), port: mustPort(t)},
		secret:     "whsec_" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("k"), 32)),
		bodies:     map[string][]byte{},
	}
	hooks := httptest.NewServer(o)
	t.Cleanup(hooks.Close)

	store := statetest.Open(t, o.dsn)
	defer store.Close()
	if _, err := store.SetSecret(t.Context(), "SIGN", []byte(o.secret)); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Bootstrap(t.Context(), crashKey); err != nil {
		t.Fatal(err)
	}

	settings := "listen: 127.0.0.1:" + o.port + "\nworkers: 0\noutbound: {allow: [127.0.0.1]}\nfactories:\n"
	for i := range receivers {
		factory := fmt.Sprintf("f%d", i/20)
		if i%20 == 0 {
			settings += "  - {name: " + factory + ", source: {dir: " + factory + "}}\n"
			f, err := store.EnsureFactory(t.Context(), factory, state.Source{
				Kind: "dir", Path: filepath.Join(o.dir, factory),
			}, false)
			if err != nil {
				t.Fatal(err)
			}
			o.factories = append(o.factories, f.UID)
		}

		file := filepath.Join(o.dir, factory, "notifications", fmt.Sprintf("n%d.yaml", i))
		text := fmt.Sprintf("url: %s/%d\nsecretName: SIGN\nevents: [run.cancelled]\n", hooks.URL, i)
		if err := cli.WriteNew(file, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := cli.WriteNew(filepath.Join(o.dir, "millwright.yaml"), []byte(settings)); err != nil {
		t.Fatal(err)
	}
	return o
}

// ServeHTTP is all receivers. It verifies each event with the published library.
func (o *outbound) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var number int
	_, _ = fmt.Sscanf(r.URL.Path, "/%d", &number)
	body, _ := io.ReadAll(r.Body)
	if dead := deadly[number]; dead != nil {
		dead(w, r)
		return
	}

	library, err := standardwebhooks.NewWebhook(o.secret)
	if err == nil {
		err = library.Verify(body, r.Header)
	}
	var event struct{ Timestamp time.Time }
	if err == nil {
		err = json.Unmarshal(body, &event)
	}

	o.mu.Lock()
	defer o.mu.Unlock()
	id := fmt.Sprintf("n%d %s", number, r.Header.Get("webhook-id"))
	before, known := o.bodies[id]
	switch {
	case err != nil:
		o.wrong = append(o.wrong, fmt.Sprintf("%s: %v", id, err))
	case known && !bytes.Equal(before, body):
		o.wrong = append(o.wrong, id+" has another body when it is sent again")
	case known:
		o.again++
	default:
		o.bodies[id] = body
		o.waits = append(o.waits, time.Since(event.Timestamp))
	}
}

// happen cancels a new run in each factory, which is an event for each receiver. It reports whether the server
// acknowledged all of it.
func (o *outbound) happen(ctx context.Context) bool {
	post := func(path, body string) (answer []byte, ok bool) {
		url := "http://127.0.0.1:" + o.port + "/api/v1" + path
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
		if err != nil {
			return nil, false
		}
		r.Header.Set("Authorization", "Bearer "+crashKey)
		r.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			return nil, false
		}
		defer res.Body.Close()
		answer, err = io.ReadAll(res.Body)
		return answer, err == nil && res.StatusCode < 300
	}

	for _, uid := range o.factories {
		var run struct {
			RunID string `json:"run_id"`
		}
		answer, ok := post("/factory/"+uid+"/runs", `{"prompt": "do it"}`)
		if !ok || json.Unmarshal(answer, &run) != nil {
			return false
		}
		if _, ok := post("/agent/runs/"+run.RunID+"/cancel", ""); !ok {
			return false
		}
	}
	return true
}

// waiting returns how many events for living receivers are pending, at most 500 of each.
func (o *outbound) waiting(t *testing.T) int {
	t.Helper()
	c := cli.Client{Server: "http://127.0.0.1:" + o.port, Key: crashKey, HTTP: http.DefaultClient}
	n := 0
	for number := range receivers {
		if deadly[number] != nil {
			continue
		}

		var page admin.ListEventsResponse
		path := fmt.Sprintf("/factory/%s/events?state=pending&limit=500&notification=n%d", o.factories[number/20], number)
		if err := c.Get(t.Context(), path, &page); err != nil {
			t.Fatal(err)
		}
		n += len(page.Events)
	}
	return n
}

// TestAcceptanceOutbound sends 10,000 events to 50 receivers, of which five never take one, while the server is
// killed ten times. Every event arrives at the others, signed. However often it is sent, it has one identity and
// one body.
func TestAcceptanceOutbound(t *testing.T) {
	o := newOutbound(t)
	p := o.start(t)
	ready := func() {
		t.Helper()
		o.waitFor(t, p, "the server and its factories", func() bool { return o.ready() })
	}
	ready()

	var happened atomic.Int64
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for happened.Load() < happenings && t.Context().Err() == nil {
			if o.happen(t.Context()) {
				happened.Add(1)
				continue
			}
			select { // the server is away
			case <-t.Context().Done():
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()

	for i := range deaths {
		next := int64(i*happenings/deaths + rand.IntN(happenings/deaths))
		o.waitFor(t, p, fmt.Sprintf("%d happenings", next), func() bool { return happened.Load() >= next })
		if err := p.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = p.Wait()
		p = o.start(t)
		ready()
	}
	<-ended
	if t.Context().Err() != nil {
		t.Fatal("not all happened in time")
	}

	statetest.Drain(t, "the living receivers have all events", func() int { return o.waiting(t) })
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = p.Wait()
	o.complete(t)

	slices.Sort(o.waits)
	t.Logf("%d events arrived, %d of them again; half within %s, 99%% within %s, all within %s, with %d kills",
		len(o.waits), o.again, o.waits[len(o.waits)/2].Round(time.Millisecond),
		o.waits[len(o.waits)*99/100].Round(time.Millisecond), o.waits[len(o.waits)-1].Round(time.Millisecond), deaths)
}

// ready reports whether the server has applied all factories.
func (o *outbound) ready() bool {
	c := cli.Client{Server: "http://127.0.0.1:" + o.port, Key: crashKey, HTTP: http.DefaultClient}
	for _, uid := range o.factories {
		var f cli.FactoryItem
		if c.Get(context.Background(), "/factory/"+uid, &f) != nil || f.Sync.State != "applied" {
			return false
		}
	}
	return true
}

// complete compares what is stored with what arrived: each run has one event for each notification of its
// factory, and each event for a living receiver arrived there.
func (o *outbound) complete(t *testing.T) {
	t.Helper()
	store := statetest.Open(t, o.dsn)
	defer store.Close()

	runs := map[string]map[string]bool{} // the notifications of each run
	stored := map[string]bool{}
	for _, uid := range o.factories {
		all, err := store.Events().List(t.Context(), uid, events.Filter{}, "", 100_000)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range all {
			if runs[e.RunID] == nil {
				runs[e.RunID] = map[string]bool{}
			}
			if runs[e.RunID][e.Notification] {
				t.Errorf("run %s has two events for %s", e.RunID, e.Notification)
			}
			runs[e.RunID][e.Notification] = true

			var number int
			_, _ = fmt.Sscanf(e.Notification, "n%d", &number)
			id := e.Notification + " " + e.UID
			switch {
			case deadly[number] != nil && e.State == events.Sent:
				t.Errorf("event %s of a dead receiver is sent", id)
			case deadly[number] == nil && (o.bodies[id] == nil || e.State == events.Dead || e.State == events.Dropped):
				t.Errorf("event %s is %s, and arrived: %t", id, e.State, o.bodies[id] != nil)
			}
			stored[id] = true
		}
	}

	if len(runs) < happenings*len(o.factories) {
		t.Errorf("%d runs have events, want %d", len(runs), happenings*len(o.factories))
	}
	for run, has := range runs {
		if len(has) != 20 && len(has) != receivers%20 {
			t.Errorf("run %s has events for %d notifications", run, len(has))
		}
	}
	for id := range o.bodies {
		if !stored[id] {
			t.Errorf("%s arrived, and is not stored", id)
		}
	}
	for _, wrong := range o.wrong {
		t.Error(wrong)
	}
}
