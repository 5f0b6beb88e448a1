package dispatch

import (
	"context"
	"fmt"
	"time"

	"millwright/runs/wire"
	"millwright/state"
)

func (d *Dispatcher) onFinish(ctx context.Context, worker string, r wire.Request) wire.Answer {
	messages, err := messagesOf(r)
	if err != nil {
		return failure(err)
	}

	switch r.Code {
	case "", "environment_setup_failed", "agent_process_failed", "infrastructure_timeout", "internal_error",
		"budget_exceeded":
	default:
		return failure(fmt.Errorf("error code %q: %w", r.Code, wire.ErrRefused))
	}

	result := state.Result{
		State:     state.RunState(r.State),
		Message:   clean(r.Message, maxStatusMessage),
		ErrorCode: r.Code,
		From:      r.From,
		Messages:  messages,
	}
	if !result.State.Ended() {
		return failure(fmt.Errorf("state %q: %w", r.State, wire.ErrRefused))
	}

	if r.Later && result.State == state.RunError {
		waits, err := d.postponed(ctx, claimOf(worker, r), result.Message)
		if err != nil {
			return failure(err)
		}
		if waits {
			return wire.Answer{State: wire.RunState(state.RunQueued)}
		}
	}

	if _, err := d.setUsage(ctx, claimOf(worker, r), r.Usage); err != nil { // FinishRun compares it with the budgets
		return failure(err)
	}

	if err := d.judge(ctx, claimOf(worker, r), r, &result); err != nil {
		return failure(err)
	}

	began := time.Now()
	now, err := d.cfg.Store.FinishRun(ctx, claimOf(worker, r), result)
	if err != nil {
		return failure(err)
	}
	if d.bounds.Load() != (state.ClaimBounds{}) { // its factory or automation may have room now
		d.look()
	}
	if run, err := d.cfg.Store.Run(ctx, r.Run); err == nil && run.Ended() {
		d.metrics.finished(run)
		d.ended(run, began)
	}

	return wire.Answer{State: wire.RunState(now)}
}
