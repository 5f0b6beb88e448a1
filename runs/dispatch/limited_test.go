package dispatch_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"millwright/runs/dispatch"
	"millwright/runs/wire"
	"millwright/state"
	"millwright/state/statetest"
)

// limited connects a worker whose key is limited to some factories; without any, to none.
func limited(t *testing.T, s *state.Store, d *dispatch.Dispatcher, factories ...string) *wire.Client {
	t.Helper()
	key, secret, err := s.CreateLimitedKey(t.Context(), "limited", state.RoleWorker, nil, append([]string{}, factories...))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "worker.key")
	if err := os.WriteFile(file, []byte(key.UID+" "+secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	c, err := wire.Connect(t.Context(), "nats://"+d.Addr(), file, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// TestLimitedWorkers has workers with limited keys wait before all others. They get the runs of their factories, and
// keep no run of another factory from a worker that may have it.
func TestLimitedWorkers(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		d := startDispatch(t, dispatch.Config{Store: s, Listen: "127.0.0.1:0", Poll: time.Hour})
		var uids []string
		for _, name := range []string{"mine", "theirs"} {
			f, err := s.EnsureFactory(t.Context(), name, state.Source{Kind: "managed"}, false)
			if err != nil {
				t.Fatal(err)
			}
			uids = append(uids, f.UID)
		}
		runOf := func(uid string) string {
			return create(t, s, func(n *state.NewRun) { n.FactoryUID = uid }).ID
		}

		ctx, end := context.WithCancel(t.Context())
		defer end()
		orders := make(chan *wire.Order, 10)
		for _, c := range []*wire.Client{limited(t, s, d), limited(t, s, d, uids[0]), limited(t, s, d, uids[0])} {
			go func() {
				if o, err := c.Claim(ctx, "", time.Minute); err == nil && o != nil {
					orders <- o
				}
			}()
		}
		var theirs []string
		for range 3 {
			theirs = append(theirs, runOf(uids[1]), runOf(""))
		}
		everything := localClient(t, d)
		for range theirs {
			if o := order(t, everything); o.RunID == "" {
				t.Error("an order without a run")
			}
		}
		mine := []string{runOf(uids[0]), runOf(uids[0])}
		for range mine {
			o, _ := statetest.Receive(t, "a run of the factory of the key", orders)
			if o == nil || o.RunID != mine[0] && o.RunID != mine[1] {
				t.Errorf("the order %+v, want one of %q", o, mine)
			}
		}

		// What waits before a limited worker asks is found.
		last := runOf(uids[0])
		if o := order(t, limited(t, s, d, uids[0], uids[1])); o.RunID != last {
			t.Errorf("run %s, want %s", o.RunID, last)
		}
		if len(orders) > 0 {
			t.Error("the worker for no factory has an order")
		}
	})
}
