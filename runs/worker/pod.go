//go:build unix

package worker

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"millwright/runs/wire"
)

// The containers of a job's pod: the first takes the files and ends, then the others begin. The last one is
// there for the files to be read when the harness has ended.
const (
	filesContainer   = "files"
	harnessContainer = "harness"
	leftContainer    = "left"
)

type object = map[string]any

func (k *kubernetes) labels(name string, o *wire.Order) object {
	return object{
		"app.kubernetes.io/managed-by": "millwright", "millwright/worker": k.label,
		"millwright/run": o.RunID, "millwright/job": name,
		"millwright/network": cmp.Or(k.container.Network, "none"), // for a network policy to select
	}
}

// script runs the set-up commands and the harness. The end of their standard error becomes the container's
// termination message: the log has standard output alone. The shell, process 1, passes SIGTERM on.
func script(t Task) string {
	return "exec 2>>/errors/log\n" +
		"trap 'tail -c " + strconv.Itoa(maxTail) + " /errors/log >/dev/termination-log' EXIT\n" +
		setupScript(t.setUpCommands(), t.setUpMark) +
		`"$@" <` + path.Join(t.ownDir, wire.PromptFile) + " &\n" +
		"trap 'kill -s TERM $!' TERM\n" +
		"while wait $!; status=$?; kill -0 $! 2>/dev/null; do :; done\n" +
		"exit $status"
}

const bringTime = 5 * time.Minute

// job describes the job of one attempt.
func (k *kubernetes) job(name string, t Task) object {
	image, cpus, memory := k.container.limits(t.Order.Runner)
	limits := object{}
	if cpus > 0 {
		limits["cpu"] = strconv.FormatFloat(cpus, 'f', -1, 64)
	}
	if memory != "" {
		limits["memory"] = strconv.FormatInt(bytesOf(memory), 10)
	}

	container := func(name string, more object) object {
		c := object{
			"name": name, "image": image, "workingDir": workDir, "resources": object{"limits": limits},
			"volumeMounts": []object{
				{"name": "work", "mountPath": workDir},
				{"name": "errors", "mountPath": "/errors"},
			},
			"securityContext": object{
				"allowPrivilegeEscalation": false,
				"capabilities":             object{"drop": []string{"ALL"}},
			},
		}

		maps.Copy(c, more)
		return c
	}

	return object{
		"apiVersion": "batch/v1", "kind": "Job",
		"metadata": object{"name": name, "labels": k.labels(name, t.Order)},
		"spec": object{
			"backoffLimit": 0, "ttlSecondsAfterFinished": 600,
			// Should this worker die.
			"activeDeadlineSeconds": int((k.harness.Timeout + podPatience + bringTime) / time.Second),
			"template": object{
				"metadata": object{"labels": k.labels(name, t.Order)},
				"spec": object{
					"restartPolicy":                 "Never",
					"automountServiceAccountToken":  false,
					"enableServiceLinks":            false,
					"terminationGracePeriodSeconds": int(killAfter / time.Second),
					"securityContext": object{
						"runAsNonRoot":   true,
						"runAsUser":      nobody,
						"runAsGroup":     nobody,
						"fsGroup":        nobody,
						"seccompProfile": object{"type": "RuntimeDefault"},
					},
					"volumes": []object{
						{"name": "work", "emptyDir": object{"sizeLimit": strconv.FormatInt(t.MaxDir, 10)}},
						{"name": "errors", "emptyDir": object{"sizeLimit": strconv.Itoa(maxErrors)}},
					},
					"initContainers": []object{container(filesContainer, object{
						"stdin":                    true,
						"stdinOnce":                true,
						"command":                  []string{"tar", "-xf", "-"},
						"terminationMessagePolicy": "FallbackToLogsOnError",
					})},
					"containers": []object{
						container(harnessContainer, object{
							"command": append([]string{"sh", "-c", script(t), "sh"}, t.Command...),
							"envFrom": []object{{"secretRef": object{"name": name}}},
						}),
						container(leftContainer, object{
							"command":   []string{"sh", "-c", waitScript},
							"resources": object{"limits": object{"cpu": "250m", "memory": "128Mi"}},
							"volumeMounts": []object{
								{"name": "work", "mountPath": workDir, "readOnly": true},
							},
						}),
					},
				},
			},
		},
	}
}

// waitScript waits until its pod is removed.
const waitScript = "trap 'exit 0' TERM; while :; do sleep 60 & wait $!; done"

// maxErrors is how many bytes a harness may write to standard error.
const maxErrors = 1 << 30

// secret holds the variables of the job with this UID.
func (k *kubernetes) secret(name, uid string, t Task) object {
	env := variables(k.harness, t, workDir)
	env["HOME"] = cmp.Or(t.Env["HOME"], workDir)
	return object{
		"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "stringData": env,
		"metadata": object{"name": name, "labels": k.labels(name, t.Order), "ownerReferences": []object{{
			"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": uid,
		}}},
	}
}

// terminated is how a container ended.
type terminated struct {
	ExitCode        int
	Reason, Message string
}

func (t terminated) String() string {
	return strings.TrimSpace(fmt.Sprintf("exit status %d, %s: %s", t.ExitCode, t.Reason, t.Message))
}

// containerState is the state of a container; zero while it is unknown.
type containerState struct {
	Waiting    *struct{ Reason, Message string }
	Running    *struct{}
	Terminated *terminated
}

// item has the parsed fields of a job or its pod.
type item struct {
	Kind     string
	Metadata struct{ Name, DeletionTimestamp string }
	Status   struct {
		Phase, Reason, Message string
		Conditions             []struct{ Type, Status, Reason, Message string }
		InitContainerStatuses  []containerStatus
		ContainerStatuses      []containerStatus
	}
}

type containerStatus struct {
	Name  string
	State containerState
}

// condition returns the reason and message of the condition of this type and status; empty: there is none.
func (i item) condition(kind, status string) string {
	for _, c := range i.Status.Conditions {
		if c.Type == kind && c.Status == status {
			return c.Reason + ": " + c.Message
		}
	}
	return ""
}

// podView is how the pod of a job does.
type podView struct {
	name           string
	files, harness containerState
	waits          string // what for, where that is known
}

// look reads how the pod of a job does. An error that is no apiError says that no harness will work in it, or
// that it was taken away from one that did.
func (k *kubernetes) look(ctx context.Context, name string) (p podView, err error) {
	out, err := k.kubectl(ctx, nil, "get", "jobs,pods", "--selector", "millwright/job="+name, "--output", "json")
	if err != nil {
		return p, err
	}

	var list struct{ Items []item }
	if err := json.Unmarshal(out, &list); err != nil {
		return p, apiError{err}
	}

	job := false
	for _, i := range list.Items {
		if i.Kind == "Job" {
			job = true
			if p.waits = i.condition("Failed", "True"); p.waits != "" && len(list.Items) == 1 {
				return p, errors.New(p.waits)
			}

			continue
		}

		return p.of(i)
	}

	if !job {
		return p, errors.New("it was deleted")
	}

	return p, nil
}

// of is the view of a pod.
func (p podView) of(pod item) (podView, error) {
	p.name, p.waits = pod.Metadata.Name, pod.condition("PodScheduled", "False")
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		switch w := c.State.Waiting; {
		case w != nil && (w.Reason == "InvalidImageName" || w.Reason == "ErrImageNeverPull"):
			return p, fmt.Errorf("%s: %s", w.Reason, w.Message)
		case w != nil && w.Message != "": // also for an image that cannot be pulled now
			p.waits = w.Reason + ": " + w.Message
		}

		switch c.Name {
		case filesContainer:
			p.files = c.State
		case harnessContainer:
			p.harness = c.State
		}
	}

	switch {
	case pod.Metadata.DeletionTimestamp != "":
		return p, errors.New("it was deleted")
	case pod.Status.Reason != "": // evicted, or its node is gone
		return p, fmt.Errorf("%s: %s", pod.Status.Reason, pod.Status.Message)
	}

	return p, nil
}

// errPatience says that it took too long.
var errPatience = errors.New("it takes too long")

// insist asks again and again until it is done, or an error comes that is no apiError, or those do not cease
// for apiPatience.
func insist(ctx context.Context, patience time.Duration, ask func() (done bool, err error)) error {
	deadline := time.NewTimer(patience)
	defer deadline.Stop()

	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()

	var away time.Time // since when
	for {
		done, err := ask()
		var passing apiError
		switch {
		case err == nil && done:
			return nil
		case err == nil:
			away = time.Time{}
		case !errors.As(err, &passing):
			return err
		case away.IsZero():
			away = time.Now()
		case time.Since(away) > apiPatience:
			return err
		}

		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-deadline.C:
			return fmt.Errorf("%w: %s", errPatience, patience)
		case <-tick.C:
		}
	}
}

// maxArchive bounds what is copied into a pod, in bytes.
const maxArchive = 256 << 20

// archiveOf packs the files and links of a directory, which nobody writes to meanwhile.
func archiveOf(dir string) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()

	var out bytes.Buffer
	w := tar.NewWriter(&out)
	err = fs.WalkDir(root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() && e.Type() != fs.ModeSymlink {
			return err
		}

		if e.Type() == fs.ModeSymlink {
			to, err := root.Readlink(name)
			if err != nil {
				return err
			}
			return w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to, ModTime: time.Now()})
		}

		info, err := e.Info()
		if err != nil {
			return err
		}
		if int64(out.Len())+info.Size() > maxArchive {
			return fmt.Errorf("the files have more than %d bytes, which a pod does not take", maxArchive)
		}

		body, err := root.ReadFile(name)
		if err != nil {
			return err
		}

		mode := int64(0o644)
		if info.Mode()&0o100 != 0 {
			mode = 0o755
		}
		header := tar.Header{Name: name, Mode: mode, Size: int64(len(body)), ModTime: time.Now()}
		if err := w.WriteHeader(&header); err != nil {
			return err
		}
		_, err = w.Write(body)
		return err
	})
	if err != nil {
		return nil, err
	}

	err = w.Close()
	return out.Bytes(), err
}
