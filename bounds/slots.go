package bounds

import (
	"context"
	"maps"
	"sync"
	"time"
)

// Slots bound work that costs much: few pieces are under way, and some more wait for their turn. Waiting
// and working both count against the sender's share of the places.
type Slots struct {
	*Pool
	turns    chan struct{}
	patience time.Duration

	pace time.Duration // between the turns of one sender; 0: none
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

// paced gives the turns of one sender a distance in time.
func (s *Slots) paced(pace time.Duration) *Slots {
	s.pace = pace
	return s
}

// Enter waits for a turn. It returns false when there is no place to wait, when ctx ends, or when the turn
// does not come in time. Otherwise leave must be called once the work is done.
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
