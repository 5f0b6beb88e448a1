package statetest

import (
	"testing"
	"time"
)

// Patience bounds each wait of a test. It is longer than the lease of an output that a dead server took and the wait
// for the forge's late answer together, which are a minute each.
const Patience = 5 * time.Minute

// Until returns once done reports true. It fails the test after Patience, and prints what it waited for.
func Until(t testing.TB, what string, done func() bool) {
	t.Helper()
	Drain(t, what, func() int {
		if done() {
			return 0
		}
		return 1
	})
}

// Drain returns once left reports 0. It fails the test, and prints what it waited for, after Patience in which left
// did not fall below its lowest value.
func Drain(t testing.TB, what string, left func() int) {
	t.Helper()
	least, since := left(), time.Now()
	for pause := time.Millisecond; least > 0; pause = min(2*pause, 100*time.Millisecond) {
		time.Sleep(pause)
		now := left()
		switch {
		case now < least:
			least, since = now, time.Now()
		case time.Since(since) > Patience:
			t.Fatalf("waited %v until %s: %d left", Patience, what, now)
		}
	}
}

// Receive returns the next value from a channel, and false when the channel is closed. It fails the test after
// Patience, and prints what it waited for.
func Receive[T any](t testing.TB, what string, from <-chan T) (v T, ok bool) {
	t.Helper()
	select {
	case v, ok = <-from:
	case <-time.After(Patience):
		t.Fatalf("waited %v for %s", Patience, what)
	}
	return v, ok
}
