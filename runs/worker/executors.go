//go:build unix

package worker

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"millwright/runs/wire"
	"millwright/runs/worker/confine"
	"millwright/runs/worker/preset"
)

// Check returns the reason why a worker would refuse the update.
func (u Update) Check() error {
	_, _, err := u.executors("")
	return err
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
