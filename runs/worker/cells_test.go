package worker_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"millwright/runs/worker"
	"millwright/state"
)

// The tests of this file are the cells of the table in SECURITY.md: TestIsolation/KIND/WHAT.

// said runs one harness for one run and returns what it said.
func said(t *testing.T, h worker.Harness) string {
	t.Helper()
	b := newBench(t, 0)
	passThrough(t, b.dir+"/x")
	b.work(worker.Config{Harnesses: map[string]worker.Harness{"h": h}, Default: "h"})
	r := b.end(b.create(nil))
	if r.State != state.RunSucceeded {
		t.Errorf("%s %s", r.State, r.StatusMessage)
	}
	return b.said(r)
}

// accounts are the harnesses that run under accounts of their own.
var accounts = map[string]func(script string) worker.Harness{
	"user": func(script string) worker.Harness {
		return worker.Harness{Command: []string{"sh", "-c", script}, User: "games"}
	},
	"users": func(script string) worker.Harness {
		return worker.Harness{Command: []string{"sh", "-c", script}, Users: []string{"games", "news"}}
	},
	"uidRange": func(script string) worker.Harness {
		return worker.Harness{Command: []string{"sh", "-c", script}, UIDRange: "731030-731033"}
	},
}

func TestIsolation(t *testing.T) {
	t.Run("sameUser/files", func(t *testing.T) {
		testTmp(t, sh)
	})
	t.Run("sameUser/processes", func(t *testing.T) { testOutlive(t, "") })
	t.Run("sameUser/network", func(t *testing.T) { testHostNetwork(t, sh) })
	t.Run("sameUser/secrets", func(t *testing.T) {
		for name, as := range map[string]*syscall.Credential{"root": nil, "another user": {Uid: 731040, Gid: 731040}} {
			t.Run(name, func(t *testing.T) {
				wantRoot(t)
				b, _ := newWorkerProcess(t, as, withKeeper, `worker=$PPID
read _ _ _ parent _ </proc/$PPID/stat
for p in $PPID $parent; do tr '\0' '\n' </proc/$p/environ | grep `+serverSecret+`; done
[ $(id -u) = 0 ] || head -c 1 /proc/$parent/mem 2>&1 | grep -o 'Permission denied'; echo end`)
				r := b.end(b.create(nil))
				want := "end"
				if as != nil {
					want = "Permission denied\nend"
				}
				if said := b.said(r); said != want {
					t.Errorf("%s %s: said %q, want %q", r.State, r.StatusMessage, said, want)
				}
			})
		}
	})

	for kind, harness := range accounts {
		if kind == "users" && testing.Short() {
			continue
		}
		t.Run(kind+"/files", func(t *testing.T) {
			wantRoot(t)
			testTmp(t, harness)
			testHome(t, harness)
			closed := filepath.Join(t.TempDir(), "closed")
			if err := os.WriteFile(closed, []byte("of the server"), 0o600); err != nil {
				t.Fatal(err)
			}
			passThrough(t, closed)
			if got := said(t, harness("cat "+closed+" 2>&1; cat prompt.md; echo; touch mine && echo wrote; sudo -n true 2>/dev/null || su -c true </dev/null 2>/dev/null || grep NoNewPrivs /proc/self/status")); !strings.Contains(got, "Permission denied") || !strings.HasSuffix(got, "do it\nwrote\nNoNewPrivs:\t1") {
				t.Errorf("said %q", got)
			}
		})
		t.Run(kind+"/processes", func(t *testing.T) {
			wantRoot(t)
			wantPrivate(t)
			script := fmt.Sprintf("kill -0 %d 2>&1 | grep -oi 'permitted'; ls -d /proc/%[1]d /proc/1 2>/dev/null; ls -d /proc/$$ >/dev/null && echo own", os.Getpid())
			if got := said(t, harness(script)); got != "permitted\nown" && got != "own" {
				t.Errorf("said %q", got)
			}
			if kind == "uidRange" {
				testOutlive(t, "731000-731000")
			}
		})
		t.Run(kind+"/network", func(t *testing.T) {
			wantRoot(t)
			testHostNetwork(t, harness)
		})
		t.Run(kind+"/other runs", func(t *testing.T) {
			wantRoot(t)
			testOtherRuns(t, harness)
		})
		t.Run(kind+"/secrets", func(t *testing.T) {
			wantRoot(t)
			t.Setenv(serverSecret, serverSecretValue)
			if got := said(t, harness(fmt.Sprintf("env | grep %s; cat /proc/%d/environ 2>/dev/null | head -c 10; echo end", serverSecret, os.Getpid()))); got != "end" {
				t.Errorf("said %q", got)
			}
		})
	}

	t.Run("container/files", func(t *testing.T) {
		testEngine(t, "docker", `"--mount","type=bind,source=`, `"--cap-drop","ALL"`, `no-new-privileges`)
	})
	t.Run("container/processes", func(t *testing.T) { testEngine(t, "docker", `"--pids-limit","1024"`, `"--init"`, `"--rm"`) })
	t.Run("container/network", func(t *testing.T) { testEngine(t, "docker", `"--network","none"`) })
	t.Run("container/secrets", func(t *testing.T) {
		t.Setenv(serverSecret, serverSecretValue)
		if record := testEngine(t, "docker"); strings.Contains(record, serverSecretValue) {
			t.Errorf("the secret of the server is in %s", record)
		}
	})
	for _, engine := range []string{"container", "kubernetes"} {
		t.Run(engine+"/other runs", func(t *testing.T) {
			engines(t)
			b := newBench(t, 0)
			h := inContainer(strings.Replace(engine, "container", "docker", 1), "ls; pwd >mine; echo end")
			b.work(worker.Config{Harnesses: map[string]worker.Harness{"h": h}, Default: "h"})
			for range 2 {
				if r := b.end(b.create(nil)); strings.Contains(b.said(r), "mine") || !strings.HasSuffix(b.said(r), "end") {
					t.Errorf("%s %s: said %q", r.State, r.StatusMessage, b.said(r))
				}
			}
		})
	}
	t.Run("kubernetes/files", func(t *testing.T) {
		testEngine(t, "kubernetes", `"runAsNonRoot":true`, `"drop":["ALL"]`, `"emptyDir":`)
	})
	t.Run("kubernetes/processes", func(t *testing.T) {
		testEngine(t, "kubernetes", `"allowPrivilegeEscalation":false`, `"seccompProfile":{"type":"RuntimeDefault"}`)
	})
	t.Run("kubernetes/network", func(t *testing.T) { testEngine(t, "kubernetes", `"millwright/network":"none"`) })
	t.Run("kubernetes/secrets", func(t *testing.T) {
		testEngine(t, "kubernetes", `"automountServiceAccountToken":false`, `"enableServiceLinks":false`)
	})
}

// testEngine runs a harness in a container, and finds words in what the engine was asked for.
func testEngine(t *testing.T, engine string, want ...string) (record string) {
	t.Helper()
	dir := engines(t)
	if got := said(t, inContainer(engine, "echo fine")); got != "fine" {
		t.Errorf("said %q", got)
	}
	record = recorded(t, dir, map[string]string{"docker": "*.json", "kubernetes": "*.deleted"}[engine])
	wantIn(t, record, want...)
	return record
}

// testTmp has two runs after one another use temporary files of one name: neither sees that of the other one,
// nor does the machine.
func testTmp(t *testing.T, harness func(string) worker.Harness) {
	t.Helper()
	name := fmt.Sprintf("millwright-test-%d", os.Getpid())
	b := newBench(t, 0)
	passThrough(t, b.dir+"/x")
	private := func(dir string) string {
		return fmt.Sprintf("[ -e %s/%s ] && echo seen in %[1]s; echo mine >%[1]s/%[2]s || echo not written in %[1]s; ", dir, name)
	}
	script := private("$TMPDIR") + `[ "$TMP$TEMP" = "$TMPDIR$TMPDIR" ] || echo other; case $TMPDIR in /tmp|$MILLWRIGHT_WORK_DIR/../tmp|${MILLWRIGHT_WORK_DIR%/work}/tmp) ;; *) echo $TMPDIR;; esac; mktemp >/dev/null; `
	places := []string{"/tmp", "/var/tmp", "/dev/shm"}
	if os.Getuid() == 0 {
		wantPrivate(t)
		script += "rm -f $TMPDIR/" + name + "; "
		for _, place := range places {
			script += private(place) + "rm " + place + "/" + name + "; "
		}
		script += private("/tmp")
	}
	b.work(worker.Config{Harnesses: map[string]worker.Harness{"h": harness(script + "echo end")}, Default: "h"})
	for range 2 {
		r := b.end(b.create(nil))
		if got := b.said(r); got != "end" {
			t.Errorf("%s %s: said %q", r.State, r.StatusMessage, got)
		}
	}
	for _, place := range places {
		if _, err := os.Lstat(filepath.Join(place, name)); err == nil {
			t.Errorf("a temporary file of a run is in %s", place)
		}
	}
}

// testHome has two runs after one another use their home, and the account's.
func testHome(t *testing.T, harness func(string) worker.Harness) {
	t.Helper()
	b := newBench(t, 0)
	passThrough(t, b.dir+"/x")
	script := `[ -e ~/left ] && echo seen; echo mine >~/left || echo not written; [ "$HOME" = "${MILLWRIGHT_WORK_DIR%/work}/home" ] || echo $HOME; echo end`
	b.work(worker.Config{Harnesses: map[string]worker.Harness{"h": harness(script)}, Default: "h"})
	for range 2 {
		r := b.end(b.create(nil))
		if got := b.said(r); got != "end" {
			t.Errorf("%s %s: said %q", r.State, r.StatusMessage, got)
		}
	}
}

// testHostNetwork reaches a listener of this machine: a command shares its network.
func testHostNetwork(t *testing.T, harness func(string) worker.Harness) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	port := fmt.Sprintf(":%04X ", ln.Addr().(*net.TCPAddr).Port)
	if got := said(t, harness("grep -q '"+port+"' /proc/net/tcp && echo reached")); got != "reached" {
		t.Errorf("said %q", got)
	}
}

// testOtherRuns has one run under an account leave what it can, and a later one under the same account look
// for it.
func testOtherRuns(t *testing.T, harness func(string) worker.Harness) {
	t.Helper()
	b := newBench(t, 0)
	passThrough(t, b.dir+"/x")
	tether := newTether(t)
	first := harness("umask 0; echo left >mine; ipcmk -Q >/dev/null 2>&1; echo $MILLWRIGHT_WORK_DIR; " + strings.ReplaceAll(escapes["new session"], "TETHER", tether.path) + " while [ ! -e up ]; do sleep 0.02; done")
	then := harness("ls; ipcs -q 2>/dev/null | grep -c \"^0x\"; echo end")
	b.work(worker.Config{Harnesses: map[string]worker.Harness{"first": first, "then": then}, Default: "then"})
	r := b.end(b.create(func(n *state.NewRun) { n.Config = []byte(`{"harness":{"type":"first"}}`) }))
	if r.State != state.RunSucceeded || tether.held(t) {
		t.Errorf("%s %s; a process lives on: %v", r.State, r.StatusMessage, tether.held(t))
	}
	r = b.end(b.create(nil))
	if got := b.said(r); strings.Contains(got, "mine") || strings.Contains(got, "up\n") || !strings.HasSuffix(got, "0\nend") {
		t.Errorf("%s %s: said %q", r.State, r.StatusMessage, got)
	}
}
