package state_test

import (
	"sync"
	"testing"
	"time"

	"millwright/state"
	"millwright/state/statetest"
)

// TestAnIdentityEndsWithItsWindow accepts a body again after its window, from many senders at once.
func TestAnIdentityEndsWithItsWindow(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		h := newHooks(t, s, "a")
		accept := func(uid string, at time.Time, window time.Duration) state.Accepted {
			t.Helper()
			a := h.acceptance("a", "x", 0)
			a.UID, a.Received, a.Window = uid, at, window
			a.Identity = state.IdentityOf(state.IdentityBodyHash, "sha256:x")
			done, err := s.Accept(t.Context(), a)
			if err != nil {
				t.Error(err)
			}
			return done
		}

		old := time.Now().Add(-time.Hour)
		first := state.DeliveryUIDAt(old)
		if accept(first, old, 10*time.Minute).Duplicate {
			t.Fatal("the first is a duplicate")
		}
		if !accept(state.NewID(state.PrefixDelivery), time.Now(), 2*time.Hour).Duplicate {
			t.Error("within its window it is no duplicate")
		}
		if !accept(state.NewID(state.PrefixDelivery), time.Now(), 0).Duplicate {
			t.Error("without a window it is no duplicate")
		}

		var all sync.WaitGroup
		var mu sync.Mutex
		fresh := 0
		for range 20 {
			all.Go(func() {
				done := accept(state.NewID(state.PrefixDelivery), time.Now(), 10*time.Minute)
				mu.Lock()
				defer mu.Unlock()
				if !done.Duplicate {
					fresh++
				}
			})
		}
		all.Wait()
		if fresh != 1 {
			t.Errorf("after its window %d of 20 are no duplicates, want 1", fresh)
		}
	})
}
