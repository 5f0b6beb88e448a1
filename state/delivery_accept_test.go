package state_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"millwright/bounds"
	"millwright/schema"
	"millwright/state"
	"millwright/state/notice"
	"millwright/state/statetest"
)

// hooks is a factory with webhooks that deliveries can be accepted for.
type hooks struct {
	t       testing.TB
	s       *state.Store
	factory string
}

func newHooks(t testing.TB, s *state.Store, names ...string) *hooks {
	t.Helper()
	if _, err := s.SetSecret(t.Context(), "KEY", []byte("k3y")); err != nil {
		t.Fatal(err)
	}
	f, err := s.EnsureFactory(t.Context(), "acme", state.Source{Kind: "managed"}, false)
	if err != nil {
		t.Fatal(err)
	}
	h := &hooks{t: t, s: s, factory: f.UID}
	var changes []state.WebhookChange
	for _, name := range names {
		changes = append(changes, state.WebhookChange{
			UID: state.NewID(state.PrefixWebhook), SecretVersion: 1,
			Spec: schema.Webhook{Name: name, Path: "webhooks/" + name + ".yaml", AuthMode: schema.AuthToken, SecretName: "KEY", Enabled: true},
		})
	}
	h.apply(state.ChangeSet{Webhooks: changes})
	return h
}

func (h *hooks) apply(a state.ChangeSet) {
	h.t.Helper()
	c, err := h.s.Current(h.t.Context(), h.factory)
	if err != nil {
		h.t.Fatal(err)
	}
	a.FactoryUID, a.Base, a.BaseRevision, a.Started = h.factory, c.Factory.Generation, c.Factory.Applied.ID, time.Now()
	a.Revision = state.Revision{ID: state.NewID("rev")}
	if err := h.s.Apply(h.t.Context(), a); err != nil {
		h.t.Fatal(err)
	}
}

func (h *hooks) routed(name string) (state.RoutedFactory, state.RoutedWebhook) {
	h.t.Helper()
	r, err := h.s.Routing(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	for _, f := range r.Factories {
		for _, w := range f.Webhooks {
			if w.Spec.Name == name {
				return f, w
			}
		}
	}
	h.t.Fatalf("no webhook %q", name)
	panic("unreachable")
}

// acceptance is a delivery for the named webhook with n runs.
func (h *hooks) acceptance(name, id string, n int) state.Acceptance {
	f, w := h.routed(name)
	return h.acceptanceAt(f, w, id, n)
}

// acceptanceAt is acceptance by routing facts that were read.
func (h *hooks) acceptanceAt(f state.RoutedFactory, w state.RoutedWebhook, id string, n int) state.Acceptance {
	a := state.Acceptance{
		UID: state.NewID(state.PrefixDelivery), FactoryUID: f.UID, Generation: f.Generation, WebhookID: w.ID, WebhookUID: w.UID,
		Identity: state.IdentityOf(state.IdentityServiceHeader, id), Sender: "192.0.2.1", Body: []byte(`{"id":"` + id + `"}`), Received: time.Now(),
	}
	for i := range n {
		run := state.NewRunID()
		a.Runs = append(a.Runs, state.NewRun{
			ID: run, FactoryUID: f.UID, Title: "t", Prompt: "p", Envelope: "e", Source: "CUSTOM_WEBHOOK",
			Creator:        state.Creator{Type: "service_account", UID: fmt.Sprint("auto_", i), DisplayName: "a"},
			ConversationID: "c", RootRunID: run, AutomationUID: fmt.Sprint("auto_", i), WebhookUID: w.UID, DeliveryUID: a.UID,
			Config: json.RawMessage(`{}`), At: a.Received,
		})
	}
	return a
}

func (h *hooks) log(name string) []state.Delivery {
	h.t.Helper()
	f, w := h.routed(name)
	all, err := h.s.Deliveries(h.t.Context(), f.UID, w.UID, state.DeliveryFilter{}, "", 500)
	if err != nil {
		h.t.Fatal(err)
	}
	return all
}

func (h *hooks) runs(uid string) int {
	h.t.Helper()
	m, err := h.s.RunsOfDeliveries(h.t.Context(), uid)
	if err != nil {
		h.t.Fatal(err)
	}
	return len(m[uid])
}

func TestAcceptStoresDeliveryPayloadAndRuns(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		h := newHooks(t, s, "alerts")
		notices, end := s.Subscribe(16, notice.Queued, notice.Delivery)
		defer end()
		a := h.acceptance("alerts", "one", 2)
		got, err := s.Accept(t.Context(), a)
		if err != nil || got.DeliveryUID != a.UID || got.Duplicate {
			t.Fatalf("Accept = %+v, %v", got, err)
		}
		body, err := s.Payload(t.Context(), h.factory, a.UID)
		if err != nil || string(body) != string(a.Body) {
			t.Errorf("payload %q, %v", body, err)
		}
		if _, err := s.Payload(t.Context(), "fac_other", a.UID); !errors.Is(err, state.ErrNotFound) {
			t.Errorf("another factory reads the payload: %v", err)
		}
		if n := h.runs(a.UID); n != 2 {
			t.Errorf("%d runs, want 2", n)
		}
		queued := map[string]bool{}
		for range 3 {
			if n, _ := statetest.Receive(t, "three notices", notices); n.Topic == notice.Queued {
				queued[n.ID] = true
			}
		}
		if !queued[a.Runs[0].ID] || !queued[a.Runs[1].ID] {
			t.Errorf("queued notices: %v", queued)
		}
		again := h.acceptance("alerts", "one", 2)
		got, err = s.Accept(t.Context(), again)
		if err != nil || got.DeliveryUID != a.UID || !got.Duplicate {
			t.Fatalf("second Accept = %+v, %v", got, err)
		}
		if n := h.runs(again.UID); n != 0 {
			t.Errorf("the duplicate started %d runs", n)
		}
		if _, err := s.Payload(t.Context(), h.factory, again.UID); !errors.Is(err, state.ErrNotFound) {
			t.Errorf("the duplicate keeps a payload: %v", err)
		}
		log := h.log("alerts")
		if len(log) != 2 || log[0].UID != again.UID || log[0].Outcome != state.DeliveryDuplicate || log[0].DuplicateOf != a.UID || log[1].Outcome != state.DeliveryAccepted {
			t.Errorf("log %+v", log)
		}
	})
}

func TestAcceptConcurrentCopies(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		h := newHooks(t, s, "alerts", "builds")
		const copies = 200
		var all []state.Acceptance
		for i := range copies {
			all = append(all, h.acceptance("alerts", fmt.Sprint("id", i%4), 1), h.acceptance("builds", fmt.Sprint("id", i%4), 1))
		}
		results := make([]state.Accepted, len(all))
		var wg sync.WaitGroup
		for i := range all {
			wg.Go(func() {
				var err error
				if results[i], err = s.Accept(context.Background(), all[i]); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		firsts := map[string]string{}
		accepted := 0
		for i, r := range results {
			key := all[i].WebhookUID + all[i].Identity.Preview
			if firsts[key] == "" {
				firsts[key] = r.DeliveryUID
			}
			if firsts[key] != r.DeliveryUID {
				t.Errorf("%s is %s and %s", key, firsts[key], r.DeliveryUID)
			}
			if !r.Duplicate {
				accepted++
			}
		}
		if accepted != 8 {
			t.Errorf("%d accepted, want 8", accepted)
		}
	})
}

func TestAcceptOnlyOnTheGenerationItWasJudgedBy(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		h := newHooks(t, s, "alerts")
		stale := h.acceptance("alerts", "stale", 1)
		h.apply(state.ChangeSet{FileChanged: true, File: &schema.FactoryFile{Name: "n"}})
		var wg sync.WaitGroup
		for i := range 20 {
			fresh := h.acceptance("alerts", fmt.Sprint("fresh", i), 1)
			wg.Go(func() {
				if _, err := s.Accept(context.Background(), fresh); err != nil {
					t.Error(err)
				}
			})
		}
		if _, err := s.Accept(t.Context(), stale); !errors.Is(err, state.ErrMoved) {
			t.Errorf("stale: %v, want ErrMoved", err)
		}
		wg.Wait()
		if n := h.runs(stale.UID); n != 0 {
			t.Errorf("%d runs of a stale delivery", n)
		}
		retried := h.acceptance("alerts", "stale", 1)
		if got, err := s.Accept(t.Context(), retried); err != nil || got.Duplicate {
			t.Errorf("judged again: %+v, %v", got, err)
		}
	})
}

func TestAcceptFailsAlone(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		h := newHooks(t, s, "alerts")
		bad := h.acceptance("alerts", "bad", 2)
		bad.Runs[1].ID = bad.Runs[0].ID // a second run of the same ID breaks the table's key
		var wg sync.WaitGroup
		for i := range 50 {
			good := h.acceptance("alerts", fmt.Sprint("good", i), 1)
			wg.Go(func() {
				if _, err := s.Accept(context.Background(), good); err != nil {
					t.Error(err)
				}
			})
		}
		if _, err := s.Accept(t.Context(), bad); err == nil {
			t.Error("want an error")
		}
		wg.Wait()
		if n := len(h.log("alerts")); n != 50 {
			t.Errorf("%d rows, want 50", n)
		}
		bad.Runs = bad.Runs[:1]
		if got, err := s.Accept(t.Context(), bad); err != nil || got.Duplicate {
			t.Errorf("the failed delivery left its identity behind: %+v, %v", got, err)
		}
	})
}

func TestAcceptFlagsSignedBytesUnderANewID(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		h := newHooks(t, s, "alerts")
		first, second := h.acceptance("alerts", "one", 1), h.acceptance("alerts", "two", 1)
		first.Digest, second.Digest = []byte("digest"), []byte("digest")
		for _, a := range []state.Acceptance{first, second} {
			if got, err := s.Accept(t.Context(), a); err != nil || got.Duplicate {
				t.Fatalf("%+v, %v", got, err)
			}
		}
		log := h.log("alerts")
		if !strings.Contains(log[0].Reason, first.UID) || log[1].Reason != "" {
			t.Errorf("reasons %q, %q", log[0].Reason, log[1].Reason)
		}
	})
}

func TestAcceptWhenClosed(t *testing.T) {
	statetest.EachDSN(t, func(t *testing.T, dsn string) {
		s, err := state.Open(t.Context(), state.Config{DSN: dsn, MasterKey: statetest.MasterKey()})
		if err != nil {
			t.Fatal(err)
		}
		h := newHooks(t, s, "alerts")
		a := h.acceptance("alerts", "one", 1)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Accept(t.Context(), a); !errors.Is(err, state.ErrUnavailable) {
			t.Errorf("%v, want ErrUnavailable", err)
		}
	})
}

// The records of other replicas count toward the cap.
func TestRejectedElsewhere(t *testing.T) {
	statetest.EachDSN(t, func(t *testing.T, dsn string) {
		s := open(t, dsn)
		h := newHooks(t, s, "alerts", "other")
		f, w := h.routed("alerts")
		_, other := h.routed("other")

		received := time.Now() // all in one minute, and so in one shared row
		s.RejectedElsewhere(w.ID, 1000)

		reject := func(w state.RoutedWebhook) {
			err := s.RecordRejected(t.Context(), state.Rejection{
				FactoryUID: f.UID, WebhookID: w.ID, WebhookUID: w.UID, Outcome: state.DeliveryRejectedAuth, Sender: "192.0.2.1", Generation: f.Generation, Received: received,
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		for range 3 {
			reject(w)
			reject(other)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = open(t, dsn)
		defer s.Close()
		for _, c := range []struct {
			w     state.RoutedWebhook
			rows  int
			count int64
		}{{w, 1, 3}, {other, 3, 1}} {
			rows, err := s.Deliveries(t.Context(), f.UID, c.w.UID, state.DeliveryFilter{}, "", 10)
			if err != nil || len(rows) != c.rows || rows[0].Count != c.count {
				t.Errorf("%d rows, %v: %+v", len(rows), err, rows)
			}
		}
	})
}

// Rejections that were received in several minutes, in no order, count toward one cap.
func TestRejectedRowsAreCappedWhateverTheMinute(t *testing.T) {
	statetest.EachDSN(t, func(t *testing.T, dsn string) {
		s := open(t, dsn)
		h := newHooks(t, s, "alerts")
		f, w := h.routed("alerts")
		s.RejectedElsewhere(w.ID, 999)
		now := time.Now()
		for i := range 40 {
			err := s.RecordRejected(t.Context(), state.Rejection{
				FactoryUID: f.UID, WebhookID: w.ID, WebhookUID: w.UID, Outcome: state.DeliveryRejectedAuth, Sender: "192.0.2.1",
				Generation: f.Generation, Received: now.Add(time.Duration(i%3-1) * time.Minute),
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = open(t, dsn)
		defer s.Close()
		rows, err := s.Deliveries(t.Context(), f.UID, w.UID, state.DeliveryFilter{}, "", 100)
		if err != nil || len(rows) > 1+4 { // one alone, and one for each minute
			t.Errorf("%d rows of 40 rejections beyond the cap, %v", len(rows), err)
		}
	})
}

func TestRecordRejectedSharesRowsBeyondTheCap(t *testing.T) {
	statetest.EachDSN(t, func(t *testing.T, dsn string) {
		s := open(t, dsn)
		h := newHooks(t, s, "alerts")
		f, w := h.routed("alerts")
		at := time.Now().Truncate(time.Minute)
		var wg sync.WaitGroup
		for i := range 1100 {
			size := int64(i)
			r := state.Rejection{
				FactoryUID: f.UID, WebhookID: w.ID, WebhookUID: w.UID, Outcome: state.DeliveryRejectedAuth, Reason: "wrong token",
				Size: &size, Sender: "192.0.2.1", Generation: f.Generation, Received: at.Add(time.Duration(i) * time.Millisecond),
			}
			wg.Go(func() {
				if err := s.RecordRejected(context.Background(), r); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if err := s.Close(); err != nil { // writes the gathered rows
			t.Fatal(err)
		}
		s = open(t, dsn)
		defer s.Close()
		h.s = s
		counts, err := s.DeliveryCounts(t.Context(), f.UID)
		if err != nil || counts[w.UID][state.DeliveryRejectedAuth] != 1100 {
			t.Errorf("counts %v, %v", counts, err)
		}
		rows, shared := 0, int64(0)
		cursor := ""
		for {
			page, err := s.Deliveries(t.Context(), f.UID, w.UID, state.DeliveryFilter{Outcome: state.DeliveryRejectedAuth}, cursor, 400)
			if err != nil {
				t.Fatal(err)
			}
			if len(page) == 0 {
				break
			}
			for _, d := range page {
				if rows++; d.Count > 1 {
					shared += d.Count
					if d.Last == nil || d.Last.Before(d.Received) || d.SizeMax == nil || *d.SizeMax < *d.Size {
						t.Errorf("shared row %+v", d)
					}
				}
			}
			cursor = page[len(page)-1].UID
		}
		if rows != 1001 || shared != 100 {
			t.Errorf("%d rows, %d requests share one; want 1001 and 100", rows, shared)
		}
	})
}

// Beyond the cap, senders of one webhook have shared rows of their own up to a bound, and then one together.
func TestSharedRowsOfAWebhookAreBounded(t *testing.T) {
	statetest.EachDSN(t, func(t *testing.T, dsn string) {
		const senders = 400
		s := open(t, dsn)
		h := newHooks(t, s, "alerts")
		f, w := h.routed("alerts")
		s.RejectedElsewhere(w.ID, bounds.RejectedRows)
		at := time.Now().Truncate(time.Minute)
		for i := range senders {
			err := s.RecordRejected(t.Context(), state.Rejection{
				FactoryUID: f.UID,
				WebhookID:  w.ID,
				WebhookUID: w.UID,
				Outcome:    state.DeliveryRejectedAuth,
				Sender:     fmt.Sprintf("192.0.%d.%d", i/200, i%200),
				Generation: f.Generation,
				Received:   at,
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil { // writes the gathered rows
			t.Fatal(err)
		}

		s = open(t, dsn)
		defer s.Close()
		rows, err := s.Deliveries(t.Context(), f.UID, w.UID, state.DeliveryFilter{}, "", senders)
		if err != nil {
			t.Fatal(err)
		}
		total, many := int64(0), int64(0)
		for _, d := range rows {
			total += d.Count
			if d.Sender == "many" {
				many = d.Count
			}
		}
		if len(rows) != bounds.SharedRejectedRowsOfWebhook+1 || total != senders || many != senders-bounds.SharedRejectedRowsOfWebhook {
			t.Errorf("%d rows of %d requests, %d of them of many senders", len(rows), total, many)
		}
	})
}

func open(t testing.TB, dsn string) *state.Store {
	t.Helper()
	s, err := state.Open(context.Background(), state.Config{DSN: dsn, MasterKey: statetest.MasterKey()})
	if err != nil {
		t.Fatal(err)
	}
	return s
}
