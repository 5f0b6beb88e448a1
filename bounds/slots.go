package bounds

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// Slots bound expensive work: a few pieces run, and some more wait for their turn. Both count for the
// sender's share.
type Slots struct {
	*Pool
	turns    *semaphore.Weighted
	patience time.Duration

	pace  time.Duration // between the turns of one sender; 0: none
	mu    sync.Mutex
	lanes map[string]*lane // of the senders that wait, or had a turn within pace
}

// lane has the turns of one sender follow each other.
type lane struct {
	turn  chan struct{} // full for pace after each turn began
	users int
}

func newSlots(a about, working, places, most int64, patience time.Duration) *Slots {
	return &Slots{
		Pool:     newPool(a, places, shares{most: most}),
		turns:    semaphore.NewWeighted(working),
		patience: patience,
		lanes:    map[string]*lane{},
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
	return s.EnterWith(ctx, sender, 1)
}

// EnterWith is Enter for work of a size. The work in progress has together no more than the slots do.
func (s *Slots) EnterWith(ctx context.Context, sender string, size int64) (leave func(), ok bool) {
	if !s.Take(sender, 1) {
		return nil, false
	}

	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()

	if s.pace > 0 && !s.await(ctx, sender) || s.turns.Acquire(ctx, size) != nil {
		s.Give(sender, 1)
		return nil, false
	}

	return func() {
		s.turns.Release(size)
		s.Give(sender, 1)
	}, true
}

// await waits until the sender's pace allows its next turn. Who gives up waiting delays nobody.
func (s *Slots) await(ctx context.Context, sender string) bool {
	s.mu.Lock()
	l := s.lanes[sender]
	if l == nil {
		l = &lane{turn: make(chan struct{}, 1)}
		s.lanes[sender] = l
	}
	l.users++
	s.mu.Unlock()

	select {
	case l.turn <- struct{}{}:
		time.AfterFunc(s.pace, func() {
			<-l.turn
			s.leaveLane(sender, l)
		})
		return true
	case <-ctx.Done():
	}

	s.leaveLane(sender, l)
	return false
}

func (s *Slots) leaveLane(sender string, l *lane) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(s.lanes, sender)
	}
}
