package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"millwright/cmd/cli"
	"millwright/state/statetest"
)

const (
	pushes       = 20 // good ones, and as many bad ones
	steadyPerSec = 40 // deliveries a second meanwhile
)

// TestAcceptancePushes pushes bad and good commits in turn while deliveries arrive at a steady rate: each
// bad one is refused, each good one applied, and no delivery fails.
func TestAcceptancePushes(t *testing.T) {
	statetest.Program(t, "git")
	statetest.EachDSN(t, func(t *testing.T, dsn string) {
		w := newCrashWorld(t, dsn)
		w.useGit(t)
		p := w.start(t)
		w.settles(t, w.push(t, "Begin"), "applied")

		var sent, failed atomic.Int64
		stop := w.steadily(t, &sent, &failed)
		defer stop()
		for i := range pushes {
			undo := w.spoil(t, i)
			w.settles(t, w.push(t, fmt.Sprintf("Bad %d", i)), "refused")
			undo()
			w.put(t, "webhooks/extra.yaml", fmt.Sprintf("secretName: T\ndeliveryIdHeader: X-Event-%d\n", i))
			w.put(t, "webhooks/hook.yaml", fmt.Sprintf("secretName: T\ndeliveryIdHeader: X-Edition-%d\n", i))
			w.put(t, "automations/all/automation.md", w.automation(fmt.Sprintf("Go, edition %d.", i)))
			w.settles(t, w.push(t, fmt.Sprintf("Good %d", i)), "applied")
		}
		stop()
		t.Logf("%d bad and %d good pushes, %d deliveries, %d failed", pushes, pushes, sent.Load(), failed.Load())
		if err := p.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := p.Wait(); err != nil {
			t.Errorf("the server ended with %v", err)
		}

		// A server that cannot read its state in time, on a machine that does much else, answers 503.
		starved := strings.Contains(p.log.String(), "loading the webhooks failed")
		if failed.Load() > 0 && !starved || sent.Load() < pushes*10 {
			t.Errorf("%d of %d deliveries failed", failed.Load(), sent.Load())
		}
	})
}

// useGit makes the world's definition a git repository that the server watches.
func (w *crashWorld) useGit(t *testing.T) {
	t.Helper()
	w.git(t, "init", "-q", "-b", "main", ".")
	w.git(t, "init", "-q", "--bare", "-b", "main", "../origin.git")
	settings := "listen: 127.0.0.1:" + w.port + "\nworkers: 2\nlimits: {deliveriesPerMinute: -1}\n" +
		"factories:\n  - name: crash\n    source: {git: {url: \"file://" + filepath.Join(w.dir, "origin.git") + "\", interval: 100ms}}\n"
	if err := os.WriteFile(filepath.Join(w.dir, "millwright.yaml"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (w *crashWorld) git(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = filepath.Join(w.dir, "factory")
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull, "GIT_AUTHOR_NAME=Ada",
		"GIT_AUTHOR_EMAIL=ada@example.com", "GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.com")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// push commits and pushes what there is, and returns the commit.
func (w *crashWorld) push(t *testing.T, message string) string {
	t.Helper()
	w.git(t, "add", "-A")
	w.git(t, "commit", "-q", "-m", message)
	w.git(t, "push", "-q", "../origin.git", "main")
	return w.git(t, "rev-parse", "HEAD")
}

func (w *crashWorld) put(t *testing.T, name, content string) {
	t.Helper()
	file := filepath.Join(w.dir, "factory", name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// automation is one that every delivery to the webhook starts.
func (w *crashWorld) automation(prompt string) string {
	return "---\ntriggers:\n  - provider: webhook\n    event: received\n    filter:\n      webhook_ids: [" + w.webhook + "]\n---\n" + prompt + "\n"
}

// spoil makes the definition one that must be refused, another way each time, and returns what undoes it.
func (w *crashWorld) spoil(t *testing.T, i int) (undo func()) {
	t.Helper()
	name, content := "webhooks/bad.yaml", ""
	switch i % 5 {
	case 0:
		content = "secretNam: T\n"
	case 1:
		content = "secretName: MISSING\n"
	case 2:
		content = "{{{{ " + strings.Repeat("[", 1000)
	case 3:
		name, content = "automations/all/automation.md", w.automation("Go.")[:60]
	case 4: // every webhook is gone
		w.git(t, "rm", "-q", "-r", "webhooks")
		return func() { w.git(t, "checkout", "-q", "HEAD~", "--", "webhooks") }
	}
	w.put(t, name, content)
	return func() {
		if err := os.Remove(filepath.Join(w.dir, "factory", name)); err != nil {
			t.Fatal(err)
		}
	}
}

// settles waits until the server has attempted a commit, with this outcome.
func (w *crashWorld) settles(t *testing.T, commit, want string) {
	t.Helper()
	c := cli.Client{Server: "http://127.0.0.1:" + w.port, Key: crashKey}
	c.HTTP = http.DefaultClient
	statetest.Until(t, "commit "+commit+" is "+want, func() bool {
		var f cli.FactoryItem
		err := c.Get(t.Context(), "/factory/"+w.factory, &f)
		return err == nil && f.Sync.AttemptedRevision == commit && f.Sync.State == want
	})
}

// steadily sends deliveries at an even rate, counts those that are not answered 202, and returns what ends
// that.
func (w *crashWorld) steadily(t *testing.T, sent, failed *atomic.Int64) (stop func()) {
	const senders = 8
	done := make(chan struct{})
	var all sync.WaitGroup
	for s := range senders {
		all.Go(func() {
			client := &http.Client{Timeout: statetest.Patience, Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			tick := time.NewTicker(senders * time.Second / steadyPerSec)
			defer tick.Stop()
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				case <-tick.C:
				}
				sent.Add(1)
				if !w.post(t.Context(), client, fmt.Sprintf("event-%d-%d", s, i), i) {
					failed.Add(1)
				}
			}
		})
	}
	return sync.OnceFunc(func() {
		close(done)
		all.Wait()
	})
}
