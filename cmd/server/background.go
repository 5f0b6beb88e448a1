package server

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"millwright/admin"
	"millwright/cmd/cli"
	"millwright/cmd/settings"
	"millwright/ingress"
	"millwright/state"
	"millwright/state/audit"
	"millwright/state/notice"
)

// announceApplies prints one readable line for each factory when it first applies.
func (srv *server) announceApplies(ctx context.Context) {
	notices, end := srv.store.Subscribe(64, notice.Sync)
	defer end()

	said := map[string]bool{}
	tick := time.NewTicker(5 * time.Second) // a notice may be lost
	defer tick.Stop()

	for {
		all, err := srv.store.Factories(ctx)
		for _, f := range all {
			if err == nil && !said[f.UID] && !f.Detached && f.SyncState == state.SyncApplied {
				said[f.UID] = srv.announce(ctx, f) == nil
			}
		}

		select {
		case <-ctx.Done():
			return
		case <-notices:
		case <-tick.C:
		}
	}
}

func (srv *server) announce(ctx context.Context, f state.Factory) error {
	webhooks, err := srv.store.Webhooks(ctx, f.UID, false)
	if err != nil {
		return err
	}

	var line strings.Builder
	fmt.Fprintf(
		&line,
		"factory %s: serving %s, %d webhook(s)\n",
		f.Name,
		cli.ShortRevision(f.Applied.ID),
		len(webhooks),
	)

	for _, w := range webhooks {
		fmt.Fprintf(&line, "  %-20s %s\n", w.Spec.Name, admin.IngressURL(srv.cfg.PublicURL, w))
	}

	_, err = fmt.Fprint(srv.out.Out, line.String())
	return err
}

// housekeeping expires the delivery log, old idempotency keys, artifacts beyond a factory's share and, where the
// settings say so, old runs.
func (srv *server) housekeeping(ctx context.Context) {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()

	for {
		kept := srv.retention.Load()
		keep := max(int(kept.Deliveries.Keep), settings.MinDeliveries)
		days := max(int(kept.Deliveries.Days), settings.MinDeliveryDays)
		if _, err := srv.store.ExpireDeliveries(ctx, keep, time.Duration(days)*24*time.Hour); err != nil &&
			ctx.Err() == nil {
			srv.log.Warn("expire the delivery log", "error", err)
		}
		if _, err := srv.store.ExpireRuns(ctx, time.Duration(kept.Runs.Days)*24*time.Hour); err != nil &&
			ctx.Err() == nil {
			srv.log.Warn("expire old runs", "error", err)
		}
		bytes := int64(cmp.Or(kept.Artifacts.Bytes, settings.DefaultArtifactBytes))
		if _, err := srv.store.ExpireArtifacts(ctx, bytes); err != nil && ctx.Err() == nil {
			srv.log.Warn("delete the oldest artifacts", "error", err)
		}
		if err := srv.store.ExpireSnapshots(ctx); err != nil && ctx.Err() == nil {
			srv.log.Warn("deleting old snapshots of runs", "error", err)
		}
		if err := srv.store.ExpireEvents(ctx); err != nil && ctx.Err() == nil {
			srv.log.Warn("delete old events", "error", err)
		}
		if err := srv.store.ExpireUse(ctx); err != nil && ctx.Err() == nil {
			srv.log.Warn("delete the use of old days", "error", err)
		}

		srv.keepAudit(ctx, time.Duration(cmp.Or(kept.Audit.Days, settings.DefaultAuditDays))*24*time.Hour)

		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// keepAudit writes what waits for the audit log, and expires its old rows.
func (srv *server) keepAudit(ctx context.Context, age time.Duration) {
	if err := srv.store.Audit().Flush(ctx, false); err != nil && ctx.Err() == nil {
		srv.log.Warn("add refused keys to the audit log", "error", err)
	}
	if err := srv.store.Audit().Expire(ctx, age, audit.MaxRows); err != nil && ctx.Err() == nil {
		srv.log.Warn("expire the audit log", "error", err)
	}
}

// budgetNotice is the ID of a notice about budgets. Number makes it unique.
type budgetNotice struct {
	Number int              `json:"n"`
	Counts []ingress.Counts `json:"counts"`
}

// maxCounts is how many counts fit into a notice with the longest senders.
const maxCounts = 40

// exchangeBudgets shares the charges to senders' budgets with the other replicas, through the database.
func (srv *server) exchangeBudgets(ctx context.Context) {
	if !srv.store.Shared() {
		return
	}

	notices, end := srv.store.Subscribe(10_000, notice.Budgets)
	defer end()

	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()

	number := 0
	for {
		select {
		case <-ctx.Done():
			return
		case n := <-notices:
			var b budgetNotice
			if json.Unmarshal([]byte(n.ID), &b) == nil {
				srv.ingress.AddCounts(b.Counts)
			}
		case <-tick.C:
			for counts := range slices.Chunk(srv.ingress.TakeCounts(), maxCounts) {
				number++
				data, err := json.Marshal(budgetNotice{number, counts})
				if err == nil {
					err = srv.store.Broadcast(notice.Notice{Topic: notice.Budgets, ID: string(data)})
				}
				if err != nil {
					srv.log.Warn("sharing budgets with the other replicas", "error", err)
					break
				}
			}
		}
	}
}
