package reconcile

import (
	"fmt"
	"strings"

	"millwright/schema"
	"millwright/state"
)

// Request configures an attempt.
type Request struct {
	Force       bool // apply even if unchanged, to use new values of secrets
	AllowPrune  bool
	AllowRename bool
	Revision    string // the revision to apply, or its prefix; empty: the source's current one
}

// minRevision is how much of a revision's name a request gives at least.
const minRevision = 7

// means returns an error if the source's revision is not the requested one.
func (r Request) means(now state.Revision) error {
	if r.Revision == "" || r.Revision == now.ID {
		return nil
	}
	if len(strings.TrimPrefix(r.Revision, "sha256:")) >= minRevision && strings.HasPrefix(now.ID, r.Revision) {
		return nil
	}
	return fmt.Errorf(
		"the source has moved on from revision %s to %s: look at that one first: %w",
		r.Revision,
		now.ID,
		state.ErrConflict,
	)
}

// Result is the result of an attempt.
type Result struct {
	Outcome  state.Outcome
	Recorded bool // recorded in the factory's history; attempts without changes are not
	Revision state.Revision
	Counts   state.Counts
	Problems []schema.Problem
	Message  string // reason of a refusal or failure, in one line
	Err      error  // of a failed attempt
}
