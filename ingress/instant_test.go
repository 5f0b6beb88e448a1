package ingress_test

import (
	"context"
	"net/http"
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

// Disabling, enabling and rotating take effect before the call returns, on every replica, under load: three
// replicas, each with a store of its own, as three processes have.
func TestChangesTakeEffectEverywhereBeforeTheCallReturns(t *testing.T) {
	dsn := statetest.Postgres(t)
	w := newWorld(t, statetest.Open(t, dsn), ingress.Config{DeliveriesPerMinute: -1, FailedAuthPerMinute: -1})
	addrs := []string{w.addr}
	for range 2 {
		in, err := ingress.New(t.Context(), ingress.Config{Store: statetest.Open(t, dsn), DeliveriesPerMinute: -1, FailedAuthPerMinute: -1})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = in.Close(context.Background()) })
		w.serve(in)
		addrs = append(addrs, w.addr)
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
	for range 10 {
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
	}
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
	t.Logf("%d accepted", accepted)
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
