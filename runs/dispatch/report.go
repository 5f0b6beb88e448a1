package dispatch

import (
	"context"
	"fmt"

	"millwright/runs/wire"
	"millwright/state"
	"millwright/state/workers"
)

// Limits of a report.
const (
	maxVersion   = 100 // bytes
	maxHarnesses = 200 // names, each of maxName bytes
	maxRunIDs    = 1000
	maxRunID     = 64 // bytes
)

// onReport records the report of a worker process, or its end.
func (d *Dispatcher) onReport(ctx context.Context, worker string, r wire.Request) wire.Answer {
	var err error
	if r.Report == nil {
		err = d.cfg.Store.Workers().Remove(ctx, state.WorkerUID(worker, r.Instance))
	} else {
		err = d.see(ctx, worker, r)
	}
	if err != nil {
		return failure(err)
	}
	return wire.Answer{}
}

func (d *Dispatcher) see(ctx context.Context, worker string, r wire.Request) error {
	said := r.Report
	if len(r.Instance) > maxInstance || len(said.Harnesses) > maxHarnesses || len(said.Runs) > maxRunIDs {
		return fmt.Errorf("report: too many harnesses or runs, or too long an instance: %w", wire.ErrRefused)
	}

	report := workers.Report{
		UID:       state.WorkerUID(worker, r.Instance),
		Worker:    worker,
		Name:      clean(said.Name, maxName),
		Version:   clean(said.Version, maxVersion),
		Slots:     min(max(said.Slots, 0), maxRunIDs),
		Harnesses: []string{},
		Runs:      []string{},
	}
	for _, name := range said.Harnesses {
		report.Harnesses = append(report.Harnesses, clean(name, maxName))
	}
	for _, id := range said.Runs {
		report.Runs = append(report.Runs, clean(id, maxRunID))
	}

	return d.cfg.Store.Workers().See(ctx, report)
}
