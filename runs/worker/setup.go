//go:build unix

package worker

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"millwright/runs/wire"
	"millwright/runs/worker/confine"
	"millwright/runs/worker/preset"
)

// setUpTime is how long set-up commands may take.
const setUpTime = 15 * time.Minute

// statusNotSetUp is the exit status of a script whose set-up commands failed: that of engines for a container that
// cannot be set up.
const statusNotSetUp = 125

func lateSetUp(limit time.Duration) error {
	return setUpError{fmt.Sprintf("the set-up commands did not end within %s", limit)}
}

// setUpCommands returns the commands to run before the harness.
func (t Task) setUpCommands() []string {
	if t.Order.Runner == nil {
		return nil
	}
	return t.Order.Runner.Setup
}

// setupScript returns a shell script that runs the set-up commands, and exits with a fixed status if one fails. mark
// is a line that it puts out after the last one.
func setupScript(commands []string, mark string) string {
	if len(commands) == 0 {
		return ""
	}

	// Left of ||, the shell would go on after a command that fails.
	script := "( set -e\n" + strings.Join(commands, "\n") + "\n) </dev/null 2>&1\n" +
		`case $? in 0) ;; *) echo "exit status $?"; exit 125 ;; esac` + "\n"
	if mark != "" {
		script += `printf '\n%s\n' ` + mark + "\n"
	}
	return script
}

// setUpStep is the step of a conversation that shows set-up commands.
type setUpStep struct {
	output tail
	ended  bool
}

const setUpID = "set-up"

// begin adds the commands to the conversation.
func (s *setUpStep) begin(out preset.Out, commands []string) {
	input, _ := json.Marshal(map[string]string{"command": strings.Join(commands, "\n")}) // text always marshals
	out.Add(wire.Block{Type: "action", ID: setUpID, Category: "command", Name: "set_up", Input: input})
}

// end adds the end of their output.
func (s *setUpStep) end(out preset.Out, r *redactor, ok bool) {
	if s.ended {
		return
	}
	s.ended = true

	state := "completed"
	if !ok {
		state = "failed"
	}
	output, _ := json.Marshal(map[string]string{"output": s.output.text(r)}) // text always marshals
	out.Add(wire.Block{
		Type: "action_result", ActionID: setUpID, Category: "command", Name: "set_up", State: state, Output: output,
	})
}

// failure returns the reason why the commands failed.
func (s *setUpStep) failure(r *redactor, status string) error {
	return setUpError{"the set-up commands failed: " + cmp.Or(s.output.text(r), status)}
}

// setUp runs the set-up commands of a command harness in the account of the run. A container runs its own.
func (c *command) setUp(ctx context.Context, t Task) error {
	commands := t.setUpCommands()
	if len(commands) == 0 {
		return nil
	}

	limit := min(setUpTime, c.harness.Timeout)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, lateSetUp(limit))
	defer cancel()

	path := cmp.Or(c.harness.Path, confine.DefaultPath)
	shell, err := confine.LookUp("sh", path)
	if err != nil {
		return fmt.Errorf("set-up commands: %w", err)
	}

	step := &setUpStep{}
	step.begin(t.out, commands)
	cmd := &exec.Cmd{
		Path:      shell,
		Args:      []string{"sh", "-c", setupScript(commands, "")},
		Dir:       filepath.Join(t.seenRoot(), confine.Work),
		Env:       c.environment(t, path),
		WaitDelay: 3 * time.Second,
	}

	start := func(cmd *exec.Cmd) (confine.Process, error) { return c.start(t, cmd) }
	err = call(ctx, cmd, start, func(r io.Reader) error {
		_, err := io.Copy(&step.output, r)
		return err
	}, io.Discard)
	step.end(t.out, t.out.redact, err == nil)

	var status *confine.ExitError
	if errors.As(err, &status) {
		return step.failure(t.out.redact, status.Error())
	}
	return err
}

// containerSetUp shows the set-up commands of a container, which put their output before that of the harness.
type containerSetUp struct {
	preset.Adapter
	step   setUpStep
	mark   string
	redact *redactor
	timer  *time.Timer
}

// withSetUp makes the adapter of a task take the output of set-up commands first. stop is called when they take too
// long. done stops the clock.
func withSetUp(t *Task, limit time.Duration, stop context.CancelCauseFunc) (s *containerSetUp, done func()) {
	commands := t.setUpCommands()
	if len(commands) == 0 {
		return nil, func() {}
	}

	limit = min(setUpTime, limit)
	s = &containerSetUp{Adapter: t.adapter, mark: rand.Text(), redact: t.out.redact}
	s.timer = time.AfterFunc(limit, func() { stop(lateSetUp(limit)) })
	s.step.begin(t.out, commands)
	t.adapter, t.setUpMark = s, s.mark
	return s, func() { s.timer.Stop() }
}

// Line takes a line of the set-up commands or, after the last one, of the harness.
func (s *containerSetUp) Line(out preset.Out, line string) {
	switch {
	case s.step.ended:
		s.Adapter.Line(out, line)
	case line == s.mark:
		s.timer.Stop()
		s.step.end(out, s.redact, true)
	default:
		s.step.output.Write([]byte(line + "\n"))
	}
}

// End ends the step of commands that failed.
func (s *containerSetUp) End(out preset.Out) string {
	if !s.step.ended {
		s.step.end(out, s.redact, false)
		return ""
	}
	return s.Adapter.End(out)
}

// failed returns the outcome for an exit status if the set-up commands failed.
func (s *containerSetUp) failed(status int) (outcome, bool) {
	if s == nil || status != statusNotSetUp || len(s.step.output.kept) == 0 {
		return outcome{}, false
	}
	return failed("environment_setup_failed", "%v", s.step.failure(s.redact, "")), true
}
