//go:build unix

package worker

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"millwright/runs/dispatch"
)

// kubernetes runs a harness as a Job, through kubectl. The working directory goes into the pod as a tar
// archive on the standard input of its container, whose output is the harness's. The image needs sh and
// tar.
type kubernetes struct {
	harness   Harness
	container Container
	adapt     func() adapter
	program   string
	label     string
}

// podPatience is how long a pod may take until its container runs: an image may have to be fetched, or a
// node to be started.
const podPatience = 10 * time.Minute

// Execute runs the harness as a Job.
func (k *kubernetes) Execute(ctx context.Context, t Task) outcome {
	ctx, cancel := context.WithTimeoutCause(ctx, k.harness.Timeout, timeoutError{k.harness.Timeout})
	defer cancel()
	name := containerName(t.Order)
	image, _, _ := k.container.limits(t.Order.Runner)
	if image == "" {
		return failed("environment_setup_failed", "container: neither the harness nor the run's runner names an image")
	}
	release := guard(k.program, k.arguments(removal(name)...)...)
	defer func() { release(k.remove(name) == nil) }()
	if err := k.create(ctx, name, t); err != nil {
		return k.unless(ctx, "the job cannot be made: %v", err)
	}
	pod, err := k.running(ctx, name)
	if err != nil {
		return k.unless(ctx, "the job's pod does not start: %v", err)
	}
	archive, err := archiveOf(t.Dir)
	if err != nil {
		return failed("environment_setup_failed", "working directory: %v", underlying(err))
	}
	cmd := exec.Command(k.program, k.arguments("attach", "--stdin", "--quiet", "--container", "harness", pod)...)
	cmd.Stdin = archive
	cmd.SysProcAttr = processGroup(nil)
	e := execute(ctx, cmd, t, k.adapt(), func() { k.remove(name) })
	if o, stopped := stoppedBy(ctx); stopped {
		return o
	}
	if e.start != nil {
		return failed("environment_setup_failed", "kubectl: %v", e.start)
	}
	status, reason, err := k.status(ctx, name)
	if o, stopped := stoppedBy(ctx); stopped {
		return o
	}
	if err != nil {
		return failed("agent_process_failed", "the connection to the job's pod was lost: %v", err)
	}
	if o, unusable := notRun(status, e.stderr); unusable {
		return o
	}
	switch {
	case reason == "OOMKilled":
		return gaveUp("the harness was killed: its container may not have more memory", e.stderr)
	case status == 0 && e.failure != "":
		return gaveUp("the harness failed", e.failure)
	}
	return endedWith(status, e.stderr)
}

// unless is a set-up that failed, unless it was stopped.
func (k *kubernetes) unless(ctx context.Context, format string, err error) outcome {
	if o, stopped := stoppedBy(ctx); stopped {
		return o
	}
	return failed("environment_setup_failed", format, err)
}

func (k *kubernetes) arguments(args ...string) []string {
	if k.container.Namespace != "" {
		args = append([]string{"--namespace", k.container.Namespace}, args...)
	}
	return args
}

// kubectl runs a short command with input and returns its output.
func (k *kubernetes) kubectl(ctx context.Context, input []byte, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, k.program, k.arguments(args...)...)
	var stderr tail
	cmd.Stdin, cmd.Stderr = bytes.NewReader(input), &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, strings.TrimSpace(clean(string(stderr.kept))))
	}
	return out, nil
}

// remove deletes the job.
func (k *kubernetes) remove(name string) error {
	_, err := k.kubectl(context.Background(), nil, removal(name)...)
	return err
}

// removal deletes a job, with 5 seconds for its harness to end. What belongs to it goes with it.
func removal(name string) []string {
	return []string{
		"delete", "job", name, "--ignore-not-found", "--cascade=foreground", "--wait=false",
		"--grace-period=" + strconv.Itoa(int(killAfter.Seconds())),
	}
}

type object = map[string]any

// create makes the job and the secret that its variables come from. The secret belongs to the job and is
// made after it: the pod waits for it.
func (k *kubernetes) create(ctx context.Context, name string, t Task) error {
	job, err := json.Marshal(k.job(name, t.Order))
	if err != nil {
		return err
	}
	out, err := k.kubectl(ctx, job, "create", "--output", "json", "--filename", "-")
	if err != nil {
		return err
	}
	var made struct {
		Metadata struct{ UID string }
	}
	if err := json.Unmarshal(out, &made); err != nil || made.Metadata.UID == "" {
		return errors.New("kubectl does not tell the job's UID")
	}
	env := variables(k.harness, t.Order)
	env["HOME"] = workDir
	secret, err := json.Marshal(object{
		"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "stringData": env,
		"metadata": object{"name": name, "labels": k.labels(t.Order), "ownerReferences": []object{{
			"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": made.Metadata.UID,
		}}},
	})
	if err != nil {
		return err
	}
	_, err = k.kubectl(ctx, secret, "create", "--filename", "-")
	return err
}

func (k *kubernetes) labels(o *dispatch.Order) object {
	network := k.container.Network
	if network == "" {
		network = "none" // for a network policy to select
	}
	return object{"app.kubernetes.io/managed-by": "millwright", "millwright/worker": k.label, "millwright/run": o.RunID, "millwright/network": network}
}

// job describes the job of one attempt.
func (k *kubernetes) job(name string, o *dispatch.Order) object {
	image, cpus, memory := k.container.limits(o.Runner)
	limits := object{}
	if cpus > 0 {
		limits["cpu"] = strconv.FormatFloat(cpus, 'f', -1, 64)
	}
	if memory != "" {
		limits["memory"] = strconv.FormatInt(bytesOf(memory), 10)
	}
	var commands []string
	if o.Runner != nil {
		commands = o.Runner.Setup
	}
	script := "cd " + workDir + " && tar -xf - || exit 125\n" + setup(commands) + `exec "$@" < ` + dispatch.PromptFile
	return object{
		"apiVersion": "batch/v1", "kind": "Job",
		"metadata": object{"name": name, "labels": k.labels(o)},
		"spec": object{
			"backoffLimit": 0, "ttlSecondsAfterFinished": 600,
			"activeDeadlineSeconds": int((k.harness.Timeout + podPatience) / time.Second), // should this worker die
			"template": object{
				"metadata": object{"labels": k.labels(o)},
				"spec": object{
					"restartPolicy": "Never", "automountServiceAccountToken": false, "enableServiceLinks": false,
					"terminationGracePeriodSeconds": int(killAfter / time.Second),
					"securityContext":               object{"runAsNonRoot": true, "runAsUser": nobody, "runAsGroup": nobody, "fsGroup": nobody, "seccompProfile": object{"type": "RuntimeDefault"}},
					"volumes":                       []object{{"name": "work", "emptyDir": object{}}},
					"containers": []object{{
						"name": "harness", "image": image, "workingDir": workDir, "stdin": true, "stdinOnce": true,
						"command":         append([]string{"sh", "-c", script, "sh"}, k.harness.Command...),
						"envFrom":         []object{{"secretRef": object{"name": name}}},
						"volumeMounts":    []object{{"name": "work", "mountPath": workDir}},
						"resources":       object{"limits": limits},
						"securityContext": object{"allowPrivilegeEscalation": false, "capabilities": object{"drop": []string{"ALL"}}},
					}},
				},
			},
		},
	}
}

// podList is what is read of the pods of a job.
type podList struct {
	Items []struct {
		Metadata struct{ Name string }
		Status   struct {
			Phase, Reason, Message string
			ContainerStatuses      []struct {
				State struct {
					Waiting    *struct{ Reason, Message string }
					Running    *struct{}
					Terminated *struct {
						ExitCode int
						Reason   string
					}
				}
			}
		}
	}
}

func (k *kubernetes) pods(ctx context.Context, name string) (podList, error) {
	var list podList
	out, err := k.kubectl(ctx, nil, "get", "pods", "--selector", "job-name="+name, "--output", "json")
	if err != nil {
		return list, err
	}
	return list, json.Unmarshal(out, &list)
}

// poll asks for the job's pod until ask is content, or patience ends.
func (k *kubernetes) poll(ctx context.Context, name string, patience time.Duration, ask func(podList) (done bool, err error)) error {
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		list, err := k.pods(ctx, name)
		if last = err; err == nil {
			if done, err := ask(list); done || err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-deadline.C:
			return errors.Join(fmt.Errorf("after %s it is still not so far", patience), last)
		case <-tick.C:
		}
	}
}

// running waits until the container runs, and returns the pod's name.
func (k *kubernetes) running(ctx context.Context, name string) (pod string, err error) {
	waits := ""
	err = k.poll(ctx, name, podPatience, func(list podList) (bool, error) {
		for _, p := range list.Items {
			pod = p.Metadata.Name
			for _, c := range p.Status.ContainerStatuses {
				switch {
				case c.State.Running != nil:
					return true, nil
				case c.State.Terminated != nil:
					return false, fmt.Errorf("its container ended with exit status %d: %s", c.State.Terminated.ExitCode, c.State.Terminated.Reason)
				case c.State.Waiting != nil && (c.State.Waiting.Reason == "InvalidImageName" || c.State.Waiting.Reason == "ErrImageNeverPull"):
					return false, fmt.Errorf("%s: %s", c.State.Waiting.Reason, c.State.Waiting.Message)
				case c.State.Waiting != nil: // an image that cannot be had just now, too
					waits = strings.TrimSuffix(": it waits: "+c.State.Waiting.Reason+": "+c.State.Waiting.Message, ": ")
				}
			}
			if p.Status.Phase == "Failed" {
				return false, fmt.Errorf("%s: %s", p.Status.Reason, p.Status.Message)
			}
		}
		return false, nil
	})
	if err != nil && waits != "" {
		err = fmt.Errorf("%w%s", err, waits)
	}
	return pod, err
}

// status returns the exit status of the container, whose output has ended, and why it ended so.
func (k *kubernetes) status(ctx context.Context, name string) (status int, reason string, err error) {
	err = k.poll(ctx, name, 30*time.Second, func(list podList) (bool, error) {
		for _, p := range list.Items {
			for _, c := range p.Status.ContainerStatuses {
				if c.State.Terminated != nil {
					status, reason = c.State.Terminated.ExitCode, c.State.Terminated.Reason
					return true, nil
				}
			}
			if p.Status.Phase == "Failed" { // evicted, or its node is gone
				return false, fmt.Errorf("%s: %s", p.Status.Reason, p.Status.Message)
			}
		}
		if len(list.Items) == 0 {
			return false, errors.New("it is gone")
		}
		return false, nil
	})
	return status, reason, err
}

// archiveOf packs the files of a directory, which have no sub-directories.
func archiveOf(dir string) (io.Reader, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.Type()&fs.ModeType != 0 {
			continue
		}
		body, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		if err := w.WriteHeader(&tar.Header{Name: e.Name(), Mode: 0o644, Size: int64(len(body))}); err != nil {
			return nil, err
		}
		if _, err := w.Write(body); err != nil {
			return nil, err
		}
	}
	return &out, w.Close()
}

// sweep removes the jobs of a process that ended without doing so.
func (k *kubernetes) sweep(label string) {
	k.kubectl(context.Background(), nil, "delete", "jobs", "--selector", "millwright/worker="+label, "--ignore-not-found", "--wait=false")
}
