package worker_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"millwright/runs/worker"
	"millwright/runs/worker/confine"
	"millwright/state"
	"millwright/state/statetest"
)

// The ways in which a run ends with everything that it started.
const (
	withCgroup = "cgroup"
	withKeeper = "keeper"
)

// The environment of a worker in the tests.
const (
	serverSecret      = "MILLWRIGHT_TEST_SERVER_SECRET"
	serverSecretValue = "the-secret-of-the-server"
)

// wantWay skips a test of a way that this machine does not have.
func wantWay(t *testing.T, way string) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("only on Linux everything that a run started can be killed")
	}
	if way != withCgroup {
		return
	}
	host := confine.Open(confine.Config{Label: fmt.Sprintf("test-%d", os.Getpid())})
	defer host.Close()
	if host.Mark() != "" {
		return
	}
	if os.Getenv("CI") == "true" && os.Getuid() == 0 {
		t.Fatalf("no cgroup v2 hierarchy can be written: %s", host.Describe())
	}
	t.Skipf("no cgroup v2 hierarchy can be written: %s", host.Describe())
}

// wantRoot skips a test that only root can make.
func wantRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can start commands as another user")
	}
}

// wantPrivate skips a test that needs mount namespaces, which some containers keep from root too.
func wantPrivate(t *testing.T) {
	t.Helper()
	host := confine.Open(confine.Config{NoCgroup: true})
	if !host.Private() {
		t.Skip("this process cannot make mount namespaces")
	}
}

// passThrough lets others reach files of the test.
func passThrough(t *testing.T, files ...string) {
	t.Helper()
	for _, file := range files {
		for dir := filepath.Dir(file); dir != "/"; dir = filepath.Dir(dir) {
			if info, err := os.Stat(dir); err == nil && info.Mode().Perm()&0o001 == 0 {
				if err := os.Chmod(dir, info.Mode().Perm()|0o111); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// as makes a harness run under one account, several accounts or, with no words, as the worker's user.
func as(h worker.Harness, uidRange string) worker.Harness {
	if uidRange != "" {
		h.SameUser, h.UIDRange = false, uidRange
	}
	return h
}

// tether is a pipe with a name. Whoever holds its other end lives.
type tether struct {
	path string
	end  *os.File
}

func newTether(t *testing.T) tether {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tether")
	if err := syscall.Mkfifo(path, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	passThrough(t, path)
	end, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { end.Close() })
	return tether{path, end}
}

// held reports whether a process holds the other end.
func (l tether) held(t *testing.T) bool {
	t.Helper()
	raw, err := l.end.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var n int
	var failed error
	if err := raw.Control(func(fd uintptr) { n, failed = syscall.Read(int(fd), make([]byte, 1)) }); err != nil {
		t.Fatal(err)
	}
	if failed != nil && !errors.Is(failed, syscall.EAGAIN) {
		t.Fatal(failed)
	}
	return n > 0 || failed != nil
}

// untilLoose waits until nobody holds the other end.
func (l tether) untilLoose(t *testing.T) {
	t.Helper()
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for deadline := time.Now().Add(statetest.Patience); l.held(t); <-poll.C {
		if time.Now().After(deadline) {
			t.Fatal("a process of the run lives on")
		}
	}
}

// escapes are scripts that leave something running which holds the tether. They end when it has begun.
var escapes = map[string]string{
	"new session": `env -i /usr/bin/setsid /usr/bin/nohup /bin/sh -c 'exec 3>TETHER >/dev/null 2>&1; : >up; cd /; exec /bin/sleep 600' &`,
	"double fork": `/bin/sh -c "env -i /usr/bin/setsid /bin/sh -c '(exec 3>TETHER >/dev/null 2>&1 </dev/null; trap \"\" TERM HUP INT; : >up; cd /; while :; do /bin/sleep 1; done) & exit'" & wait`,
	"fork loop":   `printf '#!/bin/sh\n(: >up)\nsetsid "$0" &\n' >loop; chmod +x loop; (exec 3>TETHER >/dev/null 2>&1 </dev/null; exec ./loop) & wait`,
	"fork tree": `printf '#!/bin/sh\n: >up\n[ $1 = 0 ] && exec sleep 600\n"$0" $(($1-1)) & setsid "$0" $(($1-1)) & "$0" $(($1-1))\n' >tree; chmod +x tree
(exec 3>TETHER >/dev/null 2>&1 </dev/null; exec setsid ./tree 3) &`,
}

// testOutlive has harnesses start processes that leave their group, their session, their environment and
// their parents: none of them lives when the run has ended.
func testOutlive(t *testing.T, uidRange string) {
	for _, way := range []string{withCgroup, withKeeper} {
		t.Run(way, func(t *testing.T) {
			wantWay(t, way)
			b := newBench(t, 0)
			passThrough(t, b.dir+"/x")
			harnesses, tethers := map[string]worker.Harness{}, map[string]tether{}
			for name, script := range escapes {
				tethers[name] = newTether(t)
				script = strings.ReplaceAll(script, "TETHER", tethers[name].path)
				harnesses[name] = as(sh(script+"\nwhile [ ! -e up ]; do sleep 0.02; done"), uidRange)
			}
			cancelled := newTether(t)
			harnesses["cancelled"] = as(sh(strings.ReplaceAll(escapes["new session"], "TETHER", cancelled.path)+"\ntrap '' TERM; while :; do sleep 0.1; done"), uidRange)
			b.work(worker.Config{NoCgroup: way == withKeeper, Harnesses: harnesses})

			for name := range escapes {
				r := b.end(b.create(func(n *state.NewRun) { n.Config = fmt.Appendf(nil, `{"harness":{"type":%q}}`, name) }))
				if r.State != state.RunSucceeded {
					t.Errorf("%s: %s %s", name, r.State, r.StatusMessage)
				}
				if tethers[name].held(t) {
					t.Errorf("%s: a process of the run lives on", name)
				}
			}

			id := b.create(func(n *state.NewRun) { n.Config = []byte(`{"harness":{"type":"cancelled"}}`) })
			b.until(id, func(state.Run) bool { return cancelled.held(t) })
			if _, err := b.store.RequestCancel(t.Context(), id, "tester"); err != nil {
				t.Fatal(err)
			}
			if r := b.end(id); r.State != state.RunCancelled || cancelled.held(t) {
				t.Errorf("%s; a process of the cancelled run lives on: %v", r.State, cancelled.held(t))
			}
			if left, _ := filepath.Glob(filepath.Join(b.dir, "worker-*", "run-*")); len(left) != 0 {
				t.Errorf("directories are left: %v", left)
			}
		})
	}
}

// TestNothingOutlivesItsWorker kills a worker: what its harness left running ends with the keeper, or when
// the next worker starts.
func TestNothingOutlivesItsWorker(t *testing.T) {
	for _, way := range []string{withCgroup, withKeeper} {
		t.Run(way, func(t *testing.T) {
			wantWay(t, way)
			tether := newTether(t)
			script := strings.ReplaceAll(escapes["double fork"], "TETHER", tether.path)
			b, process := newWorkerProcess(t, nil, way, script+"; while :; do sleep 0.1; done")
			b.until(b.create(nil), func(state.Run) bool { return tether.held(t) })
			process.Process.Kill()
			process.Wait()
			if way == withCgroup {
				b.work(worker.Config{})
			}
			tether.untilLoose(t)
			b.work(worker.Config{})
		})
	}
}

// TestAccountsAreNotShared has more runs than accounts: no two run under one account at once, and those that
// wait are claimed by nobody.
func TestAccountsAreNotShared(t *testing.T) {
	wantRoot(t)
	b := newBench(t, 0)
	release := filepath.Join(t.TempDir(), "go")
	passThrough(t, release, b.dir+"/x")
	h := as(sh("id -u; while [ ! -e "+release+" ]; do sleep 0.02; done"), "731010-731011")
	b.work(worker.Config{Slots: 4, Harnesses: map[string]worker.Harness{"h": h, "twin": h}, Default: "h"})
	var ids []string
	for i := range 5 {
		ids = append(ids, b.create(func(n *state.NewRun) {
			if i%2 == 1 {
				n.Config = []byte(`{"harness":{"type":"twin"}}`)
			}
		}))
	}
	running := func() (n int) {
		for _, id := range ids {
			if r, err := b.store.Run(t.Context(), id); err != nil {
				t.Fatal(err)
			} else if r.State == state.RunInProgress {
				n++
			}
		}
		return n
	}
	b.until(ids[0], func(state.Run) bool { return running() == 2 })
	for _, id := range ids {
		if r, err := b.store.Run(t.Context(), id); err != nil || r.State != state.RunQueued && r.State != state.RunInProgress {
			t.Errorf("%v: a run that waits for an account is %s", err, r.State)
		}
	}
	if n := running(); n != 2 {
		t.Errorf("%d runs under 2 accounts", n)
	}
	if err := os.WriteFile(release, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	said := map[string]int{}
	for _, id := range ids {
		said[b.said(b.end(id))]++
	}
	if len(said) != 2 || said["731010"] == 0 || said["731011"] == 0 {
		t.Errorf("user IDs %v", said)
	}
}

// TestAccountsOfAnotherWorker has two workers of one machine share an account: they wait for one another.
func TestAccountsOfAnotherWorker(t *testing.T) {
	wantRoot(t)
	b := newBench(t, 0)
	passThrough(t, b.dir+"/x")
	lock := filepath.Join(t.TempDir(), "shared")
	if err := os.Mkdir(lock, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(lock, 0o777); err != nil {
		t.Fatal(err)
	}
	passThrough(t, lock)
	h := as(sh("mkdir "+lock+"/mine || exit 7; sleep 0.1; rmdir "+lock+"/mine; echo fine"), "731020-731020")
	for range 2 {
		b.work(worker.Config{Slots: 2, Harnesses: map[string]worker.Harness{"h": h}, Default: "h"})
	}
	var ids []string
	for range 8 {
		ids = append(ids, b.create(nil))
	}
	for _, id := range ids {
		if r := b.end(id); r.State != state.RunSucceeded || b.said(r) != "fine" {
			t.Errorf("%s %s", r.State, r.StatusMessage)
		}
	}
}

// TestDeepDirectories has a harness hide what it writes under more directories than a path or the descriptors
// of a process can name: the run ends as one that wrote too much, and nothing is left.
func TestDeepDirectories(t *testing.T) {
	b := newBench(t, 600*time.Millisecond)
	script := `i=0; while [ $i -lt 2000 ]; do mkdir d && cd -P d || exit 9; i=$((i+1)); done; head -c 30000000 /dev/zero >big; exec sleep 600`
	b.work(worker.Config{MaxDir: 20 << 20, Default: "h", Harnesses: map[string]worker.Harness{"h": sh(script)}})
	if r := b.end(b.create(nil)); r.State != state.RunError || r.ErrorCode != "environment_setup_failed" || !strings.Contains(r.StatusMessage, "working directory") {
		t.Errorf("run is %s %s: %s", r.State, r.ErrorCode, r.StatusMessage)
	}
	if left, _ := filepath.Glob(filepath.Join(b.dir, "worker-*", "run-*")); len(left) != 0 {
		t.Errorf("directories are left: %v", left)
	}
}

// TestAccountSettings refuses accounts that cannot be told apart, or are not for runs alone.
func TestAccountSettings(t *testing.T) {
	one := func(change func(*worker.Harness)) map[string]worker.Harness {
		h := worker.Harness{Command: []string{"x"}}
		change(&h)
		return map[string]worker.Harness{"h": h}
	}
	for want, harnesses := range map[string]map[string]worker.Harness{
		`harness "h": choose where it runs, one of`:                                  one(func(h *worker.Harness) { h.User, h.Users = "a", []string{"b"} }),
		`harness "h": users: "a" is there twice, or empty`:                           one(func(h *worker.Harness) { h.Users = []string{"a", "b", "a"} }),
		`harness "h": user "no-such-user" does not exist on this machine`:            one(func(h *worker.Harness) { h.Users = []string{"no-such-user"} }),
		`harness "h": uidRange "70000": want two user IDs like 70000-70063`:          one(func(h *worker.Harness) { h.UIDRange = "70000" }),
		`harness "h": uidRange "2-1": the first user ID is greater than the last`:    one(func(h *worker.Harness) { h.UIDRange = "2-1" }),
		`harness "h": uidRange "0-1": want user IDs from 1000 to 2147483647`:         one(func(h *worker.Harness) { h.UIDRange = "0-1" }),
		`harness "h": uidRange "70000-71000": it has 1001 user IDs`:                  one(func(h *worker.Harness) { h.UIDRange = "70000-71000" }),
		`harness "h": path: "bin" is not an absolute directory`:                      one(func(h *worker.Harness) { h.SameUser, h.Path = true, "/bin:bin" }),
		`harness "h": path: a container has the PATH of its image`:                   one(func(h *worker.Harness) { h.Container, h.Path = &worker.Container{}, "/bin" }),
		`harness "b": uidRange "70005-70020" overlaps "70000-70010" of harness "a":`: {"a": {Command: []string{"x"}, UIDRange: "70000-70010"}, "b": {Command: []string{"x"}, UIDRange: "70005-70020"}},
	} {
		err := worker.Update{Harnesses: harnesses}.Check()
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}

	if os.Getuid() == 0 {
		for want, h := range map[string]worker.Harness{
			`harness "h": user "root" is the user of this process`:      {Command: []string{"x"}, User: "root"},
			`harness "h": uidRange "65000-65600": user ID 65534 is the`: {Command: []string{"x"}, UIDRange: "65000-65600"},
			"": {Command: []string{"x"}, UIDRange: "731000-731005"},
		} {
			err := worker.Update{Harnesses: map[string]worker.Harness{"h": h}}.Check()
			if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		}
	}
}

// TestPath starts programs of the documented PATH, and of another one, never of the worker's.
func TestPath(t *testing.T) {
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "agent"), []byte("#!/bin/sh\necho agent, $PATH\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	b := newBench(t, 0)
	agent := worker.Harness{Command: []string{"agent"}, SameUser: true}
	with := agent
	with.Path = bin + ":/bin"
	b.work(worker.Config{Harnesses: map[string]worker.Harness{"without": agent, "with": with, "default": sh("echo $PATH")}, Default: "default"})
	run := func(harness string) state.Run {
		return b.end(b.create(func(n *state.NewRun) { n.Config = fmt.Appendf(nil, `{"harness":{"type":%q}}`, harness) }))
	}
	if said := b.said(run("default")); said != confine.DefaultPath {
		t.Errorf("PATH is %s", said)
	}
	if said := b.said(run("with")); said != "agent, "+bin+":/bin" {
		t.Errorf("said %q", said)
	}
	if r := run("without"); r.State != state.RunError || !strings.Contains(r.StatusMessage, "agent: its PATH, "+confine.DefaultPath+", has no such program: give the program with its directory, or set path") {
		t.Errorf("%s %s", r.State, r.StatusMessage)
	}
}

// TestWorkersStartTogether holds that a worker which starts does not take the directory of another that starts for
// one that was left.
func TestWorkersStartTogether(t *testing.T) {
	b := newBench(t, 0)
	for range 20 {
		b.script("echo fine")
	}
	if r := b.end(b.create(nil)); r.State != state.RunSucceeded {
		t.Errorf("%s %s", r.State, r.StatusMessage)
	}
}
