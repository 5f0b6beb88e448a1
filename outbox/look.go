package outbox

import (
	"context"
	"time"

	"millwright/forge"
	"millwright/state"
	"millwright/state/notice"
)

const (
	lookTime = 10 * time.Second // of one look
)

// Looked reads the states of the pull requests among what a run left, since somebody looks at it: each that
// may have changed, at most once a minute. It does not wait for the forge; Run asks it, and whoever follows
// the run learns of a change. With too many at once, some are left out.
func (o *Outbox) Looked(left []state.Artifact) {
	for _, a := range left {
		open := a.Type == state.ArtifactPullRequest && a.Facts.Number > 0 &&
			a.Facts.Status != forge.PullMerged
		if !open || !o.looks.due(a.UID, time.Now()) {
			continue
		}

		select {
		case o.looks.queue <- a:
		default:
			return
		}
	}
}

// look reads the states of pull requests until ctx ends.
func (o *Outbox) look(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case a := <-o.looks.queue:
			if err := o.refresh(ctx, a); err != nil && ctx.Err() == nil {
				o.cfg.Log.Debug("outbox: read the state of a pull request", "run_id", a.RunID, "error", err)
			}
		}
	}
}

// refresh records the state of a pull request as its forge has it now.
func (o *Outbox) refresh(ctx context.Context, a state.Artifact) error {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()

	repo, err := forge.ParseRepository(a.Repository)
	if err != nil {
		return err
	}
	repo.Forge = a.Facts.Forge

	factory, err := o.cfg.Store.Factory(ctx, a.FactoryUID)
	if err != nil {
		return err
	}
	if factory.Detached || !o.cfg.Forges.Allowed(factory.Name, repo) {
		return nil
	}

	host, err := o.cfg.Forges.Of(repo)
	if err != nil {
		return err
	}
	pull, err := host.Pull(ctx, repo, a.Facts.Number)
	if err != nil || pull.State == a.Facts.Status {
		return err
	}

	a.Facts.Status = pull.State
	if err := o.cfg.Store.PutLink(ctx, a.RunID, a); err != nil {
		return err
	}

	o.cfg.Store.Notify(notice.Run, a.RunID)
	return nil
}
