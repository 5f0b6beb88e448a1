package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"millwright/cmd/cli"
	"millwright/cmd/settings"
	"millwright/schema"
	"millwright/schema/agentconfig"
	"millwright/state"
	"millwright/state/statetest"
)

// kills is how often the crash test kills the server: 3 times, or MILLWRIGHT_KILLS times, which make
// acceptance sets to 50.
func kills(t *testing.T) int {
	t.Helper()
	text, ok := os.LookupEnv("MILLWRIGHT_KILLS")
	if !ok {
		return 3
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("MILLWRIGHT_KILLS=%q is not a number of kills", text)
	}
	return n
}

// TestKill kills the server with SIGKILL again and again under load, on both databases. Every delivery
// that was answered 202 is in the log exactly once, and each matching automation has exactly one run for
// it; so has every delivery that was stored but whose answer was lost.
func TestKill(t *testing.T) {
	if testing.Short() {
		t.Skip("a minute of crashes is not short")
	}
	t.Parallel()
	statetest.EachDSN(t, func(t *testing.T, dsn string) {
		t.Parallel()
		w := newCrashWorld(t, dsn)
		stopSenders := w.send(8)
		n := kills(t)
		for i := range n {
			p := w.start(t)
			w.waitForMore(t, p, 1+rand.IntN(max(20, 200/n)))
			if err := p.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			p.Wait()
			if t.Failed() {
				t.Fatalf("after %d kills", i+1)
			}
		}
		p := w.start(t)
		w.waitForMore(t, p, 1)
		stopSenders()
		w.drain(t, p)
		if err := p.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := p.Wait(); err != nil {
			t.Errorf("the server ended with %v", err)
		}
		w.check(t)
		t.Logf("%d kills", n)
	})
}

// crashWorld is one server that is killed, or several of one database, with its senders.
type crashWorld struct {
	dir, dsn, port   string
	urls             []string // of the webhook, on each server
	factory, webhook string

	mu    sync.Mutex
	acked map[string]string // event ID: delivery ID
	torn  []string          // events that were acknowledged as two deliveries
}

const crashToken = "crash-test-token"

func newCrashWorld(t *testing.T, dsn string) *crashWorld {
	t.Helper()
	port, err := statetest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	w := &crashWorld{dir: t.TempDir(), dsn: dsn, port: port, acked: map[string]string{}}
	store := statetest.Open(t, dsn)
	defer store.Close()
	ctx := t.Context()
	f, err := store.EnsureFactory(ctx, "crash", state.Source{Kind: "dir", Path: filepath.Join(w.dir, "factory")}, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.SetSecret(ctx, "T", []byte(crashToken)); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Bootstrap(ctx, crashKey); err != nil {
		t.Fatal(err)
	}
	cur, err := store.Current(ctx, f.UID)
	if err != nil {
		t.Fatal(err)
	}
	w.factory, w.webhook = f.UID, state.WebhookUID(cur.Key, "hook", 0)
	w.serveOn(port)
	automation := func(filter string) string {
		return "---\ntriggers:\n  - provider: webhook\n    event: received\n    filter:\n      webhook_ids: [" + w.webhook + "]\n" + filter + "---\nGo.\n"
	}
	for name, content := range map[string]string{
		"factory/webhooks/hook.yaml":             "secretName: T\n",
		"factory/automations/all/automation.md":  automation(""),
		"factory/automations/even/automation.md": automation("      payload: {parity: [even]}\n"),
		"millwright.yaml": "listen: 127.0.0.1:" + port + "\nworkers: 8\nlimits: {deliveriesPerMinute: -1}\n" +
			"factories:\n  - name: crash\n    source: {dir: factory}\n",
	} {
		if err := cli.WriteNew(filepath.Join(w.dir, name), []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// serveOn adds a server to those that events are sent to.
func (w *crashWorld) serveOn(port string) {
	w.urls = append(w.urls, "http://127.0.0.1:"+port+"/webhooks/w/"+w.webhook)
}

const crashKey = "mw_crash-test-key-of-thirty-two-characters"

// start starts the server, with more flags if they are given, and returns at once.
func (w *crashWorld) start(t *testing.T, flags ...string) *process {
	t.Helper()
	p := &process{ended: make(chan struct{})}
	p.Cmd = exec.Command(os.Args[0], append([]string{"serve", "--config", filepath.Join(w.dir, "millwright.yaml"), "--state", w.dsn, "--log-level", "warn"}, flags...)...)
	p.Env = append(os.Environ(), runMain+"=1", "MILLWRIGHT_MASTER_KEY="+base64.StdEncoding.EncodeToString(statetest.MasterKey()), "TMPDIR="+w.dir)
	p.Stdout, p.Stderr = io.Discard, &p.log
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.err = p.Cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.Process.Kill()
		p.Wait() // what it said is complete then
		if t.Failed() {
			t.Logf("the server said:\n%s", p.log.String())
		}
	})
	return p
}

// process is one of the program.
type process struct {
	*exec.Cmd
	log   bytes.Buffer // complete once the process has ended
	ended chan struct{}
	err   error // of its end
}

// Wait returns once the process has ended.
func (p *process) Wait() error {
	<-p.ended
	return p.err
}

// alive fails the test when the process has ended.
func (p *process) alive(t *testing.T) {
	t.Helper()
	select {
	case <-p.ended:
		t.Fatalf("the server ended by itself: %v", p.err)
	default:
	}
}

// waitFor waits until done, for as long as the server lives.
func (w *crashWorld) waitFor(t *testing.T, p *process, what string, done func() bool) {
	t.Helper()
	statetest.Until(t, what, func() bool {
		p.alive(t)
		return done()
	})
}

// waitForMore waits until n more deliveries are acknowledged.
func (w *crashWorld) waitForMore(t *testing.T, p *process, n int) {
	t.Helper()
	enough := w.acknowledged() + n
	statetest.Drain(t, fmt.Sprintf("%d more deliveries are acknowledged", n), func() int {
		p.alive(t)
		return enough - w.acknowledged()
	})
}

func (w *crashWorld) acknowledged() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.acked)
}

// send starts senders that post events with IDs of their own. An event whose answer was lost is sent
// again half of the time, as a provider would.
func (w *crashWorld) send(n int) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var senders sync.WaitGroup
	for s := range n {
		senders.Go(func() {
			client := &http.Client{Timeout: statetest.Patience, Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			for i := 0; ctx.Err() == nil; i++ {
				id := fmt.Sprintf("event-%d-%d", s, i)
				for ctx.Err() == nil && !w.post(ctx, client, id, i) && rand.IntN(2) == 0 {
					time.Sleep(2 * time.Millisecond)
				}
				if i%8 == 0 {
					w.post(ctx, client, id, i) // a duplicate
				}
			}
		})
	}
	return func() {
		cancel()
		senders.Wait()
	}
}

func parity(i int) string { return []string{"even", "odd"}[i%2] }

// post sends one event to one of the servers and reports whether it was acknowledged.
func (w *crashWorld) post(ctx context.Context, client *http.Client, id string, i int) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.urls[rand.IntN(len(w.urls))], strings.NewReader(fmt.Sprintf(`{"id": %q, "parity": %q}`, id, parity(i))))
	if err != nil {
		return false
	}
	req.Header.Set("Authorization", "Bearer "+crashToken)
	req.Header.Set("X-Service-Delivery-Id", id)
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	var answer struct {
		DeliveryID string `json:"delivery_id"`
	}
	if resp.StatusCode != http.StatusAccepted || json.NewDecoder(resp.Body).Decode(&answer) != nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if first, ok := w.acked[id]; ok && first != answer.DeliveryID {
		w.torn = append(w.torn, id)
	}
	w.acked[id] = answer.DeliveryID
	return true
}

// drain waits until no run is queued or at work.
func (w *crashWorld) drain(t *testing.T, p *process) {
	t.Helper()
	statetest.Drain(t, "all runs have ended", func() int {
		p.alive(t)
		return w.left(t)
	})
}

// left returns how many runs wait or are executed, by the metrics; a large number without an answer.
func (w *crashWorld) left(t *testing.T) int {
	t.Helper()
	resp, err := http.DefaultClient.Do(authorised(t, http.MethodGet, "http://127.0.0.1:"+w.port+"/metrics", crashKey, ""))
	if err != nil {
		return math.MaxInt
	}
	defer resp.Body.Close()

	figures := map[string]int{}
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		if name != "millwright_runs_queued" && name != "millwright_runs_held" {
			continue
		}
		if figures[name], err = strconv.Atoi(value); err != nil {
			t.Fatalf("metrics: %s", lines.Text())
		}
	}
	if len(figures) != 2 {
		return math.MaxInt
	}
	return figures["millwright_runs_queued"] + figures["millwright_runs_held"]
}

// check compares the state with what was acknowledged.
func (w *crashWorld) check(t *testing.T) {
	t.Helper()
	if len(w.torn) > 0 {
		t.Errorf("events that were acknowledged as two deliveries: %v", w.torn)
	}
	store := statetest.Open(t, w.dsn)
	ctx := t.Context()
	accepted := map[string]string{} // event ID: delivery ID
	cursor, rows := "", 0
	for {
		page, err := store.Deliveries(ctx, w.factory, w.webhook, state.DeliveryFilter{Outcome: state.DeliveryAccepted}, cursor, 500)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range page {
			rows++
			if first, twice := accepted[d.Identity]; twice {
				t.Errorf("event %s was accepted twice: %s and %s", d.Identity, first, d.UID)
			}
			accepted[d.Identity] = d.UID
			cursor = d.UID
		}
		if len(page) < 500 {
			break
		}
	}
	for id, delivery := range w.acked {
		if accepted[id] != delivery {
			t.Errorf("event %s was acknowledged as %s, and the log has %q", id, delivery, accepted[id])
		}
	}
	ran := w.runs(t, store)
	for id, delivery := range accepted {
		var s, i int
		if _, err := fmt.Sscanf(id, "event-%d-%d", &s, &i); err != nil {
			t.Fatal(err)
		}
		want := map[string]int{"all": 1}
		if parity(i) == "even" {
			want["even"] = 1
		}
		if got := ran[delivery]; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("event %s (%s): runs %v, want %v", id, delivery, got, want)
		}
		delete(ran, delivery)
	}
	for delivery := range ran {
		t.Errorf("runs of delivery %s, which is not in the log", delivery)
	}
	t.Logf("%d acknowledged, %d in the log", len(w.acked), rows)
}

// runs returns, for each delivery, how many runs each automation has. All of them succeeded, but for those
// whose every attempt was killed.
func (w *crashWorld) runs(t *testing.T, store *state.Store) map[string]map[string]int {
	t.Helper()
	ran := map[string]map[string]int{}
	var after *state.RunPosition
	order := state.RunOrder{By: state.SortCreated}
	for {
		page, next, err := store.Runs(t.Context(), state.RunFilter{}, order, after, 500)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page {
			if ran[r.DeliveryUID] == nil {
				ran[r.DeliveryUID] = map[string]int{}
			}
			var config agentconfig.AmbientAgentConfig
			if err := json.Unmarshal(r.Config, &config); err != nil {
				t.Fatal(err)
			}
			ran[r.DeliveryUID][config.Name]++
			if killed := r.State == state.RunError && r.Attempt == state.MaxAttempts; r.State != state.RunSucceeded && !killed {
				t.Errorf("run %s is %s: %s", r.ID, r.State, r.StatusMessage)
			}
		}
		if after = next; after == nil {
			return ran
		}
	}
}

// TestCrashWorldIsValid keeps the crash test honest: its definition is one that applies.
func TestCrashWorldIsValid(t *testing.T) {
	w := newCrashWorld(t, statetest.SQLite(t))
	if r := schema.Load(os.DirFS(filepath.Join(w.dir, "factory")), nil); !r.Valid() {
		t.Errorf("problems: %v", r.Problems)
	}
	if _, err := settings.Read(filepath.Join(w.dir, "millwright.yaml")); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
