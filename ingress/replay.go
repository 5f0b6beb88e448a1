package ingress

import (
	"context"
	"errors"
	"fmt"
	"time"

	"millwright/schema"
	"millwright/state"
)

// Replayed is the result of Replay.
type Replayed struct {
	DeliveryUID string
	Runs        []string // IDs, one for each automation that matches now
}

// Replay stores the payload of an accepted delivery as a new delivery, linked to the old one, and starts
// the runs of the automations that match it now. It stores no identity and charges no budget. It returns
// state.ErrNotFound if the webhook's log has no such delivery, and state.ErrConflict if its payload is gone
// or the webhook deleted.
func (in *Ingress) Replay(ctx context.Context, factoryUID, webhookUID, deliveryUID string) (Replayed, error) {
	old, err := in.store.Delivery(ctx, factoryUID, webhookUID, deliveryUID)
	if err != nil {
		return Replayed{}, err
	}

	headers, body, err := in.store.Request(ctx, factoryUID, deliveryUID)
	if errors.Is(err, state.ErrNotFound) {
		return Replayed{}, fmt.Errorf(
			"delivery %q has no stored payload to replay: %w",
			deliveryUID,
			state.ErrConflict,
		)
	}

	if err != nil {
		return Replayed{}, err
	}

	for range maxJudged {
		w := in.current.Load().webhooks[webhookUID]
		if w == nil || w.factory.uid != factoryUID {
			return Replayed{}, fmt.Errorf("webhook %q is deleted: %w", webhookUID, state.ErrConflict)
		}

		if w.unreadable {
			return Replayed{}, fmt.Errorf(
				"%w: webhook %q cannot be read as it is stored",
				state.ErrUnavailable,
				webhookUID,
			)
		}

		payload, err := w.parse(body)
		if err != nil {
			return Replayed{}, err
		}

		k := kind{}
		if w.scheme != nil {
			k.event = w.scheme.KnownEvent(old.Event)
		}

		d := w.delivered(old.Event, schema.StoredHeader(headers), body, payload)
		a := w.acceptance(d, k, time.Now())
		a.ReplayOf, a.Sender, a.Event, a.Headers = old.UID, old.Sender, old.Event, headers
		a.Shown = old.Headers
		accepted, err := in.storeTraced(ctx, a)
		if err == nil {
			done := Replayed{DeliveryUID: a.UID, Runs: []string{}}
			for _, r := range accepted.Started(a.Runs) {
				done.Runs = append(done.Runs, r.ID)
			}
			return done, nil
		}
		if !errors.Is(err, state.ErrMoved) {
			return Replayed{}, err
		}

		if err := in.reload(ctx); err != nil {
			return Replayed{}, err
		}
	}

	return Replayed{}, fmt.Errorf("%w: the definition changes all the time", state.ErrUnavailable)
}
