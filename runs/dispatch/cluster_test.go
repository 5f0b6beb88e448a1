package dispatch_test

import (
	"context"
	"net"
	"slices"
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

func TestCluster(t *testing.T) {
	dsn := statetest.Postgres(t)
	peers := freeAddresses(t, 3)
	listen := freeAddresses(t, 3)
	var stores []*state.Store
	var servers []*dispatch.Dispatcher
	for i := range 3 {
		s := statetest.Open(t, dsn)
		cluster := append([]string{peers[i]}, slices.Delete(slices.Clone(peers), i, i+1)...)
		d, err := dispatch.Start(t.Context(), dispatch.Config{
			Store: s, Listen: listen[i], Cluster: cluster, StoreDir: t.TempDir(), Sweep: 300 * time.Millisecond, Lease: 3 * time.Second,
		})
		if err != nil {
			t.Fatal(err)
		}
		stores, servers = append(stores, s), append(servers, d)
	}
	closed := make([]bool, 3)
	shut := func(i int) {
		if !closed[i] {
			closed[i] = true
			servers[i].Close(context.Background())
		}
	}
	t.Cleanup(func() {
		for i := range servers {
			shut(i)
		}
	})

	_, _, file := workerKey(t, stores[0], state.RoleWorker)
	const n = 120
	var left atomic.Int64
	left.Store(n)
	var seen sync.Map
	var work sync.WaitGroup
	for _, address := range []string{listen[0], listen[2]} {
		c, err := dispatch.Connect(t.Context(), "nats://"+address, file, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		work.Go(func() { drain(t, c, &left, &seen) })
	}
	tick, patience := time.NewTicker(50*time.Millisecond), time.After(4*time.Minute)
	defer tick.Stop()
	for i := range n / 2 {
		create(t, stores[i%3], nil)
	}
	await := func(most int64) {
		for left.Load() > most {
			select {
			case <-tick.C:
			case <-patience:
				t.Fatalf("%d runs are left", left.Load())
			}
		}
	}
	await(n - 1) // the cluster stands
	shut(1)      // the others go on
	for i := range n / 2 {
		create(t, stores[i%3], nil)
	}
	await(0)
	work.Wait()
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
