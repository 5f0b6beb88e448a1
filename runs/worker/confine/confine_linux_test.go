package confine_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"millwright/runs/worker/confine"
	"millwright/runs/worker/confine/confinetest"
)

// TestHomeOfAnAccount has a run write to the home of its account: it is read-only, while the run's own is not.
func TestHomeOfAnAccount(t *testing.T) {
	host := confine.Open(confine.Config{Label: "test-home-" + filepath.Base(t.TempDir())})
	defer host.Close()
	if os.Getuid() != 0 || !host.Private() {
		t.Skip("this process cannot make mount namespaces")
	}
	parent, err := os.MkdirTemp("/var/lib", "millwright-test-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(parent)
	if err := os.Chmod(parent, 0o711); err != nil {
		t.Fatal(err)
	}

	account := &confine.Account{Name: "731050", UID: 731050, GID: 731050, Home: filepath.Join(parent, "account")}
	run := confine.Run{Name: "run", Dir: filepath.Join(parent, "run"), Account: account}
	for _, dir := range []string{account.Home, run.Dir} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(account.Home, 731050, 731050); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(account.Home, "config"), []byte("kept"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := confine.Give(run, host.Private()); err != nil {
		t.Fatal(err)
	}

	var out strings.Builder
	own := filepath.Join(host.Seen(run.Dir), confine.Home)
	cmd := exec.Command("/bin/sh", "-c", `cat "$0/config"; touch "$0/left" 2>&1 | grep -o 'Read-only'; touch "$1/own" && echo own`,
		account.Home, own)
	cmd.Stdout = &out
	p, err := host.Start(cmd, run)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err != nil {
		t.Error(err)
	}
	if err := p.Kill(); err != nil {
		t.Error(err)
	}
	if got := out.String(); got != "keptRead-only\nown\n" {
		t.Errorf("said %q", got)
	}
}

// TestKillsOnlyRuns refuses to kill other processes than those of a run.
func TestKillsOnlyRuns(t *testing.T) {
	for _, uid := range []int{0, os.Getuid()} {
		if err := confine.KillUser(uint32(uid)); err == nil {
			t.Errorf("the processes of user %d are killed", uid)
		}
	}
	for mark, fine := range map[string]bool{
		"":                              true,
		"/sys/fs/cgroup":                false,
		"/sys/fs/cgroup/system.slice":   false,
		"/sys/fs/cgroup/millwright-x/.": false,
		"/tmp/millwright-gone":          true,
	} {
		if err := confine.SweepWorker(mark); (err == nil) != fine {
			t.Errorf("%q: %v", mark, err)
		}
	}
}

// TestThreadsEnd ends the threads of this process while commands run. That kills none of them.
func TestThreadsEnd(t *testing.T) {
	const commands = 10
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer out.Close()

	var ready, started sync.WaitGroup
	ready.Add(commands)
	var all [commands]confine.Process
	for i := range all {
		started.Go(func() {
			runtime.LockOSThread() // each is started by another thread
			defer runtime.UnlockOSThread()
			ready.Done()
			ready.Wait()

			cmd := exec.Command("/bin/sh", "-c", "read -r line; exit 3")
			cmd.Stdin = in
			p, err := confine.StartGroup(cmd)
			if err != nil {
				t.Error(err)
				return
			}
			all[i] = p
		})
	}
	started.Wait()
	if t.Failed() {
		return
	}

	confinetest.EndThreads()
	if _, err := out.WriteString(strings.Repeat("line\n", commands)); err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		var status *confine.ExitError
		if err := p.Wait(); !errors.As(err, &status) || status.Status.ExitStatus() != 3 {
			t.Errorf("the command ended with %v", err)
		}
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
	}
}
