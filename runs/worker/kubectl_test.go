package worker_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

type fakeJob struct {
	Kind     string
	Metadata struct {
		Name   string
		Labels map[string]string
	}
	Spec struct {
		Template struct {
			Metadata struct{ Labels map[string]string }
			Spec     struct {
				InitContainers, Containers []struct {
					Name, Image string
					Command     []string
					Stdin       bool
					StdinOnce   bool
					EnvFrom     []struct{ SecretRef struct{ Name string } }
				}
			}
		}
	}
	StringData map[string]string
}

func readJob(name, kind string) (j fakeJob, ok bool) {
	text, err := os.ReadFile(kept(name + "." + kind))
	return j, err == nil && json.Unmarshal(text, &j) == nil
}

// fakeKubectl answers as kubectl 1.35 does with an API server of that version. What a pod does follows from
// its image.
func fakeKubectl(args []string) int {
	if args[0] == "--namespace" {
		if args[1] != "agents" {
			return refuse(1, "namespace %q not found", args[1])
		}
		args = args[2:]
	}
	switch args[0] {
	case "create":
		return fakeCreate(args[1:])
	case "get":
		f, rest, err := flags(args[2:], []string{"--selector", "--output"}, nil)
		if err != nil || len(rest) != 0 {
			return refuse(1, "error: %v", err)
		}
		label, value, _ := strings.Cut(f["--selector"][0], "=")
		return fakeGet(args[1], label, value)
	case "attach":
		f, rest, err := flags(args[1:], []string{"--container"}, []string{"--stdin", "--quiet"})
		if err != nil || len(rest) != 1 || f["--container"][0] != "files" {
			return refuse(1, "error: %v", err)
		}
		return fakeAttach(strings.TrimSuffix(rest[0], "-pod"))
	case "exec":
		f, rest, err := flags(args[1:], []string{"--container"}, nil)
		if err != nil || len(rest) < 3 || rest[1] != "--" {
			return refuse(1, "error: %v", err)
		}
		return fakeExec(strings.TrimSuffix(rest[0], "-pod"), f["--container"][0], rest[2:])
	case "logs":
		f, rest, err := flags(args[1:], []string{"--container", "--since-time"}, []string{"--follow", "--timestamps"})
		if err != nil || len(rest) != 1 || f["--container"][0] != "harness" {
			return refuse(1, "error: %v", err)
		}
		return fakeLogs(strings.TrimSuffix(rest[0], "-pod"), append(f["--since-time"], time.Time{}.Format(time.RFC3339))[0])
	case "delete":
		_, _, err := flags(args[3:], []string{"--selector", "--cascade", "--wait", "--timeout"}, []string{"--ignore-not-found"})
		if err != nil {
			return refuse(1, "error: %v", err)
		}
		end(args[2], 5*time.Second) // as the pod says
		os.Rename(kept(args[2]+".Job"), kept(args[2]+".deleted"))
		return 0
	}
	return refuse(1, "error: unknown command %q", args[0])
}

func fakeCreate(args []string) int {
	if _, _, err := flags(args, []string{"--output", "--filename"}, nil); err != nil {
		return refuse(1, "error: %v", err)
	}
	text, err := io.ReadAll(os.Stdin)
	var j fakeJob
	if err != nil || json.Unmarshal(text, &j) != nil {
		return refuse(1, "error: no objects passed to create")
	}
	if j.Kind == "Job" && j.Spec.Template.Spec.Containers[0].Image == "forbidden" {
		return refuse(1, "Error from server (Forbidden): jobs.batch is forbidden")
	}
	if _, exists := readJob(j.Metadata.Name, j.Kind); exists {
		return refuse(1, "Error from server (AlreadyExists): %q already exists", j.Metadata.Name)
	}
	os.WriteFile(kept(j.Metadata.Name+"."+j.Kind), text, 0o600)
	fmt.Printf(`{"kind":%q,"metadata":{"name":%q,"uid":"u-1"}}`, j.Kind, j.Metadata.Name)
	return 0
}

func fakeGet(kinds, label, value string) int {
	var items []string
	files, _ := filepath.Glob(kept("*.Job"))
	for _, file := range files {
		j, ok := readJob(strings.TrimSuffix(filepath.Base(file), ".Job"), "Job")
		if !ok || j.Metadata.Labels[label] != value {
			continue
		}
		if kinds == "jobs" {
			fmt.Println("job.batch/" + j.Metadata.Name)
			continue
		}
		job, pod := fakeStatus(j)
		items = append(items, `{"kind":"Job","metadata":{"name":"`+j.Metadata.Name+`"},"status":`+job+`}`)
		if pod != "" && j.Spec.Template.Metadata.Labels[label] == value {
			items = append(items, pod)
		}
	}
	if kinds != "jobs" {
		fmt.Printf(`{"kind":"List","items":[%s]}`, strings.Join(items, ","))
	}
	return 0
}

// fakeStatus is the status of a job, and its pod.
func fakeStatus(j fakeJob) (job, pod string) {
	name, metadata, status := j.Metadata.Name, "", `"phase":"Pending"`
	files, harness := `{"running":{}}`, `{"waiting":{"reason":"PodInitializing"}}`
	_, delivered := os.Stat(kept(name + ".files"))
	_, followed := os.Stat(kept(name + ".followed"))
	if delivered == nil {
		files, harness, status = `{"terminated":{"exitCode":0,"reason":"Completed"}}`, `{"running":{}}`, `"phase":"Running"`
	}
	if exit, err := os.ReadFile(kept(name + ".status")); err == nil {
		message, _ := os.ReadFile(kept(name + ".message"))
		text, _ := json.Marshal(string(message))
		reason := map[string]string{"0": "Completed", "137": "OOMKilled"}[string(exit)]
		harness, status = fmt.Sprintf(`{"terminated":{"exitCode":%s,"reason":%q,"message":%s}}`, exit, reason, text), `"phase":"Failed"`
	}
	switch image := j.Spec.Template.Spec.Containers[0].Image; {
	case image == "bad image":
		files = `{"waiting":{"reason":"InvalidImageName","message":"couldn't parse image name"}}`
	case image == "no-tar":
		files = `{"terminated":{"exitCode":128,"reason":"StartError","message":"exec: \"tar\": executable file not found in $PATH"}}`
	case image == "too-big":
		return `{}`, `{"kind":"Pod","metadata":{"name":"` + name + `-pod"},"status":{"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"0/1 nodes are available: 1 Insufficient cpu."}]}}`
	case image == "deadline":
		return `{"conditions":[{"type":"Failed","status":"True","reason":"DeadlineExceeded","message":"Job was active longer than specified deadline"}]}`, ""
	case image == "drained" && followed == nil:
		metadata = `,"deletionTimestamp":"2026-01-01T00:00:00Z"`
	case image == "evicted" && followed == nil:
		status = `"phase":"Failed","reason":"Evicted","message":"The node was low on resource: ephemeral-storage."`
	}
	return `{}`, fmt.Sprintf(`{"kind":"Pod","metadata":{"name":"%s-pod"%s},"status":{%s,"initContainerStatuses":[{"name":"files","state":%s}],"containerStatuses":[{"name":"harness","state":%s}]}}`, name, metadata, status, files, harness)
}

// fakeAttach unpacks the files and has the harness begin, apart from this process.
func fakeAttach(name string) int {
	j, ok := readJob(name, "Job")
	if _, made := readJob(name, "Secret"); !ok || !made {
		return refuse(1, "Error from server (NotFound): pods %q not found", name)
	}
	c := j.Spec.Template.Spec.InitContainers[0]
	if !c.Stdin || !c.StdinOnce {
		return refuse(1, "error: Unable to use a TTY - container files did not allocate one")
	}
	if image := c.Image; image == "flaky" && first(name+".attached") {
		return refuse(1, "error: unable to upgrade connection: the server is currently unable to handle the request")
	}
	os.Mkdir(kept(name+".work"), 0o700)
	unpack := exec.Command(c.Command[0], c.Command[1:]...)
	unpack.Dir, unpack.Stdin = kept(name+".work"), os.Stdin
	if out, err := unpack.CombinedOutput(); err != nil {
		return refuse(1, "%v: %s", err, out)
	}
	os.WriteFile(kept(name+".log"), nil, 0o600)
	os.WriteFile(kept(name+".files"), nil, 0o600)
	kubelet := exec.Command("kubelet", name)
	kubelet.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := kubelet.Start(); err != nil {
		return refuse(1, "%v", err)
	}
	return 0
}

// fakeExec runs a command in a container of a pod that has not been deleted.
func fakeExec(name, container string, command []string) int {
	if _, there := readJob(name, "Job"); !there {
		return refuse(1, "Error from server (NotFound): pods %q not found", name)
	}

	switch said := strings.Join(command, " "); {
	case container == "left" && said == "tar -cf - -C /work .":
		j, _ := readJob(name, "Job")
		switch image := j.Spec.Template.Spec.Containers[0].Image; {
		case image == "unreadable":
			return refuse(2, "tar: ./secret: Cannot open: Permission denied\ncommand terminated with exit code 2")
		case image == "flaky" && first(name+".read"):
			os.Stdout.WriteString("half of an archi")
			return refuse(1, "error: unexpected EOF")
		}
		pack := exec.Command("tar", "-cf", "-", "-C", kept(name+".work"), ".")
		pack.Stdout, pack.Stderr = os.Stdout, os.Stderr
		if err := pack.Run(); err != nil {
			return refuse(1, "command terminated with exit code: %v", err)
		}
		return 0
	case container == "harness" && strings.HasPrefix(said, "sh -c kill -s "):
		text, err := os.ReadFile(kept(name + ".pid"))
		pid, _ := strconv.Atoi(string(text))
		if err != nil || pid == 0 {
			return refuse(1, "error: container not found (%q)", container)
		}
		if strings.HasSuffix(said, "TERM 1") {
			syscall.Kill(pid, syscall.SIGTERM)
		} else {
			syscall.Kill(-pid, syscall.SIGKILL)
		}
		return 0
	}
	return refuse(126, "error: unable to start container process: %q", command)
}

// first reports whether nothing of this name was kept yet, and keeps it.
func first(name string) bool {
	f, err := os.OpenFile(kept(name), os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		f.Close()
	}
	return err == nil
}

// fakeKubelet runs the harness of a job. Its log has standard output with the times.
func fakeKubelet(name string) int {
	job, _ := readJob(name, "Job")
	secret, _ := readJob(name, "Secret")
	c := job.Spec.Template.Spec.Containers[0]
	paths := strings.NewReplacer("/dev/termination-log", kept(name+".message"), "/errors/log", kept(name+".errors"))
	for i := range c.Command {
		c.Command[i] = paths.Replace(c.Command[i])
	}
	cmd := exec.Command(c.Command[0], c.Command[1:]...)
	cmd.Dir, cmd.Env = kept(name+".work"), []string{"PATH=" + os.Getenv("PATH"), "IMAGE=" + c.Image}
	for k, v := range secret.StringData {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	read, write, err := os.Pipe()
	if err != nil {
		return 1
	}
	log, err := os.OpenFile(kept(name+".log"), os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return 1
	}
	os.Stdout, os.Stderr = write, write
	done := make(chan struct{})
	go func() {
		defer close(done)
		buffer := make([]byte, 1<<16)
		var line []byte
		for {
			n, err := read.Read(buffer)
			line = append(line, buffer[:n]...)
			for end := bytes.IndexByte(line, '\n'); end >= 0; end = bytes.IndexByte(line, '\n') {
				fmt.Fprintf(log, "%s %s\n", time.Now().UTC().Format("2006-01-02T15:04:05.000000000Z07:00"), line[:end])
				line = line[end+1:]
			}
			if err != nil {
				if len(line) > 0 {
					fmt.Fprintf(log, "%s %s", time.Now().UTC().Format("2006-01-02T15:04:05.000000000Z07:00"), line)
				}
				return
			}
		}
	}()
	status := container(name, cmd)
	write.Close()
	<-done
	os.WriteFile(kept(name+".ended"), []byte(strconv.Itoa(status)), 0o600)
	os.Rename(kept(name+".ended"), kept(name+".status"))
	return 0
}

// fakeLogs follows the log until the harness has ended. With the image flaky it breaks off once after the first
// line, and says each time what was written since the second asked for.
func fakeLogs(name, since string) int {
	j, ok := readJob(name, "Job")
	if !ok {
		return refuse(1, "Error from server (NotFound): pods %q not found", name)
	}
	after, err := time.Parse(time.RFC3339, since)
	if err != nil {
		return refuse(1, "error: invalid argument %q for --since-time", since)
	}
	first(name + ".followed")
	for printed := 0; ; time.Sleep(10 * time.Millisecond) {
		_, err := os.Stat(kept(name + ".status"))
		log, _ := os.ReadFile(kept(name + ".log"))
		ended := err == nil
		for line := range strings.Lines(string(log[printed:])) {
			if !ended && !strings.HasSuffix(line, "\n") {
				break
			}
			printed += len(line)
			at, _, _ := strings.Cut(line, " ")
			if when, err := time.Parse(time.RFC3339Nano, at); err != nil || when.Before(after) {
				continue
			}
			fmt.Print(line)
			if j.Spec.Template.Spec.Containers[0].Image == "flaky" && first(name+".broken") {
				return refuse(1, "error: unexpected EOF")
			}
		}
		if _, there := readJob(name, "Job"); ended || !there {
			return 0
		}
	}
}
