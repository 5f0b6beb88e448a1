package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"millwright/runs/wire"
	"millwright/state"
	"millwright/state/notice"
	"millwright/trace"
)

// Limits of an ask.
const (
	maxWait     = time.Minute // for work
	maxInstance = 64          // bytes of the name of a process
	maxName     = 200         // bytes of the worker's UID, and of its display name
)

// onClaim lets a worker's ask wait for a run. While this server closes, another one may have work.
func (d *Dispatcher) onClaim(m *nats.Msg) {
	ok := d.spawn(func() {
		err := d.await(m)
		switch {
		case err != nil && d.ctx.Err() != nil:
			d.answer(m.Reply, wire.Answer{})
		case err != nil:
			d.answer(m.Reply, failure(err))
		}
	})
	if !ok {
		d.answer(m.Reply, wire.Answer{})
	}
}

// await reads an ask and lets it wait.
func (d *Dispatcher) await(m *nats.Msg) error {
	var r wire.Request
	if err := json.Unmarshal(m.Data, &r); err != nil {
		return fmt.Errorf("request is not JSON: %w", wire.ErrRefused)
	}
	if len(r.Instance) > maxInstance {
		return fmt.Errorf("instance of %d bytes: at most %d: %w", len(r.Instance), maxInstance, wire.ErrRefused)
	}

	worker := workerOf(m.Subject)
	if clean(worker, maxName) != worker {
		return fmt.Errorf("the worker's UID is not text of at most %d bytes: %w", maxName, wire.ErrRefused)
	}
	factories, err := d.admitted(d.ctx, worker)
	if err != nil {
		return err
	}

	a := &ask{
		worker:   worker,
		only:     factories,
		scope:    scopeOf(factories),
		instance: r.Instance,
		name:     clean(r.Name, maxName),
		reply:    m.Reply,
		until:    time.Now().Add(min(r.Wait, maxWait)),
	}
	if a.name == "" {
		a.name = worker
	}
	if !d.asks.add(a) {
		return errors.New("too many asks wait")
	}

	return nil
}

// onLeave withdraws the asks of a process that ends, so that they are answered at once.
func (d *Dispatcher) onLeave(m *nats.Msg) {
	var r wire.Request
	if json.Unmarshal(m.Data, &r) == nil {
		worker := workerOf(m.Subject)
		d.asks.leave(func(a *ask) bool { return a.worker == worker && a.instance == r.Instance })
	}
}

// listenLoop wakes a claimer on hints at a queued run, and at intervals.
func (d *Dispatcher) listenLoop(queued <-chan notice.Notice) {
	tick := time.NewTicker(d.cfg.Poll)
	defer tick.Stop()

	for {
		select {
		case <-d.ctx.Done():
			return
		case n := <-queued:
			if n.ID != "" {
				d.queue.ours.Store(true)
			}
		case <-tick.C:
		}

		d.look()
	}
}

// SetBounds changes how many runs of one factory and of one automation workers hold at once; 0 is any number.
// Runs that are held beyond that go on.
func (d *Dispatcher) SetBounds(perFactory, perAutomation int) {
	d.bounds.Store(state.ClaimBounds{Factory: perFactory, Automation: perAutomation})
	d.look()
}

// look wakes a claimer that looks at the queue.
func (d *Dispatcher) look() {
	d.queue.heard.Add(1)
	d.asks.wake()
}

// claimLoop gives queued runs to the waiting asks, until the queue is empty. If no ask waits, it notifies
// the other servers.
func (d *Dispatcher) claimLoop() {
	for {
		select {
		case <-d.ctx.Done():
			return
		case <-d.asks.came:
		}

		n := 1
		for d.handOut(n) {
			n = min(2*n, maxOrders) // claim more at once of a backlog
		}

		if d.queue.hasFor("") && !d.asks.any(d.queue.hasFor) && d.queue.ours.Swap(false) {
			if err := d.cfg.Store.Broadcast(notice.Notice{Topic: notice.Queued}); err != nil {
				d.cfg.Log.Debug("dispatch: tell the other servers of a run", "error", err)
			}
		}
	}
}

// take returns the next asks to serve, all of one scope, at most n, and at most as many as there is room for
// orders.
func (d *Dispatcher) take(n int) []*ask {
	n = min(n, d.asks.len())
	if n == 0 || !d.asks.any(d.queue.hasFor) {
		return nil
	}

	select {
	case d.orders <- struct{}{}:
	case <-d.ctx.Done():
		return nil
	}

	room := 1
	for full := false; !full && room < n; {
		select {
		case d.orders <- struct{}{}:
			room++
		default:
			full = true
		}
	}

	taken := d.asks.take(room, d.queue.hasFor)
	d.ordered(room - len(taken))
	return taken
}

// ordered releases the room of n orders.
func (d *Dispatcher) ordered(n int) {
	for range n {
		<-d.orders
	}
}

const (
	claimTimeout = 10 * time.Second       // of a claim in the database
	retryPause   = 100 * time.Millisecond // while the database is away
)

// handOut claims runs for at most n asks and sends their orders. It reports whether asks waited and the
// state was reachable.
func (d *Dispatcher) handOut(n int) bool {
	taken := d.take(n)
	if len(taken) == 0 {
		return false
	}
	if n > 1 && d.asks.len() > 0 { // another claimer helps with a backlog
		d.asks.wake()
	}

	workers := make([]state.Ask, len(taken))
	for i, a := range taken {
		workers[i] = state.Ask{Worker: a.worker, WorkerName: a.name}
	}

	heard := d.queue.heard.Load()
	served, _ := d.queue.served.Load().(string)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.ctx), claimTimeout)
	defer cancel()

	hold := min(wire.Hold, d.cfg.Lease)
	bounds, _ := d.bounds.Load().(state.ClaimBounds)
	claimed, err := d.cfg.Store.ClaimRunsOf(ctx, taken[0].only, served, workers, hold, bounds)
	for i, c := range claimed {
		d.queue.served.Store(c.Run.FactoryUID)
		d.wg.Go(func() {
			defer d.ordered(1)
			d.sendOrder(taken[i], c)
		})
	}

	d.ordered(len(taken) - len(claimed))
	d.asks.giveBack(taken[len(claimed):])

	if err != nil {
		if !d.queue.failing.Swap(true) {
			d.cfg.Log.Warn("dispatch: claim queued runs: trying again", "error", err)
		}

		// Another claimer may have found the queue empty except for the runs that this one released.
		d.queue.heard.Add(1)
		time.AfterFunc(retryPause, d.asks.wake)
		return false
	}

	d.queue.failing.Store(false)
	if len(claimed) < len(taken) {
		d.queue.emptied(taken[0].scope, heard)
	}

	return true
}

// sendOrder makes the order of a claimed run and sends it to the asking worker, unless the worker's key was
// revoked before the claim.
func (d *Dispatcher) sendOrder(a *ask, c state.Claimed) {
	ctx := context.WithoutCancel(d.ctx)
	if _, err := d.admitted(ctx, a.worker); errors.Is(err, wire.ErrRefused) {
		d.release(ctx, c.Claim)
		d.answer(a.reply, failure(err))
		return
	}

	d.metrics.claimed(c.Run)
	d.cfg.Log.Info("run claimed", "run_id", c.Run.ID, "delivery_id", c.Run.DeliveryUID, "worker", a.worker,
		"execution", c.Run.Execution, "attempt", c.Run.Attempt)

	traced, span := d.span(ctx, "dispatch", c.Run, c.Run.Queued)
	order, err := d.orderInTime(ctx, c)
	if err == nil {
		order.Traceparent = trace.Position(traced)
		err = d.deliver(a, order)
	}
	if err == nil {
		span.End()
		return
	}

	var later laterError
	if errors.As(err, &later) && c.Run.Claims() < maxPostponed {
		span.Fail("environment_setup_failed").End()
		if err := d.postpone(ctx, c, later); err != nil { // the end of the hold requeues it
			d.cfg.Log.Warn("dispatch: postpone a run", "run_id", c.Run.ID, "error", err)
		}
		d.asks.giveBack([]*ask{a})
		d.asks.wake()
		return
	}

	var unfit unfitError
	code := "internal_error"
	if errors.As(err, &unfit) || errors.As(err, &later) {
		code = "environment_setup_failed"
	}

	span.Fail(code).End()
	d.cfg.Log.Warn("run cannot be prepared", "run_id", c.Run.ID, "error", err)
	// The run is requeued when the hold ends.
	if errors.Is(err, state.ErrUnavailable) || errors.Is(err, errUndelivered) {
		d.answer(a.reply, failure(err))
		return
	}

	d.giveUp(ctx, c.Claim, code, err)
	d.asks.giveBack([]*ask{a})
	d.asks.wake()
}

// orderInTime makes a work order. While the state is unreadable it retries, for as long as the worker has
// time to begin.
func (d *Dispatcher) orderInTime(ctx context.Context, c state.Claimed) (*wire.Order, error) {
	for began := time.Now(); ; {
		order, err := d.order(ctx, c.Claim, c.Run)
		if !errors.Is(err, state.ErrUnavailable) || time.Since(began) > wire.Hold {
			return order, err
		}

		select {
		case <-d.ctx.Done():
			return nil, err
		case <-time.After(retryPause):
		}
	}
}

// errUndelivered reports that NATS did not accept an order.
var errUndelivered = errors.New("the order is not sent")

// deliver sends an order. If nobody receives it, NATS reports its subject under d.undelivered.
func (d *Dispatcher) deliver(a *ask, o *wire.Order) error {
	body, err := json.Marshal(wire.Answer{Order: o})
	if err != nil {
		return err
	}

	notice := strings.Join([]string{d.undelivered, o.RunID, a.worker, o.Token}, ".")
	err = d.nc.PublishRequest(a.reply, notice, body)
	if errors.Is(err, nats.ErrMaxPayload) {
		return unfit("the work order has %d bytes, more than NATS takes", len(body))
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errUndelivered, err)
	}

	return nil
}

// onUndelivered releases a run whose order reached nobody. Its worker is gone, so its asks end too.
func (d *Dispatcher) onUndelivered(m *nats.Msg) {
	part := strings.Split(strings.TrimPrefix(m.Subject, d.undelivered+"."), ".")
	c := state.Claim{RunID: part[0], Worker: part[1], Token: part[2]}
	d.spawn(func() {
		d.asks.leave(func(a *ask) bool { return a.worker == c.Worker })
		d.cfg.Log.Warn("dispatch: a worker was gone when it got a run", "run_id", c.RunID, "worker", c.Worker)
		d.release(d.ctx, c)
	})
}

// release requeues a run that did not reach its worker. If that fails, the end of the hold requeues it.
func (d *Dispatcher) release(ctx context.Context, c state.Claim) {
	if err := d.cfg.Store.ReleaseRun(ctx, c); err != nil {
		d.cfg.Log.Warn("dispatch: give back a run", "run_id", c.RunID, "error", err)
	}
}

// maxPostponed is how often an execution is claimed before such a reason ends it. The pauses between are 25
// minutes together.
const maxPostponed = 12

// Pauses before a run is claimed again: the first, which doubles each time, and the longest.
const (
	firstPause   = time.Second
	longestPause = 5 * time.Minute
	maxAsked     = time.Hour // that a forge may ask for
)

// postpone has a claimed run wait before it is claimed again.
func (d *Dispatcher) postpone(ctx context.Context, c state.Claimed, why laterError) error {
	pause := min(firstPause<<(c.Run.Claims()-1), longestPause)
	pause = max(pause, min(why.after, maxAsked))
	d.cfg.Log.Warn("run waits for its forge", "run_id", c.Run.ID, "pause", pause, "error", why)

	message := fmt.Sprintf("%s; the server tries again in %s", why, pause.Round(time.Second))
	return d.cfg.Store.PostponeRun(ctx, c.Claim, message, pause)
}

// postponed has a run wait whose worker asks for it, unless that was too often. It reports whether the run waits.
func (d *Dispatcher) postponed(ctx context.Context, c state.Claim, why string) (bool, error) {
	run, err := d.cfg.Store.Run(ctx, c.RunID)
	if err != nil || run.Claims() >= maxPostponed {
		return false, err
	}

	err = d.postpone(ctx, state.Claimed{Claim: c, Run: run}, laterError{error: errors.New(why)})
	return err == nil, err
}

// giveUp ends a claimed run for which no work order can be made.
func (d *Dispatcher) giveUp(ctx context.Context, c state.Claim, code string, cause error) {
	_, err := d.cfg.Store.StartRun(ctx, c, d.cfg.Lease)
	if err == nil {
		_, err = d.cfg.Store.FinishRun(
			ctx,
			c,
			state.Result{State: state.RunError, ErrorCode: code, Message: cause.Error()},
		)
	}

	if err != nil {
		d.cfg.Log.Warn("dispatch: give up a run", "run_id", c.RunID, "error", err)
	}
}
