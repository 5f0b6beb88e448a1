package dispatch

import "context"

// LoseQueue deletes the work queue, as a loss of JetStream's storage does.
func (d *Dispatcher) LoseQueue(ctx context.Context) error { return d.js.DeleteStream(ctx, streamName) }
