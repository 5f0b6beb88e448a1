package state_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"millwright/state"
	"millwright/state/statetest"
)

func ask(n int) []state.Ask {
	return slices.Repeat([]state.Ask{{Worker: "key_w", WorkerName: "worker"}}, n)
}

// claimed returns the runs that n asks get, in their order.
func claimed(t *testing.T, s *state.Store, served string, n int) (ids []string) {
	t.Helper()
	all, err := s.ClaimRuns(t.Context(), served, ask(n), lease, state.ClaimBounds{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		if c.Run.State != state.RunClaimed || c.Run.Worker != "key_w" || c.Claim.RunID != c.Run.ID {
			t.Errorf("claimed: %+v", c)
		}
		ids = append(ids, c.Run.ID)
	}
	return ids
}

func TestQueueIsOldestFirst(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		var ids []string
		for range 5 {
			ids = append(ids, create(t, s, newRun("x")).ID)
		}
		start(t, s, ids[1])
		q, err := s.Queue(t.Context())
		if err != nil || q.Queued != 4 || q.Held != 1 || q.Oldest == nil || !q.Oldest.Equal(run(t, s, ids[0]).Queued) {
			t.Errorf("queue %+v, %v", q, err)
		}

		got := claimed(t, s, "", 2)
		got = append(got, claimed(t, s, "", 3)...)
		if want := []string{ids[0], ids[2], ids[3], ids[4]}; !cmp.Equal(got, want) {
			t.Errorf("claimed %v, want %v", got, want)
		}
		if got := claimed(t, s, "", 1); got != nil {
			t.Errorf("claimed %v from an empty queue", got)
		}
	})
}

// TestNoFactoryStarves queues one run each of two factories, and one without a factory, behind the many of
// another: however the claims are batched, each gets a run within one round.
func TestNoFactoryStarves(t *testing.T) {
	for batch := 1; batch <= 5; batch++ {
		t.Run(fmt.Sprint(batch), func(t *testing.T) {
			statetest.Each(t, func(t *testing.T, s *state.Store) {
				queue := func(factory string) string {
					n := newRun("x")
					n.FactoryUID = factory
					return create(t, s, n).ID
				}
				var many []string
				for range 12 {
					many = append(many, queue("fac_m"))
				}
				got := claimed(t, s, "", batch)
				if !cmp.Equal(got, many[:batch]) {
					t.Errorf("claimed %v of one factory, want %v", got, many[:batch])
				}

				few := []string{queue("fac_a"), queue("fac_z"), queue("")}
				served := "fac_m"
				got = nil
				for len(got) < 4 {
					all, err := s.ClaimRuns(t.Context(), served, ask(min(batch, 4-len(got))), lease, state.ClaimBounds{})
					if err != nil {
						t.Fatal(err)
					}
					for _, c := range all {
						got, served = append(got, c.Run.ID), c.Run.FactoryUID
					}
				}
				if want := []string{few[1], few[2], few[0], many[batch]}; !cmp.Equal(got, want) {
					t.Errorf("claimed %v, want %v", got, want)
				}
			})
		})
	}
}

// TestClaimsOfMany has claimers of several processes empty a queue at once, beside those who cancel: no run
// is claimed twice, none is left.
func TestClaimsOfMany(t *testing.T) {
	statetest.EachDSN(t, func(t *testing.T, dsn string) {
		stores := []*state.Store{statetest.Open(t, dsn)}
		for len(stores) < 3 && stores[0].Shared() {
			stores = append(stores, statetest.Open(t, dsn))
		}
		const n = 300
		var ids []string
		for i := range n {
			r := newRun("x")
			r.FactoryUID = fmt.Sprint("fac_", i%7)
			ids = append(ids, create(t, stores[0], r).ID)
		}

		var mu sync.Mutex
		var got []string
		var work sync.WaitGroup
		for i := range 9 {
			work.Go(func() {
				served := ""
				for {
					all, err := stores[i%len(stores)].ClaimRuns(t.Context(), served, ask(1+i), lease, state.ClaimBounds{})
					if err != nil {
						t.Error(err)
						return
					}
					if len(all) == 0 {
						return
					}
					mu.Lock()
					for _, c := range all {
						got, served = append(got, c.Run.ID), c.Run.FactoryUID
					}
					mu.Unlock()
				}
			})
		}
		cancelled := map[string]bool{}
		work.Go(func() {
			for i := 0; i < n; i += 10 {
				r, err := stores[0].RequestCancel(t.Context(), ids[i], "tester")
				if err != nil {
					t.Error(err)
				}
				if r.State == state.RunCancelled {
					cancelled[r.ID] = true
				}
			}
		})
		work.Wait()

		want := slices.DeleteFunc(ids, func(id string) bool { return cancelled[id] })
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("claimed: %s", diff)
		}
	})
}

// TestHeldBackRunReturns has a worker never begin with what it was given: the hold is over long before a
// lease would be, and no attempt is counted.
func TestHeldBackRunReturns(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		id := create(t, s, newRun("x")).ID
		all, err := s.ClaimRuns(t.Context(), "", ask(1), time.Second, state.ClaimBounds{})
		if err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		reaped, err := s.ReapRuns(t.Context(), time.Now().Add(2*time.Second), 10)
		if err != nil || len(reaped) != 1 || reaped[0].ID != id || reaped[0].Attempt != 1 {
			t.Errorf("reaped %+v, %v", reaped, err)
		}
		if got := claimed(t, s, "", 1); !cmp.Equal(got, []string{id}) {
			t.Errorf("claimed %v", got)
		}
	})
}

func emptyFactory(t *testing.T, s *state.Store, name string) (uid string) {
	t.Helper()
	f, err := s.EnsureFactory(t.Context(), name, state.Source{Kind: "managed"}, false)
	if err != nil {
		t.Fatal(err)
	}
	return f.UID
}

// TestRunsPerFactory has one factory queue more runs than workers may hold of it. The others' runs are
// claimed, and its own once it has room again.
func TestRunsPerFactory(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		full, other := emptyFactory(t, s, "full"), emptyFactory(t, s, "other")
		of := func(factory string, n int) (ids []string) {
			for range n {
				r := newRun("x")
				r.FactoryUID = factory
				ids = append(ids, create(t, s, r).ID)
			}
			return ids
		}
		claim := func(n, perFactory int) (all []state.Claimed) {
			t.Helper()
			all, err := s.ClaimRuns(t.Context(), "", ask(n), lease, state.ClaimBounds{Factory: perFactory})
			if err != nil {
				t.Fatal(err)
			}
			return all
		}
		count := func(all []state.Claimed) (ofFull, ofOthers int) {
			for _, c := range all {
				if c.Run.FactoryUID == full {
					ofFull++
				} else {
					ofOthers++
				}
			}
			return ofFull, ofOthers
		}

		greedy := of(full, 6)
		of(other, 3)
		of("", 1)
		first := claim(10, 2)
		if ofFull, ofOthers := count(first); ofFull != 2 || ofOthers != 3 {
			t.Errorf("claimed %d of the full factory, %d of the others", ofFull, ofOthers)
		}
		if again := claim(10, 2); len(again) != 0 {
			t.Errorf("claimed %d beyond the bound", len(again))
		}

		for _, c := range first {
			if c.Run.ID == greedy[0] {
				if err := s.ReleaseRun(t.Context(), c.Claim); err != nil {
					t.Fatal(err)
				}
			}
		}
		if next := claim(10, 2); len(next) != 1 || next[0].Run.FactoryUID != full {
			t.Errorf("with room for one again, %d are claimed", len(next))
		}
		if ofFull, ofOthers := count(claim(10, 3)); ofFull != 1 || ofOthers != 1 {
			t.Errorf("with another bound, %d and %d are claimed", ofFull, ofOthers)
		}
		if ofFull, _ := count(claim(10, 0)); ofFull != 3 {
			t.Errorf("without a bound %d are claimed", ofFull)
		}
	})
}

// TestRunsPerFactoryOverServers has several servers claim at once. Together they never pass the bound.
func TestRunsPerFactoryOverServers(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		uid := emptyFactory(t, s, "full")
		for range 20 {
			r := newRun("x")
			r.FactoryUID = uid
			create(t, s, r)
		}

		var claims sync.WaitGroup
		for range 8 {
			claims.Go(func() {
				if _, err := s.ClaimRuns(t.Context(), "", ask(5), lease, state.ClaimBounds{Factory: 3}); err != nil {
					t.Error(err)
				}
			})
		}
		claims.Wait()

		q, err := s.Queue(t.Context())
		if err != nil || q.Held != 3 || q.Queued != 17 {
			t.Errorf("queue %+v, %v", q, err)
		}
	})
}

// TestPostponedRuns has runs wait for a pause, as often as they are postponed.
func TestPostponedRuns(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		id := create(t, s, newRun("x")).ID
		for claims, pause := range []time.Duration{0, time.Minute} {
			if _, err := s.ReleaseDue(t.Context()); err != nil {
				t.Fatal(err)
			}
			all, err := s.ClaimRuns(t.Context(), "", ask(1), lease, state.ClaimBounds{})
			if err != nil || len(all) != 1 || all[0].Run.Claims() != claims+1 || all[0].Run.Attempt != 1 {
				t.Fatalf("claimed %+v, %v", all, err)
			}

			began := time.Now()
			if err := s.PostponeRun(t.Context(), all[0].Claim, "the forge\x00 sleeps", pause); err != nil {
				t.Fatal(err)
			}
			r := run(t, s, id)
			if r.State != state.RunQueued || r.WaitsFor != "retry" || !strings.HasSuffix(r.StatusMessage, "sleeps") ||
				r.Queued.Before(began.Add(pause).Truncate(time.Microsecond)) {
				t.Errorf("postponed: %+v", r)
			}
			if err := s.PostponeRun(t.Context(), all[0].Claim, "", 0); !errors.Is(err, state.ErrLost) {
				t.Errorf("postponed twice: %v", err)
			}
		}

		next, err := s.ReleaseDue(t.Context())
		if got := claimed(t, s, "", 1); got != nil || err != nil || !next.After(time.Now()) {
			t.Errorf("claimed %v before %s, %v", got, next, err)
		}
		if r, err := s.RequestCancel(t.Context(), id, "ci"); err != nil || r.State != state.RunCancelled {
			t.Errorf("cancelled: %+v, %v", r, err)
		}
	})
}

// TestClaimsOfSomeFactories gives workers that are limited to factories the runs of these in turn, with each kind of
// bound, and leaves all others.
func TestClaimsOfSomeFactories(t *testing.T) {
	for name, bounds := range map[string]state.ClaimBounds{
		"free": {}, "of a factory": {Factory: 9}, "of an automation": {Automation: 9},
	} {
		t.Run(name, func(t *testing.T) {
			statetest.Each(t, func(t *testing.T, s *state.Store) {
				var uids []string
				for _, name := range []string{"a", "b", "c", "d"} {
					uids = append(uids, emptyFactory(t, s, name))
				}
				for _, uid := range append([]string{""}, uids...) {
					for range 2 {
						r := newRun("x")
						r.FactoryUID = uid
						create(t, s, r)
					}
				}

				claim := func(served string, n int, factories ...string) (of []string) {
					t.Helper()
					all, err := s.ClaimRunsOf(t.Context(), factories, served, ask(n), lease, bounds)
					if err != nil {
						t.Fatal(err)
					}
					for _, c := range all {
						of = append(of, c.Run.FactoryUID)
					}
					return of
				}
				if got := claim(uids[1], 9, uids[2], uids[0], "fac_none"); !slices.Equal(got, []string{
					uids[2], uids[0], uids[2], uids[0],
				}) {
					t.Errorf("claimed runs of %q", got)
				}
				if got := claim(uids[3], 9, uids[0], uids[2]); len(got) > 0 {
					t.Errorf("claimed runs of %q", got)
				}
				if got, err := s.ClaimRunsOf(t.Context(), []string{}, "", ask(9), lease, bounds); err != nil || len(got) > 0 {
					t.Errorf("%d runs of no factory: %v", len(got), err)
				}
				if got := claim("", 9); len(got) != 6 {
					t.Errorf("claimed runs of %q without a limit", got)
				}
			})
		})
	}
}
