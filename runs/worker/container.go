//go:build unix

package worker

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"millwright/runs/wire"
	"millwright/runs/worker/confine"
)

// statusKilled is the exit status of a container whose command died of SIGKILL, as when memory runs out.
const statusKilled = 128 + 9

// statusTerminated is the exit status after SIGTERM, as when the engine itself is stopped.
const statusTerminated = 128 + 15

// workDir is the working directory in a container.
const workDir = "/work"

// labelValue matches a valid label value of Kubernetes.
var labelValue = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)

// newContainer returns the executor of a harness in containers. label marks the containers of this process.
func newContainer(h Harness, label string) (Executor, error) {
	c := *h.Container
	if c.CPUs < 0 || c.Memory != "" && !memorySize.MatchString(strings.ToLower(c.Memory)) {
		return nil, fmt.Errorf("container: want cpus as 1.5 and memory as 512m or 2g")
	}

	engines := []string{c.Engine}
	switch c.Engine {
	case "":
		engines = []string{"docker", "podman"}
	case "docker", "podman":
	case "kubernetes":
		engines = []string{"kubectl"}
		if len(h.Command) == 0 && h.Preset == "" {
			return nil, fmt.Errorf("container: with kubernetes a command is needed")
		}

		if c.Network != "" && !labelValue.MatchString(c.Network) {
			return nil, fmt.Errorf(
				"container: with kubernetes the network %q becomes a label: want at most 63 letters, "+
					"digits, ., _ and -",
				c.Network,
			)
		}

	default:
		return nil, fmt.Errorf("container: engine %q is not one of docker, podman and kubernetes", c.Engine)
	}

	for _, engine := range engines {
		program, err := exec.LookPath(engine)
		if err != nil {
			continue
		}
		if engine == "kubectl" {
			return &kubernetes{harness: h, container: c, program: program, label: label}, nil
		}

		return &docker{
			harness:   h,
			container: c,
			program:   program,
			podman:    engine == "podman",
			label:     label,
		}, nil
	}

	return nil, fmt.Errorf("container: %s is not installed on this machine", strings.Join(engines, " or "))
}

// docker runs a harness in a container of Docker or Podman, through its command line.
type docker struct {
	asNobody
	harness   Harness
	container Container
	program   string
	podman    bool
	label     string
}

// containerName names the container, or job, of one attempt.
func containerName(o *wire.Order) string {
	return fmt.Sprintf("millwright-%s-%d-%d", o.RunID, o.Execution, o.Attempt)
}

// Execute runs the harness in a container with the task's directory as its working directory.
func (d *docker) Execute(ctx context.Context, t Task) outcome {
	ctx, cancel := context.WithTimeoutCause(ctx, d.harness.Timeout, timeoutError{d.harness.Timeout})
	defer cancel()

	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)

	setUp, ready := withSetUp(&t, d.harness.Timeout, stop)
	defer ready()

	args, env, done, err := d.arguments(t)
	if err != nil {
		return failed("environment_setup_failed", "%v", err)
	}
	defer done()

	stdin, err := t.openPrompt()
	if err != nil {
		return failed("environment_setup_failed", "prompt: %v", underlying(err))
	}
	defer stdin.Close()

	cmd := exec.Command(d.program, args...)
	cmd.Stdin, cmd.Env = stdin, append(os.Environ(), env...)
	name := containerName(t.Order)
	release := guard(d.program, "rm", "--force", name)
	e := execute(
		ctx,
		cmd,
		confine.StartGroup,
		t,
		t.adapter,
		func() { d.engine("stop", "-t", strconv.Itoa(int(killAfter.Seconds())), name) },
	)

	removed := true
	if ctx.Err() != nil || e.err != nil {
		_, removed = d.engine("rm", "--force", name)
	}

	release(removed)
	var status *confine.ExitError
	if errors.As(e.err, &status) && ctx.Err() == nil {
		if o, ended := setUp.failed(status.Status.ExitStatus()); ended {
			return o
		}
	}
	if o, unusable := engineFailure(ctx, e); unusable {
		return o
	}

	if errors.As(e.err, &status) && ctx.Err() == nil {
		switch status.Status.ExitStatus() {
		case statusKilled:
			return gaveUp("the harness was killed: perhaps its container needs more memory", e.stderr)
		case statusTerminated:
			return gaveUp("the harness was ended by SIGTERM: perhaps its engine was stopped", e.stderr)
		}
	}

	return judge(ctx, e)
}

// engineFailure reports whether an exit status means that the engine could not run the command.
func engineFailure(ctx context.Context, e exit) (outcome, bool) {
	var status *confine.ExitError
	if ctx.Err() != nil || !errors.As(e.err, &status) {
		return outcome{}, false
	}
	return notRun(status.Status.ExitStatus(), e.stderr)
}

// notRun returns the outcome for the exit statuses of engines, shells and our own set-up for a command that
// could not run.
func notRun(status int, stderr string) (outcome, bool) {
	stderr = cmp.Or(stderr, fmt.Sprintf("exit status %d", status))
	switch status {
	case 125:
		return failed("environment_setup_failed", "the container cannot be set up: %s", stderr), true
	case 126, 127:
		return failed("agent_process_failed", "the harness cannot be started in the container: %s", stderr), true
	}
	return outcome{}, false
}

// engine runs a short command of the engine, and ignores its output.
func (d *docker) engine(args ...string) (out []byte, ok bool) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, d.program, args...).Output()
	return out, err == nil
}

// containerHome is the home of an agent in its working directory, the only directory that a container gets.
const containerHome = ".millwright/home"

// seen returns where the agent finds its home and its working directory.
func (d *docker) seen(Task) places { return places{path.Join(workDir, containerHome), workDir} }

// homeOf returns where the home of a task's agent is.
func (d *docker) homeOf(t Task) string { return filepath.Join(t.Dir, containerHome) }

// arguments returns the command line that runs the task, and the variables for the engine's own
// environment.
func (d *docker) arguments(t Task) (args, env []string, done func(), err error) {
	image, cpus, memory := d.container.limits(t.Order.Runner)
	if image == "" {
		return nil, nil, nil, errors.New("container: neither the harness nor the run's runner names an image")
	}
	if strings.HasPrefix(image, "-") {
		return nil, nil, nil, fmt.Errorf("container: %q is not an image", image)
	}
	if strings.ContainsAny(t.Dir, `,"`) {
		return nil, nil, nil, fmt.Errorf("container: the directory %q cannot be mounted: no commas or quotes", t.Dir)
	}

	uid, gid := os.Getuid(), os.Getgid()
	if uid == 0 {
		uid, gid = nobody, nobody
	}

	network := d.container.Network
	if network == "" {
		network = "none"
	}

	args = []string{
		"run", "--rm", "--interactive", "--init", "--name", containerName(t.Order),
		"--log-driver", "none", // otherwise the engine stores all output, without bounds
		"--label", "millwright.worker=" + d.label, "--label", "millwright.run=" + t.Order.RunID,
		"--network", network, "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--pids-limit", "1024",
		"--user", fmt.Sprintf("%d:%d", uid, gid),
		"--mount", "type=bind,source=" + t.Dir + ",target=" + workDir, "--workdir", workDir,
	}
	if d.podman && os.Getuid() != 0 {
		args = append(args, "--userns", "keep-id")
	}
	if cpus > 0 {
		args = append(args, "--cpus", strconv.FormatFloat(cpus, 'f', -1, 64))
	}
	if memory != "" {
		args = append(args, "--memory", memory, "--memory-swap", memory)
	}

	file, inherited, err := envFile(t.Root, variables(d.harness, t, workDir))
	if err != nil {
		return nil, nil, nil, err
	}

	args = append(args, "--env-file", file, "--env", "HOME="+cmp.Or(t.Env["HOME"], workDir))
	for _, v := range inherited {
		name, _, _ := strings.Cut(v, "=")
		args = append(args, "--env", name)
	}

	args = append(args, d.command(image, t)...)
	return args, inherited, func() { os.Remove(file) }, nil
}

// command returns the image and its command.
func (d *docker) command(image string, t Task) []string {
	command, r := t.Command, t.Order.Runner
	switch {
	case len(command) == 0:
		return []string{image}
	case r == nil || len(r.Setup) == 0:
		return append([]string{"--entrypoint", command[0], image}, command[1:]...)
	}
	script := setupScript(r.Setup, t.setUpMark) + `exec "$@"`
	return append([]string{"--entrypoint", "sh", image, "-c", script, "sh"}, command...)
}

// engineVariable matches the variables that configure an engine's command line.
var engineVariable = regexp.MustCompile(
	`^(PATH|HOME|TMPDIR|LD_.*|DYLD_.*|DOCKER_.*|BUILDKIT_.*|CONTAINER.*|REGISTRY_.*|XDG_.*|SSH_.*|GO.*|(?i:.*_proxy))$`,
)

// envFile writes variables to a file for the engine, so that no value is on its command line. The file
// cannot have values with several lines: those variables are returned, for the engine's own environment.
func envFile(dir string, env map[string]string) (file string, inherited []string, err error) {
	var text bytes.Buffer
	for name, value := range env {
		switch {
		case !strings.ContainsAny(value, "\r\n"):
			fmt.Fprintf(&text, "%s=%s\n", name, value)
		case engineVariable.MatchString(name):
			return "", nil, fmt.Errorf(
				"container: the variable %s means something to the engine, and cannot have several lines",
				name,
			)
		default:
			inherited = append(inherited, name+"="+value)
		}
	}

	f, err := os.CreateTemp(dir, "env-")
	if err != nil {
		return "", nil, underlying(err)
	}

	_, err = f.Write(text.Bytes())
	return f.Name(), inherited, errors.Join(err, f.Close())
}

// limits returns the image and the limits of a run: those of its runner, at most those of the harness.
func (c Container) limits(r *wire.Runner) (image string, cpus float64, memory string) {
	image, cpus, memory = c.Image, c.CPUs, strings.ToLower(c.Memory)
	if r == nil {
		return image, cpus, memory
	}
	if r.Image != "" {
		image = r.Image
	}
	if r.CPUs > 0 && (cpus == 0 || r.CPUs < cpus) {
		cpus = r.CPUs
	}

	if r.MemoryGB > 0 {
		if asked := int64(math.Ceil(r.MemoryGB * 1024)); memory == "" || asked<<20 < bytesOf(memory) {
			memory = strconv.FormatInt(asked, 10) + "m"
		}
	}

	return image, cpus, memory
}

// sweep removes the containers of a process that was killed.
func (d *docker) sweep(label string) {
	ids, _ := d.engine("ps", "--all", "--quiet", "--filter", "label=millwright.worker="+label)
	for id := range strings.FieldsSeq(string(ids)) {
		d.engine("rm", "--force", id)
	}
}
