package worker

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"millwright/runs/dispatch"
)

// Harness is how to execute runs: a command that the operator configures (cli.md, Settings file).
type Harness struct {
	// Command is the program and its arguments.
	Command []string
	// Adapter names how its output becomes the conversation; lines when empty.
	Adapter string
	// Env names the variables of this process's environment that the command gets.
	Env []string
	// Timeout is how long it may take; 1 hour when zero.
	Timeout time.Duration
	// User is the name of the user that it runs as.
	User string
	// SameUser lets it run as the user of this process, where it can read all that this process can.
	SameUser bool
	// Container runs it in a container.
	Container *Container
}

// Container says in what container a harness runs. What a run's runner asks for comes first, but for more
// processors or memory than are given here.
type Container struct {
	// Image is used where the run's runner names none.
	Image string `json:"image"`
	// Engine is docker, podman or kubernetes; empty: docker or podman, whichever is found.
	Engine string `json:"engine"`
	// CPUs is the limit of processors; 0: none.
	CPUs float64 `json:"cpus"`
	// Memory is the limit of memory, as 512m or 2g; empty: none.
	Memory string `json:"memory"`
	// Network is the engine's network to join; none when empty. Kubernetes: any other word than none
	// leaves it to the namespace's network policies.
	Network string `json:"network"`
	// Namespace is that of Kubernetes; empty: the current one.
	Namespace string `json:"namespace"`
}

const defaultTimeout = time.Hour

// Executor runs harnesses in one way: in this process, as a command, in a container.
type Executor interface {
	// Execute runs the harness for a task until it ends, and says how it ended. When ctx ends it stops
	// the harness, with all that it started, before it returns.
	Execute(ctx context.Context, t Task) outcome
}

// Task is what a harness is to do.
type Task struct {
	Order *dispatch.Order
	Dir   string // the working directory, with the order's files in it
	// MaxDir is how many bytes a working directory elsewhere may hold; the job watches this one.
	MaxDir int64
	out    *recorder
}

// Update is what can change of a worker's configuration while it works.
type Update struct {
	Harnesses map[string]Harness
	Default   string
}

// Check says why a worker could not take the update.
func (u Update) Check() error {
	_, _, err := u.executors("")
	return err
}

// executors makes the executors of the configured harnesses, and names the default one.
func (u Update) executors(label string) (all map[string]Executor, fallback string, err error) {
	all = map[string]Executor{Echo: echo{}}
	for _, name := range slices.Sorted(maps.Keys(u.Harnesses)) {
		if all[name], err = newExecutor(u.Harnesses[name], label); err != nil {
			return nil, "", fmt.Errorf("harness %q: %w", name, err)
		}
	}
	fallback = cmp.Or(u.Default, Echo)
	if all[fallback] == nil {
		return nil, "", fmt.Errorf("harness %q does not exist: configure it under harnesses, or choose one of %v", fallback, slices.Sorted(maps.Keys(all)))
	}
	return all, fallback, nil
}

// set makes these the harnesses of the runs that begin from now on.
func (w *worker) set(u Update) error {
	all, fallback, err := u.executors(w.label)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(u.Harnesses)) {
		if u.Harnesses[name].SameUser {
			w.cfg.Log.Warn("harness runs as the same user as this process: agents that act on what outsiders wrote can read all that it can", "harness", name)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.harnesses, w.fallback = all, fallback
	return nil
}

// update takes updates until done is closed.
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

// harness returns the name and the executor of the harness that an order asks for; nil: there is none.
func (w *worker) harness(o *dispatch.Order) (string, Executor) {
	w.mu.Lock()
	defer w.mu.Unlock()
	name := o.Harness
	if name == "" || name == "oz" {
		name = w.fallback
	}
	return name, w.harnesses[name]
}

// sweep removes what processes left behind that ended without doing so.
func (w *worker) sweep(stale []string) {
	for _, e := range w.harnesses {
		if e, ok := e.(interface{ sweep(label string) }); ok {
			for _, label := range stale {
				e.sweep(label)
			}
		}
	}
}

func newExecutor(h Harness, label string) (Executor, error) {
	if h.Container == nil && len(h.Command) == 0 || len(h.Command) > 0 && h.Command[0] == "" {
		return nil, fmt.Errorf("it has no command")
	}
	if h.Timeout == 0 {
		h.Timeout = defaultTimeout
	}
	if h.Timeout < 0 {
		return nil, fmt.Errorf("timeout %s is negative", h.Timeout)
	}
	adapt, err := adapterOf(h.Adapter)
	if err != nil {
		return nil, err
	}
	ways := 0
	for _, chosen := range []bool{h.User != "", h.SameUser, h.Container != nil} {
		if chosen {
			ways++
		}
	}
	if ways != 1 {
		return nil, fmt.Errorf("say where it runs, in one way: user: NAME (another user), container: {image: …}, or sameUser: true (agents read what outsiders wrote, and as this user they can read all that the server can)")
	}
	if h.Container != nil {
		return newContainer(h, adapt, label)
	}
	c := &command{harness: h, adapt: adapt}
	if h.SameUser {
		c.home = os.Getenv("HOME")
		return c, nil
	}
	return c, c.lookUp(h.User)
}

// variables are what every harness gets in its environment beside what the machine needs.
func variables(h Harness, o *dispatch.Order) map[string]string {
	env := map[string]string{
		"MILLWRIGHT_RUN_ID": o.RunID, "MILLWRIGHT_MODEL_ID": o.ModelID,
		"MILLWRIGHT_ENVIRONMENT_ID": o.EnvironmentID, "MILLWRIGHT_SKILL": o.Skill,
	}
	for _, name := range h.Env {
		if value, ok := os.LookupEnv(name); ok {
			env[name] = value
		}
	}
	maps.Copy(env, o.Secrets)
	for name, value := range env {
		if strings.ContainsAny(name, "=\x00") || strings.Contains(value, "\x00") {
			delete(env, name)
		}
	}
	return env
}
