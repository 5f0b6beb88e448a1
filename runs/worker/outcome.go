//go:build unix

package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"millwright/runs/wire"
)

// outcome is the result of a harness.
type outcome struct {
	ended       bool // by itself
	state       wire.RunState
	message     string
	code        string
	later       bool              // the forge of a checkout is away, so the harness has not started
	alive       error             // reason why processes of the run are still alive
	kept        error             // reason why the working directory is not as the harness left it
	outputs     []json.RawMessage // requests of the agent
	outputLines []int             // of outputs, in the file
}

func failed(code, format string, args ...any) outcome {
	return outcome{ended: true, state: wire.Error, code: code, message: fmt.Sprintf(format, args...)}
}

// Causes for stopping a job before its harness ends.
var (
	errCancelled = errors.New("the run was cancelled")
	errLost      = errors.New("the run was taken away from this worker")
	errHandBack  = errors.New("the worker ends")
)

// timeoutError is the cause when a harness takes too long.
type timeoutError struct{ after time.Duration }

func (e timeoutError) Error() string {
	return fmt.Sprintf("the harness did not end within %s", e.after)
}

// fullError is the cause when a harness fills its directory.
type fullError struct{ max int64 }

func (e fullError) Error() string {
	return fmt.Sprintf("the harness put more than %d bytes into its working directory", e.max)
}

// errScarce is the cause when a harness uses much of a nearly full disk.
var errScarce = errors.New("the worker's disk is nearly full, and this run holds much of it")

// setUpError is the reason why set-up commands failed.
type setUpError struct{ text string }

func (e setUpError) Error() string { return e.text }

// stoppedBy returns the outcome of a run that was stopped by the cause of ctx.
func stoppedBy(ctx context.Context) (outcome, bool) {
	cause := context.Cause(ctx)
	var late timeoutError
	var full fullError
	var slow setUpError
	var over wire.OverBudgetError
	switch {
	case cause == nil:
		return outcome{}, false
	case errors.Is(cause, errCancelled):
		return outcome{ended: true, state: wire.Cancelled}, true
	case errors.As(cause, &over):
		return outcome{ended: true, state: wire.Failed, code: "budget_exceeded", message: over.Budget}, true
	case errors.As(cause, &late):
		return failed("infrastructure_timeout", "%v", late), true
	case errors.As(cause, &full), errors.Is(cause, errScarce), errors.As(cause, &slow):
		return failed("environment_setup_failed", "%v", cause), true
	}

	return outcome{}, true
}

// underlying removes paths of this machine from an error.
func underlying(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	var program *exec.Error
	if errors.As(err, &program) {
		return program.Err
	}
	return err
}
