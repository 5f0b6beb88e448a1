package dispatch_test

import (
	"context"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"millwright/runs/dispatch"
	"millwright/state"
	"millwright/state/statetest"
)

// freeAddresses returns addresses on which nobody listens.
func freeAddresses(t *testing.T, n int) []string {
	t.Helper()
	var all []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		all = append(all, l.Addr().String())
	}
	return all
}

// drain executes runs until all are done, and reports those that were executed twice.
func drain(t *testing.T, c *dispatch.Client, left *atomic.Int64, seen *sync.Map) {
	for left.Load() > 0 {
		o, err := c.Claim(t.Context(), "", 500*time.Millisecond)
		if err != nil || o == nil {
			continue // a server is away
		}
		if _, err := c.Start(t.Context(), o); err != nil {
			continue
		}
		if _, err := c.Finish(t.Context(), o, state.Result{State: state.RunSucceeded}); err != nil {
			continue
		}
		if _, twice := seen.LoadOrStore(o.RunID, true); twice {
			t.Errorf("run %s ended twice", o.RunID)
		}
		left.Add(-1)
	}
}

// TestCluster has two of a cluster's three servers come up, then the third, and takes two away again: all
// the time the servers that are there hand out runs.
func TestCluster(t *testing.T) {
	dsn := statetest.Postgres(t)
	peers := freeAddresses(t, 3)
	listen := freeAddresses(t, 3)
	stores := make([]*state.Store, 3)
	servers := make([]*dispatch.Dispatcher, 3)
	shut := func(i int) {
		if servers[i] != nil {
			servers[i].Close(context.Background())
			servers[i] = nil
		}
	}
	t.Cleanup(func() {
		for i := range servers {
			shut(i)
		}
	})
	log := make(lines, 1000)
	start := func(i int) {
		stores[i] = statetest.Open(t, dsn)
		d, err := dispatch.Start(t.Context(), dispatch.Config{
			Store: stores[i], Listen: listen[i], Cluster: append([]string{peers[i]}, slices.Delete(slices.Clone(peers), i, i+1)...),
			StoreDir: t.TempDir(), Sweep: 300 * time.Millisecond, Lease: 3 * time.Second, Log: slog.New(slog.NewTextHandler(log, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		servers[i] = d
	}
	start(0)
	start(1)
	_, _, file := workerKey(t, stores[0], state.RoleWorker)
	const n = 30
	var left atomic.Int64
	left.Store(4 * n)
	var seen sync.Map
	var work sync.WaitGroup
	worker := func(i int) {
		c, err := dispatch.Connect(t.Context(), "nats://"+listen[i], file, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		work.Go(func() { drain(t, c, &left, &seen) })
	}
	tick, patience := time.NewTicker(50*time.Millisecond), time.After(4*time.Minute)
	defer tick.Stop()
	executed := func(creators ...int) {
		t.Helper()
		before := left.Load()
		for i := range n {
			create(t, stores[creators[i%len(creators)]], nil)
		}
		for left.Load() > before-n {
			select {
			case <-tick.C:
			case <-patience:
				t.Fatalf("%d runs are left", left.Load())
			}
		}
	}

	worker(0)
	executed(0, 1) // the third never was there: no place for the third copy of the work queue
	start(2)
	worker(2)
	for stands := false; !stands; {
		select {
		case line := <-log:
			stands = strings.Contains(line, "the work queue stands")
		case <-patience:
			t.Fatal("the work queue is not made")
		}
	}
	executed(0, 1, 2)
	shut(1)
	executed(0, 2)
	shut(2) // one of three is no majority
	executed(0)
	work.Wait()
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

func TestExternalNATS(t *testing.T) {
	external, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	external.Start()
	defer external.Shutdown()
	if !external.ReadyForConnections(10 * time.Second) {
		t.Fatal("the external NATS does not come up")
	}
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		d := startDispatch(t, dispatch.Config{Store: s, URL: external.ClientURL()})
		key, _, file := workerKey(t, s, state.RoleWorker)
		remote, err := dispatch.Connect(t.Context(), external.ClientURL(), file, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer remote.Close()
		r := create(t, s, nil)
		if o := order(t, remote); o.RunID != r.ID || run(t, s, r.ID).Worker != key.UID {
			t.Errorf("order for %s", o.RunID)
		}
		local := localClient(t, d)
		r = create(t, s, nil)
		if o := order(t, local); o.RunID != r.ID {
			t.Errorf("order for %s", o.RunID)
		}
	})
}
