package dispatch_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"millwright/runs/dispatch"
	"millwright/runs/wire"
	"millwright/state"
	"millwright/state/statetest"
)

// lease leaves a worker five seconds to begin, and more on a busy machine.
const lease = 30 * time.Second

// floor has workers execute runs, and sees that each of them ends once.
type floor struct {
	t     *testing.T
	store *state.Store
	stop  chan struct{}
	busy  sync.WaitGroup

	mu    sync.Mutex
	left  map[string]bool
	ended map[string]bool
}

func newFloor(t *testing.T, s *state.Store) *floor {
	f := &floor{t: t, store: s, stop: make(chan struct{}), left: map[string]bool{}, ended: map[string]bool{}}
	t.Cleanup(func() {
		close(f.stop)
		f.busy.Wait()
	})
	return f
}

// queue makes a run in one of the servers.
func (f *floor) queue(s *state.Store) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	id := create(f.t, s, func(n *state.NewRun) { n.FactoryUID = fmt.Sprint("fac_", len(f.left)%3) }).ID
	f.left[id] = true
	return id
}

// work has a worker execute one run after the other. A server may be away.
func (f *floor) work(c *wire.Client) {
	f.busy.Go(func() {
		for {
			select {
			case <-f.stop:
				return
			default:
			}
			o, err := c.Claim(f.t.Context(), "", 200*time.Millisecond)
			if err != nil || o == nil {
				continue
			}
			if _, err := c.Start(f.t.Context(), o); err != nil {
				continue
			}
			if _, err := c.Finish(f.t.Context(), o, wire.Result{State: wire.Succeeded}); err != nil {
				continue
			}
			f.end(o.RunID)
		}
	})
}

func (f *floor) end(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended[id] {
		f.t.Errorf("run %s ended twice", id)
	}
	f.ended[id] = true
	delete(f.left, id)
}

// wait waits until every run has ended. A run may have ended although its worker did not hear of it.
func (f *floor) wait() {
	f.t.Helper()
	statetest.Drain(f.t, "every run has ended", func() int {
		f.mu.Lock()
		defer f.mu.Unlock()
		for id := range f.left {
			if r := run(f.t, f.store, id); r.State == state.RunSucceeded {
				delete(f.left, id)
			} else if r.State.Ended() {
				f.t.Fatalf("run %s is %s: %s", id, r.State, r.StatusMessage)
			}
			break
		}
		return len(f.left)
	})
}

// externalNATS starts a NATS server without JetStream.
func externalNATS(t *testing.T) *server.Server {
	t.Helper()
	external, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true, PingInterval: 2 * time.Second, MaxPingsOut: 2})
	if err != nil {
		t.Fatal(err)
	}
	external.Start()
	t.Cleanup(external.Shutdown)
	if !external.ReadyForConnections(10 * time.Second) {
		t.Fatal("the external NATS does not come up")
	}
	return external
}

// TestEachRunEndsOnce has the workers of three servers, of one on SQLite, work off a backlog while servers
// end and come back, and workers vanish with what they asked for.
func TestEachRunEndsOnce(t *testing.T) {
	statetest.EachDSN(t, func(t *testing.T, dsn string) {
		stores := []*state.Store{statetest.Open(t, dsn)}
		for len(stores) < 3 && stores[0].Shared() {
			stores = append(stores, statetest.Open(t, dsn))
		}
		external := externalNATS(t)
		_, _, file := workerKey(t, stores[0], state.RoleWorker)
		connect := func() *wire.Client {
			c, err := wire.Connect(t.Context(), external.ClientURL(), file, "", nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(c.Close)
			return c
		}
		servers := make([]*dispatch.Dispatcher, len(stores))
		start := func(i int) {
			servers[i] = startDispatch(t, dispatch.Config{Store: stores[i], URL: external.ClientURL(), Lease: 6 * time.Second})
		}

		f := newFloor(t, stores[0])
		for i := range 100 {
			f.queue(stores[i%len(stores)]) // before any server ran
		}
		for i := range servers {
			start(i)
		}
		for range 6 {
			f.work(connect())
		}
		for round := range 6 {
			for i := range 30 {
				f.queue(stores[i%len(stores)])
			}
			gone := connect()
			f.busy.Go(func() { _, _ = gone.Claim(t.Context(), "", time.Minute) })
			i := round % len(servers)
			servers[i].Close(context.Background())
			gone.Close()
			start(i)
		}
		f.wait()
	})
}

// TestWorkerIsGone has workers vanish while their asks wait. What they are given is given back at once, and
// is not counted as an attempt.
func TestWorkerIsGone(t *testing.T) {
	s := statetest.Open(t, statetest.SQLite(t))
	log := make(lines, 1000)
	d := startDispatch(t, dispatch.Config{Store: s, Listen: "127.0.0.1:0", Lease: time.Hour, Log: slog.New(slog.NewTextHandler(log, nil))})
	_, _, file := workerKey(t, s, state.RoleWorker)
	c := localClient(t, d)
	for range 50 {
		gone, err := wire.Connect(t.Context(), "nats://"+d.Addr(), file, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		asked := make(chan struct{})
		go func() {
			defer close(asked)
			_, _ = gone.Claim(t.Context(), "", time.Minute)
		}()
		if o, err := c.Claim(t.Context(), "", 50*time.Millisecond); err != nil || o != nil {
			t.Fatal(o, err) // and the other ask waits, by now or soon
		}
		gone.Close()
		<-asked

		r := create(t, s, nil)
		o := order(t, c)
		if o.RunID != r.ID || o.Attempt != 1 {
			t.Fatalf("attempt %d of %s, want the first of %s", o.Attempt, o.RunID, r.ID)
		}
		if _, err := c.Start(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Finish(t.Context(), o, wire.Result{State: wire.Succeeded}); err != nil {
			t.Fatal(err)
		}
		for len(log) > 0 {
			if strings.Contains(<-log, "a worker was gone") {
				return
			}
		}
	}
	t.Error("no run was given to a worker that was gone")
}

// lines receives what is logged, line by line, as far as there is room.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	select {
	case l <- string(p):
	default:
	}
	return len(p), nil
}

// TestServerEndsWithAsks closes the server at which an ask waits: the worker hears of it, and the other
// server has its next one.
func TestServerEndsWithAsks(t *testing.T) {
	dsn := statetest.Postgres(t)
	external := externalNATS(t)
	s := statetest.Open(t, dsn)
	_, _, file := workerKey(t, s, state.RoleWorker)
	c, err := wire.Connect(t.Context(), external.ClientURL(), file, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	first := startDispatch(t, dispatch.Config{Store: statetest.Open(t, dsn), URL: external.ClientURL()})
	if o, err := c.Claim(t.Context(), "", time.Millisecond); err != nil || o != nil {
		t.Fatal(o, err)
	}

	answered := make(chan error, 1)
	go func() {
		o, err := c.Claim(t.Context(), "", 2*statetest.Patience)
		if o != nil {
			err = fmt.Errorf("an order for %s", o.RunID)
		}
		answered <- err
	}()
	startDispatch(t, dispatch.Config{Store: s, URL: external.ClientURL()})
	first.Close(context.Background())
	r := create(t, s, nil) // if the ask came to the second server, it gets this one
	err, _ = statetest.Receive(t, "the answer to the ask", answered)
	if err != nil && !strings.Contains(err.Error(), r.ID) {
		t.Error(err)
	}
	if err == nil && order(t, c).RunID != r.ID {
		t.Error("another run came")
	}
}

// TestPartition cuts one of two servers off from NATS, without its connections ending, and joins it again:
// runs that it claimed meanwhile, and those that it was told of, end once all the same.
func TestPartition(t *testing.T) {
	dsn := statetest.Postgres(t)
	external := externalNATS(t)
	wall := newWall(t, external.Addr().String())
	near, far := statetest.Open(t, dsn), statetest.Open(t, dsn)
	startDispatch(t, dispatch.Config{Store: near, URL: external.ClientURL(), Lease: 6 * time.Second})
	startDispatch(t, dispatch.Config{Store: far, URL: "nats://" + wall.addr, Lease: 6 * time.Second})
	_, _, file := workerKey(t, near, state.RoleWorker)
	f := newFloor(t, near)
	for range 4 {
		c, err := wire.Connect(t.Context(), external.ClientURL(), file, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		f.work(c)
	}
	executed := func() {
		for i := range 12 {
			f.queue([]*state.Store{near, far}[i%2])
		}
		f.wait()
	}

	executed()
	wall.cut.Store(true)
	executed()
	wall.cut.Store(false)
	executed()
}

// wall is a proxy that can hold back what passes it.
type wall struct {
	addr string
	cut  atomic.Bool
}

func newWall(t *testing.T, to string) *wall {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wall{addr: l.Addr().String()}
	var passing sync.WaitGroup
	ended := make(chan struct{})
	passing.Go(func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			there, err := net.Dial("tcp", to)
			if err != nil {
				from.Close()
				continue
			}
			for _, pair := range [][2]net.Conn{{from, there}, {there, from}} {
				passing.Go(func() { w.pass(pair[0], pair[1], ended) })
			}
			passing.Go(func() { <-ended; from.Close(); there.Close() })
		}
	})
	t.Cleanup(func() { close(ended); l.Close(); passing.Wait() })
	return w
}

// pass copies what arrives, and holds it back while the wall is there.
func (w *wall) pass(from, to net.Conn, ended <-chan struct{}) {
	defer to.Close()
	buffer := make([]byte, 4096)
	for {
		n, err := from.Read(buffer)
		for w.cut.Load() {
			select {
			case <-ended:
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
		if err != nil {
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil && err != io.EOF {
			return
		}
	}
}
