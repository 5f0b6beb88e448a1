package cli

import "fmt"

// The exit statuses of every command (docs/cli.md).
const (
	ExitGood        = 0
	ExitProblem     = 1 // at least one error, or a refused request
	ExitUsage       = 2
	ExitUnreachable = 3 // could not check, or could not reach
)

// Exit is an error with the status that the program ends with. A nil err prints nothing more.
type Exit struct {
	Status int
	err    error
}

func (e *Exit) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.Status)
	}
	return e.err.Error()
}

func (e *Exit) Unwrap() error { return e.err }
