package state_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"millwright/state"
	"millwright/state/statetest"
)

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
			tallies, err := s.DeliveryTallies(t.Context(), factory, since, time.Minute)
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
		if got := deliveries("", now.Add(time.Hour)); len(got) != 0 {
			t.Errorf("since a later time: %v", got)
		}

		runs, _, err := s.Runs(t.Context(), state.RunFilter{}, state.RunOrder{}, nil, 10)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.RequestCancel(t.Context(), runs[0].ID); err != nil {
			t.Fatal(err)
		}
		tallies, err := s.RunTallies(t.Context(), now.Add(-time.Hour), time.Minute)
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
		if tallies, err = s.RunTallies(t.Context(), now.Add(time.Hour), time.Minute); err != nil || len(tallies) != 0 {
			t.Errorf("since a later time: %v, %v", tallies, err)
		}
	})
}
