package worker_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"millwright/runs/worker"
	"millwright/state"
	"millwright/state/statetest"
)

// TestProcessesThatLeaveTheGroup has a harness start a process in a session of its own: it ends with the run.
func TestProcessesThatLeaveTheGroup(t *testing.T) {
	b := newBench(t, 0)
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	held, err := os.OpenFile(fifo, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	b.script(`setsid sh -c 'exec 3>` + fifo + ` >/dev/null 2>&1; : > up; cd /; exec sleep 600' & while [ ! -e up ]; do sleep 0.02; done`)
	if r := b.end(b.create(nil)); r.State != state.RunSucceeded {
		t.Fatalf("%s %s", r.State, r.StatusMessage)
	}
	if err := held.SetReadDeadline(time.Now().Add(statetest.Patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, held); err != nil { // it ends when nobody holds the other end
		t.Errorf("the process goes on after its run: %v", err)
	}
}

// TestProcessesThatOutliveTheWorker starts a worker where another one was killed: what that one's harness left
// running ends.
func TestProcessesThatOutliveTheWorker(t *testing.T) {
	b := newBench(t, 0)
	stale := filepath.Join(b.dir, "worker-stale", "run-1")
	if err := os.MkdirAll(stale, 0o700); err != nil {
		t.Fatal(err)
	}
	left := exec.CommandContext(t.Context(), "sleep", "600")
	left.Env = []string{"MILLWRIGHT_WORK_DIR=" + stale, "PATH=" + os.Getenv("PATH")}
	if err := left.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- left.Wait() }()
	b.work(worker.Config{})
	statetest.Receive(t, "the process to end", done)
}
