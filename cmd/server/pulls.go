package server

import (
	"path/filepath"
	"time"

	"millwright/cmd/settings"
	"millwright/reconcile/pulls"
	"millwright/state"
)

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

// checked reports whether the settings let the server tell the forge of a factory's source of revisions. Those
// of a factory that is not configured yet do.
func (c *controllers) checked(uid string) bool {
	n, err := c.loop(uid)
	return err != nil || c.checkURL(n.settings) != ""
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
