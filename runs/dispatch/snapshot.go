package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"millwright/runs/wire"
	"millwright/state"
)

// maxSession is how long the description of a session may be, in bytes.
const maxSession = 16 << 10

// snapshot returns what the execution before the run's present one left, nil when there is nothing.
func (d *Dispatcher) snapshot(ctx context.Context, r state.Run) (*wire.Snapshot, error) {
	if r.Series() == 1 { // what repeats the first execution begins anew
		return nil, nil
	}

	left, err := d.cfg.Store.Snapshot(ctx, r)
	if errors.Is(err, state.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}

	v := &wire.Snapshot{Size: left.Size, Digest: left.Digest}
	if json.Unmarshal(left.Session, &v.Session) != nil {
		return nil, nil // the run continues without it
	}
	return v, nil
}

// onSnapshot takes a part of the archive that a worker leaves or, after the last one, makes them a snapshot.
func (d *Dispatcher) onSnapshot(ctx context.Context, worker string, r wire.Request) wire.Answer {
	if r.Snapshot == nil {
		if err := d.cfg.Store.PutSnapshotPart(ctx, claimOf(worker, r), r.Part, r.Data); err != nil {
			return failure(err)
		}
		return wire.Answer{}
	}

	v := r.Snapshot
	v.Session.Counted = v.Session.Counted.Clean()
	session, err := json.Marshal(v.Session)
	if err != nil || len(session) > maxSession || v.Size < 0 || len(v.Digest) > 64 {
		return failure(fmt.Errorf("the snapshot's description: %w", wire.ErrRefused))
	}

	left := state.Snapshot{Session: session, Digest: v.Digest, Size: v.Size}
	if err := d.cfg.Store.PutSnapshot(ctx, claimOf(worker, r), left); err != nil {
		return failure(err)
	}
	return wire.Answer{}
}

// snapshotPart answers with the part of the run's snapshot that begins at offset.
func (d *Dispatcher) snapshotPart(ctx context.Context, r state.Run, offset int) wire.Answer {
	if offset < 0 || offset%wire.Chunk != 0 {
		return failure(fmt.Errorf("offset %d: %w", offset, wire.ErrRefused))
	}

	left, err := d.cfg.Store.Snapshot(ctx, r)
	if err != nil {
		return failure(err)
	}

	body, err := d.cfg.Store.SnapshotPart(ctx, r, left, offset/wire.Chunk)
	if err != nil {
		return failure(err)
	}
	return wire.Answer{Data: body, Size: int(left.Size), Digest: left.Digest}
}
