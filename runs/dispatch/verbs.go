package dispatch

import (
	"context"

	"github.com/nats-io/nats.go"

	"millwright/runs/wire"
)

// serveWorkers answers the requests of workers. The queue group picks one of the servers for each request.
func (d *Dispatcher) serveWorkers() error {
	handlers := map[string]func(context.Context, string, wire.Request) wire.Answer{
		wire.VerbStart:     d.onStart,
		wire.VerbHeartbeat: d.onHeartbeat,
		wire.VerbAppend:    d.onAppend,
		wire.VerbFinish:    d.onFinish,
		wire.VerbRelease:   d.onRelease,
		wire.VerbFile:      d.onFile,
		wire.VerbSnapshot:  d.onSnapshot,
		wire.VerbArtifact:  d.onArtifact,
		wire.VerbCheckout:  d.onCheckedOut,
		wire.VerbReport:    d.onReport,
		wire.VerbAsk:       d.onAsk,
		wire.VerbInbox:     d.onInbox,
	}

	for verb, handle := range handlers {
		if err := d.serve(verb, func(m *nats.Msg) {
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

	if err := d.serve(wire.VerbClaim, d.onClaim); err != nil {
		return err
	}

	for subject, handle := range map[string]nats.MsgHandler{
		wire.Subject("*", wire.VerbLeave): d.onLeave,
		d.undelivered + ".*.*.*":          d.onUndelivered,
	} {
		if _, err := d.nc.Subscribe(subject, handle); err != nil {
			return err
		}
	}

	return d.nc.Flush()
}
