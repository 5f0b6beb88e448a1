package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"millwright/admin"
	"millwright/cmd/settings"
	"millwright/forge"
	"millwright/reconcile"
	"millwright/reconcile/plan"
	"millwright/reconcile/pulls"
	"millwright/reconcile/signers"
	"millwright/schema"
	"millwright/state"
)

// controllers run one reconcile loop for each configured factory.
type controllers struct {
	store     *state.Store
	cloneDir  string
	harnesses []string
	forges    *forge.Set
	most      func() int // deliveries a minute that the file of a webhook may allow
	metrics   *reconcile.Metrics
	log       *slog.Logger

	pullMetrics *pulls.Metrics

	turns chan struct{} // shared by the git sources, so that few unpack at once

	secrets atomic.Pointer[sourceSecrets]

	mu  sync.Mutex
	all map[string]*controller // by factory UID
}

type controller struct {
	settings settings.Factory
	keys     []byte // contents of the files that settings.Source.Git.Verify names
	source   reconcile.Source
	loop     *reconcile.Loop
	pulls    *pulls.Watcher // nil: none
	stop     context.CancelFunc
	done     chan struct{}
}

// source makes the source that the settings describe. It reads the keys of signers, and nothing else yet.
func (c *controllers) source(f settings.Factory) (reconcile.Source, []byte, error) {
	trusted, keys, err := readSigners(f)
	if err != nil {
		return nil, nil, err
	}

	source, err := c.sourceOf(f, trusted)
	return source, keys, err
}

func (c *controllers) sourceOf(f settings.Factory, trusted *signers.Keys) (reconcile.Source, error) {
	switch {
	case f.Source.Dir != "":
		dir, err := filepath.Abs(f.Source.Dir)
		if err != nil {
			return nil, err
		}

		return reconcile.Dir(reconcile.DirConfig{Dir: dir, Log: c.log})
	case f.Source.Git != nil:
		git := c.gitConfig(f)
		git.Signers = trusted
		return reconcile.Git(git)
	}

	return reconcile.Managed(reconcile.ManagedConfig{Store: c.store, Factory: f.Name})
}

// gitConfig returns the configuration of a git source.
func (c *controllers) gitConfig(f settings.Factory) reconcile.GitConfig {
	g := f.Source.Git
	return reconcile.GitConfig{
		URL:        g.URL,
		Branch:     g.Branch,
		Tag:        g.Tag,
		Commit:     g.Commit,
		Path:       g.Path,
		CloneDir:   filepath.Join(c.cloneDir, f.Name),
		Username:   g.Username,
		Token:      c.secret(g.TokenSecret),
		SSHKey:     c.secret(g.SSHKeySecret),
		KnownHosts: g.KnownHosts,
		Turns:      c.turns,
		Log:        c.log,
	}
}

// secret returns a function that reads the named secret's current value, or nil without a name.
func (c *controllers) secret(name string) func(context.Context) ([]byte, error) {
	if name == "" {
		return nil
	}
	return func(ctx context.Context) ([]byte, error) {
		value, err := c.store.SecretValue(ctx, name)
		if errors.Is(err, state.ErrNotFound) {
			return nil, fmt.Errorf(
				"the source's secret %q does not exist: millwright secret set %s",
				name,
				schema.ShellWord(name),
			)
		}

		return value, err
	}
}

// check returns an error of the factories' sources, without reading them.
func (c *controllers) check(factories []settings.Factory) error {
	for _, f := range factories {
		if f.Source.Managed != nil {
			continue
		}

		source, _, err := c.source(f)
		if err != nil {
			return fmt.Errorf("factory %q: %w", f.Name, err)
		}

		source.Close()
	}

	return nil
}

// sourceSecrets are the secrets that the settings name, with the use of each.
type sourceSecrets struct {
	used     map[string]string
	reserved map[string]string // those that no definition may name
}

// secretsOf returns the secrets that sources, forges and environments use. Definitions may also use those of
// sharedSecrets and of environments.
func secretsOf(s settings.Settings) *sourceSecrets {
	all := &sourceSecrets{used: map[string]string{}, reserved: map[string]string{}}
	add := func(name, use string) {
		if name == "" || all.used[name] != "" {
			return
		}

		all.used[name] = use
		if !slices.Contains(s.SharedSecrets, name) {
			all.reserved[name] = use
		}
	}

	for _, f := range s.Factories {
		g := f.Source.Git
		if g == nil {
			continue
		}

		for _, setting := range [][2]string{
			{"tokenSecret", g.TokenSecret}, {"sshKeySecret", g.SSHKeySecret}, {"pushSecret", g.PushSecret},
		} {
			add(setting[1], fmt.Sprintf("the %s of the source of factory %s", setting[0], f.Name))
		}
	}

	for _, name := range slices.Sorted(maps.Keys(s.Forges)) {
		f := s.Forges[name]
		add(f.TokenSecret, fmt.Sprintf("the tokenSecret of forge %s", name))
		if f.App != nil {
			add(f.App.PrivateKeySecret, fmt.Sprintf("the privateKeySecret of forge %s", name))
		}
	}

	environments := s.EnvironmentsByName()
	for _, name := range slices.Sorted(maps.Keys(environments)) {
		for _, secret := range environments[name].Secrets {
			if all.used[secret] == "" {
				all.used[secret] = fmt.Sprintf("environment %s of the settings", name)
			}
		}
	}

	return all
}

func (c *controllers) sourceSecrets() (used, reserved map[string]string) {
	all := c.secrets.Load()
	if all == nil {
		return nil, nil
	}
	return all.used, all.reserved
}

// configure starts and stops loops to match the given factories. If it fails, it changes nothing: it
// updates the state in one transaction before it stops a loop. Loops with unchanged settings continue.
func (c *controllers) configure(ctx context.Context, s settings.Settings) (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()

	running := map[string]*controller{} // by name
	for _, n := range c.all {
		running[n.settings.Name] = n
	}

	factories := s.Factories
	next := make([]*controller, len(factories))
	defer func() {
		for i, n := range next {
			if err != nil && n != nil && n != running[factories[i].Name] {
				n.source.Close()
			}
		}
	}()

	for i, f := range factories {
		old := running[f.Name]
		if old != nil && reflect.DeepEqual(old.settings, f) && !old.keysChanged(f) {
			next[i] = old
			continue
		}

		if f.Source.Dir != "" {
			if info, err := os.Stat(f.Source.Dir); err == nil && !info.IsDir() {
				return fmt.Errorf("factory %q: %s is not a directory", f.Name, f.Source.Dir)
			}
		}

		source, keys, err := c.source(f)
		if err != nil {
			return fmt.Errorf("factory %q: %w", f.Name, err)
		}

		next[i] = &controller{settings: f, keys: keys, source: source}
	}

	want := make([]state.FactorySettings, len(next))
	for i, n := range next {
		want[i] = state.FactorySettings{
			Name:      n.settings.Name,
			Source:    n.source.Describe(),
			Suspended: n.settings.Suspended,
		}
	}

	rows, err := c.store.ConfigureFactories(ctx, want)
	if err != nil {
		return err
	}

	c.secrets.Store(secretsOf(s))
	all := map[string]*controller{}
	for i, n := range next {
		all[rows[i].UID] = n
		if n.loop == nil {
			n.loop = c.newLoop(n, rows[i])
			if n.pulls, err = c.newWatcher(n, rows[i]); err != nil {
				return fmt.Errorf("factory %q: %w", n.settings.Name, err)
			}
		}
	}

	for uid, old := range c.all {
		if all[uid] != old {
			old.end()
			if all[uid] == nil {
				c.metrics.Forget(old.settings.Name)
				c.pullMetrics.Forget(old.settings.Name)
			}
		}
	}

	for _, n := range all {
		if n.done == nil {
			n.start()
		}
	}

	c.all = all
	return nil
}

// keysChanged reports whether the files of trusted keys differ from those that the source was made with, or cannot
// be read.
func (n *controller) keysChanged(f settings.Factory) bool {
	_, keys, err := readSigners(f)
	return err != nil || !bytes.Equal(keys, n.keys)
}

func (c *controllers) newLoop(n *controller, row state.Factory) *reconcile.Loop {
	return reconcile.New(reconcile.Config{
		Store: c.store, Factory: row, Source: n.source, Interval: n.interval(),
		AllowPrune: n.settings.Source.AllowPrune, AllowRename: n.settings.Source.AllowRename,
		HarnessTypes: c.harnesses, ForgeKinds: c.forges.Kinds, Log: c.log, Metrics: c.metrics, MaxDeliveries: c.most,
		Reserved: func() map[string]string {
			_, reserved := c.sourceSecrets()
			return reserved
		},
		CheckURL: func() string { return c.checkURL(n.settings) },
		Used: func() map[string]string {
			used, _ := c.sourceSecrets()
			return used
		},
	})
}

// checkURL returns the address of a factory's source if the server tells its forge of revisions, and else "".
func (c *controllers) checkURL(f settings.Factory) string {
	g := f.Source.Git
	if g == nil || g.Tag != "" || g.Commit != "" || g.Checks != nil && !*g.Checks {
		return ""
	}
	if _, _, ok := c.forges.OfSource(g.URL); !ok {
		return ""
	}
	return g.URL
}

// newWatcher returns what checks the pull requests of a factory; nil for a source that is no branch of a git
// repository.
func (c *controllers) newWatcher(n *controller, row state.Factory) (*pulls.Watcher, error) {
	g := n.settings.Source.Git
	if g == nil || g.Tag != "" || g.Commit != "" || n.settings.Suspended {
		return nil, nil
	}

	git := c.gitConfig(n.settings)
	git.CloneDir = filepath.Join(c.cloneDir, ".pulls", n.settings.Name) // no factory has this name
	return pulls.New(pulls.Config{
		Store:    c.store,
		Factory:  row,
		Loop:     n.loop,
		Git:      git,
		Forges:   c.forges,
		On:       func() bool { return c.checkURL(n.settings) != "" },
		Interval: n.interval(),
		Log:      c.log,
		Metrics:  c.pullMetrics,
	})
}

// interval returns the time between looks at the source; 0 for the default.
func (n *controller) interval() time.Duration {
	interval := n.settings.Source.Interval
	if g := n.settings.Source.Git; g != nil && g.Interval != 0 {
		interval = g.Interval
	}
	return interval.Or(0)
}

// checked reports whether the settings let the server tell the forge of a factory's source of revisions. Those
// of a factory that is not configured yet do.
func (c *controllers) checked(uid string) bool {
	n, err := c.loop(uid)
	return err != nil || c.checkURL(n.settings) != ""
}

func (n *controller) start() {
	ctx, stop := context.WithCancel(context.Background())
	n.stop, n.done = stop, make(chan struct{})

	var watching sync.WaitGroup
	if n.pulls != nil {
		watching.Go(func() { n.pulls.Run(ctx) })
	}

	go func() {
		defer close(n.done)
		n.loop.Run(ctx)
		n.source.Close()
		watching.Wait()
	}()
}

func (n *controller) end() {
	n.stop()
	<-n.done
}

func (c *controllers) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.all {
		n.stop()
	}
	for _, n := range c.all {
		<-n.done
	}
	c.all = nil
}

var errNoController = fmt.Errorf("this factory is not configured on this server: %w", state.ErrConflict)

func (c *controllers) loop(uid string) (*controller, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.all[uid]
	if n == nil {
		return nil, errNoController
	}
	return n, nil
}

// sync applies a factory's source and returns the result.
func (c *controllers) sync(ctx context.Context, uid string, allow admin.SyncRequest) (state.Attempt, error) {
	n, err := c.loop(uid)
	if err != nil {
		return state.Attempt{}, err
	}

	r, err := n.loop.Sync(ctx, reconcile.SyncOptions{
		AllowPrune:  allow.AllowPrune,
		AllowRename: allow.AllowRename,
		Revision:    allow.Revision,
	})
	return state.Attempt{
		FactoryUID: uid,
		Revision:   r.Revision,
		Outcome:    r.Outcome,
		Counts:     r.Counts,
		Problems:   r.Problems,
		Message:    r.Message,
	}, err
}

// planHead plans a factory's source as it is now.
func (c *controllers) planHead(ctx context.Context, uid string, allow plan.Allowed) (plan.Plan, error) {
	n, err := c.loop(uid)
	if err != nil {
		return plan.Plan{}, err
	}
	return n.loop.Plan(ctx, allow)
}

// allowed returns the destructive changes that the settings of a factory allow.
func (c *controllers) allowed(uid string) (prune, rename bool) {
	n, err := c.loop(uid)
	if err != nil {
		return false, false
	}
	return n.settings.Source.AllowPrune, n.settings.Source.AllowRename
}

// notice wakes a factory's source.
func (c *controllers) notice(uid string) {
	if n, err := c.loop(uid); err == nil {
		n.loop.Notice()
		if n.pulls != nil {
			n.pulls.Notice()
		}
	}
}

// pushSecret names the scheme and the secret that verify push notices of a factory's git host.
func (c *controllers) pushSecret(uid string) (scheme, secret string, ok bool) {
	n, err := c.loop(uid)
	if err != nil || n.settings.Source.Git == nil || n.settings.Source.Git.PushSecret == "" {
		return "", "", false
	}
	g := n.settings.Source.Git
	if scheme = g.PushScheme; scheme == "" {
		scheme = "github"
	}
	return scheme, g.PushSecret, true
}
