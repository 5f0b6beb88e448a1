package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"

	"millwright/state"
	"millwright/state/notice"
	"millwright/state/outputs"
)

func (o *Outbox) takeOutput(ctx context.Context) (func(), error) {
	row, ok, err := o.cfg.Store.Outputs().Take(ctx, rowLease)
	if err != nil || !ok {
		return nil, err
	}
	return func() { o.attempt(ctx, row) }, nil
}

// attempt performs a taken output once and records the result. An end of the server does not interrupt it.
func (o *Outbox) attempt(ctx context.Context, row outputs.Output) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), attemptTime)
	defer cancel()

	url, err := o.performed(ctx, row)
	record, end := context.WithTimeout(context.WithoutCancel(ctx), rowLease-attemptTime)
	defer end()

	outcome, failed := o.report(record, row, url, err)
	for errors.Is(failed, state.ErrUnavailable) && record.Err() == nil {
		pause(record, recordAgain)
		outcome, failed = o.report(record, row, url, err)
	}
	if failed != nil { // the row's lease ends, and the next attempt looks for the marker
		o.cfg.Log.Warn("outbox: record an output", "output_uid", row.UID, "run_id", row.RunID, "error", failed)
		return
	}

	o.metrics.count(string(row.Kind), outcome)
	log := o.cfg.Log.With("output_uid", row.UID, "run_id", row.RunID, "kind", row.Kind, "outcome", outcome)
	if err != nil {
		log.Warn("output not performed", "attempt", row.Attempts, "error", err)
	} else {
		log.Info("output performed", "url", url)
	}

	o.cfg.Store.Notify(notice.Run, row.RunID)
}

// performed is perform, whose panic on what a forge answers fails the output.
func (o *Outbox) performed(ctx context.Context, row outputs.Output) (url string, err error) {
	defer func() {
		if v := recover(); v != nil {
			o.cfg.Log.Error("outbox: panic",
				"output_uid", row.UID, "panic", v, "stack", string(debug.Stack()))
			url, err = "", errors.New("an error of the server, which its log has")
		}
	}()

	return o.perform(ctx, row)
}

// perform performs an output, and returns the address of what it made.
func (o *Outbox) perform(ctx context.Context, row outputs.Output) (url string, err error) {
	j := &job{Outbox: o, row: row}
	if j.run, err = o.cfg.Store.Run(ctx, row.RunID); err != nil {
		return "", err
	}
	if row.Kind == outputs.Status {
		return "", j.status(ctx)
	}

	if err := json.Unmarshal(row.Body, &j.act); err != nil {
		return "", fmt.Errorf("the output cannot be read as it is stored: %w", err)
	}
	if err := j.open(ctx, j.act.Repository); err != nil {
		return "", err
	}
	if err := j.allow(ctx); err != nil {
		return "", err
	}
	if err := j.account(ctx); err != nil {
		return "", err
	}

	switch row.Kind {
	case outputs.PullRequest:
		return j.pullRequest(ctx)
	case outputs.Comment:
		return j.comment(ctx)
	case outputs.Review:
		return j.review(ctx)
	case outputs.Label:
		return "", j.forge.Labels(ctx, j.repo, j.thread(), j.act.Add, j.act.Remove)
	}

	return "", fmt.Errorf("an output of kind %s cannot be performed", row.Kind)
}
