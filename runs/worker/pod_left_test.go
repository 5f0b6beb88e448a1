package worker_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"millwright/runs/worker"
	"millwright/state"
	"millwright/state/statetest"
)

// TestChangesOfContainers has harnesses in containers change a repository, leave files and requests, and
// continue.
func TestChangesOfContainers(t *testing.T) {
	for _, engine := range []string{"docker", "kubernetes"} {
		t.Run(engine, func(t *testing.T) {
			engines(t)
			o := newOrigin(t)
			base := o.commit("acme/shop", map[string]string{"a": "one", "gone": "x", "tool": "#!/bin/sh"})
			b := newBenchWith(t, statetest.Open(t, statetest.SQLite(t)), o)
			h := inContainer(engine, `set -e; export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'
				trap 'chown -R 65534:65534 . || :' EXIT # the stand-in executes this as the worker's user
				if [ -e new ]; then echo "found $(cat new)"; exit; fi
				echo two > a; git -c user.name=a -c user.email=a@b commit -qam mine; echo 3 > new; rm gone
				ln -s /etc/passwd link; mkdir -p .millwright/artifacts; echo hello > .millwright/artifacts/report.txt
				echo '{"type":"comment"}' > .millwright/outputs.jsonl; echo garbage >> .millwright/outputs.jsonl`)
			b.work(configOf(h))

			id := b.in(b.with(nil, "acme/shop"))
			r := b.succeeded(id)
			if got := b.left(r, "report.txt"); got != "hello\n" {
				t.Errorf("the report is %q", got)
			}
			wantIn(t, strings.Join(b.events(r, "output_refused"), ""), "line 2: not a JSON object")
			applied := o.applied("acme/shop", b.left(r, "changes.bundle"))
			if got := o.git(applied, "diff", "--name-status", base, "HEAD"); got != "M\ta\nD\tgone\nA\tlink\nA\tnew" {
				t.Errorf("changes:\n%s", got)
			}
			if got := o.git(applied, "log", "--format=%s"); got != "Mend the shop\nmine\nx" {
				t.Errorf("commits:\n%s", got)
			}
			wantIn(t, b.said(b.goOn(id, "go on")), "found 3")
		})
	}
}

// TestAcceptanceContainersOfAnotherUser has a worker of another user than root execute runs in containers, collect
// what they changed, and continue them.
func TestAcceptanceContainersOfAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("the tests of containers run as another user already")
	}

	dir, err := os.MkdirTemp("/var/tmp", "millwright-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	program := filepath.Join(dir, "test")
	text, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(program, text, 0o755), os.Chmod(dir, 0o777)); err != nil {
		t.Fatal(err)
	}

	const account = 731300
	cmd := exec.CommandContext(t.Context(), program, "-test.run=^Test(ChangesOf|PresetsIn)Containers$/^docker$", "-test.v")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "TMPDIR="+dir, "HOME="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: account, Gid: account}}
	out, err := cmd.CombinedOutput()
	if passed := bytes.Count(out, []byte("--- PASS: Test")); err != nil || passed != 4 {
		t.Errorf("%v, %d passed\n%s", err, passed, out)
	}
}

// TestAcceptanceChangesOfStoppedJobs has pods whose harness is cancelled, takes too long or fails, and pods
// whose files cannot be read: then an event has the reason.
func TestAcceptanceChangesOfStoppedJobs(t *testing.T) {
	for name, test := range map[string]struct {
		script, image string
		timeout       time.Duration
		state         state.RunState
		lost          string // empty: the changes are collected
	}{
		"cancelled":  {`echo changed > a; : > MARK; exec sleep 600`, "", 0, state.RunCancelled, ""},
		"stubborn":   {`trap "" TERM; echo changed > a; : > MARK; while :; do sleep 0.1; done`, "", 0, state.RunCancelled, ""},
		"late":       {`echo changed > a; exec sleep 600`, "", 15 * time.Second, state.RunError, ""},
		"failed":     {`echo changed > a; exit 3`, "", 0, state.RunFailed, ""},
		"broken off": {`echo changed > a`, "flaky", 0, state.RunSucceeded, ""},
		"unreadable": {`echo changed > a`, "unreadable", 0, state.RunSucceeded, "tar: ./secret: Cannot open"},
		"drained":    {`echo changed > a; sleep 2`, "drained", 0, state.RunError, "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := engines(t)
			mark := filepath.Join(dir, "mark")
			o := newOrigin(t)
			o.commit("acme/shop", map[string]string{"a": "one"})
			b := newBenchWith(t, statetest.Open(t, statetest.SQLite(t)), o)
			h := inContainer("kubernetes", strings.ReplaceAll(test.script, "MARK", mark))
			if h.Timeout = test.timeout; test.image != "" {
				h.Container.Image = test.image
			}
			b.work(worker.Config{Harnesses: map[string]worker.Harness{"h": h}, Default: "h"})

			id := b.in(b.with(nil, "acme/shop"))
			if test.state == state.RunCancelled {
				b.until(id, func(state.Run) bool {
					followed, _ := filepath.Glob(filepath.Join(dir, "*.followed"))
					_, err := os.Stat(mark)
					return err == nil && len(followed) > 0
				})
				if _, err := b.store.RequestCancel(t.Context(), id, "tester"); err != nil {
					t.Fatal(err)
				}
			}
			r := b.end(id)
			if r.State != test.state {
				t.Fatalf("run is %s: %s", r.State, r.StatusMessage)
			}

			lost := strings.Join(b.events(r, "changes_not_collected"), "")
			if test.lost == "" {
				wantIn(t, b.left(r, "changes.patch"), "+changed")
			}
			if (lost != "") != (test.lost != "") || !strings.Contains(lost, test.lost) {
				t.Errorf("events %s, want %q", lost, test.lost)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "*.Job")); len(left) != 0 {
				t.Errorf("jobs are left: %v", left)
			}
		})
	}
}
