//go:build unix

package worker

import (
	"context"
	"maps"
	"slices"
	"time"

	"millwright/runs/wire"
)

const (
	reportEvery = 10 * time.Second
	reportGap   = time.Second     // between reports, however often they change
	goodbyeTime = 2 * time.Second // for the last one
)

// reportUntil tells servers what this process is and does, from time to time and when it changes, until it is
// ended. A server that cannot be reached, or that is too old to listen, is told nothing.
func (w *worker) reportUntil() (end func()) {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})

	go func() {
		defer close(done)
		for {
			if err := w.cfg.Client.Report(ctx, w.report()); err != nil {
				w.cfg.Log.Debug("worker: report", "error", err)
			}

			select {
			case <-ctx.Done():
				return
			case <-time.After(reportGap):
			}

			select {
			case <-ctx.Done():
				return
			case <-w.changed:
			case <-time.After(reportEvery - reportGap):
			}
		}
	}()

	return func() {
		stop()
		<-done

		last, cancel := context.WithTimeout(context.Background(), goodbyeTime)
		defer cancel()

		if err := w.cfg.Client.Report(last, nil); err != nil {
			w.cfg.Log.Debug("worker: last report", "error", err)
		}
	}
}

// noteChange has the next report sent soon.
func (w *worker) noteChange() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

func (w *worker) report() *wire.Report {
	w.mu.Lock()
	defer w.mu.Unlock()

	return &wire.Report{
		Name:      w.cfg.Name,
		Version:   w.cfg.Version,
		Slots:     w.cfg.Slots,
		Harnesses: slices.Sorted(maps.Keys(w.harnesses)),
		Runs:      slices.Sorted(maps.Keys(w.jobs)),
	}
}
