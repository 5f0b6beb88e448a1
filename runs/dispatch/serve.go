package dispatch

import (
	"cmp"
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

// serve answers requests of a verb whose reply goes to the worker's own inbox.
func (d *Dispatcher) serve(verb string, handle nats.MsgHandler) error {
	sub, err := d.nc.QueueSubscribe(wire.Subject("*", verb), "servers", func(m *nats.Msg) {
		if repliesToSender(m) {
			handle(m)
		}
	})
	d.served = append(d.served, sub)
	return err
}

// unsubscribe lets the other servers get all later requests. Requests under way are still handled.
func (d *Dispatcher) unsubscribe() {
	if d.nc == nil {
		return
	}

	for _, sub := range d.served {
		_ = sub.Drain() // it fails without a connection, when no requests arrive either
	}

	handled := make(chan struct{})
	if d.nc.FlushTimeout(time.Second) != nil || d.nc.Barrier(func() { close(handled) }) != nil {
		return
	}

	select {
	case <-handled:
	case <-time.After(time.Second):
	}
}

// spawn runs f in a goroutine, unless the dispatcher is closing.
func (d *Dispatcher) spawn(f func()) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ctx.Err() != nil {
		return false
	}
	d.wg.Go(f)
	return true
}

// workerOf returns the UID in a worker's subject. NATS allows the subject to that worker alone.
func workerOf(subject string) string {
	uid, _, _ := strings.Cut(strings.TrimPrefix(subject, "worker."), ".")
	return uid
}

// repliesToSender reports whether the answer to a request goes to the inbox of the sending worker. A server
// has more permissions than a worker, so it must not answer on other subjects.
func repliesToSender(m *nats.Msg) bool {
	rest, own := strings.CutPrefix(m.Reply, wire.Inbox(workerOf(m.Subject))+".")
	return own && rest != "" && !strings.ContainsAny(rest, "*> \t\r\n")
}

func (d *Dispatcher) handle(m *nats.Msg, f func(context.Context, string, wire.Request) wire.Answer) {
	var r wire.Request
	a := failure(fmt.Errorf("request is not JSON: %w", wire.ErrRefused))
	if json.Unmarshal(m.Data, &r) == nil {
		worker := workerOf(m.Subject)
		if _, err := d.admitted(d.ctx, worker); err != nil {
			a = failure(err)
		} else {
			a = f(d.ctx, worker, r)
		}
	}

	if a.Error == wire.CodeUnavailable && d.ctx.Err() != nil {
		return // closing; another server, or this one after its restart, answers the repeat
	}

	d.answer(m.Reply, a)
}

// answer sends an answer to the inbox of the worker that asked.
func (d *Dispatcher) answer(inbox string, a wire.Answer) {
	body, err := json.Marshal(a)
	if err == nil {
		err = d.nc.Publish(inbox, body)
	}
	if err != nil {
		d.cfg.Log.Warn("dispatch: answer a worker", "error", err)
	}
}

// failure returns the code of an error for a worker.
func failure(err error) wire.Answer {
	switch {
	case errors.Is(err, state.ErrLost):
		return wire.Answer{Error: wire.CodeLost}
	case errors.Is(err, state.ErrNotFound):
		return wire.Answer{Error: wire.CodeNotFound, Detail: err.Error()}
	case errors.Is(err, wire.ErrRefused), errors.Is(err, state.ErrConflict), errors.Is(err, state.ErrFull):
		return wire.Answer{Error: wire.CodeRefused, Detail: err.Error()}
	}
	return wire.Answer{Error: wire.CodeUnavailable, Detail: "try again"}
}

func claimOf(worker string, r wire.Request) state.Claim {
	return state.Claim{RunID: r.Run, Worker: worker, Token: r.Token}
}

// span starts a span of a run's trace.
func (d *Dispatcher) span(
	ctx context.Context,
	name string,
	r state.Run,
	at time.Time,
) (context.Context, *trace.Span) {
	ctx, span := d.cfg.Tracer.Start(trace.Continue(ctx, r.Traceparent), name, at)
	span.Set(trace.Run, r.ID).
		Set(trace.Delivery, r.DeliveryUID).
		Set(trace.Worker, r.Worker).
		Count(trace.Execution, r.Execution).
		Count(trace.Attempt, r.Attempt)
	return ctx, span
}

// ended ends the trace of a run that has ended, with a span that started at the given time.
func (d *Dispatcher) ended(r state.Run, began time.Time) {
	_, span := d.span(d.ctx, "finish", r, began)
	if span.Set(trace.State, string(r.State)); r.State == state.RunError || r.State == state.RunFailed {
		span.Fail(cmp.Or(r.ErrorCode, "failed"))
	}
	span.End()
}

// admitted reports whether a worker may get and continue work: its key may have been revoked since it
// connected. It returns the factories that the key is limited to, nil if it is not.
func (d *Dispatcher) admitted(ctx context.Context, worker string) (factories []string, err error) {
	if !state.ValidID(state.PrefixKey, worker) {
		return nil, nil // in a server's own process
	}

	key, err := d.cfg.Store.Key(ctx, worker)
	if err != nil {
		return nil, err
	}

	if !key.Live(time.Now()) || key.Role != state.RoleWorker {
		return nil, fmt.Errorf(
			"the worker's key %s is revoked, has expired, or is of another role: %w",
			worker,
			wire.ErrRefused,
		)
	}

	return key.Factories, nil
}

func (d *Dispatcher) onStart(ctx context.Context, worker string, r wire.Request) wire.Answer {
	cancel, err := d.cfg.Store.StartRun(ctx, claimOf(worker, r), d.cfg.Lease)
	if err != nil {
		return failure(err)
	}
	return wire.Answer{Cancel: cancel}
}

func (d *Dispatcher) onHeartbeat(ctx context.Context, worker string, r wire.Request) wire.Answer {
	cancel, err := d.cfg.Store.RenewLease(ctx, claimOf(worker, r), d.cfg.Lease)
	if err != nil {
		return failure(err)
	}
	return wire.Answer{Cancel: cancel}
}

// Limits of a worker's requests about a run.
const (
	maxMessages      = 1000 // in one request
	maxSkills        = 64 << 10
	maxStatusMessage = 8 << 10
)

// messagesOf checks the messages of a worker, and converts them for the state.
func messagesOf(r wire.Request) ([]state.Message, error) {
	if len(r.Messages) > maxMessages {
		return nil, fmt.Errorf("%d messages at once: at most %d: %w", len(r.Messages), maxMessages, wire.ErrRefused)
	}

	now := time.Now() // by this server's clock
	var all []state.Message
	for i, m := range r.Messages {
		if m.Role != wire.Assistant || len(m.Content) == 0 {
			return nil, fmt.Errorf("message %d: only the assistant's words are taken: %w", i, wire.ErrRefused)
		}

		taken := state.Message{Role: state.RoleAssistant, At: now}
		for _, b := range m.Content {
			if !b.Valid() {
				return nil, fmt.Errorf("message %d: not a block: %w", i, wire.ErrRefused)
			}
			taken.Content = append(taken.Content, state.Block(b))
		}

		all = append(all, taken)
	}

	return all, nil
}

func (d *Dispatcher) onAppend(ctx context.Context, worker string, r wire.Request) wire.Answer {
	messages, err := messagesOf(r)
	if err != nil {
		return failure(err)
	}

	if r.Skills != nil {
		var skills []struct {
			Name string `json:"name"`
		}
		if err := json.Unmarshal(r.Skills, &skills); err != nil || len(r.Skills) > maxSkills {
			return failure(fmt.Errorf("skills: want a list of at most %d bytes: %w", maxSkills, wire.ErrRefused))
		}
		if err := d.cfg.Store.SetSkills(ctx, claimOf(worker, r), r.Skills); err != nil {
			return failure(err)
		}
	}

	over, err := d.setUsage(ctx, claimOf(worker, r), r.Usage)
	if err != nil {
		return failure(err)
	}

	if len(r.Messages) > 0 || r.Skills == nil && r.Usage == nil {
		if err := d.cfg.Store.AppendEntries(ctx, claimOf(worker, r), r.From, messages); err != nil {
			return failure(err)
		}
	}

	return wire.Answer{Over: over}
}

// clean returns text that databases and terminals accept: valid UTF-8 without NUL, at most max bytes.
func clean(text string, max int) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
	if len(text) > max {
		text = strings.ToValidUTF8(text[:max], "")
	}
	return text
}

func (d *Dispatcher) onRelease(ctx context.Context, worker string, r wire.Request) wire.Answer {
	if err := d.cfg.Store.ReleaseRun(ctx, claimOf(worker, r)); err != nil {
		return failure(err)
	}
	return wire.Answer{}
}
