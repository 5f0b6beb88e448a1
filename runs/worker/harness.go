package worker

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"millwright/runs/worker/confine"
	"millwright/runs/worker/preset"
	"millwright/runs/worker/sandbox"
)

// Echo is the name of the built-in harness.
const Echo = "echo"

// Harness configures how to execute runs: a command of the operator (docs/operating/harnesses.md).
type Harness struct {
	// Command is the program and its arguments.
	Command []string
	// Preset names a coding agent whose command line is known, in place of a command.
	Preset string
	// Program is the path of the agent's program; the preset's own name, looked up in Path, when empty.
	Program string
	// Args follow the arguments of the preset.
	Args []string
	// TrustRepositorySettings has the agent's program believe what the repository says to it.
	TrustRepositorySettings bool
	// Adapter names the format of its output; lines when empty.
	Adapter string
	// Env names the variables to pass on from this process's environment.
	Env []string
	// Timeout is how long it may take; 1 hour when zero.
	Timeout time.Duration
	// Path is the PATH of the command; confine.DefaultPath when empty.
	Path string
	// User is the name of the user that it runs as, one run at a time.
	User string
	// Users are the names of users. Each executes one run at a time.
	Users []string
	// UIDRange are user IDs without accounts, such as 70000-70063. Each executes one run at a time.
	UIDRange string
	// SameUser runs it as the user of this process. It can then read everything that this process can.
	SameUser bool
	// Container runs it in a container.
	Container *Container
	// Sandbox runs it in a sandbox, as one of the accounts or, without any, as the user of this process.
	Sandbox *Sandbox
}

// Container configures the container of a harness. A run's runner overrides it, except to get more
// processors or memory.
type Container struct {
	// Image is the image of runs whose runner names none.
	Image string `json:"image"`
	// Engine is docker, podman or kubernetes; empty: docker or podman, whichever is found.
	Engine string `json:"engine"`
	// CPUs is the limit of processors; 0: none.
	CPUs float64 `json:"cpus"`
	// Memory is the limit of memory, as 512m or 2g; empty: none.
	Memory string `json:"memory"`
	// Network is the engine's network to join; none when empty. In Kubernetes it is the value of a label
	// for the namespace's network policies.
	Network string `json:"network"`
	// Namespace is the namespace in Kubernetes; empty: the current one.
	Namespace string `json:"namespace"`
}

const defaultTimeout = time.Hour

// Update is the part of a worker's configuration that can change while it runs.
type Update struct {
	Harnesses map[string]Harness
	Default   string
}

// checkProgram reports the mistakes in the program of a harness.
func (h Harness) checkProgram() error {
	if h.Preset == "" {
		switch {
		case h.Program != "" || len(h.Args) > 0 || h.TrustRepositorySettings:
			return fmt.Errorf("program, args and trustRepositorySettings belong to a preset: name one, or give command")
		case h.Container == nil && len(h.Command) == 0, len(h.Command) > 0 && h.Command[0] == "":
			return fmt.Errorf("it has no command")
		}
		return nil
	}

	if _, ok := preset.Find(h.Preset); !ok {
		return fmt.Errorf("preset %q does not exist: want one of %s, %s",
			h.Preset, strings.Join(preset.Names(), ", "), preset.ACP)
	}
	if h.Preset == preset.ACP && h.Program == "" {
		return fmt.Errorf("preset acp has no program of its own: give program, one that speaks the Agent " +
			"Client Protocol")
	}
	if h.Preset == preset.ACP && h.Container != nil {
		return fmt.Errorf("preset acp runs on the worker's machine: give user, users, uidRange or " +
			"sameUser, not container")
	}
	if len(h.Command) > 0 || h.Adapter != "" {
		return fmt.Errorf("a preset has its own command and adapter: give program and args, or command without preset")
	}

	return nil
}

// Check returns errors of a harness that do not depend on the machine.
func (h Harness) Check() error {
	if err := h.checkProgram(); err != nil {
		return err
	}
	if h.Timeout < 0 {
		return fmt.Errorf("timeout %s is negative", h.Timeout)
	}

	ways := 0
	account := h.User != "" || len(h.Users) > 0 || h.UIDRange != ""
	for _, chosen := range []bool{
		h.User != "", len(h.Users) > 0, h.UIDRange != "", h.SameUser, h.Container != nil, h.Sandbox != nil && !account,
	} {
		if chosen {
			ways++
		}
	}

	if err := h.checkSandbox(); err != nil {
		return err
	}
	if ways != 1 {
		return fmt.Errorf(
			"choose where it runs, one of: user: NAME (another user), users: [NAME, …], uidRange: " +
				"FIRST-LAST, container: {image: …}, sandbox: bubblewrap, or sameUser: true (agents read what " +
				"outsiders wrote, and as this user they can read all that the server can)",
		)
	}

	for i, name := range h.Users {
		if name == "" || slices.Contains(h.Users[:i], name) {
			return fmt.Errorf("users: %q is there twice, or empty", name)
		}
	}

	if h.UIDRange != "" {
		if _, _, err := confine.Range(h.UIDRange); err != nil {
			return err
		}
	}

	if h.Path != "" && h.Container != nil {
		return fmt.Errorf("path: a container has the PATH of its image")
	}

	for _, dir := range filepath.SplitList(h.Path) {
		if !filepath.IsAbs(dir) {
			return fmt.Errorf("path: %q is not an absolute directory", dir)
		}
	}

	return nil
}

// checkSandbox returns errors of the sandbox of a harness that do not depend on the machine.
func (h Harness) checkSandbox() error {
	if h.Sandbox == nil {
		return nil
	}
	if h.Container != nil || h.SameUser {
		return errors.New("sandbox: give it alone, or with user, users or uidRange; " +
			"not with container or sameUser")
	}

	if at, err := h.Sandbox.Check(); err != nil {
		return fmt.Errorf("sandbox%s: %w", at, err)
	}

	_, known := h.hosts()
	if h.Preset != "" && !known {
		return fmt.Errorf("sandbox: preset %s reaches a model of your choice: give network: {allow: [HOST, …]}, or "+
			"network: open", h.Preset)
	}
	return nil
}

// hosts returns the hosts that the harness reaches through its proxy. known reports whether its network is
// given, or follows from the preset.
func (h Harness) hosts() (names []string, known bool) {
	n := h.Sandbox.Network
	if n.Mode != "" || n.Allow != nil {
		return n.Allow, true
	}

	p, _ := preset.Find(h.Preset)
	return p.Hosts, len(p.Hosts) > 0
}

// spec returns the sandbox of the harness, without what depends on the run.
func (h Harness) spec() sandbox.Spec {
	names, _ := h.hosts()
	network := sandbox.Network(cmp.Or(h.Sandbox.Network.Mode, string(sandbox.None)))
	if len(names) > 0 {
		network = sandbox.Proxied
	}

	s := sandbox.Spec{
		UID: -1, GID: -1, Network: network, Processes: h.Sandbox.Processes, ReadOnly: h.Sandbox.ReadOnly,
	}
	if h.Sandbox.Memory != "" {
		s.Memory = bytesOf(strings.ToLower(h.Sandbox.Memory))
	}
	return s
}

// Overlap returns the name of a harness whose range of user IDs overlaps a different range. Equal ranges
// are allowed: their runs wait for each other.
func (u Update) Overlap() (harness string, err error) {
	names := slices.Sorted(maps.Keys(u.Harnesses))
	for i, name := range names {
		mine := u.Harnesses[name].UIDRange
		first, last, err := confine.Range(mine)
		if err != nil {
			continue // none, or Check reports it
		}

		for _, other := range names[:i] {
			theirs := u.Harnesses[other].UIDRange
			otherFirst, otherLast, err := confine.Range(theirs)
			same := first == otherFirst && last == otherLast
			if err == nil && !same && first <= otherLast && otherFirst <= last {
				return name, fmt.Errorf(
					"%q overlaps %q of harness %q: give both the same range, or ranges apart",
					mine,
					theirs,
					other,
				)
			}
		}
	}

	return "", nil
}

// ownDirVariable names the directory of our own files to a harness.
const ownDirVariable = "MILLWRIGHT_DIR"
