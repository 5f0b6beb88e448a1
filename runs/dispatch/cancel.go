package dispatch

import (
	"strings"
	"time"

	"millwright/runs/wire"
	"millwright/state"
	"millwright/state/notice"
)

// cueLoop notifies workers of requests to cancel their runs, and of messages and answers for them, before they ask
// again. The worker may be connected to any server's NATS.
func (d *Dispatcher) cueLoop(notices <-chan notice.Notice) {
	for {
		select {
		case <-d.ctx.Done():
			return
		case n := <-notices:
			worker, run, _ := strings.Cut(n.ID, " ")
			verb := wire.VerbCancel
			if n.Topic == notice.Wake {
				verb = wire.VerbWake
			}
			if err := d.nc.Publish(wire.Subject(worker, verb), []byte(run)); err != nil {
				d.cfg.Log.Debug("dispatch: notify a worker of a run", "run_id", run, "verb", verb, "error", err)
			}
		}
	}
}

// Cancelled ends the trace of a run that was cancelled before a worker claimed it. r is the result of
// [state.Store.RequestCancel].
func (d *Dispatcher) Cancelled(r state.Run) {
	if r.Ended() {
		d.ended(r, time.Now())
	}
}
