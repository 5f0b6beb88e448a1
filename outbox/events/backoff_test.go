package events

import (
	"testing"
	"time"

	"millwright/state/events"
)

// TestAfter holds the pauses between attempts at a receiver that never takes an event: doubling from 5 seconds to
// an hour, for a day.
func TestAfter(t *testing.T) {
	start := time.Now()
	now, e := start, events.Event{GiveUpAt: start.Add(events.GiveUp)}
	want := 5 * time.Second
	for {
		state, next := after(e, answer{status: 500}, now)
		if state == events.Dead {
			break
		}
		if pause := next.Sub(now); pause < want*4/5 || pause > want*6/5 {
			t.Fatalf("after %d tries: %s, want about %s", e.Tries, pause, want)
		}
		now, want = next, min(2*want, time.Hour)
		e.Tries++
	}
	if tried := now.Sub(start); tried > 24*time.Hour || tried < 22*time.Hour {
		t.Errorf("given up after %s", tried)
	}
}
