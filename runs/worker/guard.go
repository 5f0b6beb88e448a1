//go:build unix

package worker

import (
	"io"
	"os/exec"
	"syscall"
	"time"
)

// guardScript runs its arguments when its input ends without a line. It does so twice, since an engine may be
// making just then what is to be removed, and goes on for two minutes while they fail.
const guardScript = `read -r _ && exit; "$@"; until sleep 2; "$@" || [ $((n += 1)) -gt 60 ]; do :; done`

// guard has a shell remove a container should this process end before release is called, even by SIGKILL: it
// reads from what only this process can write to. release says whether the container is removed; else the shell
// does it. A machine without a shell has no guard.
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

		if !removed && time.Since(began) > killAfter { // of what failed sooner nothing is left: the engine is away
			go cmd.Wait()
			return
		}

		io.WriteString(in, "\n")
		cmd.Wait()
	}
}
