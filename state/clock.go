package state

import (
	"context"
	"sync"
	"time"
)

const (
	clockEvery  = 10 * time.Second // between readings of the database's clock
	clockJump   = time.Second      // by how much a reading differs that means that the database's clock was set, or that this machine slept
	clockSteady = 30 * time.Second // for how long nothing is reaped then: holders prolong their leases meanwhile
	clockWarn   = 2 * time.Second  // from which difference on it is logged
)

// clock follows the clock of a PostgreSQL server, by which all that share a state judge leases: their own
// clocks may differ. Between two readings it goes on by the monotonic clock of this machine, so that it
// does not jump when that machine's clock is set. Without a reading, as with SQLite, it is this machine's.
type clock struct {
	mu       sync.RWMutex
	read     time.Time // when the last reading was, here
	said     time.Time // what it was, there
	unsteady time.Time // when a reading last differed from what was expected, here
	warned   bool
}

// now is the time by the database's clock.
func (c *clock) now() time.Time {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.read.IsZero() {
		return time.Now()
	}
	return c.said.Add(time.Since(c.read))
}

// skew is by how much this machine's clock is ahead of the database's.
func (c *clock) skew() time.Duration {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.read.IsZero() {
		return 0
	}
	now := time.Now()
	return now.Round(0).Sub(c.said.Add(now.Sub(c.read)))
}

// steady reports whether leases can be judged: no reading was unexpected lately.
func (c *clock) steady() bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.unsteady.IsZero() || time.Since(c.unsteady) >= clockSteady
}

// set takes a reading: what the database said between asked and answered. It reports whether the clock
// jumped. A reading that took long says too little, unless it is the first.
func (c *clock) set(asked, answered, said time.Time) (jumped bool) {
	c.mu.Lock()
	defer c.mu.Unlock()

	took := answered.Sub(asked)
	if took > clockJump && !c.read.IsZero() {
		return false
	}

	here := asked.Add(took / 2)
	if !c.read.IsZero() {
		off := said.Sub(c.said.Add(here.Sub(c.read))).Abs()
		if jumped = off > clockJump; jumped {
			c.unsteady = answered
		}
	}

	c.read, c.said = here, said
	return jumped
}

// readClock reads the database's clock once.
func (s *Store) readClock(ctx context.Context) error {
	if s.dialect != postgres {
		return nil
	}

	var us int64
	asked := time.Now()
	err := s.write.QueryRowContext(ctx, `SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint`).Scan(&us)
	if err != nil {
		return s.classify(err)
	}

	if s.clock.set(asked, time.Now(), timeOf(us)) {
		s.log.Warn(
			"the database's clock was set, or this machine slept: no run is taken back from its worker for a while",
			"pause",
			clockSteady.String(),
		)
	}

	skew := s.clock.skew()
	far := skew.Abs() > clockWarn
	if far && !s.clock.warned {
		s.log.Warn(
			"this machine's clock differs from the database's: leases go by the database's; let NTP set both",
			"ahead",
			skew.Round(time.Millisecond).String(),
		)
	}

	if !far && s.clock.warned {
		s.log.Info("this machine's clock agrees with the database's again")
	}

	s.clock.warned = far
	return nil
}

// followClock reads the database's clock again and again until ctx ends.
func (s *Store) followClock(ctx context.Context) {
	tick := time.NewTicker(clockEvery)
	defer tick.Stop()

	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}

		if err := s.readClock(ctx); err != nil && ctx.Err() == nil {
			s.log.Debug("reading the database's clock", "error", err)
		}
	}
}

// ClockSkew returns by how much this machine's clock is ahead of the clock that leases go by, at the last
// reading of that; 0 with SQLite.
func (s *Store) ClockSkew() time.Duration { return s.clock.skew() }

// leaseEnd is the end of a lease that begins now.
func (s *Store) leaseEnd(lease time.Duration) int64 { return micros(s.clock.now().Add(lease)) }
