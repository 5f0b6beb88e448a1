package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"millwright/state"
	"millwright/state/statetest"
)

// TestLinearizable has clients change webhooks of one server and deliver to them at once. The answers are those of
// a server that does one thing after the other.
func TestLinearizable(t *testing.T) {
	w := newHookWorld(t, statetest.SQLite(t), 1)
	w.run(t, 12)
	w.check(t, true)
}

// TestAcceptanceLinearizable does the same on SQLite for longer, and with three servers on one PostgreSQL, of
// which one is stopped for longer than its lease, goes on, and is killed.
func TestAcceptanceLinearizable(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		w := newHookWorld(t, statetest.SQLite(t), 1)
		w.run(t, 60)
		w.check(t, true)
	})
	t.Run("postgres", func(t *testing.T) {
		w := newHookWorld(t, statetest.Postgres(t), 3)
		w.run(t, 60)

		last, all := w.servers[2].Process, w.ports
		if err := last.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		w.ports = all[:2]
		w.run(t, 3) // the changes outlast its lease
		w.ports = all
		if err := last.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		w.run(t, 30)

		if err := last.Kill(); err != nil {
			t.Fatal(err)
		}
		w.run(t, 10)
		w.check(t, false)
	})
}

// hookWorld is a managed factory on one or more servers, and what was asked of them.
type hookWorld struct {
	*crashWorld
	servers []*process
	ports   []string
	start   time.Time
	changes atomic.Int64

	mu      sync.Mutex
	hooks   []knownHook
	history []porcupine.Operation
}

// knownHook is what clients know of a webhook.
type knownHook struct {
	uid    string
	tokens []string
}

func newHookWorld(t *testing.T, dsn string, servers int) *hookWorld {
	t.Helper()
	w := &hookWorld{crashWorld: &crashWorld{dir: t.TempDir(), dsn: dsn}, start: time.Now()}
	w.prepare(t)
	settings := "workers: 0\nlimits: {deliveriesPerMinute: -1, failedAuthPerMinute: -1}\n" +
		"factories:\n  - {name: ops, source: {managed: {}}}\n"
	if err := os.WriteFile(filepath.Join(w.dir, "millwright.yaml"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}

	for range servers {
		port := mustPort(t)
		w.ports = append(w.ports, port)
		w.servers = append(w.servers, w.crashWorld.start(t, "--listen", "127.0.0.1:"+port))
	}
	for i, port := range w.ports {
		w.waitFor(t, w.servers[i], "the server is ready", func() bool {
			return status(t, http.MethodGet, "http://127.0.0.1:"+port+"/readyz") == http.StatusOK
		})
	}
	for range 3 {
		w.create(t, 0)
	}
	return w
}

// prepare stores the factory and the key of the clients.
func (w *hookWorld) prepare(t *testing.T) {
	t.Helper()
	store := statetest.Open(t, w.dsn)
	defer store.Close()
	f, err := store.EnsureFactory(t.Context(), "ops", state.Source{Kind: "managed"}, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Bootstrap(t.Context(), crashKey); err != nil {
		t.Fatal(err)
	}
	w.factory = f.UID
}

// run has two clients make changes, one after the other each, while others deliver.
func (w *hookWorld) run(t *testing.T, changes int) {
	var changing, delivering sync.WaitGroup
	done := make(chan struct{})
	for client := range 2 {
		changing.Go(func() {
			for range changes {
				w.change(t, client)
			}
		})
	}
	for client := range 4 {
		delivering.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					w.deliver(t, 2+client)
				}
			}
		})
	}

	changing.Wait()
	close(done)
	delivering.Wait()
}

// change changes a webhook. In place of one that it deletes, it makes another.
func (w *hookWorld) change(t *testing.T, client int) {
	w.mu.Lock()
	place := rand.IntN(len(w.hooks))
	hook := w.hooks[place]
	w.mu.Unlock()

	kind := []string{"enable", "enable", "enable", "enable", "disable", "rotate", "rotate", "delete"}[rand.IntN(8)]
	c := hookCall{kind: kind, hook: hook.uid}
	path := "/webhooks/" + hook.uid
	switch kind {
	case "enable", "disable":
		w.manage(t, client, c, http.MethodPatch, path, fmt.Sprintf(`{"enabled": %t}`, kind == "enable"))
	case "rotate":
		token := w.manage(t, client, c, http.MethodPost, path+"/rotate", `{}`).Secret
		w.learn(place, hook.uid, token)
	case "delete":
		w.manage(t, client, c, http.MethodDelete, path, "")
		w.replace(t, client, place)
	}
}

// learn adds a token to those of a webhook.
func (w *hookWorld) learn(place int, uid, token string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if token != "" && w.hooks[place].uid == uid {
		w.hooks[place].tokens = append(slices.Clip(w.hooks[place].tokens), token)
	}
}

// managed is what the management API answers.
type managed struct{ UID, Secret string }

// create makes a webhook in a new place.
func (w *hookWorld) create(t *testing.T, client int) {
	w.mu.Lock()
	w.hooks = append(w.hooks, knownHook{})
	place := len(w.hooks) - 1
	w.mu.Unlock()
	w.replace(t, client, place)
}

// replace makes a webhook, which takes the place of another.
func (w *hookWorld) replace(t *testing.T, client, place int) {
	body := fmt.Sprintf(`{"name": "hook-%d"}`, w.changes.Add(1))
	for range 20 {
		made := w.manage(t, client, hookCall{kind: "create"}, http.MethodPost, "/webhooks", body)
		if made.UID == "" {
			continue
		}
		w.mu.Lock()
		w.hooks[place] = knownHook{made.UID, []string{made.Secret}}
		w.mu.Unlock()
		return
	}
	t.Error("no webhook could be made in 20 tries")
}

// manage asks the management API of a server for a change, and records it.
func (w *hookWorld) manage(t *testing.T, client int, c hookCall, method, path, body string) (m managed) {
	c.n = int(w.changes.Add(1))
	r := authorised(t, method, w.anyServer()+"/api/v1/factory/"+w.factory+path, crashKey, body)
	call := time.Since(w.start)
	resp, err := webClient.Do(r)
	ret := time.Since(w.start)
	if notConnected(err) {
		return m
	}

	a := hookAnswer{}
	if err == nil {
		defer resp.Body.Close()
		if resp.StatusCode < 300 && method != http.MethodDelete {
			if err := json.NewDecoder(resp.Body).Decode(&m); err != nil {
				t.Error(err)
			}
		}
		switch {
		case resp.StatusCode < 300 || resp.StatusCode == http.StatusNotFound:
			a.status = resp.StatusCode
		case resp.StatusCode == http.StatusConflict: // another change came first
			return m
		case resp.StatusCode < 500:
			t.Errorf("%s %s: %s", method, path, resp.Status)
		}
	}

	if c.kind == "create" {
		c.hook = m.UID
	}
	if c.kind == "create" || c.kind == "rotate" {
		c.token = m.Secret
	}
	if c.kind == "rotate" && a.status == 0 {
		c.token = fmt.Sprint("unknown ", c.n)
	}
	if c.hook != "" {
		w.record(client, c, call, ret, a)
	}
	return m
}

// deliver posts an event to a webhook of a server, mostly with its last token, and records it.
func (w *hookWorld) deliver(t *testing.T, client int) {
	w.mu.Lock()
	hook := w.hooks[rand.IntN(len(w.hooks))]
	w.mu.Unlock()

	c := hookCall{kind: "deliver", hook: hook.uid, token: hook.tokens[len(hook.tokens)-1]}
	if rand.IntN(3) == 0 {
		c.token = hook.tokens[rand.IntN(len(hook.tokens))]
	}
	event := fmt.Sprint("once-", w.changes.Add(1))
	if rand.IntN(3) == 0 {
		event = fmt.Sprint("often-", rand.IntN(8))
		c.event = event
	}

	r := authorised(t, http.MethodPost, w.anyServer()+"/webhooks/w/"+c.hook, c.token, `{}`)
	r.Header.Set("X-Service-Delivery-Id", event)
	call := time.Since(w.start)
	resp, err := webClient.Do(r)
	ret := time.Since(w.start)
	if notConnected(err) {
		return
	}

	a := hookAnswer{}
	if err == nil {
		defer resp.Body.Close()
		var said struct {
			DeliveryID string `json:"delivery_id"`
			Duplicate  bool   `json:"duplicate"`
		}
		if resp.StatusCode == http.StatusAccepted && json.NewDecoder(resp.Body).Decode(&said) == nil {
			a = hookAnswer{resp.StatusCode, said.DeliveryID, said.Duplicate}
		} else if resp.StatusCode < 500 {
			a.status = resp.StatusCode
		}
	}
	if a.status != 0 || c.event != "" {
		w.record(client, c, call, ret, a)
	}
}

func (w *hookWorld) record(client int, c hookCall, call, ret time.Duration, a hookAnswer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.history = append(w.history, hookOp(client, c, call.Nanoseconds(), ret.Nanoseconds(), a)...)
}

func (w *hookWorld) anyServer() string { return "http://127.0.0.1:" + w.ports[rand.IntN(len(w.ports))] }

// webClient gives up on a server that is stopped.
var webClient = &http.Client{Timeout: 10 * time.Second}

// notConnected reports whether a request reached no server.
func notConnected(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// check holds that the history is linearizable, and otherwise prints that of the webhook that is not.
func (w *hookWorld) check(t *testing.T, strict bool) {
	t.Helper()
	kinds := map[string]int{}
	for _, op := range w.history {
		kinds[fmt.Sprint(op.Input.(hookCall).kind, " ", op.Output.(hookAnswer).status)]++
	}
	t.Logf("%d operations: %v", len(w.history), kinds)

	model := hookModel(strict)
	for _, history := range byHook(w.history) {
		switch porcupine.CheckOperationsTimeout(model, history, statetest.Patience) {
		case porcupine.Ok:
		case porcupine.Unknown:
			t.Errorf("a history of %d operations is not judged within %v", len(history), statetest.Patience)
		default:
			t.Errorf("a history is not linearizable:\n%s", shortest(model, history))
		}
	}
}

// shortest describes the part of a history up to the first answer that no order explains.
func shortest(model porcupine.Model, history []porcupine.Operation) string {
	slices.SortFunc(history, func(a, b porcupine.Operation) int { return cmp.Compare(a.Return, b.Return) })
	from, to := 0, len(history)-1
	for from < to {
		mid := (from + to) / 2
		part := until(history, history[mid].Return)
		if porcupine.CheckOperationsTimeout(model, part, 5*time.Second) == porcupine.Ok {
			from = mid + 1
		} else {
			to = mid
		}
	}

	var b strings.Builder
	part := until(history, history[to].Return)
	for _, op := range part[max(0, len(part)-40):] {
		fmt.Fprintf(&b, "%d..%d client %d %+v: %+v\n", op.Call/4, op.Return/4, op.ClientId, op.Input, op.Output)
	}
	return b.String()
}

// until returns a history as it was at a time, when some calls had no answer yet.
func until(history []porcupine.Operation, at int64) (part []porcupine.Operation) {
	for _, op := range history {
		if op.Call > at || op.Return > at && op.Input.(hookCall).kind == "served" {
			continue
		}
		if op.Return > at {
			op.Output, op.Return = hookAnswer{}, math.MaxInt64
		}
		part = append(part, op)
	}
	return part
}
