package db

import (
	"context"
	"time"
)

const (
	clockEvery  = 10 * time.Second // between readings of the database's clock
	clockJump   = time.Second      // a reading that differs by more: the clock was set, or this machine slept
	clockSteady = 30 * time.Second // nothing is reaped for so long then: holders prolong their leases meanwhile
	clockWarn   = 2 * time.Second  // from which difference on it is logged
)

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

// ReadClock reads the database's clock once more.
func (d *DB) ReadClock(ctx context.Context) error {
	if d.dialect != postgres {
		return nil
	}

	var us int64
	asked := time.Now()
	err := d.write.QueryRowContext(ctx, `SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint`).Scan(&us)
	if err != nil {
		return classify(err)
	}

	if d.clock.set(asked, time.Now(), Time(us)) {
		d.log.Warn(
			"the database's clock was set, or this machine slept: no run is taken back from its worker for a while",
			"pause",
			clockSteady.String(),
		)
	}

	skew := d.clock.skew()
	far := skew.Abs() > clockWarn
	if far && !d.clock.warned {
		d.log.Warn(
			"this machine's clock differs from the database's: leases go by the database's; let NTP set both",
			"ahead",
			skew.Round(time.Millisecond).String(),
		)
	}

	if !far && d.clock.warned {
		d.log.Info("this machine's clock agrees with the database's again")
	}

	d.clock.warned = far
	return nil
}

// followClock reads the database's clock again and again until ctx ends.
func (d *DB) followClock(ctx context.Context) {
	tick := time.NewTicker(clockEvery)
	defer tick.Stop()

	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}

		if err := d.ReadClock(ctx); err != nil && ctx.Err() == nil {
			d.log.Debug("reading the database's clock", "error", err)
		}
	}
}

// ClockSkew returns by how much this machine's clock is ahead of the clock that leases go by, at the last
// reading of that; 0 with SQLite.
func (d *DB) ClockSkew() time.Duration { return d.clock.skew() }

// Now returns the time by the clock that leases go by.
func (d *DB) Now() time.Time { return d.clock.now() }

// LeaseEnd returns the end of a lease that begins now, as it is stored.
func (d *DB) LeaseEnd(lease time.Duration) int64 { return Micros(d.Now().Add(lease)) }

// ClockSteady reports whether leases can be judged: the clock that they go by was not set lately.
func (d *DB) ClockSteady() bool { return d.clock.steady() }
