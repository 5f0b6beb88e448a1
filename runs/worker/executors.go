//go:build unix

package worker

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"millwright/runs/wire"
	"millwright/runs/worker/confine"
	"millwright/runs/worker/preset"
)

// Executor runs harnesses in one way: in this process, as a command, in a container.
type Executor interface {
	// Execute runs the harness for a task until it ends, and returns the outcome. When ctx ends, it stops
	// the harness with every process that it started, before it returns.
	Execute(ctx context.Context, t Task) outcome
}

// Task is the work of a harness.
type Task struct {
	Order *wire.Order
	Root  string // parent of the run's directories
	Dir   string // the working directory in it, with the order's files
	// MaxDir bounds a working directory elsewhere, in bytes. The job watches a local one.
	MaxDir int64
	// Command is the program to start, with its arguments.
	Command []string
	// Env are variables of the agent beside what every harness gets.
	Env       map[string]string
	home      string   // of an agent
	setUpMark string   // the line that a container puts out after its set-up commands
	ownDir    string   // below Dir, of our own files; empty: Dir itself
	moved     []string // attachments that are in ownDir, since the repository has files of their names

	repositories []repository // that are checked out in Dir
	adapter      preset.Adapter
	unsigned     string           // hint for an agent that has no variable to sign in by
	boxed        bool             // its processes are in a sandbox
	enter        []string         // the command by which this program enters it
	hidden       []string         // what it does not show
	session      *session         // of an agent that speaks the Agent Client Protocol; nil: it has none
	account      *confine.Account // nil: the executor needs none
	host         *confine.Host
	out          *recorder
}

// Check returns the reason why a worker would refuse the update.
func (u Update) Check() error {
	_, _, err := u.executors("")
	return err
}

// configured is a harness that is ready to execute runs.
type configured struct {
	Executor
	harness Harness
	adapter func(preset.Task) preset.Adapter
}

// pool returns the accounts of which a run needs one.
func (c configured) pool() []confine.Account {
	if e, ok := c.Executor.(interface{ accounts() []confine.Account }); ok {
		return e.accounts()
	}
	return nil
}

// executors makes the executors of the configured harnesses, and names the default one.
func (u Update) executors(label string) (all map[string]configured, fallback string, err error) {
	if name, err := u.Overlap(); err != nil {
		return nil, "", fmt.Errorf("harness %q: uidRange %w", name, err)
	}

	lines, err := preset.AdapterOf("")
	if err != nil {
		return nil, "", err
	}

	all = map[string]configured{Echo: {Executor: echo{}, adapter: lines}}
	for _, name := range slices.Sorted(maps.Keys(u.Harnesses)) {
		h := u.Harnesses[name]
		e, err := newExecutor(h, label)
		if err != nil {
			return nil, "", fmt.Errorf("harness %q: %w", name, err)
		}

		adapter, err := preset.AdapterOf(cmp.Or(h.Preset, h.Adapter))
		if h.Preset == preset.ACP {
			adapter, err = lines, nil
		}
		if err != nil {
			return nil, "", fmt.Errorf("harness %q: %w", name, err)
		}

		all[name] = configured{e, h, adapter}
	}

	fallback = cmp.Or(u.Default, Echo)
	if all[fallback].Executor == nil {
		return nil, "", fmt.Errorf(
			"harness %q does not exist: configure it under harnesses, or choose one of %v",
			fallback,
			slices.Sorted(maps.Keys(all)),
		)
	}

	return all, fallback, nil
}

// set sets the harnesses of later runs.
func (w *worker) set(u Update) error {
	all, fallback, err := u.executors(w.label)
	if err != nil {
		return err
	}

	for _, name := range slices.Sorted(maps.Keys(u.Harnesses)) {
		if u.Harnesses[name].SameUser {
			w.cfg.Log.Warn(
				"harness runs as the user of this process: its agents act on text of outsiders, and can "+
					"read everything that this process can",
				"harness",
				name,
			)
		}
	}

	for _, name := range slices.Sorted(maps.Keys(all)) {
		if n := len(all[name].pool()); n > 0 && n < w.cfg.Slots {
			w.cfg.Log.Warn(
				"harness has fewer accounts than this process has slots: no more runs than accounts are "+
					"executed at once",
				"harness",
				name,
				"accounts",
				n,
				"slots",
				w.cfg.Slots,
			)
		}
	}

	w.mu.Lock()
	defer w.mu.Unlock()

	w.harnesses, w.fallback = all, fallback
	return nil
}

// pools returns the accounts of each harness that needs one.
func (w *worker) pools() [][]confine.Account {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all [][]confine.Account
	for _, name := range slices.Sorted(maps.Keys(w.harnesses)) {
		if pool := w.harnesses[name].pool(); len(pool) > 0 {
			all = append(all, pool)
		}
	}
	return all
}

// update applies updates until done is closed.
func (w *worker) update(done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case u := <-w.cfg.Updates:
			if err := w.set(u); err != nil {
				w.cfg.Log.Error("worker: the old harnesses stay", "error", err)
			}
		}
	}
}

// harness returns the name of an order's harness, and the harness. A missing one has no executor.
func (w *worker) harness(o *wire.Order) (string, configured) {
	w.mu.Lock()
	defer w.mu.Unlock()
	name := o.Harness
	if name == "" || name == "oz" {
		name = w.fallback
	}
	return name, w.harnesses[name]
}

// sweep kills and removes the remains of killed workers.
func (w *worker) sweep(left []stale) {
	for _, pool := range w.pools() {
		if err := confine.Sweep(pool); err != nil {
			w.cfg.Log.Error("worker: clean up the accounts of harnesses", "error", err)
		}
	}

	for _, s := range left {
		for _, h := range w.harnesses {
			if e, ok := h.Executor.(interface{ sweep(label string) }); ok {
				e.sweep(s.label())
			}
		}

		if err := s.remove(); err != nil {
			w.cfg.Log.Error("worker: clean up after one that was killed", "directory", s.path, "error", err)
		}
	}
}

// installed is a hint for a preset whose program is not there.
func (h Harness) installed() string {
	p, ok := preset.Find(h.Preset)
	if !ok || p.Package == "" {
		return ""
	}
	return fmt.Sprintf(": install it with npm install -g %s, or set program", p.Package)
}

func newExecutor(h Harness, label string) (Executor, error) {
	if err := h.Check(); err != nil {
		return nil, err
	}

	h.Timeout = cmp.Or(h.Timeout, defaultTimeout)
	if h.Container != nil {
		return newContainer(h, label)
	}

	c := &command{harness: h}
	if err := c.findAccounts(); err != nil || h.Sandbox == nil {
		return c, err
	}

	var err error
	c.box, err = newBoxed(h, len(c.pool) > 0)
	return c, err
}

// findAccounts finds the accounts of the harness on this machine.
func (c *command) findAccounts() (err error) {
	h := c.harness
	if h.UIDRange != "" {
		c.pool, err = confine.Ranged(h.UIDRange)
		return err
	}

	users := h.Users
	if h.User != "" {
		users = []string{h.User}
	}

	for _, name := range users {
		a, err := confine.Named(name)
		if err != nil {
			return err
		}

		c.pool = append(c.pool, a)
	}

	return nil
}

// variables returns the variables of a harness, beside those of the machine. It finds its working directory at seen.
func variables(h Harness, t Task, seen string) map[string]string {
	o := t.Order
	env := map[string]string{
		ownDirVariable:      path.Join(seen, t.ownDir),
		"MILLWRIGHT_RUN_ID": o.RunID, "MILLWRIGHT_MODEL_ID": o.ModelID,
		"MILLWRIGHT_ENVIRONMENT_ID": o.EnvironmentID, "MILLWRIGHT_SKILL": o.Skill,
	}
	for _, name := range h.Env {
		if value, ok := os.LookupEnv(name); ok {
			env[name] = value
		}
	}

	maps.Copy(env, o.Env)
	maps.Copy(env, o.Secrets)
	maps.Copy(env, t.Env)
	for name, value := range env {
		if strings.ContainsAny(name, "=\x00") || strings.Contains(value, "\x00") {
			delete(env, name)
		}
	}

	return env
}
