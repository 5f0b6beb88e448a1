package ingress_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"millwright/ingress"
	"millwright/schema"
	"millwright/state"
	"millwright/state/statetest"
)

// toggles is how often TestChangesTakeEffectEverywhereBeforeTheCallReturns changes the webhook: 40 times, or
// MILLWRIGHT_TOGGLES times.
func toggles(t *testing.T) int {
	t.Helper()
	text, ok := os.LookupEnv("MILLWRIGHT_TOGGLES")
	if !ok {
		return 40
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("MILLWRIGHT_TOGGLES=%q is not a number of changes", text)
	}
	return n
}

// Disabling, enabling and rotating take effect before the call returns, on every replica, under load: this
// process and two others.
func TestChangesTakeEffectEverywhereBeforeTheCallReturns(t *testing.T) {
	if dsn := os.Getenv("INSTANT_STATE"); dsn != "" {
		instantReplica(t, dsn)
		return
	}
	changes := toggles(t)
	dsn := statetest.Postgres(t)
	w := newWorld(t, statetest.Open(t, dsn), ingress.Config{DeliveriesPerMinute: -1, FailedAuthPerMinute: -1})
	addrs := []string{w.addr}
	for range 2 {
		addrs = append(addrs, startReplica(t, dsn))
	}
	w.hook(enabled("live"))
	w.automation("a", "live", "")
	path := "/webhooks/w/" + w.uids["live"]

	load, stop := context.WithCancel(t.Context())
	var senders sync.WaitGroup
	var n atomic.Int64
	for _, addr := range addrs {
		for range 2 {
			senders.Go(func() {
				client := &http.Client{Transport: &http.Transport{}}
				defer client.CloseIdleConnections()
				for load.Err() == nil {
					req, err := http.NewRequestWithContext(load, "POST", "http://"+addr+path, strings.NewReader(strconv.FormatInt(n.Add(1), 10)))
					if err != nil {
						return
					}
					req.Header.Set("Authorization", "Bearer "+tokenSecret)
					if resp, err := client.Do(req); err == nil {
						resp.Body.Close()
						if resp.StatusCode != 202 && resp.StatusCode != 404 && resp.StatusCode != 401 {
							t.Errorf("under load: %d", resp.StatusCode)
						}
					}
				}
			})
		}
	}
	expect := func(what, token string, status int) {
		t.Helper()
		for _, addr := range addrs {
			r := w.post("http://"+addr+path, strconv.FormatInt(n.Add(1), 10), "Authorization", "Bearer "+token)
			if r.StatusCode != status {
				t.Errorf("%s: %d, want %d", what, r.StatusCode, status)
			}
		}
	}
	began := time.Now()
	for i := 0; i < changes && !t.Failed(); i += 4 {
		w.hook(schema.Webhook{Name: "live"})
		expect("disabled", tokenSecret, 404)
		w.hook(enabled("live"))
		expect("enabled", tokenSecret, 202)
		w.secret("KEY", "rotated")
		w.hook(enabled("live"))
		expect("rotated, old", tokenSecret, 401)
		expect("rotated, new", "rotated", 202)
		w.secret("KEY", tokenSecret)
		w.hook(enabled("live"))
		expect("rotated back", tokenSecret, 202)
	}
	took := time.Since(began)
	stop()
	senders.Wait()
	// Every accepted delivery has exactly one run.
	cursor, accepted := "", 0
	for {
		page, err := w.store.Deliveries(t.Context(), w.factory, w.uids["live"], state.DeliveryFilter{Outcome: state.DeliveryAccepted}, cursor, 500)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		var uids []string
		for _, d := range page {
			uids = append(uids, d.UID)
		}
		runs, err := w.store.RunsOfDeliveries(t.Context(), uids...)
		if err != nil {
			t.Fatal(err)
		}
		for _, uid := range uids {
			if accepted++; len(runs[uid]) != 1 {
				t.Errorf("delivery %s has %d runs", uid, len(runs[uid]))
			}
		}
		cursor = uids[len(uids)-1]
	}
	t.Logf("%d changes, %s each; %d accepted", changes, took/time.Duration(changes), accepted)
}

// startReplica starts a process that serves the ingress of the state, and returns its address.
func startReplica(t *testing.T, dsn string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestChangesTakeEffectEverywhereBeforeTheCallReturns$", "-test.v", "-test.timeout=0")
	cmd.Env = append(os.Environ(), "INSTANT_STATE="+dsn)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close() // ends it
		if err := cmd.Wait(); err != nil {
			t.Errorf("a replica ended with %v", err)
		}
	})
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		if addr, ok := strings.CutPrefix(lines.Text(), "SERVING "); ok {
			go func() {
				_, _ = io.Copy(io.Discard, stdout)
			}()
			return addr
		}
	}
	t.Fatal("a replica ended before it served")
	return ""
}

// instantReplica is what startReplica starts.
func instantReplica(t *testing.T, dsn string) {
	in, err := ingress.New(t.Context(), ingress.Config{Store: statetest.Open(t, dsn), DeliveriesPerMinute: -1, FailedAuthPerMinute: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close(context.Background()) }()
	w := &world{t: t, log: &lockedBuffer{}}
	w.serve(in)
	fmt.Println("SERVING " + w.addr)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// A replica that cannot reach the database stops judging when its lease has run out.
func TestReplicaWithoutItsLeaseAnswers503(t *testing.T) {
	dsn := statetest.Postgres(t)
	w := newWorld(t, statetest.Open(t, dsn), ingress.Config{})
	w.hook(enabled("live"))
	lost, err := state.Open(t.Context(), state.Config{DSN: dsn, MasterKey: statetest.MasterKey()})
	if err != nil {
		t.Fatal(err)
	}
	in, err := ingress.New(t.Context(), ingress.Config{Store: lost})
	if err != nil {
		t.Fatal(err)
	}
	if err := lost.Close(); err != nil {
		t.Fatal(err)
	}
	first := w.addr
	w.serve(in)
	start := time.Now()
	w.addr, first = first, w.addr
	w.hook(schema.Webhook{Name: "live"}) // waits for the lost replica's lease
	w.addr = first
	r := w.post(w.url("live"), `1`, "Authorization", "Bearer "+tokenSecret)
	if r.StatusCode != 503 || r.Header.Get("Retry-After") == "" {
		t.Errorf("%d after %s", r.StatusCode, time.Since(start))
	}
	if in.Ready() {
		t.Error("still ready")
	}
}

// A webhook that can be read in the state is served, though the call that makes it has not returned.
func TestWebhooksAreServedOnceTheyCanBeRead(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		w := newWorld(t, s, ingress.Config{})
		ctx, cancel := context.WithTimeout(t.Context(), statetest.Patience)
		defer cancel()

		for i := range 20 {
			name := fmt.Sprintf("hook%d", i)
			uid := state.NewID(state.PrefixWebhook)
			w.uids[name] = uid
			made := make(chan struct{})
			go func() {
				defer close(made)
				w.hook(enabled(name))
			}()

			for {
				c, err := s.Current(ctx, w.factory)
				if err != nil {
					t.Fatal(err)
				}
				if slices.ContainsFunc(c.Webhooks, func(h state.Webhook) bool { return h.UID == uid }) {
					break
				}
			}

			r := w.post("http://"+w.addr+"/webhooks/w/"+uid, "{}", "Authorization", "Bearer "+tokenSecret)
			if r.StatusCode != http.StatusAccepted {
				t.Errorf("webhook %d: %d %s", i, r.StatusCode, r.body)
			}
			<-made
		}
	})
}
