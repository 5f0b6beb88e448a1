package worker_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"millwright/runs/worker"
	"millwright/state"
)

// TestDiskNearlyFull has one run fill the disk of the worker while another works: the one that holds much
// ends, the other continues, and so do later ones.
func TestDiskNearlyFull(t *testing.T) {
	wantRoot(t)
	b := newBench(t, 6*time.Second)
	if err := unix.Mount("tmpfs", b.dir, "tmpfs", 0, "size=64m,mode=0700"); err != nil {
		t.Skipf("a small file system cannot be mounted: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(b.dir, unix.MNT_DETACH) })

	release := filepath.Join(t.TempDir(), "go")
	b.work(worker.Config{Slots: 2, Default: "h", Harnesses: map[string]worker.Harness{"h": sh(
		"if grep -q greedy prompt.md; then head -c 100000000 /dev/zero > big; exec sleep 600; fi; " +
			"while ! [ -e " + release + " ]; do sleep 0.02; done; head -c 1000000 /dev/zero > small && echo fine",
	)}})

	modest := b.create(nil)
	b.until(modest, func(r state.Run) bool { return r.State == state.RunInProgress })

	greedy := b.end(b.create(func(n *state.NewRun) { n.Prompt = "be greedy" }))
	if greedy.State != state.RunError || greedy.ErrorCode != "environment_setup_failed" ||
		!strings.Contains(greedy.StatusMessage, "disk is nearly full") {
		t.Errorf("the greedy run is %s %s: %s", greedy.State, greedy.ErrorCode, greedy.StatusMessage)
	}

	if err := os.WriteFile(release, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{modest, b.create(nil)} {
		if r := b.end(id); r.State != state.RunSucceeded || b.said(r) != "fine" {
			t.Errorf("a modest run is %s %s: %s", r.State, r.ErrorCode, r.StatusMessage)
		}
	}
}
