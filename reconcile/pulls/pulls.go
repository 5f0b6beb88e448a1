// Package pulls checks the pull requests to the watched branch of a factory: it lists them at the forge, plans
// their heads against the state, and records the status and the comment that the forge is owed.
package pulls

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"millwright/forge"
	"millwright/reconcile"
	"millwright/reconcile/plan"
	"millwright/state"
	"millwright/state/checks"
	"millwright/state/notice"
)

// Config configures a Watcher. All but Metrics and Log are required.
type Config struct {
	Store   *state.Store
	Factory state.Factory
	Loop    *reconcile.Loop // of the factory: the Watcher works while it leads
	// Git is the source of the factory, with a CloneDir of its own.
	Git    reconcile.GitConfig
	Forges *forge.Set
	// On reports whether the settings want checks.
	On func() bool
	// Interval is the time between looks at the forge without another cause; zero means 30 s.
	Interval time.Duration
	Log      *slog.Logger
	Metrics  *Metrics
}

const (
	// perMinute bounds the checks of a factory in a minute.
	perMinute = 60
	// roundTime is how long the checks of one list go on before the forge is asked for a new one.
	roundTime = 20 * time.Second
	// cueGap is the least time between looks at the forge.
	cueGap = 500 * time.Millisecond
	// notLeading is how long a process that does not lead waits before it looks whether it does.
	notLeading = 2 * time.Second

	firstBackoff = time.Second
	maxBackoff   = 15 * time.Minute
	visibleTime  = 10 * time.Minute // for which an answer that the repository is public counts
	triesOfHead  = 3
	badOnes      = 3 // checks that fail end a round
)

// Watcher checks the pull requests of one factory.
type Watcher struct {
	cfg    Config
	heads  *reconcile.Heads
	branch string
	cue    chan struct{} // capacity 1
	memory forge.Memory

	private   bool
	visible   time.Time // until when the repository counts as public
	minute    time.Time // that spent is of
	spent     int
	notBefore time.Time
	failures  int
	tries     map[int]try // by number of the pull request
}

// try counts failures to check a head.
type try struct {
	head  string
	count int
}

// New returns a Watcher. It is idle until Run.
func New(cfg Config) (*Watcher, error) {
	if cfg.Interval <= 0 {
		cfg.Interval = 30 * time.Second
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	cfg.Log = cfg.Log.With("factory", cfg.Factory.Name)

	heads, err := reconcile.NewHeads(cfg.Git, cfg.Loop)
	if err != nil {
		return nil, err
	}

	branch := cfg.Git.Branch
	if branch == "" {
		branch = "main"
	}

	return &Watcher{cfg: cfg, heads: heads, branch: branch, cue: make(chan struct{}, 1), tries: map[int]try{}}, nil
}

// Notice says that the forge may have something new. It returns at once.
func (w *Watcher) Notice() {
	select {
	case w.cue <- struct{}{}:
	default:
	}
}

// Run checks pull requests until ctx ends.
func (w *Watcher) Run(ctx context.Context) {
	defer w.heads.Close()

	notices, end := w.cfg.Store.Subscribe(16, notice.Source, notice.Sync, notice.Secret)
	defer end()

	timer := time.NewTimer(0)
	defer timer.Stop()

	for {
		select {
		case <-ctx.Done():
			return
		case n := <-notices:
			if n.Topic != notice.Secret && n.ID != w.cfg.Factory.UID {
				continue
			}
		case <-w.cue:
		case <-timer.C:
		}

		if !w.cfg.Loop.Leads() {
			timer.Reset(min(w.cfg.Interval, notLeading))
			continue
		}
		if wait := time.Until(w.notBefore); wait > 0 {
			timer.Reset(wait)
			continue
		}

		timer.Reset(w.next(ctx))
		select {
		case <-ctx.Done():
			return
		case <-time.After(cueGap):
		}
	}
}

// next makes a round and returns the time until the next one.
func (w *Watcher) next(ctx context.Context) time.Duration {
	more, err := w.round(ctx)
	switch {
	case err != nil && ctx.Err() == nil:
		pause := min(firstBackoff<<min(w.failures, 20), maxBackoff)
		pause = max(pause, min(forge.RetryAfter(err), time.Hour))
		if w.failures++; w.failures == 1 {
			w.cfg.Log.Warn("pull requests are not checked, and tried again soon", "error", err)
		}

		w.notBefore = time.Now().Add(pause)
		return pause
	case more:
		w.failures = 0
		return max(cueGap, time.Until(w.minute.Add(time.Minute))*time.Duration(w.spent/perMinute))
	}

	w.failures = 0
	return w.cfg.Interval - w.cfg.Interval/5 + rand.N(2*w.cfg.Interval/5+1)
}

// round lists the pull requests and checks those that changed, as far as time and budget allow. more reports
// whether some are left.
func (w *Watcher) round(ctx context.Context) (more bool, err error) {
	f, repo, ok := w.cfg.Forges.OfSource(w.cfg.Git.URL)
	if !ok || !w.cfg.On() {
		return false, nil
	}
	if err := w.see(ctx, f, repo); err != nil {
		return false, err
	}

	listed, whole, err := f.Pulls(forge.WithMemory(ctx, &w.memory), repo, w.branch)
	if err != nil {
		return false, err
	}

	open, err := w.cfg.Store.Checks().See(ctx, w.cfg.Factory.UID, w.rows(listed, repo), whole)
	if err != nil {
		return false, err
	}

	facts, err := w.facts(ctx)
	if err != nil {
		return false, err
	}

	w.cfg.Metrics.open(w.cfg.Factory.Name, len(open))
	return w.checkAll(ctx, f, repo, open, facts)
}

// see finds out whether the repository is private. It keeps no answer that it is: it may be opened at any time.
func (w *Watcher) see(ctx context.Context, f forge.Forge, repo forge.Repository) error {
	if time.Now().Before(w.visible) {
		return nil
	}

	private, err := f.Private(ctx, repo)
	if errors.Is(err, forge.ErrLater) || ctx.Err() != nil {
		return err
	}

	w.private = private && err == nil
	if !w.private {
		w.visible = time.Now().Add(visibleTime)
	}
	return nil
}

// rows returns the checks of listed pull requests.
func (w *Watcher) rows(listed []forge.Pull, repo forge.Repository) []checks.Check {
	var rows []checks.Check
	for _, p := range listed {
		if p.Number <= 0 || p.Head.Commit == "" {
			continue
		}

		rows = append(rows, checks.Check{
			FactoryUID: w.cfg.Factory.UID,
			Number:     p.Number,
			URL:        w.cfg.Git.URL,
			Commit:     p.Head.Commit,
			Pull: checks.Pull{
				Title:  p.Title,
				Author: p.Author,
				URL:    p.URL,
				Fork:   !strings.EqualFold(p.Head.Repository, repo.String()),
			},
		})
	}

	return rows
}

// facts names the state that plans compare with.
func (w *Watcher) facts(ctx context.Context) (string, error) {
	factory, err := w.cfg.Store.Factory(ctx, w.cfg.Factory.UID)
	if err != nil {
		return "", err
	}

	secrets, err := w.cfg.Store.Secrets(ctx)
	if err != nil {
		return "", err
	}

	versions := int64(len(secrets))
	for _, s := range secrets {
		versions += s.Version
	}

	return fmt.Sprintf("%d %d", factory.Generation, versions), nil
}

// basis names what a check of a head compares: what alone decides whether it touches the definition, and the state.
func (w *Watcher) basis(c checks.Check, facts string) (head, all string) {
	head = fmt.Sprintf("%s %s private=%t", c.Commit, w.heads.Path(), w.private)
	return head, head + " " + facts
}

func (w *Watcher) checkAll(
	ctx context.Context, f forge.Forge, repo forge.Repository, open []checks.Check, facts string,
) (more bool, err error) {
	end, bad := time.Now().Add(roundTime), 0
	for _, c := range open {
		head, all := w.basis(c, facts)
		if c.Basis == head && c.Pull.Quiet || c.Basis == all {
			continue
		}
		if time.Now().After(end) || !w.charge(time.Now()) {
			return true, err
		}

		failed := w.check(ctx, f, repo, c, facts)
		switch {
		case ctx.Err() != nil:
			return false, ctx.Err()
		case failed == nil:
			delete(w.tries, c.Number)
		case errors.Is(failed, checks.ErrConflict):
			more = true // the next list has the new head
		default:
			w.cfg.Log.Debug("check a pull request", "pull_request", c.Number, "revision", c.Commit, "error", failed)
			err = failed
			if bad++; bad >= badOnes || forge.RetryAfter(err) > 0 {
				return false, err
			}
		}
	}

	return more, err
}

// charge takes a check from the budget of the minute, and reports whether there was one.
func (w *Watcher) charge(now time.Time) bool {
	if now.Sub(w.minute) >= time.Minute {
		w.minute, w.spent = now, 0
	}
	if w.spent >= perMinute {
		return false
	}

	w.spent++
	return true
}

// check plans the head of a pull request and records what the forge is owed.
func (w *Watcher) check(
	ctx context.Context, f forge.Forge, repo forge.Repository, c checks.Check, facts string,
) error {
	head, all := w.basis(c, facts)
	touches := !c.Pull.Quiet
	var err error
	if !strings.HasPrefix(c.Basis, head) { // not known yet
		touches, err = w.touches(ctx, f, repo, c.Number)
		if err != nil && (ctx.Err() != nil || !w.failed(c)) {
			return err
		}
		if err != nil { // its files cannot be listed, again and again: it may touch the definition
			touches = true
		}
	}

	c.Pull.Quiet, c.Basis = !touches, all
	found := Report{Factory: w.cfg.Factory.Name, Head: c.Commit, Public: c.Pull.Fork || !w.private, Quiet: !touches}
	if touches {
		found.Plan, err = w.heads.Plan(ctx, c.Commit, found.Public)
		switch {
		case errors.Is(err, reconcile.ErrHead):
			found.Unreadable = err.Error()
		case err != nil && ctx.Err() == nil && w.failed(c) && !errors.Is(err, state.ErrUnavailable):
			found.Broken = true
		case err != nil:
			return err
		}

		w.backtest(ctx, &found.Plan)
	} else {
		c.Basis = head
	}

	c.Result, c.Description = found.Status()
	c.Public, c.Comment = c.Description, found.Comment()
	c.Pull.Problems = found.places(w.heads.Path())
	if err := w.cfg.Store.Checks().Checked(ctx, c); err != nil {
		return err
	}

	w.cfg.Metrics.checked(w.cfg.Factory.Name, c.Result)
	w.cfg.Log.Info("pull request checked", "pull_request", c.Number, "revision", c.Commit, "result", c.Result)
	w.cfg.Store.Notify(notice.Check, c.FactoryUID)
	return nil
}

// failed counts a failure to check a head, and reports whether it is the last one before the check is given up.
func (w *Watcher) failed(c checks.Check) bool {
	t := w.tries[c.Number]
	if t.head != c.Commit {
		t = try{head: c.Commit}
	}

	t.count++
	if len(w.tries) > checks.MaxPulls {
		clear(w.tries)
	}
	w.tries[c.Number] = t
	return t.count >= triesOfHead
}

// touches reports whether a pull request changes files of the definition. One that changes too many files to list
// does.
func (w *Watcher) touches(ctx context.Context, f forge.Forge, repo forge.Repository, number int) (bool, error) {
	path := w.heads.Path()
	if path == "." {
		return true, nil
	}

	files, err := f.PullFiles(ctx, repo, number)
	if errors.Is(err, forge.ErrRefused) || len(files) >= forge.MaxFiles {
		return true, nil
	}
	if err != nil {
		return false, err
	}

	for _, file := range files {
		if strings.HasPrefix(file, path+"/") || file == path {
			return true, nil
		}
	}

	return false, nil
}

// backtest judges stored deliveries by the changed triggers of a plan. What cannot be read in time is left out.
func (w *Watcher) backtest(ctx context.Context, p *plan.Plan) {
	if p.Backtester == nil || len(p.Backtester.Sources()) == 0 {
		return
	}

	ctx, cancel := context.WithTimeout(ctx, plan.BacktestTime)
	defer cancel()

	b, now := p.Backtester, time.Now()
	since := now.AddDate(0, 0, -plan.BacktestDays)
	err := w.cfg.Store.NewestAccepted(ctx, b.FactoryUID, b.Sources(), since, plan.BacktestDeliveries, b.Add)
	p.Backtests = b.Results(now, err == nil)
}

// Metrics are the metrics of all watchers of a process. A nil *Metrics counts nothing.
type Metrics struct {
	results *prometheus.CounterVec
	pulls   *prometheus.GaugeVec
}

// NewMetrics returns metrics registered with reg. Call it once for each registerer.
func NewMetrics(reg prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		results: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "millwright_pull_request_checks_total",
			Help: "Checks of pull requests, by result: success, failure, error.",
		}, []string{"factory", "result"}),
		pulls: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "millwright_pull_requests_open",
			Help: "Open pull requests to the watched branch.",
		}, []string{"factory"}),
	}

	return m, errors.Join(reg.Register(m.results), reg.Register(m.pulls))
}

// Forget drops the metrics of a factory.
func (m *Metrics) Forget(factory string) {
	if m != nil {
		m.results.DeletePartialMatch(prometheus.Labels{"factory": factory})
		m.pulls.DeleteLabelValues(factory)
	}
}

func (m *Metrics) checked(factory string, result checks.Result) {
	if m != nil {
		m.results.WithLabelValues(factory, string(result)).Inc()
	}
}

func (m *Metrics) open(factory string, n int) {
	if m != nil {
		m.pulls.WithLabelValues(factory).Set(float64(n))
	}
}
