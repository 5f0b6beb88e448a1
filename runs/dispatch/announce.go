package dispatch

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"millwright/state"
)

// The work queue. A run has at most one announcement in it, because its subject may hold only one message,
// so that announcing again what waits already adds nothing.
const (
	streamName   = "RUNS"
	consumerName = "servers"
	announced    = "runs.queued."
	maxQueue     = 100_000 // announcements at once; the rest waits in the database
	ackWait      = 5 * time.Second
)

// ensureStream makes the work queue, or finds it made.
func (d *Dispatcher) ensureStream(ctx context.Context) error {
	replicas := 1
	if len(d.cfg.Cluster) > 2 {
		replicas = 3
	}
	stream, err := d.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: streamName, Subjects: []string{announced + "*"},
		Retention: jetstream.WorkQueuePolicy, Storage: jetstream.MemoryStorage, Replicas: replicas,
		Discard: jetstream.DiscardNew, DiscardNewPerSubject: true, MaxMsgsPerSubject: 1, MaxMsgs: maxQueue,
	})
	if err != nil {
		return err
	}
	consumer, err := stream.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
		Durable: consumerName, AckPolicy: jetstream.AckExplicitPolicy, AckWait: ackWait,
		MaxWaiting: 10_000, MaxAckPending: 10_000, MaxDeliver: -1,
	})
	if err != nil {
		return err
	}
	d.setConsumer(consumer)
	return nil
}

func (d *Dispatcher) setConsumer(c jetstream.Consumer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.consumer == nil {
		close(d.ready)
	}
	d.consumer = c
}

// currentConsumer returns the work queue's consumer, or nil before it is made.
func (d *Dispatcher) currentConsumer() jetstream.Consumer {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.consumer
}

// announceLoop announces runs as the state tells of them. What is lost is made good by the sweeper.
func (d *Dispatcher) announceLoop(notices <-chan state.Notice) {
	for {
		select {
		case <-d.ctx.Done():
			return
		case n := <-notices:
			if d.announced.Load() != noQueue {
				d.announce(n.ID)
				continue
			}
			select {
			case d.direct <- n.ID:
			default: // nobody waits here
			}
		}
	}
}

func (d *Dispatcher) announce(runID string) {
	if err := d.nc.Publish(announced+runID, nil); err != nil {
		d.cfg.Log.Debug("announce", "run_id", runID, "error", err)
	}
}

// noQueue is how many announcements wait when there is no work queue: JetStream's storage was lost, too few
// servers of the cluster are there for a majority, or for as many copies as the queue has.
const noQueue = -1

// queueLoop keeps the work queue existing, and counts its announcements.
func (d *Dispatcher) queueLoop() {
	tick := time.NewTicker(d.cfg.Sweep / 3)
	defer tick.Stop()
	told := false
	for {
		n, err := d.keepQueue()
		d.announced.Store(n)
		switch {
		case d.ctx.Err() != nil:
			return
		case err != nil && !told:
			d.cfg.Log.Warn("dispatch: no work queue; until there is one, runs are handed out from the database", "error", err)
		case err == nil && told:
			d.cfg.Log.Info("dispatch: the work queue stands")
		}
		told = err != nil
		select {
		case <-d.ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// keepQueue returns how many announcements the work queue holds, and makes it when it is not there.
func (d *Dispatcher) keepQueue() (int64, error) {
	n, err := d.waiting()
	if err == nil {
		return n, nil
	}
	d.announced.Store(noQueue)
	ctx, cancel := context.WithTimeout(d.ctx, 5*time.Second)
	defer cancel()
	if err := d.ensureStream(ctx); err != nil {
		return noQueue, err
	}
	return 0, nil
}

// waiting returns how many announcements the work queue holds. An error means that it must be made.
func (d *Dispatcher) waiting() (int64, error) {
	ctx, cancel := context.WithTimeout(d.ctx, 2*time.Second)
	defer cancel()
	stream, err := d.js.Stream(ctx, streamName)
	if err != nil {
		return 0, err
	}
	if _, err := stream.Consumer(ctx, consumerName); err != nil {
		return 0, err
	}
	if d.currentConsumer() == nil {
		return 0, errors.New("not looked at yet")
	}
	return int64(stream.CachedInfo().State.Msgs), nil
}

// sweepLoop brings the runs that have been queued for long to workers, whatever became of their announcements.
func (d *Dispatcher) sweepLoop() {
	tick := time.NewTicker(d.cfg.Sweep / 3)
	defer tick.Stop()
	var full time.Time
	for {
		var err error
		if n := d.announced.Load(); n == noQueue {
			err = d.handOut()
		} else {
			err = d.sweep(n, &full)
		}
		if err != nil && d.ctx.Err() == nil {
			d.cfg.Log.Warn("dispatch: look for queued runs", "error", err)
		}
		select {
		case <-d.ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// page is how many queued runs are read at once.
const page = 1000

// handOut gives queued runs to the claims that wait on this server, for the time of one sweep. Other
// servers may offer the same runs; each is claimed once.
func (d *Dispatcher) handOut() error {
	ctx, cancel := context.WithTimeout(d.ctx, d.cfg.Sweep/3)
	defer cancel()
	runs, err := d.cfg.Store.QueuedRuns(d.ctx, time.Now(), state.QueuedRun{}, page)
	if err != nil {
		return err
	}
	for _, r := range runs {
		select {
		case d.direct <- r.ID:
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

// fullSweep is how often everything queued is announced again, even while the work queue holds much.
const fullSweep = 30 * time.Second

// sweep announces the runs that have been queued for long. While the work queue holds many announcements
// nobody is idle, and a look at every queued run can wait.
func (d *Dispatcher) sweep(waiting int64, full *time.Time) error {
	ctx, cancel := context.WithTimeout(d.ctx, 10*time.Second)
	defer cancel()
	const enough = 2000
	all := time.Since(*full) >= fullSweep
	if waiting >= enough && !all {
		return nil
	}
	var after state.QueuedRun
	deadline := time.Now().Add(-d.cfg.Sweep)
	for n := 0; n < maxQueue; {
		runs, err := d.cfg.Store.QueuedRuns(ctx, deadline, after, page)
		if err != nil {
			return err
		}
		for _, r := range runs {
			d.announce(r.ID)
			after = r
		}
		if n += len(runs); len(runs) < page {
			*full = time.Now()
			return nil
		}
		if !all && n >= 2*enough {
			return nil
		}
	}
	*full = time.Now()
	return nil
}

// announcement is a queued run that was taken from the work queue, or handed out without it.
type announcement struct {
	run string
	msg jetstream.Msg // nil when handed out
}

// done takes the announcement from the work queue.
func (a announcement) done() {
	if a.msg != nil {
		a.msg.Ack()
	}
}

// later leaves the announcement to somebody else, a second from now.
func (a announcement) later() {
	if a.msg != nil {
		a.msg.NakWithDelay(time.Second)
	}
}

// next waits for a queued run until ctx ends.
func (d *Dispatcher) next(ctx context.Context) (announcement, error) {
	for ctx.Err() == nil {
		fetching, cancel := context.WithCancel(ctx)
		var a announcement
		select {
		case a = <-d.fetch(fetching):
		case a.run = <-d.direct:
		}
		cancel()
		if a.run != "" {
			return a, nil
		}
	}
	return announcement{}, ctx.Err()
}

// fetch takes the next announcement from the work queue. The channel is closed without one when ctx ends,
// and when none came: the work queue may be being made anew. What is not received goes back.
func (d *Dispatcher) fetch(ctx context.Context) <-chan announcement {
	out := make(chan announcement)
	d.wg.Go(func() {
		defer close(out)
		select {
		case <-ctx.Done():
			return
		case <-d.ready:
		}
		if batch, err := d.currentConsumer().Fetch(1, jetstream.FetchContext(ctx)); err == nil {
			if msg, ok := <-batch.Messages(); ok {
				select {
				case out <- announcement{run: strings.TrimPrefix(msg.Subject(), announced), msg: msg}:
				case <-ctx.Done():
					msg.Nak()
				}
				return
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	})
	return out
}
