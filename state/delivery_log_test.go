package state_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"millwright/state"
	"millwright/state/statetest"
)

// FuzzIdentity makes identities of foreign text: the preview is short and harmless to show, the same text
// is the same identity, and neither tier nor text can be confused with another.
func FuzzIdentity(f *testing.F) {
	f.Add("evt_1", "evt_2")
	f.Add("", "\x00")
	f.Add("a\tb\xff\x1b[31m<script>\u202e", strings.Repeat("ü", 200))
	f.Add(`\u0000"`, "header\x00evt_1")
	f.Fuzz(func(t *testing.T, one, other string) {
		sources := []state.IdentitySource{state.IdentityHeader, state.IdentityProvider, state.IdentityServiceHeader, state.IdentityBodyHash}
		seen := map[[16]byte]string{}
		for _, source := range sources {
			for _, value := range []string{one, other, string(source) + "\x00" + one} {
				id := state.IdentityOf(source, value)
				if again := state.IdentityOf(source, strings.Clone(value)); again != id {
					t.Fatalf("%q is not itself", value)
				}
				if len(id.Preview) > 128 || strings.ContainsFunc(id.Preview, func(r rune) bool { return r < ' ' || r > '~' }) {
					t.Fatalf("preview %q of %q", id.Preview, value)
				}
				what := string(source) + "/" + value
				if was, ok := seen[id.Hash]; ok && was != what {
					t.Fatalf("%q and %q are one", was, what)
				}
				seen[id.Hash] = what
			}
		}
	})
}

func TestExpireDeliveries(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		h := newHooks(t, s, "alerts")
		f, w := h.routed("alerts")
		var accepted []state.Acceptance
		for i := range 5 {
			a := h.acceptance("alerts", fmt.Sprint(i), i%2)
			if _, err := s.Accept(t.Context(), a); err != nil {
				t.Fatal(err)
			}
			accepted = append(accepted, a)
		}
		for range 10 {
			if err := s.RecordRejected(t.Context(), state.Rejection{FactoryUID: f.UID, WebhookID: w.ID, WebhookUID: w.UID, Outcome: state.DeliveryInvalidJSON, Sender: "192.0.2.1", Received: time.Now()}); err != nil {
				t.Fatal(err)
			}
		}
		if n, err := s.ExpireDeliveries(t.Context(), 3, time.Hour); n != 0 || err != nil {
			t.Errorf("expired %d young rows, %v", n, err)
		}
		// An age below zero makes every row old: 3 rejected and 3 accepted ones stay.
		if n, err := s.ExpireDeliveries(t.Context(), 3, -10*time.Minute); n != 9 || err != nil {
			t.Errorf("expired %d, %v; want 9", n, err)
		}
		log := h.log("alerts")
		if len(log) != 6 || log[3].UID != accepted[4].UID || log[5].UID != accepted[2].UID {
			t.Errorf("left %+v", log)
		}
		for i, a := range accepted {
			_, err := s.Payload(t.Context(), h.factory, a.UID)
			if gone := errors.Is(err, state.ErrNotFound); gone != (i == 0) { // 1 is kept by its run, 2 to 4 by their rows
				t.Errorf("payload %d: %v", i, err)
			}
		}
		if got, err := s.Accept(t.Context(), h.acceptance("alerts", "0", 0)); err != nil || !got.Duplicate {
			t.Errorf("the identity went with its row: %+v, %v", got, err)
		}
		h.apply(state.ChangeSet{DeleteWebhooks: []string{w.UID}})
		if _, err := s.ExpireDeliveries(t.Context(), 3, time.Hour); err != nil {
			t.Fatal(err)
		}
		if log, err := s.Deliveries(t.Context(), f.UID, w.UID, state.DeliveryFilter{}, "", 100); err != nil || len(log) != 7 {
			t.Errorf("history of the deleted webhook: %d rows, %v", len(log), err)
		}
	})
}

func TestDeliveriesFilterAndPage(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		h := newHooks(t, s, "alerts", "other")
		f, w := h.routed("alerts")
		before := time.Now()
		for i := range 7 {
			if _, err := s.Accept(t.Context(), h.acceptance("alerts", fmt.Sprint(i/2), 0)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.Accept(t.Context(), h.acceptance("other", "x", 0)); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			filter state.DeliveryFilter
			want   int
		}{
			{state.DeliveryFilter{}, 7},
			{state.DeliveryFilter{Outcome: state.DeliveryAccepted}, 4},
			{state.DeliveryFilter{Outcome: state.DeliveryDuplicate}, 3},
			{state.DeliveryFilter{Outcome: state.DeliveryTooLarge}, 0},
			{state.DeliveryFilter{From: before}, 7},
			{state.DeliveryFilter{From: before.Add(time.Hour)}, 0},
			{state.DeliveryFilter{To: before}, 0},
			{state.DeliveryFilter{From: before, To: time.Now().Add(time.Hour)}, 7},
		} {
			seen := map[string]bool{}
			cursor := ""
			for {
				page, err := s.Deliveries(t.Context(), f.UID, w.UID, c.filter, cursor, 2)
				if err != nil {
					t.Fatal(err)
				}
				if len(page) == 0 {
					break
				}
				for _, d := range page {
					seen[d.UID] = true
				}
				cursor = page[len(page)-1].UID
			}
			if len(seen) != c.want {
				t.Errorf("%+v: %d rows, want %d", c.filter, len(seen), c.want)
			}
		}
		if _, err := s.Deliveries(t.Context(), "fac_other", w.UID, state.DeliveryFilter{}, "", 10); !errors.Is(err, state.ErrNotFound) {
			t.Errorf("another factory: %v", err)
		}
		if _, err := s.Delivery(t.Context(), f.UID, w.UID, "dlv_none"); !errors.Is(err, state.ErrNotFound) {
			t.Errorf("%v", err)
		}
	})
}

func TestPreview(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"plain-id.1", "plain-id.1"},
		{"", ""},
		{"a\tb", `a\tb`},
		{"\x1b[31m", `\x1b[31m`},
		{"\xff", `\xff`},
		{"é\u202e", `\u00e9\u202e`},
		{"<script>", "<script>"},
		{strings.Repeat("x", 128), strings.Repeat("x", 128)},
		{strings.Repeat("x", 129), strings.Repeat("x", 125) + "..."},
	} {
		if got := state.Preview(c.in); got != c.want {
			t.Errorf("Preview(%q) = %q, want %q", c.in, got, c.want)
		}
	}
}

func TestTallies(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		h := newHooks(t, s, "a", "b")
		now := time.Now()
		for i, name := range []string{"a", "a", "b"} {
			if _, err := s.Accept(t.Context(), h.acceptance(name, string(rune('x'+i)), 1)); err != nil {
				t.Fatal(err)
			}
		}
		_, b := h.routed("b")
		for range 2 {
			if err := s.RecordRejected(t.Context(), state.Rejection{WebhookID: b.ID, WebhookUID: b.UID, FactoryUID: h.factory, Outcome: state.DeliveryRejectedAuth, Received: now, Sender: "192.0.2.1"}); err != nil {
				t.Fatal(err)
			}
		}
		deliveries := func(factory string, since time.Time) map[string]int64 {
			t.Helper()
			tallies, err := s.DeliveryTallies(t.Context(), factory, since, since.Add(90*time.Minute), time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			sums := map[string]int64{}
			for _, n := range tallies {
				if n.From.Truncate(time.Minute) != n.From || n.From.Before(now.Add(-time.Minute)) {
					t.Errorf("a span begins at %s", n.From)
				}
				w, err := s.Webhook(t.Context(), h.factory, n.WebhookUID)
				if err != nil {
					t.Fatal(err)
				}
				sums[w.Spec.Name+" "+string(n.Outcome)] += n.Count
			}
			return sums
		}
		want := map[string]int64{"a accepted": 2, "b accepted": 1, "b rejected_auth": 2}
		for _, factory := range []string{"", h.factory} {
			if diff := cmp.Diff(want, deliveries(factory, now.Add(-time.Hour))); diff != "" {
				t.Errorf("factory %q: %s", factory, diff)
			}
		}
		if got := deliveries("fac_01h455vb4pex5vsknk084sn02q", now.Add(-time.Hour)); len(got) != 0 {
			t.Errorf("another factory: %v", got)
		}
		for _, since := range []time.Time{now.Add(time.Hour), now.Add(-2 * time.Hour)} {
			if got := deliveries("", since); len(got) != 0 {
				t.Errorf("since %s: %v", since.Sub(now), got)
			}
		}

		runs, _, err := s.Runs(t.Context(), state.RunFilter{}, state.RunOrder{}, nil, 10)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.RequestCancel(t.Context(), runs[0].ID, "tester"); err != nil {
			t.Fatal(err)
		}
		tallies, err := s.RunTallies(t.Context(), now.Add(-time.Hour), now.Add(time.Hour), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		sums := map[state.RunState]int64{}
		for _, n := range tallies {
			sums[n.State] += n.Count
		}
		if diff := cmp.Diff(map[state.RunState]int64{state.RunQueued: 2, state.RunCancelled: 1}, sums); diff != "" {
			t.Error(diff)
		}
		for _, since := range []time.Time{now.Add(time.Hour), now.Add(-2 * time.Hour)} {
			tallies, err := s.RunTallies(t.Context(), since, since.Add(time.Hour), time.Minute)
			if err != nil || len(tallies) != 0 {
				t.Errorf("since %s: %v, %v", since.Sub(now), tallies, err)
			}
		}
	})
}

// TestNewestAccepted reads the newest deliveries to some webhooks with their payloads, whether these were
// compressed or not.
func TestNewestAccepted(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		h := newHooks(t, s, "a", "b", "c")
		began := time.Now().Add(-time.Hour)
		bodies := map[string]string{}
		var want, uids []string
		for i := range 40 {
			name := []string{"a", "b", "c"}[i%3]
			a := h.acceptance(name, fmt.Sprint(i), 0)
			if a.Body = []byte(strings.Repeat(fmt.Sprint(i, " "), i*i)); i%2 == 0 {
				a.Headers = []byte("X-N: " + fmt.Sprint(i) + "\r\n")
			}
			if i == 0 {
				a.Received = began.Add(-time.Hour)
			}
			if _, err := s.Accept(t.Context(), a); err != nil {
				t.Fatal(err)
			}
			if bodies[a.UID] = string(a.Body) + string(a.Headers); name != "c" && i > 0 {
				want = append(want, a.UID)
			}
			if i < 2 {
				uids = append(uids, a.WebhookUID)
			}
			_, err := s.Accept(t.Context(), h.acceptance(name, fmt.Sprint(i), 0)) // a duplicate
			if err != nil {
				t.Fatal(err)
			}
		}
		slices.Sort(want)
		slices.Reverse(want)

		for _, limit := range []int{1, 20, 26, 100} {
			var got []string
			err := s.NewestAccepted(t.Context(), h.factory, uids, began, limit, func(d state.StoredDelivery) {
				got = append(got, d.UID)
				if string(d.Body)+string(d.Headers) != bodies[d.UID] {
					t.Errorf("the payload of %s is %d bytes, want %d", d.UID, len(d.Body), len(bodies[d.UID]))
				}
			})
			if expected := want[:min(limit, len(want))]; err != nil || !slices.Equal(got, expected) {
				t.Errorf("the newest %d are %v, %v; want %v", limit, got, err, expected)
			}
		}

		ctx, cancel := context.WithCancel(t.Context())
		n := 0
		err := s.NewestAccepted(ctx, h.factory, uids, began, 100, func(state.StoredDelivery) { n++; cancel() })
		if !errors.Is(err, context.Canceled) || n == 0 || n == len(want) {
			t.Errorf("%d deliveries after the end: %v", n, err)
		}
	})
}
