package reconcile

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"millwright/reconcile/plan"
	"millwright/schema"
	"millwright/state"
)

// Config configures a Loop. Store, Factory and Source are required.
type Config struct {
	Store   *state.Store
	Factory state.Factory // the result of EnsureFactory
	Source  Source
	// Interval is the time between reads of the source without another cause; zero means 30 s, and 10 s for
	// a directory.
	Interval time.Duration
	// MaxBackoff bounds the wait after repeated failures; zero means ten intervals.
	MaxBackoff   time.Duration
	AllowPrune   bool
	AllowRename  bool
	HarnessTypes []string // harnesses of the server; nil: unknown
	// ForgeKinds returns the kinds of the server's forges; nil: unknown.
	ForgeKinds func() []string
	// Reserved returns the secrets that definitions may not name, with their use; nil: unknown.
	Reserved func() map[string]string
	// Used returns all secrets that the settings name, with their use; nil: unknown.
	Used func() map[string]string
	// MaxDeliveries returns how many deliveries a minute the file of a webhook may allow a sender; nil: not known.
	MaxDeliveries func() int
	// CheckURL returns the address of the git source if its forge is owed a status of each attempted revision,
	// and else "". nil: it is not.
	CheckURL func() string
	Log      *slog.Logger
	Metrics  *Metrics // nil: none
}

// Loop keeps one factory equal to its source. Its methods are safe for concurrent use. Only one attempt
// runs at a time.
type Loop struct {
	cfg    Config
	holder string        // of the lease
	leads  atomic.Bool   // this process reconciles the factory
	turn   chan struct{} // capacity 1: held by the attempt in progress
	cue    chan struct{} // capacity 1: read the source

	// Guarded by turn.
	refusedWith string          // the secrets when the attempted revision was refused
	failures    map[string]bool // messages recorded since the last attempt that did not fail
	parsed      schema.Cache    // of the last tree
}

// New returns a Loop. It is idle until Run or another method is called.
func New(cfg Config) *Loop {
	if cfg.Interval <= 0 {
		cfg.Interval = 30 * time.Second
		if cfg.Source.Describe().Kind == "dir" {
			cfg.Interval = 10 * time.Second
		}
	}

	if cfg.MaxBackoff <= 0 {
		cfg.MaxBackoff = 10 * cfg.Interval
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}

	cfg.Log = cfg.Log.With("factory", cfg.Factory.Name)
	return &Loop{
		cfg: cfg, holder: state.NewID(state.PrefixReplica),
		turn: make(chan struct{}, 1), cue: make(chan struct{}, 1),
		refusedWith: "not known", failures: map[string]bool{},
	}
}

// moves is how often an attempt plans again because the state changed meanwhile.
const moves = 5

// checkURL returns the address of the source if its forge is owed statuses.
func (l *Loop) checkURL() string {
	if l.cfg.CheckURL == nil {
		return ""
	}
	return l.cfg.CheckURL()
}

func (l *Loop) fetch(ctx context.Context) (Snapshot, error) {
	snap, err := l.cfg.Source.Fetch(ctx)
	l.cfg.Metrics.polled(l.cfg.Factory.Name, snap.Bytes)
	return snap, err
}

// load loads a snapshot. If that fails, it fetches once more: a source with a damaged copy then makes a new
// one.
func (l *Loop) load(ctx context.Context, snap Snapshot) (Snapshot, *schema.Result, error) {
	loaded := snap.load(ctx, &l.parsed)
	if loaded.Err != nil {
		var err error
		if snap, err = l.fetch(ctx); err != nil {
			return snap, nil, err
		}

		loaded = snap.load(ctx, &l.parsed)
	}

	if !loaded.Checked() {
		snap.elsewhere = schema.FindDefinition(snap.FS)
	}
	var err error
	if loaded.Valid() {
		snap.files, err = definitionFiles(ctx, snap.FS)
	}
	if loaded.Err == nil && snap.release != nil {
		snap.release()
	}

	return snap, loaded, err
}

func (l *Loop) options(snap Snapshot, req Request, started time.Time) plan.Options {
	o := plan.Options{
		AllowPrune: l.cfg.AllowPrune || req.AllowPrune, AllowRename: l.cfg.AllowRename || req.AllowRename,
		HarnessTypes: l.cfg.HarnessTypes, Revision: snap.Revision, Now: started,
	}
	if l.cfg.MaxDeliveries != nil {
		o.MaxDeliveries = l.cfg.MaxDeliveries()
	}
	if l.cfg.ForgeKinds != nil {
		o.ForgeKinds = l.cfg.ForgeKinds()
	}
	if l.cfg.Reserved != nil {
		o.Reserved = l.cfg.Reserved()
	}
	if l.cfg.Used != nil {
		o.Used = l.cfg.Used()
	}
	return o
}

func (l *Loop) applied(app state.ChangeSet) Result {
	clear(l.failures)
	outcome := state.OutcomeApplied
	if app.Empty() {
		outcome = state.OutcomeUnchanged
	}

	l.cfg.Log.Info(
		"applied",
		"revision",
		app.Revision.ID,
		"outcome",
		outcome,
		"created",
		app.Counts.Created,
		"updated",
		app.Counts.Updated,
		"deleted",
		app.Counts.Deleted,
		"secrets",
		app.Counts.Secrets,
	)

	return Result{
		Outcome:  outcome,
		Recorded: true,
		Revision: app.Revision,
		Counts:   app.Counts,
		Problems: app.Problems,
	}
}

// sameProblem compares the stored parts of two problems.
func sameProblem(a, b schema.Problem) bool {
	a.Fix, b.Fix = nil, nil
	return a == b
}

// refusal describes a refusal in one line: the first error and the number of others.
func refusal(problems []schema.Problem) string {
	first, n := "", 0
	for _, p := range problems {
		if p.Severity != schema.SeverityError {
			continue
		}
		if n++; n == 1 {
			first = oneLine(fmt.Sprintf("%s:%d:%d: %s [%s]", p.Path, p.Line, p.Column, p.Message, p.Code), 500)
		}
	}

	if n > 1 {
		first += fmt.Sprintf(" and %d more", n-1)
	}

	return first
}

// serves describes the definition in force while a revision is not applied.
func serves(applied state.Revision) string {
	if applied.ID == "" {
		return "no definition has been applied yet"
	}
	return "the last applied definition stays in force"
}

// maxFailures bounds how many different failures in a row are recorded.
const maxFailures = 8

// fail records a failure the first time it happens in a row. The end of ctx is not a failure.
func (l *Loop) fail(ctx context.Context, started time.Time, revision state.Revision, err error) Result {
	result := Result{
		Outcome:  state.OutcomeFailed,
		Revision: revision,
		Problems: []schema.Problem{},
		Message:  err.Error(),
		Err:      err,
	}
	if ctx.Err() != nil {
		return result
	}
	if l.failures[result.Message] || len(l.failures) >= maxFailures {
		l.cfg.Log.Debug("failed again", "error", err)
		return result
	}

	f, unknown := l.cfg.Store.Factory(ctx, l.cfg.Factory.UID)
	l.cfg.Log.Warn("failed, and tried again soon; "+serves(f.Applied), "error", err)
	if unknown == nil && f.SyncState == state.SyncFailed && f.Message == result.Message {
		l.failures[result.Message] = true // recorded before this process began
		return result
	}

	attempt := state.Attempt{
		FactoryUID: l.cfg.Factory.UID,
		Started:    started,
		Revision:   revision,
		Outcome:    state.OutcomeFailed,
		Message:    result.Message,
		CheckURL:   l.checkURL(),
	}
	if err := l.cfg.Store.Refuse(ctx, attempt); err != nil {
		l.cfg.Log.Warn("the failure could not be recorded", "error", err)
		return result
	}

	l.failures[result.Message] = true
	result.Recorded = true
	return result
}
