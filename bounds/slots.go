package bounds

import (
	"context"
	"time"
)

// Slots bound work that costs much: few pieces are under way, and some more wait for their turn. Waiting
// and working both count against the sender's share of the places.
type Slots struct {
	*Pool
	turns    chan struct{}
	patience time.Duration
}

func newSlots(a about, working, places, most int64, patience time.Duration) *Slots {
	return &Slots{newPool(a, places, shares{most: most}), make(chan struct{}, working), patience}
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
