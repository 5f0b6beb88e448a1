//go:build unix

package worker

import (
	"io"
	"os/exec"
	"syscall"
	"time"
)

// guardScript runs its arguments when its input ends without a line. It runs them twice, since the engine
// may be creating the container at that moment, and retries for two minutes.
const guardScript = `read -r _ && exit; "$@"; until sleep 2; "$@" || [ $((n += 1)) -gt 60 ]; do :; done`

// guard starts a shell that removes a container if this process ends before release is called, even by
// SIGKILL: the shell reads from a pipe that only this process can write to. The argument of release tells
// whether the container is already removed. A machine without a shell has no guard.
func guard(program string, args ...string) (release func(removed bool)) {
	began := time.Now()
	cmd := exec.Command("sh", append([]string{"-c", guardScript, "sh", program}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // it outlives this process and its group
	in, err := cmd.StdinPipe()
	if err != nil || cmd.Start() != nil {
		return func(bool) {}
	}

	return func(removed bool) {
		defer in.Close()

		if !removed && time.Since(began) > killAfter { // a faster failure means that the engine is away
			go cmd.Wait()
			return
		}

		io.WriteString(in, "\n")
		cmd.Wait()
	}
}
