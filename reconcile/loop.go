package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
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

// moves is how often an attempt plans again because the state changed meanwhile.
const moves = 5

// Once makes one attempt to make the state equal to the source: it fetches, loads, plans, and applies in
// one transaction or records the refusal.
func (l *Loop) Once(ctx context.Context, req Request) Result {
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return Result{Outcome: state.OutcomeFailed, Message: ctx.Err().Error(), Err: ctx.Err()}
	}

	started := time.Now()
	result := l.once(ctx, req, started)
	l.cfg.Metrics.observe(l.cfg.Factory.Name, result, time.Since(started))
	if m := l.cfg.Metrics; m != nil {
		if f, err := l.cfg.Store.Factory(ctx, l.cfg.Factory.UID); err == nil {
			m.suspend(l.cfg.Factory.Name, f.Suspended || f.Pin != nil)
		}
		if webhooks, err := l.cfg.Store.Webhooks(ctx, l.cfg.Factory.UID, false); err == nil {
			m.waiting(l.cfg.Factory.Name, webhooks)
		}
	}

	return result
}

func (l *Loop) once(ctx context.Context, req Request, started time.Time) Result {
	snap, err := l.fetch(ctx)
	if err != nil {
		return l.fail(ctx, started, state.Revision{}, err)
	}

	if !req.Force {
		if result, done := l.settle(ctx, snap, started); done {
			return result
		}
	}

	l.beginCheck(ctx, snap)
	snap, loaded, err := l.load(ctx, snap)
	if err != nil {
		return l.fail(ctx, started, state.Revision{}, err)
	}

	err = state.ErrMoved
	for try := 0; try < moves && errors.Is(err, state.ErrMoved); try++ {
		if errors.Is(err, state.ErrSuperseded) {
			if snap, err = l.fetch(ctx); err == nil {
				snap, loaded, err = l.load(ctx, snap)
			}
			if err != nil {
				return l.fail(ctx, started, state.Revision{}, err)
			}
		}

		if err := req.means(snap.Revision); err != nil {
			return Result{Err: err}
		}

		var cur state.Current
		if cur, err = l.cfg.Store.Current(ctx, l.cfg.Factory.UID); err != nil {
			break
		}

		empty := !loaded.Checked()
		opts := l.options(snap, req, started)
		opts.OpenSecrets = true
		p, app := plan.Compare(cur, loaded, opts)
		if app != nil && empty && !snap.Revision.Managed { // a managed factory begins without files
			app.Problems = append(app.Problems, l.noDefinition(snap))
		}
		if p.Err != nil {
			return l.fail(ctx, started, snap.Revision, p.Err)
		}

		if app == nil || cur.Factory.Pin != nil {
			var result Result
			if app == nil {
				result, err = l.refuse(ctx, started, snap, cur, p)
			} else {
				result, err = l.suspend(ctx, started, snap, cur.Factory, p)
			}
			if errors.Is(err, state.ErrSuperseded) {
				continue
			}

			return result
		}

		app.CheckURL = l.checkURL()
		app.Files = snap.files
		if err = l.cfg.Store.Apply(ctx, *app); err == nil {
			return l.applied(*app)
		}
	}

	return l.fail(ctx, started, snap.Revision, fmt.Errorf("apply: %w", err))
}

// checkURL returns the address of the source if its forge is owed statuses.
func (l *Loop) checkURL() string {
	if l.cfg.CheckURL == nil {
		return ""
	}
	return l.cfg.CheckURL()
}

// beginCheck records that the forge is owed a status of the revision.
func (l *Loop) beginCheck(ctx context.Context, snap Snapshot) {
	url := l.checkURL()
	if url == "" {
		return
	}

	err := l.cfg.Store.Checks().Begin(ctx, l.cfg.Factory.UID, url, snap.Revision.ID)
	if err != nil && ctx.Err() == nil {
		l.cfg.Log.Debug("record that a revision is checked", "error", err)
	}
}

// noDefinition logs and returns the warning about a source without definitions, such as one with a wrong path.
func (l *Loop) noDefinition(snap Snapshot) schema.Problem {
	hint := "check the path of the source"
	if dir := snap.elsewhere; dir != "" {
		hint = "there is one in " + dir + ": set the path of the source to it"
	}

	p := schema.NoDefinition(hint)
	l.cfg.Log.Warn("the source holds no definition", "revision", snap.Revision.ID, "hint", hint)
	return p
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

// refuse records a revision with errors once, and again if its problems change.
func (l *Loop) refuse(
	ctx context.Context,
	started time.Time,
	snap Snapshot,
	cur state.Current,
	p plan.Plan,
) (Result, error) {
	clear(l.failures)
	l.refusedWith = versions(cur.Secrets)
	result := Result{
		Outcome:  state.OutcomeRefused,
		Revision: snap.Revision,
		Problems: p.Problems,
		Message:  refusal(p.Problems),
	}

	f := cur.Factory
	if f.SyncState == state.SyncRefused && same(f.Attempted, snap.Revision) &&
		slices.EqualFunc(f.Problems, p.Problems, sameProblem) {
		return result, nil
	}

	attempt := state.Attempt{
		FactoryUID: f.UID,
		Started:    started,
		Revision:   snap.Revision,
		Outcome:    state.OutcomeRefused,
		Problems:   p.Problems,
		Message:    result.Message,
		CheckURL:   l.checkURL(),
	}

	if err := l.cfg.Store.Refuse(ctx, attempt); errors.Is(err, state.ErrSuperseded) {
		return Result{}, err
	} else if err != nil {
		return l.fail(ctx, started, snap.Revision, err), err
	}

	l.cfg.Log.Warn(
		"refused; "+serves(f.Applied),
		"revision",
		snap.Revision.ID,
		"applied",
		f.Applied.ID,
		"problem",
		result.Message,
	)

	result.Recorded = true
	return result, nil
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
