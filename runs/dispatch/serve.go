package dispatch

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"millwright/state"
	"millwright/trace"
)

// waits are the claims that wait for work, so that a worker that leaves can call them off.
type waits struct {
	mu  sync.Mutex
	all map[string]map[int]context.CancelFunc // by worker and instance
	n   int
}

func (w *waits) init() { w.all = map[string]map[int]context.CancelFunc{} }

// maxWaits is how many claims wait on one server at most.
const maxWaits = 10_000

func (w *waits) add(who string, cancel context.CancelFunc) (done func(), ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.all) >= maxWaits || len(w.all[who]) >= maxWaits {
		return nil, false
	}
	if w.all[who] == nil {
		w.all[who] = map[int]context.CancelFunc{}
	}
	w.n++
	id := w.n
	w.all[who][id] = cancel
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.all[who], id)
		if len(w.all[who]) == 0 {
			delete(w.all, who)
		}
	}, true
}

func (w *waits) leave(who string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, cancel := range w.all[who] {
		cancel()
	}
}

// serveWorkers answers what workers ask. Any server may answer; the queue group picks one.
func (d *Dispatcher) serveWorkers() error {
	handlers := map[string]func(context.Context, string, request) answer{
		verbStart: d.onStart, verbHeartbeat: d.onHeartbeat, verbAppend: d.onAppend,
		verbFinish: d.onFinish, verbRelease: d.onRelease, verbFile: d.onFile,
	}
	for verb, handle := range handlers {
		if _, err := d.nc.QueueSubscribe(subject("*", verb), "servers", func(m *nats.Msg) {
			if !repliesToSender(m) {
				return
			}

			select {
			case d.slots <- struct{}{}:
			case <-d.ctx.Done():
				return
			}
			if !d.spawn(func() {
				defer func() { <-d.slots }()
				d.handle(m, handle)
			}) {
				<-d.slots
			}
		}); err != nil {
			return err
		}
	}
	if _, err := d.nc.QueueSubscribe(subject("*", verbClaim), "servers", func(m *nats.Msg) {
		if repliesToSender(m) {
			d.spawn(func() { d.handle(m, d.onClaim) })
		}
	}); err != nil {
		return err
	}
	if _, err := d.nc.Subscribe(subject("*", verbLeave), func(m *nats.Msg) {
		var r request
		if json.Unmarshal(m.Data, &r) == nil {
			d.waits.leave(workerOf(m.Subject) + "/" + r.Instance)
		}
	}); err != nil {
		return err
	}
	return d.nc.Flush()
}

// spawn runs f beside what else is done, unless we are closing.
func (d *Dispatcher) spawn(f func()) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ctx.Err() != nil {
		return false
	}
	d.wg.Go(f)
	return true
}

// workerOf returns the UID in a worker's subject. NATS let only that worker use it.
func workerOf(subject string) string {
	uid, _, _ := strings.Cut(strings.TrimPrefix(subject, "worker."), ".")
	return uid
}

// repliesToSender reports whether the answer to a request goes to the inbox of the worker that sent it. A
// server answers with rights of its own, so to any other subject it would send what the worker may not.
func repliesToSender(m *nats.Msg) bool {
	rest, own := strings.CutPrefix(m.Reply, inbox(workerOf(m.Subject))+".")
	return own && rest != "" && !strings.ContainsAny(rest, "*> \t\r\n")
}

func (d *Dispatcher) handle(m *nats.Msg, f func(context.Context, string, request) answer) {
	var r request
	a := failure(fmt.Errorf("request is not JSON: %w", ErrRefused))
	if json.Unmarshal(m.Data, &r) == nil {
		worker := workerOf(m.Subject)
		if err := d.admitted(d.ctx, worker); err != nil {
			a = failure(err)
		} else {
			a = f(d.ctx, worker, r)
		}
	}
	if a.Error == codeUnavailable && d.ctx.Err() != nil {
		return // we are closing; another server, or we when we are back, will answer the repeat
	}
	body, err := json.Marshal(a)
	if err == nil {
		err = m.Respond(body)
	}
	if err != nil && !errors.Is(err, nats.ErrMsgNoReply) {
		d.cfg.Log.Warn("dispatch: answer a worker", "worker", workerOf(m.Subject), "error", err)
	}
}

func (r request) claim(worker string) state.Claim {
	return state.Claim{RunID: r.Run, Worker: worker, Token: r.Token}
}

// maxWait is how long a claim waits for work at most, and maxInstance how long the name of a process is.
const (
	maxWait     = time.Minute
	maxInstance = 64
)

// onClaim waits for an announcement, claims its run and answers with the work order.
func (d *Dispatcher) onClaim(ctx context.Context, worker string, r request) answer {
	if len(r.Instance) > maxInstance {
		return failure(fmt.Errorf("instance of %d bytes: at most %d: %w", len(r.Instance), maxInstance, ErrRefused))
	}

	ctx, cancel := context.WithTimeout(ctx, min(max(r.Wait, 0), maxWait))
	defer cancel()
	done, ok := d.waits.add(worker+"/"+r.Instance, cancel)
	if !ok {
		return answer{Error: codeUnavailable, Detail: "too many claims wait"}
	}
	defer done()
	name := r.Name
	if name == "" || len(name) > 200 {
		name = worker
	}
	for {
		next, err := d.next(ctx)
		if err != nil {
			return answer{} // nothing yet
		}
		if err := d.admitted(ctx, worker); err != nil { // it may have waited for long
			next.later()
			return failure(err)
		}
		claimed, run, err := d.cfg.Store.ClaimRun(context.WithoutCancel(ctx), next.run, worker, name, d.cfg.Lease)
		switch {
		case errors.Is(err, state.ErrConflict):
			next.done() // someone has it, or it was cancelled
			continue
		case err != nil:
			next.later()
			return failure(err)
		}
		next.done()
		d.metrics.claimed(run)
		d.cfg.Log.Info("run claimed", "run_id", run.ID, "delivery_id", run.DeliveryUID, "worker", worker, "execution", run.Execution, "attempt", run.Attempt)
		traced, span := d.span(ctx, "dispatch", run, run.Queued)
		order, err := d.order(context.WithoutCancel(ctx), claimed, run)
		if err == nil {
			order.Traceparent = trace.Position(traced)
			span.End()
			return answer{Order: order}
		}
		span.Fail("environment_setup_failed").End()
		d.cfg.Log.Warn("run cannot be prepared", "run_id", run.ID, "error", err)
		d.giveUp(context.WithoutCancel(ctx), claimed, err)
	}
}

// span begins a part of a run's trace.
func (d *Dispatcher) span(ctx context.Context, name string, r state.Run, at time.Time) (context.Context, *trace.Span) {
	ctx, span := d.cfg.Tracer.Start(trace.Continue(ctx, r.Traceparent), name, at)
	span.Set(trace.Run, r.ID).Set(trace.Delivery, r.DeliveryUID).Set(trace.Worker, r.Worker).Count(trace.Execution, r.Execution).Count(trace.Attempt, r.Attempt)
	return ctx, span
}

// ended ends the trace of a run that has ended, by what began at the given time.
func (d *Dispatcher) ended(r state.Run, began time.Time) {
	_, span := d.span(d.ctx, "finish", r, began)
	if span.Set(trace.State, string(r.State)); r.State == state.RunError || r.State == state.RunFailed {
		span.Fail(cmp.Or(r.ErrorCode, "failed"))
	}
	span.End()
}

// admitted reports whether a worker may have work and go on with it: its key may have been revoked since it
// connected.
func (d *Dispatcher) admitted(ctx context.Context, worker string) error {
	if !state.ValidID(state.PrefixKey, worker) {
		return nil // in a server's own process
	}
	key, err := d.cfg.Store.Key(ctx, worker)
	if err != nil {
		return err
	}
	if !key.Live(time.Now()) || key.Role != state.RoleWorker {
		return fmt.Errorf("the worker's key %s is revoked, has expired, or is of another role: %w", worker, ErrRefused)
	}
	return nil
}

// giveUp ends a run that was claimed and for which no work order can be made.
func (d *Dispatcher) giveUp(ctx context.Context, c state.Claim, cause error) {
	var unfit unfitError
	code := "internal_error"
	if errors.As(cause, &unfit) {
		code = "environment_setup_failed"
	}
	var err error
	if errors.Is(cause, state.ErrUnavailable) || ctx.Err() != nil {
		err = d.cfg.Store.ReleaseRun(ctx, c) // the state cannot be read just now
	} else if _, err = d.cfg.Store.StartRun(ctx, c, d.cfg.Lease); err == nil {
		_, err = d.cfg.Store.FinishRun(ctx, c, state.Result{State: state.RunError, ErrorCode: code, Message: cause.Error()})
	}
	if err != nil {
		d.cfg.Log.Warn("dispatch: give up a run", "run_id", c.RunID, "error", err)
	}
}

func (d *Dispatcher) onStart(ctx context.Context, worker string, r request) answer {
	cancel, err := d.cfg.Store.StartRun(ctx, r.claim(worker), d.cfg.Lease)
	if err != nil {
		return failure(err)
	}
	return answer{Cancel: cancel}
}

func (d *Dispatcher) onHeartbeat(ctx context.Context, worker string, r request) answer {
	cancel, err := d.cfg.Store.RenewLease(ctx, r.claim(worker), d.cfg.Lease)
	if err != nil {
		return failure(err)
	}
	return answer{Cancel: cancel}
}

// Limits of what a worker may send about a run.
const (
	maxMessages      = 1000 // in one request
	maxSkills        = 64 << 10
	maxStatusMessage = 8 << 10
)

func checkMessages(messages []state.Message) error {
	if len(messages) > maxMessages {
		return fmt.Errorf("%d messages at once: at most %d: %w", len(messages), maxMessages, ErrRefused)
	}
	now := time.Now()
	for i := range messages {
		m := &messages[i]
		if m.Role != state.RoleAssistant || len(m.Content) == 0 {
			return fmt.Errorf("message %d: only the assistant's words are taken: %w", i, ErrRefused)
		}
		for _, b := range m.Content {
			if !b.Valid() {
				return fmt.Errorf("message %d: not a block: %w", i, ErrRefused)
			}
		}
		m.At = now // by our clock
	}
	return nil
}

func (d *Dispatcher) onAppend(ctx context.Context, worker string, r request) answer {
	if err := checkMessages(r.Messages); err != nil {
		return failure(err)
	}
	if r.Skills != nil {
		var skills []struct {
			Name string `json:"name"`
		}
		if err := json.Unmarshal(r.Skills, &skills); err != nil || len(r.Skills) > maxSkills {
			return failure(fmt.Errorf("skills: want a list of at most %d bytes: %w", maxSkills, ErrRefused))
		}
		if err := d.cfg.Store.SetSkills(ctx, r.claim(worker), r.Skills); err != nil {
			return failure(err)
		}
	}
	if len(r.Messages) == 0 && r.Skills != nil {
		return answer{}
	}
	if err := d.cfg.Store.AppendEntries(ctx, r.claim(worker), r.From, r.Messages); err != nil {
		return failure(err)
	}
	return answer{}
}

func (d *Dispatcher) onFinish(ctx context.Context, worker string, r request) answer {
	if err := checkMessages(r.Messages); err != nil {
		return failure(err)
	}
	switch r.Code {
	case "", "environment_setup_failed", "agent_process_failed", "infrastructure_timeout", "internal_error":
	default:
		return failure(fmt.Errorf("error code %q: %w", r.Code, ErrRefused))
	}
	if !r.State.Ended() {
		return failure(fmt.Errorf("state %q: %w", r.State, ErrRefused))
	}
	result := state.Result{State: r.State, Message: clean(r.Message, maxStatusMessage), ErrorCode: r.Code, From: r.From, Messages: r.Messages}
	began := time.Now()
	now, err := d.cfg.Store.FinishRun(ctx, r.claim(worker), result)
	if err != nil {
		return failure(err)
	}
	if run, err := d.cfg.Store.Run(ctx, r.Run); err == nil && now.Ended() {
		d.metrics.finished(run)
		d.ended(run, began)
	}
	return answer{State: now}
}

// clean makes text that any database and terminal takes: valid UTF-8 without NUL, at most max bytes.
func clean(text string, max int) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
	if len(text) > max {
		text = strings.ToValidUTF8(text[:max], "")
	}
	return text
}

func (d *Dispatcher) onRelease(ctx context.Context, worker string, r request) answer {
	if err := d.cfg.Store.ReleaseRun(ctx, r.claim(worker)); err != nil {
		return failure(err)
	}
	return answer{}
}

// onFile answers with a part of a file of the run that the worker holds.
func (d *Dispatcher) onFile(ctx context.Context, worker string, r request) answer {
	if _, err := d.cfg.Store.RenewLease(ctx, r.claim(worker), d.cfg.Lease); err != nil {
		return failure(err)
	}
	run, err := d.cfg.Store.Run(ctx, r.Run)
	if err != nil {
		return failure(err)
	}
	body, err := d.fileBody(ctx, run, r.Name)
	if err != nil {
		return failure(err)
	}
	if r.Offset < 0 || r.Offset > len(body) {
		return failure(fmt.Errorf("offset %d of %d: %w", r.Offset, len(body), ErrRefused))
	}
	digest := sha256.Sum256(body)
	return answer{Data: body[r.Offset:min(r.Offset+chunk, len(body))], Size: len(body), Digest: hex.EncodeToString(digest[:])}
}
