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
	"millwright/trace"
)

// Limits of an ask.
const (
	maxWait     = time.Minute // for work
	maxInstance = 64          // bytes of the name of a process
	maxName     = 200         // bytes of the worker's UID, and of its name for people
)

// onClaim lets a worker's ask wait for a run. While we are closing, another server may have work.
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
	if err := d.admitted(d.ctx, worker); err != nil {
		return err
	}

	a := &ask{
		worker:   worker,
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

// onLeave calls off the asks of a process that ends, so that they are answered at once.
func (d *Dispatcher) onLeave(m *nats.Msg) {
	var r wire.Request
	if json.Unmarshal(m.Data, &r) == nil {
		worker := workerOf(m.Subject)
		d.asks.leave(func(a *ask) bool { return a.worker == worker && a.instance == r.Instance })
	}
}

// handOutLoop gives queued runs to the asks that wait here, when it is told of a run or an ask, and from
// time to time. A run for which nobody waits here is told to the other servers.
func (d *Dispatcher) handOutLoop(queued <-chan state.Notice) {
	tick := time.NewTicker(d.cfg.Poll)
	defer tick.Stop()

	failing := false
	empty := false // the queue was empty, and nothing was heard of a run since
	ours := false  // a run was queued here that the other servers may not know of
	served := ""   // the factory whose run was handed out last
	for {
		select {
		case <-d.ctx.Done():
			return
		case n := <-queued:
			empty, ours = false, ours || n.ID != ""
		case <-d.asks.came:
		case <-tick.C:
			empty = false
		}

		for len(queued) > 0 {
			n := <-queued
			empty, ours = false, ours || n.ID != ""
		}

		for !empty {
			wait := d.take()
			if len(wait) == 0 {
				break
			}

			n, err := d.handOut(wait, &served)
			if err != nil {
				if !failing {
					d.cfg.Log.Warn("dispatch: claim queued runs: trying again", "error", err)
				}
				time.AfterFunc(retryPause, d.asks.wake)
				failing = true
				break
			}

			failing, empty = false, n < len(wait)
		}

		if ours && !empty && d.asks.len() == 0 {
			if err := d.cfg.Store.Broadcast(state.Notice{Topic: state.TopicQueued}); err != nil {
				d.cfg.Log.Debug("dispatch: tell the other servers of a run", "error", err)
			}
		}

		ours = ours && !empty && d.asks.len() > 0
	}
}

// take returns the asks to serve next, as many as orders can be made for.
func (d *Dispatcher) take() []*ask {
	if d.asks.len() == 0 {
		return nil
	}

	select {
	case d.orders <- struct{}{}:
	case <-d.ctx.Done():
		return nil
	}

	n := 1
	for more := true; more && n < d.asks.len(); {
		select {
		case d.orders <- struct{}{}:
			n++
		default:
			more = false
		}
	}

	taken := d.asks.take(n)
	d.ordered(n - len(taken))
	return taken
}

// ordered makes room for the orders of n more runs.
func (d *Dispatcher) ordered(n int) {
	for range n {
		<-d.orders
	}
}

const (
	claimTimeout = 10 * time.Second       // of a claim in the database
	retryPause   = 100 * time.Millisecond // while the database is away
)

// handOut claims runs for asks and has their orders sent. It returns how many asks were served; the others
// wait on.
func (d *Dispatcher) handOut(taken []*ask, served *string) (int, error) {
	workers := make([]state.Ask, len(taken))
	for i, a := range taken {
		workers[i] = state.Ask{Worker: a.worker, WorkerName: a.name}
	}

	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.ctx), claimTimeout)
	defer cancel()

	claimed, err := d.cfg.Store.ClaimRuns(ctx, *served, workers, min(wire.Hold, d.cfg.Lease))
	for i, c := range claimed {
		*served = c.Run.FactoryUID
		d.wg.Go(func() {
			defer d.ordered(1)
			d.sendOrder(taken[i], c)
		})
	}

	d.ordered(len(taken) - len(claimed))
	d.asks.giveBack(taken[len(claimed):])
	return len(claimed), err
}

// sendOrder makes the order of a claimed run and sends it to the worker that asked, unless the worker's key
// was revoked before the claim.
func (d *Dispatcher) sendOrder(a *ask, c state.Claimed) {
	ctx := context.WithoutCancel(d.ctx)
	if err := d.admitted(ctx, a.worker); errors.Is(err, wire.ErrRefused) {
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

	var unfit unfitError
	code := "internal_error"
	if errors.As(err, &unfit) {
		code = "environment_setup_failed"
	}

	span.Fail(code).End()
	d.cfg.Log.Warn("run cannot be prepared", "run_id", c.Run.ID, "error", err)
	if errors.Is(err, state.ErrUnavailable) || errors.Is(err, errUndelivered) { // it returns when the hold is over
		d.answer(a.reply, failure(err))
		return
	}

	d.giveUp(ctx, c.Claim, code, err)
	d.asks.giveBack([]*ask{a})
	d.asks.wake()
}

// orderInTime makes a work order. While the state cannot be read it tries again, for as long as the worker has
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

// errUndelivered says that an order could not be handed to NATS.
var errUndelivered = errors.New("the order is not sent")

// deliver sends an order. NATS tells below d.undelivered, by the subject, when nobody receives it.
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

// onUndelivered gives back a run whose order reached nobody: its worker is gone, with all that it asked.
func (d *Dispatcher) onUndelivered(m *nats.Msg) {
	part := strings.Split(strings.TrimPrefix(m.Subject, d.undelivered+"."), ".")
	c := state.Claim{RunID: part[0], Worker: part[1], Token: part[2]}
	d.spawn(func() {
		d.asks.leave(func(a *ask) bool { return a.worker == c.Worker })
		d.cfg.Log.Warn("dispatch: a worker was gone when it got a run", "run_id", c.RunID, "worker", c.Worker)
		d.release(d.ctx, c)
	})
}

// release gives back a run that its worker has not got. It returns by itself when the hold is over.
func (d *Dispatcher) release(ctx context.Context, c state.Claim) {
	if err := d.cfg.Store.ReleaseRun(ctx, c); err != nil {
		d.cfg.Log.Warn("dispatch: give back a run", "run_id", c.RunID, "error", err)
	}
}

// giveUp ends a run that was claimed and for which no work order can be made.
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
