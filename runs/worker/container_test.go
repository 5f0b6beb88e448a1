package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"millwright/runs/dispatch"
	"millwright/runs/wire"
	"millwright/runs/worker"
	"millwright/runs/worker/confine"
	"millwright/schema"
	"millwright/state"
	"millwright/state/statetest"
)

// inContainer is a harness in a container of the engine, with a script.
func inContainer(engine, script string) worker.Harness {
	c := &worker.Container{Image: "agent:1", Engine: engine, CPUs: 2, Memory: "1g"}
	if engine == "kubernetes" {
		c.Namespace = "agents"
	}
	return worker.Harness{Command: []string{"sh", "-c", script}, Container: c}
}

// factory applies a definition that grants secrets to its runs and has the given runners, and returns its
// UID.
func (b *bench) factory(secrets []string, runners ...schema.Runner) string {
	b.t.Helper()
	f, err := b.store.EnsureFactory(b.t.Context(), "f", state.Source{Kind: "dir"}, false)
	if err != nil {
		b.t.Fatal(err)
	}
	application := state.ChangeSet{
		FactoryUID: f.UID, Base: f.Generation, BaseRevision: f.Applied.ID, Started: time.Now(),
		FileChanged: true, File: &schema.FactoryFile{Secrets: secrets},
	}
	for _, r := range runners {
		application.Resources = append(application.Resources, state.ResourceChange{Kind: "runner", Name: r.Name, Spec: r})
	}
	if err := b.store.Apply(b.t.Context(), application); err != nil {
		b.t.Fatal(err)
	}
	return f.UID
}

// recorded returns the one file of this pattern that the stand-ins kept.
func recorded(t *testing.T, dir, pattern string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(files) != 1 {
		t.Fatalf("%s: %v %v", pattern, files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestContainers(t *testing.T) {
	for _, engine := range []string{"docker", "kubernetes"} {
		t.Run(engine, func(t *testing.T) {
			dir := engines(t)
			b := newBench(t, 0)
			ok := inContainer(engine, `cat; echo; cat a.txt; echo; echo "$IMAGE $MILLWRIGHT_MODEL_ID $KEY $LINES"; echo hidden >&2; cat made; exit 10`)
			ok.Command[2] = "test -s prompt.md || exit 9; " + ok.Command[2]
			b.work(worker.Config{Slots: 2, Harnesses: map[string]worker.Harness{"c": ok}, Default: "c"})
			for name, value := range map[string]string{"KEY": "hunter22", "LINES": "one line\ntwo lines"} {
				if _, err := b.store.SetSecret(t.Context(), name, []byte(value)); err != nil {
					t.Fatal(err)
				}
			}
			var linux schema.Platform
			if err := json.Unmarshal([]byte(`{"os":"linux","linux":{"dockerImage":"runner:2"}}`), &linux); err != nil {
				t.Fatal(err)
			}
			factory := b.factory([]string{"KEY", "LINES"}, schema.Runner{Name: "big", SetupCommands: []string{"echo made > made", "cat >/dev/null"}, InstanceShape: &schema.InstanceShape{VCPUs: 8, MemoryGB: 0.5}, Platform: &linux})
			id := b.create(func(n *state.NewRun) {
				n.FactoryUID, n.Secrets = factory, []string{"KEY", "LINES"}
				n.Config = []byte(`{"model_id":"m1","runner_id":"big"}`)
			}, state.Attachment{Name: "a.txt", Body: []byte("attached")})
			r := b.end(id)
			if r.State != state.RunBlocked || r.StatusMessage != "hidden" {
				t.Fatalf("run is %s %s: %s", r.State, r.ErrorCode, r.StatusMessage)
			}
			if said := strings.TrimSpace(b.said(r)); said != "do it\nattached\nrunner:2 m1 *** ***\n***\nmade" {
				t.Errorf("said %q", said)
			}
			record := ""
			if engine == "docker" {
				record = recorded(t, dir, "*.json")
				for _, want := range []string{`"--network","none"`, `"--log-driver","none"`, `"--cap-drop","ALL"`, `"no-new-privileges"`, `"--cpus","2"`, `"--memory","512m"`, `"--memory-swap","512m"`, `"--pids-limit"`, "runner:2"} {
					wantIn(t, record, want)
				}
			} else {
				record = recorded(t, dir, "*.deleted")
				for _, want := range []string{
					`"backoffLimit":0`, `"cpu":"2"`, `"memory":"536870912"`, `"image":"runner:2"`, `"runAsNonRoot":true`, `"allowPrivilegeEscalation":false`,
					`"drop":["ALL"]`, `"automountServiceAccountToken":false`, `"millwright/network":"none"`, `"restartPolicy":"Never"`, `"activeDeadlineSeconds":4500`,
					`"sizeLimit":"10737418240"`,
				} {
					wantIn(t, record, want)
				}
				wantIn(t, recorded(t, dir, "*.Secret"), `"ownerReferences":[{"apiVersion":"batch/v1","kind":"Job","name":"millwright-`+id)
			}
			if strings.Contains(record, "hunter22") || strings.Contains(record, "two lines") {
				t.Errorf("a secret is on the command line, or in the job: %s", record)
			}
		})
	}
}

func TestContainersThatFail(t *testing.T) {
	for _, engine := range []string{"docker", "kubernetes"} {
		t.Run(engine, func(t *testing.T) {
			dir := engines(t)
			b := newBench(t, 0)
			image := func(name string) worker.Harness {
				h := inContainer(engine, "true")
				h.Container.Image = name
				return h
			}
			absent := inContainer(engine, "")
			absent.Command = []string{"no-such-program"}
			marks := t.TempDir()
			slow := inContainer(engine, "trap '' TERM; echo $$ > "+marks+"/slow; while :; do sleep 0.1; done")
			slow.Timeout = 12 * time.Second // enough to begin, beside the others on a slow machine
			harnesses := map[string]worker.Harness{
				"ok": inContainer(engine, "echo fine"), "exit": inContainer(engine, "echo oops >&2; exit 3"), "absent": absent, "noimage": image(""), "slow": slow,
				"cancelled": inContainer(engine, "echo $$ > "+marks+"/cancelled; exec sleep 600"), "memory": inContainer(engine, "kill -9 $$"),
				"terminated": inContainer(engine, "kill -15 $$"), "silent": inContainer(engine, "exit 125"),
			}
			if engine == "docker" {
				harnesses["badimage"] = image("missing")
			} else {
				harnesses["badimage"] = image("bad image")
				for _, name := range []string{"forbidden", "evicted", "drained", "deadline", "no-tar", "too-big"} {
					harnesses[name] = image(name)
				}
				h := harnesses["too-big"]
				h.Timeout = slow.Timeout
				harnesses["too-big"] = h
				h.Timeout = time.Minute
				harnesses["too-big, patient"] = h
			}
			b.work(worker.Config{Slots: len(harnesses), Harnesses: harnesses})
			runs := map[string]string{}
			begin := func(name string) string {
				return b.create(func(n *state.NewRun) { n.Config = fmt.Appendf(nil, `{"harness":{"type":%q}}`, name) })
			}
			for name := range harnesses {
				if name != "too-big, patient" {
					runs[name] = begin(name)
				}
			}
			for name, want := range map[string]struct {
				state   state.RunState
				code    string
				message string
			}{
				"ok":       {state.RunSucceeded, "", ""},
				"exit":     {state.RunFailed, "agent_process_failed", "exit status 3: oops"},
				"absent":   {state.RunError, "agent_process_failed", "cannot be started in the container"},
				"memory":   {state.RunFailed, "agent_process_failed", "memory"},
				"silent":   {state.RunError, "environment_setup_failed", "exit status 125"},
				"noimage":  {state.RunError, "environment_setup_failed", "names an image"},
				"badimage": {state.RunError, "environment_setup_failed", "image"},
				"slow":     {state.RunError, "infrastructure_timeout", "12s"},
			} {
				r := b.end(runs[name])
				if r.State != want.state || r.ErrorCode != want.code || !strings.Contains(r.StatusMessage, want.message) {
					t.Errorf("%s: %s %q %q", name, r.State, r.ErrorCode, r.StatusMessage)
				}
			}
			if _, err := os.Stat(marks + "/slow"); err == nil { // it began in time
				gone(t, marks+"/slow")
			}
			if r := b.end(runs["terminated"]); r.State != state.RunFailed || engine == "docker" && !strings.Contains(r.StatusMessage, "engine was stopped") {
				t.Errorf("terminated: %s %s", r.State, r.StatusMessage)
			}
			if engine == "kubernetes" {
				if r := b.end(runs["too-big"]); !strings.Contains(r.StatusMessage, "it waits") { // its pod was not made in time
					runs["too-big"] = begin("too-big, patient")
				}
				for name, want := range map[string][2]string{
					"forbidden": {"environment_setup_failed", "Forbidden"},
					"evicted":   {"agent_process_failed", "Evicted"},
					"drained":   {"agent_process_failed", "deleted"},
					"deadline":  {"environment_setup_failed", "DeadlineExceeded"},
					"no-tar":    {"environment_setup_failed", "executable file not found"},
					"too-big":   {"infrastructure_timeout", "s: it waits: Unschedulable: 0/1 nodes"},
				} {
					if r := b.end(runs[name]); r.State != state.RunError || r.ErrorCode != want[0] || !strings.Contains(r.StatusMessage, want[1]) {
						t.Errorf("%s: %s %s %s", name, r.State, r.ErrorCode, r.StatusMessage)
					}
				}
			}
			id := runs["cancelled"]
			b.until(id, func(state.Run) bool { info, err := os.Stat(marks + "/cancelled"); return err == nil && info.Size() > 0 })
			if _, err := b.store.RequestCancel(t.Context(), id, "tester"); err != nil {
				t.Fatal(err)
			}
			if r := b.end(id); r.State != state.RunCancelled {
				t.Errorf("run is %s", r.State)
			}
			gone(t, marks+"/cancelled")
			if left, _ := filepath.Glob(filepath.Join(b.dir, "worker-*", "env-*")); len(left) != 0 {
				t.Errorf("files with variables are left: %v", left)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "*.Job")); len(left) != 0 {
				t.Errorf("jobs are left: %v", left)
			}
		})
	}
}

// workerProcess is a worker in a process of its own, with one harness: a script in a container of the engine,
// or as this user.
func workerProcess(args []string) int {
	address, credentials, dir, engine, script := args[0], args[1], args[2], args[3], args[4]
	if err := confine.HideMemory(); err != nil {
		return refuse(1, "%v", err)
	}
	client, err := wire.Connect(context.Background(), address, credentials, "", nil)
	if err != nil {
		return refuse(1, "%v", err)
	}
	cfg := worker.Config{Client: client, Dir: dir, Default: "c", Keeper: []string{"keeper"}}
	switch engine {
	case withCgroup, withKeeper:
		cfg.Harnesses, cfg.NoCgroup = map[string]worker.Harness{"c": sh(script)}, engine == withKeeper
	default:
		cfg.Harnesses = map[string]worker.Harness{"c": inContainer(engine, script)}
	}
	return refuse(1, "%v", worker.Run(context.Background(), cfg))
}

// newWorkerProcess starts a worker in a process of its own; as may be nil.
func newWorkerProcess(t *testing.T, as *syscall.Credential, engine, script string) (*bench, *exec.Cmd) {
	t.Helper()
	s := statetest.Open(t, statetest.SQLite(t))
	d, err := dispatch.Start(t.Context(), dispatch.Config{Store: s, Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close(context.Background()) })
	b := &bench{t: t, store: s, d: d, dir: t.TempDir()}
	key, secret, err := s.CreateKey(t.Context(), "remote", state.RoleWorker, nil)
	if err != nil {
		t.Fatal(err)
	}
	credentials := filepath.Join(t.TempDir(), "worker.key")
	if err := os.WriteFile(credentials, []byte(key.UID+"\n"+secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	program := os.Args[0]
	if as != nil { // who may not reach this program, nor these files
		passThrough(t, credentials, b.dir)
		program = filepath.Join(t.TempDir(), "worker")
		text, err := os.ReadFile(os.Args[0])
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(program, text, 0o755); err != nil {
			t.Fatal(err)
		}
		passThrough(t, program)
		for _, file := range []string{credentials, b.dir} {
			if err := os.Chown(file, int(as.Uid), int(as.Gid)); err != nil {
				t.Fatal(err)
			}
		}
	}
	process := exec.Command(program, "nats://"+d.Addr(), credentials, b.dir, engine, script)
	process.Args[0], process.Stderr = "worker", os.Stderr
	process.Env = append(os.Environ(), serverSecret+"="+serverSecretValue)
	process.SysProcAttr = &syscall.SysProcAttr{Credential: as}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { process.Process.Kill(); process.Wait() })
	return b, process
}

// TestContainersOfAKilledWorker kills a worker with SIGKILL: its container ends, without another worker.
func TestContainersOfAKilledWorker(t *testing.T) {
	for _, engine := range []string{"docker", "kubernetes"} {
		t.Run(engine, func(t *testing.T) {
			dir := engines(t)
			mark := filepath.Join(dir, "mark")
			b, process := newWorkerProcess(t, nil, engine, "trap '' TERM; echo $$ > "+mark+"; while :; do sleep 0.1; done")
			b.until(b.create(nil), func(state.Run) bool { info, err := os.Stat(mark); return err == nil && info.Size() > 0 })
			process.Process.Kill()
			process.Wait()
			gone(t, mark)
			b.work(worker.Config{}) // it removes what the killed one left
		})
	}
}

// TestContainersOfAnEngineThatWasAway has the engine lose sight of a container, as one that is restarted: it
// is removed when the engine is back.
func TestContainersOfAnEngineThatWasAway(t *testing.T) {
	dir := engines(t)
	b := newBench(t, 0)
	script := fmt.Sprintf("cd %s; echo $$ > mark; sleep 6; : > away; kill -9 $PPID; while :; do sleep 0.1; done", dir)
	b.work(worker.Config{Harnesses: map[string]worker.Harness{"c": inContainer("docker", script)}, Default: "c"})
	if r := b.end(b.create(nil)); r.State != state.RunFailed {
		t.Errorf("run is %s %s", r.State, r.StatusMessage)
	}
	if err := os.Remove(filepath.Join(dir, "away")); err != nil {
		t.Fatal(err)
	}
	gone(t, filepath.Join(dir, "mark"))
}

// TestJobsOutliveABrokenConnection has the API server refuse the files at first, and the harness's log break
// off: nothing is lost, or said twice.
func TestJobsOutliveABrokenConnection(t *testing.T) {
	engines(t)
	b := newBench(t, 0)
	h := inContainer("kubernetes", "echo 1; echo 2; echo 3; echo oops >&2; exit 3")
	h.Container.Image = "flaky"
	b.work(worker.Config{Harnesses: map[string]worker.Harness{"c": h}, Default: "c"})
	r := b.end(b.create(nil))
	if said := b.said(r); r.State != state.RunFailed || !strings.HasSuffix(r.StatusMessage, "exit status 3: oops") || said != "1\n2\n3" {
		t.Errorf("run is %s %q, and said %q", r.State, r.StatusMessage, said)
	}
}

// TestNetworkThatIsNoLabel refuses at the start what the API server would refuse of each run.
func TestNetworkThatIsNoLabel(t *testing.T) {
	engines(t)
	for network, fine := range map[string]bool{"": true, "open": true, "a network": false, "-": false, strings.Repeat("x", 64): false} {
		h := inContainer("kubernetes", "true")
		h.Container.Network = network
		if err := (worker.Update{Harnesses: map[string]worker.Harness{"c": h}}).Check(); (err == nil) != fine {
			t.Errorf("%q: %v", network, err)
		}
	}
}

// TestOneJobForARun has jobs of other attempts be there when an attempt begins: that of an earlier one is
// removed first, beside that of a later one nothing begins.
func TestOneJobForARun(t *testing.T) {
	dir := engines(t)
	b := newBench(t, 0)
	runs := map[string]string{}
	for _, attempt := range []string{"1-0", "1-2"} {
		id := b.create(nil)
		runs[attempt] = id
		job := fmt.Sprintf(`{"metadata":{"name":"millwright-%s-%s","labels":{"millwright/run":%q}}}`, id, attempt, id)
		if err := os.WriteFile(filepath.Join(dir, "millwright-"+id+"-"+attempt+".Job"), []byte(job), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b.work(worker.Config{Harnesses: map[string]worker.Harness{"c": inContainer("kubernetes", "echo hi")}, Default: "c"})
	if r := b.end(runs["1-0"]); r.State != state.RunSucceeded {
		t.Errorf("after an earlier attempt: %s %s", r.State, r.StatusMessage)
	}
	recorded(t, dir, "*-1-0.deleted")
	if r := b.end(runs["1-2"]); r.State != state.RunError || !strings.Contains(r.StatusMessage, "later attempt is there") {
		t.Errorf("beside a later attempt: %s %s", r.State, r.StatusMessage)
	}
	recorded(t, dir, "*-1-2.Job")
}

func TestStaleContainersAreRemoved(t *testing.T) {
	dir := engines(t)
	b := newBench(t, 0)
	if err := os.Mkdir(filepath.Join(b.dir, "worker-stale"), 0o700); err != nil {
		t.Fatal(err)
	}
	b.work(worker.Config{Harnesses: map[string]worker.Harness{"c": inContainer("docker", "echo hi")}, Default: "c"})
	if r := b.end(b.create(nil)); r.State != state.RunSucceeded {
		t.Errorf("run is %s %s", r.State, r.StatusMessage)
	}
	if _, err := os.Stat(filepath.Join(dir, "stale-1.removed")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(b.dir, "worker-stale")); !os.IsNotExist(err) {
		t.Errorf("the directory is left: %v", err)
	}
}

// TestAcceptanceDockerTakesTheCommandLine asks the real command line whether it knows the flags. Without an
// engine it gets no further.
func TestAcceptanceDockerTakesTheCommandLine(t *testing.T) {
	program := statetest.Program(t, "docker")
	dir := engines(t)
	b := newBench(t, 0)
	b.work(worker.Config{Harnesses: map[string]worker.Harness{"c": inContainer("docker", "true")}, Default: "c"})
	b.end(b.create(nil))
	var args []string
	if err := json.Unmarshal([]byte(recorded(t, dir, "*.json")), &args); err != nil {
		t.Fatal(err)
	}
	for i, a := range args {
		if a == "--env-file" {
			args[i+1] = "/dev/null"
		}
	}
	cmd := exec.Command(program, args...)
	cmd.Env = []string{"DOCKER_HOST=unix:///nonexistent/docker.sock", "HOME=" + t.TempDir()}
	out, err := cmd.CombinedOutput()
	if err == nil || strings.Contains(string(out), "flag") || !strings.Contains(strings.ToLower(string(out)), "daemon") {
		t.Errorf("docker says %s (%v)", out, err)
	}
}
