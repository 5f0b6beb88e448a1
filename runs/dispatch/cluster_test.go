package dispatch_test

import (
	"context"
	"net"
	"slices"
	"testing"

	"millwright/runs/dispatch"
	"millwright/runs/wire"
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

// TestCluster has two of a cluster's three servers come up, then the third, and takes two away again: all
// the time the servers that are there hand out runs, those that another server queued too.
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
	start := func(i int) {
		stores[i] = statetest.Open(t, dsn)
		d, err := dispatch.Start(t.Context(), dispatch.Config{
			Store: stores[i], Listen: listen[i], Cluster: append([]string{peers[i]}, slices.Delete(slices.Clone(peers), i, i+1)...), Lease: lease,
		})
		if err != nil {
			t.Fatal(err)
		}
		servers[i] = d
	}
	start(0)
	start(1)
	_, _, file := workerKey(t, stores[0], state.RoleWorker)
	f := newFloor(t, stores[0])
	worker := func(i int) {
		c, err := wire.Connect(t.Context(), "nats://"+listen[i], file, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		f.work(c)
	}
	executed := func(creators ...int) {
		t.Helper()
		for i := range 30 {
			f.queue(stores[creators[i%len(creators)]])
		}
		f.wait()
	}

	worker(0)
	executed(0, 1)
	start(2)
	worker(2)
	executed(0, 1, 2)
	shut(1)
	executed(0, 2)
	shut(2)
	executed(0)
}

func TestExternalNATS(t *testing.T) {
	external := externalNATS(t)
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		d := startDispatch(t, dispatch.Config{Store: s, URL: external.ClientURL()})
		key, _, file := workerKey(t, s, state.RoleWorker)
		remote, err := wire.Connect(t.Context(), external.ClientURL(), file, "", nil)
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
