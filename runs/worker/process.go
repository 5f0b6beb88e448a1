//go:build unix

package worker

import (
	"os/exec"

	"millwright/runs/worker/confine"
)

// exit is the result of a process.
type exit struct {
	start   error  // error of the start
	err     error  // error of the wait
	alive   error  // reason why a descendant is still alive
	stderr  string // the end of standard error
	failure string // failure that the output reports
	blocked string // what the session waits for
}

// starter starts a command in one of the ways of confine.
type starter func(*exec.Cmd) (confine.Process, error)
