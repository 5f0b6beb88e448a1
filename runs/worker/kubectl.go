//go:build unix

package worker

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"millwright/runs/worker/confine"
)

// kubernetes runs a harness as a Job, through kubectl. An init container receives the working directory as
// a tar archive on its standard input. The worker reads the harness's output from the pod's log: unlike an
// attached stream, it can resume that. The image needs sh, tar and tail.
type kubernetes struct {
	asNobody
	harness   Harness
	container Container
	program   string
	label     string
}

const (
	// podPatience is how long a pod may take until a container runs: an image may have to be fetched, or a
	// node to be started.
	podPatience = 10 * time.Minute
	// apiPatience is how long the API server may be unreachable, or refuse access.
	apiPatience = time.Minute
	// endPatience is how long to wait for the report of a container's end, and for the removal of a job.
	endPatience = 25 * time.Second
)

func (k *kubernetes) arguments(args ...string) []string {
	if k.container.Namespace != "" {
		args = append([]string{"--namespace", k.container.Namespace}, args...)
	}
	return args
}

// apiError reports a failed request to kubectl or the API server. It may be temporary.
type apiError struct{ error }

// kubectl runs a short command with input and returns its output.
func (k *kubernetes) kubectl(ctx context.Context, input []byte, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, endPatience+5*time.Second)
	defer cancel()

	cmd := exec.CommandContext(ctx, k.program, k.arguments(args...)...)
	var stderr tail
	cmd.Stdin, cmd.Stderr = bytes.NewReader(input), &stderr
	cmd.SysProcAttr = confine.GroupAttributes()

	runtime.LockOSThread() // as confine.GroupAttributes asks
	defer runtime.UnlockOSThread()

	out, err := cmd.Output()
	if err != nil {
		return nil, apiError{fmt.Errorf("%w: %s", err, strings.TrimSpace(clean(string(stderr.kept))))}
	}

	return out, nil
}
