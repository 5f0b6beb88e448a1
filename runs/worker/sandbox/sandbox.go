// Package sandbox runs the command of a run in a sandbox of bubblewrap: its own directories, processes and
// network, with the system read-only.
//
// The worker starts bwrap, and bwrap starts this program inside of the sandbox (Enter). That one takes the
// plan of the worker over an inherited descriptor, gives up all rights, carries connections to the proxy of
// the run, starts the command, and reports how it ended.
package sandbox

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Network is what a run reaches.
type Network string

// The networks.
const (
	None    Network = "none"    // nothing but itself
	Shared  Network = "open"    // what the machine reaches
	Proxied Network = "proxied" // the proxy of the run alone
)

// DefaultProcesses is how many processes and threads a run may have.
const DefaultProcesses = 1024

// Dir is where a run finds its directories, on every machine.
const Dir = "/run/millwright/run"

// Spec describes the sandbox of one command.
type Spec struct {
	// Enter are the arguments with which this program calls Enter.
	Enter []string
	// Root holds the directories of the run: work, home and tmp.
	Root string
	// Parts are the directories of Root that the command sees; nil: work and home, which it may change.
	Parts []Part
	// UID and GID are the account to run as; -1: the user of this process.
	UID, GID int
	// Network is what the command reaches; None when empty.
	Network Network
	// Socket is where the proxy of the run listens, with Proxied.
	Socket string
	// Memory bounds the memory of all processes together, in bytes; 0: no bound.
	Memory int64
	// Processes bounds processes and threads; DefaultProcesses when zero.
	Processes int
	// ReadOnly are directories of the machine that the command sees beside the system.
	ReadOnly []string
	// Hidden are files and directories of the machine that the command does not see, wherever they lie.
	Hidden []string
}

// Part is a directory of a run, by its path from the root.
type Part struct {
	Path     string
	ReadOnly bool
}

// plan is what the worker tells the part of it inside of the sandbox.
type plan struct {
	Path      string   `json:"path"`
	Args      []string `json:"args"`
	Env       []string `json:"env"`
	Dir       string   `json:"dir"`
	UID       int      `json:"uid"`
	GID       int      `json:"gid"`
	Proxied   bool     `json:"proxied"`
	Memory    int64    `json:"memory"`
	Processes int      `json:"processes"`
}

// ErrMemory is the end of a command that needed more memory than it may.
var ErrMemory = errors.New("the run used more memory than its sandbox has")

// CheckReadOnly reports what is wrong with a directory that commands are to see.
func CheckReadOnly(dir string) error {
	own := []string{"/proc", "/sys", "/dev", "/run", "/tmp", "/var/tmp"}
	switch clean := filepath.Clean(dir); {
	case !filepath.IsAbs(dir):
		return fmt.Errorf("%q is not an absolute directory", dir)
	case clean == "/", slices.ContainsFunc(own, func(o string) bool {
		return clean == o || strings.HasPrefix(clean, o+"/")
	}):
		return fmt.Errorf("%q cannot be shown in a sandbox: name the directories that the agent needs", dir)
	}
	return nil
}
