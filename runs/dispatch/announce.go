package dispatch

import (
	"context"
	"errors"
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

// announceLoop announces runs as the state tells of them. What is lost is made good by the sweeper.
func (d *Dispatcher) announceLoop(notices <-chan state.Notice) {
	for {
		select {
		case <-d.ctx.Done():
			return
		case n := <-notices:
			d.announce(n.ID)
		}
	}
}

func (d *Dispatcher) announce(runID string) {
	if err := d.nc.Publish(announced+runID, nil); err != nil {
		d.cfg.Log.Debug("announce", "run_id", runID, "error", err)
	}
}

// sweepLoop keeps the work queue existing, and filled with what has waited for long.
func (d *Dispatcher) sweepLoop() {
	tick := time.NewTicker(d.cfg.Sweep / 3)
	defer tick.Stop()
	var full time.Time
	for {
		err := d.sweep(&full)
		if err != nil && d.ctx.Err() == nil {
			d.cfg.Log.Warn("dispatch: keep the work queue", "error", err)
		}
		select {
		case <-d.ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// fullSweep is how often everything queued is announced again, even while the work queue holds much.
const fullSweep = 30 * time.Second

// sweep announces the runs that have been queued for long. While the work queue holds many announcements
// nobody is idle, and a look at every queued run can wait.
func (d *Dispatcher) sweep(full *time.Time) error {
	ctx, cancel := context.WithTimeout(d.ctx, 10*time.Second)
	defer cancel()
	waiting, err := d.waiting(ctx)
	if err != nil {
		if err := d.ensureStream(ctx); err != nil {
			return err
		}
	}
	const enough, page = 2000, 1000
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

// waiting returns how many announcements the work queue holds. An error means that it must be made.
func (d *Dispatcher) waiting(ctx context.Context) (int, error) {
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
	return int(stream.CachedInfo().State.Msgs), nil
}

// reapLoop takes runs away from workers that are silent for too long.
func (d *Dispatcher) reapLoop() {
	slack := d.cfg.Lease / 6 // for servers whose clocks differ
	tick := time.NewTicker(slack)
	defer tick.Stop()
	for {
		select {
		case <-d.ctx.Done():
			return
		case <-tick.C:
		}
		runs, err := d.cfg.Store.ReapRuns(d.ctx, time.Now().Add(-slack), 1000)
		if err != nil && d.ctx.Err() == nil {
			d.cfg.Log.Warn("dispatch: take back lost runs", "error", err)
		}
		d.noteReaped(runs)
	}
}

// reapOwn takes back the runs that the worker of this state's only server held when it ended.
func (d *Dispatcher) reapOwn(ctx context.Context) error {
	runs, err := d.cfg.Store.ReapWorker(ctx, LocalWorker)
	d.noteReaped(runs)
	return err
}

func (d *Dispatcher) noteReaped(runs []state.Run) {
	for _, r := range runs {
		d.cfg.Log.Warn("run lost by its worker", "run_id", r.ID, "worker", r.Worker, "state", r.State, "attempt", r.Attempt)
		if r.State.Ended() {
			d.metrics.finished(r)
			d.ended(r, time.Now())
		}
	}
}
