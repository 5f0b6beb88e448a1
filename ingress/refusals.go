package ingress

import (
	"context"
	"time"

	"millwright/state"
)

const (
	maxRefusals   = 10_000 // counts that wait to be written; further requests are in the metrics alone
	refusalsFlush = time.Second
	refusalsLog   = time.Minute
	maxLogged     = 100 // webhooks in the log, each minute
)

// take returns the counts that wait.
func (r *refusals) take() []state.RefusedRequests {
	r.mu.Lock()
	defer r.mu.Unlock()

	all := make([]state.RefusedRequests, 0, len(r.waiting))
	for _, one := range r.waiting {
		all = append(all, *one)
	}
	clear(r.waiting)
	return all
}

// giveBack has counts that could not be written wait on.
func (r *refusals) giveBack(all []state.RefusedRequests) {
	r.mu.Lock()
	defer r.mu.Unlock()

	for _, one := range all {
		key := refusalKey{one.WebhookID, one.Last.Unix() / 3600, one.Kind}
		if newer := r.waiting[key]; newer != nil {
			newer.Count += one.Count
		} else if len(r.waiting) < maxRefusals {
			r.waiting[key] = &one
		}
	}
}

// logged returns what was refused since it was last called.
func (r *refusals) logged() map[string]map[state.RefusalKind]int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.minute
	r.minute = map[string]map[state.RefusalKind]int64{}
	return all
}

// countRefusals writes the counts every second, and a line for each webhook into the log every minute.
func (in *Ingress) countRefusals(ctx context.Context) {
	flush, log := time.NewTicker(refusalsFlush), time.NewTicker(refusalsLog)
	defer flush.Stop()
	defer log.Stop()

	for {
		select {
		case <-ctx.Done():
			in.writeRefusals(context.WithoutCancel(ctx))
			in.logRefusals()
			return
		case <-flush.C:
			in.writeRefusals(ctx)
		case <-log.C:
			in.logRefusals()
		}
	}
}

func (in *Ingress) writeRefusals(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()

	all := in.refusals.take()
	if err := in.store.CountRefusals(ctx, all); err != nil {
		in.refusals.giveBack(all)
		in.outage.say(in.log, "counting refused requests", err)
	}
}

func (in *Ingress) logRefusals() {
	for webhook, n := range in.refusals.logged() {
		in.log.Warn("requests refused",
			"webhook", webhook,
			"delivery_budget", n[state.RefusedDeliveries],
			"failed_auth_budget", n[state.RefusedFailures],
			"disabled", n[state.RefusedDisabled],
		)
	}
}
