package bounds

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestPacedSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := newSlots(about{}, 2, 100, 0, time.Second).paced(100 * time.Millisecond)
		enter := func(sender string) (waited time.Duration, ok bool) {
			began := time.Now()
			leave, ok := slots.Enter(t.Context(), sender)
			if ok {
				leave()
			}
			return time.Since(began), ok
		}

		for i, want := range []time.Duration{0, 100 * time.Millisecond, 100 * time.Millisecond} {
			if waited, ok := enter("192.0.2.1"); !ok || waited != want {
				t.Errorf("turn %d of a sender: waited %v, %t; want %v", i, waited, ok, want)
			}
		}
		if waited, ok := enter("192.0.2.2"); !ok || waited != 0 {
			t.Errorf("another sender: waited %v, %t", waited, ok)
		}
	})
}

func TestPacedSlotsEndWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := newSlots(about{}, 2, 100, 0, time.Second).paced(time.Minute)
		leave, ok := slots.Enter(t.Context(), "192.0.2.1")
		if !ok {
			t.Fatal("no first turn")
		}
		leave()

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, ok := slots.Enter(ctx, "192.0.2.1"); ok {
			t.Error("a turn for a request that has ended")
		}
		if _, ok := slots.Enter(t.Context(), "192.0.2.1"); ok {
			t.Error("a turn before the pace allows one")
		}
		if held := slots.Held(); held != 0 {
			t.Errorf("%d places are held in the end", held)
		}
	})
}

// Requests that end while they wait, however many, delay no other request of their sender.
func TestPacedSlotsForgetWhoLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := newSlots(about{}, 2, 10_000, 0, time.Second).paced(100 * time.Millisecond)
		leave, ok := slots.Enter(t.Context(), "192.0.2.1")
		if !ok {
			t.Fatal("no first turn")
		}
		leave()

		ended, cancel := context.WithCancel(t.Context())
		cancel()
		for range 1000 {
			if _, ok := slots.Enter(ended, "192.0.2.1"); ok {
				t.Fatal("a turn for a request that has ended")
			}
		}

		began := time.Now()
		leave, ok = slots.Enter(t.Context(), "192.0.2.1")
		if waited := time.Since(began); !ok || waited != 100*time.Millisecond {
			t.Errorf("waited %v, %t", waited, ok)
		}
		leave()
	})
}

func TestPacedSlotsForgetSenders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := newSlots(about{}, 2, 10, 0, time.Second).paced(time.Millisecond)
		for i := range 100 {
			leave, ok := slots.Enter(t.Context(), string(rune('a'+i)))
			if !ok {
				t.Fatal("no turn")
			}
			leave()
			time.Sleep(2 * time.Millisecond)
		}
		slots.mu.Lock()
		defer slots.mu.Unlock()
		if n := len(slots.lanes); n > 10 {
			t.Errorf("%d senders are remembered", n)
		}
	})
}
