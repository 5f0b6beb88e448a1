package bounds

import (
	"context"
	"maps"
	"sync"
	"time"
)

// Slots bound expensive work: a few pieces run, and some more wait for their turn. Both count for the
// sender's share.
type Slots struct {
	*Pool
	turns    chan struct{}
	patience time.Duration

	pace time.Duration // pause between turns of one sender; 0: none
	mu   sync.Mutex
	next map[string]time.Time // earliest next turn of a sender
}

func newSlots(a about, working, places, most int64, patience time.Duration) *Slots {
	return &Slots{
		Pool:     newPool(a, places, shares{most: most}),
		turns:    make(chan struct{}, working),
		patience: patience,
		next:     map[string]time.Time{},
	}
}

// paced sets the pause between turns of one sender.
func (s *Slots) paced(pace time.Duration) *Slots {
	s.pace = pace
	return s
}

// Enter waits for a turn. It returns false if there is no place to wait, if ctx ends, or if the turn does
// not come in time. Otherwise call leave after the work.
func (s *Slots) Enter(ctx context.Context, sender string) (leave func(), ok bool) {
	if !s.Take(sender, 1) {
		return nil, false
	}

	patience := time.NewTimer(s.patience)
	defer patience.Stop()

	select {
	case <-s.due(sender, time.Now()):
	case <-patience.C:
		s.Give(sender, 1)
		return nil, false
	case <-ctx.Done():
		s.Give(sender, 1)
		return nil, false
	}

	select {
	case s.turns <- struct{}{}:
		return func() {
			<-s.turns
			s.Give(sender, 1)
		}, true
	case <-patience.C:
	case <-ctx.Done():
	}

	s.Give(sender, 1)
	return nil, false
}

// closed is a channel that does not block.
var closed = func() chan time.Time {
	c := make(chan time.Time)
	close(c)
	return c
}()

// due returns a channel that yields when the sender's pace allows its next turn.
func (s *Slots) due(sender string, now time.Time) <-chan time.Time {
	if s.pace == 0 {
		return closed
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	if int64(len(s.next)) >= s.limit {
		maps.DeleteFunc(s.next, func(_ string, at time.Time) bool { return at.Before(now) })
	}

	at := s.next[sender]
	if at.Before(now) {
		at = now
	}

	s.next[sender] = at.Add(s.pace)
	return time.After(at.Sub(now))
}
