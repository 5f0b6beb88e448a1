// Package reconcile makes a factory's state equal to a revision of its source, or records why it cannot.
//
// A [Loop] watches one [Source]. Each attempt is one straight line, [Loop.Once]: fetch, load, plan, and
// apply in one transaction or record why not. The last applied definition serves until the next one has
// been applied as a whole.
package reconcile

import (
	"context"
	"fmt"
	"io/fs"

	"millwright/schema"
	"millwright/state"
)

// Source is where a definition comes from. A Loop calls Fetch for one attempt at a time.
type Source interface {
	// Describe returns the origin of the definition, without credentials.
	Describe() state.Source
	// Fetch returns the source's current revision. An error means that the source cannot be read just now:
	// it names the next step, contains no credential, and is worth a retry. A missing root is an error, not
	// an empty tree.
	Fetch(ctx context.Context) (Snapshot, error)
	// Watch calls cue when the source may have changed, until ctx ends. It may call cue without a change,
	// and may miss changes.
	Watch(ctx context.Context, cue func())
	// Close releases the source's resources on this machine.
	Close() error
}

// Snapshot is one revision of a source. Its tree does not change when the source does. It is valid until
// the next Fetch.
type Snapshot struct {
	Revision state.Revision
	FS       fs.FS // its root is the root of the definition
	Bytes    int64 // received over the network, also in a failed Fetch

	loaded    *schema.Result // of FS, where the source had to load it, or refused to
	untrusted bool           // the revision is not signed as it must be: nothing of it counts
	files     []schema.File  // of the definition, once it is loaded
	elsewhere string         // a directory of FS that holds a definition, where its root holds none

	release func() // releases the backing of FS after the load; may be nil
}

func (s Snapshot) load(ctx context.Context, parsed *schema.Cache) *schema.Result {
	if s.loaded != nil {
		return s.loaded
	}
	return parsed.LoadContext(ctx, s.FS, nil)
}

// ErrSuspended reports that the settings suspend the factory.
var ErrSuspended = fmt.Errorf("the factory is suspended: resume it in the settings: %w", state.ErrConflict)
