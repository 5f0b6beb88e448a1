//go:build unix

// Package worker executes claimed runs through harnesses. It needs a connection to dispatch and nothing
// else: no database, no master key.
package worker

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	acp "github.com/coder/acp-go-sdk"
	"github.com/prometheus/client_golang/prometheus"

	"millwright/runs/wire"
	"millwright/runs/worker/checkout"
	"millwright/runs/worker/collect"
	"millwright/runs/worker/confine"
	"millwright/runs/worker/preset"
	"millwright/trace"
)

// Config says how to work. Client is required; with the rest zero, one run at a time is executed by the
// built-in harness named echo.
type Config struct {
	Client *wire.Client
	// Slots is how many runs are executed at once; 1 when zero.
	Slots int
	// Harnesses are the configured ones by name. echo is built in.
	Harnesses map[string]Harness
	// Default is the harness of runs that name none, or "oz"; echo when empty.
	Default string
	// Updates brings other harnesses while it works, for the runs that begin afterwards; nil: never.
	Updates <-chan Update
	// Dir is where working directories are made; one in the system's temporary directory when empty.
	Dir string
	// Grace is how long runs may go on after the worker is told to end; 10 seconds when zero. Half of it
	// they may use to finish, then they are stopped and handed back.
	Grace time.Duration
	// MaxRefused is how long every request for work may be refused before the worker gives up: its key was
	// revoked or has expired; a minute when zero.
	MaxRefused time.Duration
	// MaxDir is how many bytes a working directory may hold; 10 GiB when zero. The run that fills it ends
	// as ERROR.
	MaxDir int64
	// NoCgroup does without control groups, as on a machine that has none.
	NoCgroup bool
	// Keeper is the command line with which this program calls confine.Keep, for machines without control
	// groups. nil: there only the process group of a harness ends with its run.
	Keeper []string
	// Enter are the arguments with which this program calls sandbox.Enter.
	Enter []string
	// Hidden are files and directories that no sandbox shows, such as those of the server.
	Hidden []string
	// Name is shown as the runs' executor; the host's name when empty.
	Name string
	// Version is the program's version, for people.
	Version string
	// Log receives notices; nil discards them.
	Log *slog.Logger
	// Registerer receives the metrics; nil: none.
	Registerer prometheus.Registerer
	// Tracer continues the traces of runs; nil: none.
	Tracer *trace.Tracer
}

// claimWait is how long one request for work waits.
const claimWait = 5 * time.Second

// ErrKeyRefused says that the server takes the worker's key no more.
var ErrKeyRefused = errors.New("the server refuses this worker's key: it was revoked or has expired; " +
	"make another with millwright key create NAME --role worker")

type worker struct {
	cfg       Config
	dir       string // of the working directories
	label     string // marks what belongs to this process
	host      *confine.Host
	mirrors   *checkout.Mirrors
	accounts  confine.Accounts
	mu        sync.Mutex
	harnesses map[string]configured
	fallback  string // the harness of runs that name none
	jobs      map[string]*job
	giveUp    context.CancelCauseFunc
	refused   time.Time     // since when servers refuse every request for work
	changed   chan struct{} // capacity 1: the next report
}

// job is one order while it is executed.
type job struct {
	worker *worker
	order  *wire.Order
	held   []confine.Account // until the job knows which one the run needs
	stop   context.CancelCauseFunc
	log    *slog.Logger

	mu      sync.Mutex
	session *session // of the agent; nil: it has none, or it is over
}

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

// places are where an agent finds its home and its working directory.
type places struct{ home, dir string }

// repository is a repository that a task starts in.
type repository struct {
	wire.Repository
	dir   string // of the checkout
	base  string // of the objects that it began with
	made  checkout.Made
	tip   string // the commit that the execution begins with: that of made, or what the one before left
	setUp collect.Changed
}

// session is a living session of an agent that speaks the Agent Client Protocol. The agent's requests for permission
// become questions of the run, and messages to the run become prompts.
type session struct {
	job    *job
	out    *recorder
	given  *given
	task   preset.Task
	prompt func() (*os.File, error) // opens the file with the prompt
	idle   time.Duration
	talk   talk
	wake   chan struct{}

	conn    *acp.ClientSideConnection
	seen    string // the last message that the agent got
	stop    context.CancelCauseFunc
	turn    wire.Usage    // of the turns that have ended
	replays atomic.Bool   // the agent repeats the session that it loads
	deaf    atomic.Bool   // the agent has closed its input
	updates chan struct{} // the agent has sent an update; capacity 1

	mu      sync.Mutex
	id      acp.SessionId
	asking  map[string]chan wire.Reply // by question
	replies []wire.Reply               // that the session before did not live to see
}

// cancel ends the run of the given ID if this worker executes it.
func (w *worker) cancel(runID string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if j := w.jobs[runID]; j != nil {
		j.stop(errCancelled)
	}
}
