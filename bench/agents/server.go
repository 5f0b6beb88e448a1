package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"millwright/runs/dispatch"
	"millwright/runs/worker"
	"millwright/state"
	"millwright/state/notice"
)

// options are what the measurements share.
type options struct {
	dir     string
	program string
	rounds  int
	size    int
	runs    int
}

// server is a state with dispatch, in this process.
type server struct {
	store *state.Store
	d     *dispatch.Dispatcher
}

func (o options) serve(ctx context.Context) (*server, error) {
	s := &server{}
	var err error
	file := filepath.Join(o.dir, fmt.Sprintf("%d.db", time.Now().UnixNano()))
	if s.store, err = state.Open(ctx, state.Config{DSN: file, MasterKey: make([]byte, 32)}); err != nil {
		return nil, err
	}

	s.d, err = dispatch.Start(ctx, dispatch.Config{Store: s.store})
	return s, err
}

func (s *server) close(ctx context.Context) {
	s.d.Close(ctx)
	s.store.Close()
}

// work runs a worker with directories of its own until stop is called.
func (s *server) work(ctx context.Context, o options, h worker.Harness) (stop func(), err error) {
	client, err := s.d.Client()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(o.dir, "worker-")
	if err != nil {
		return nil, err
	}

	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		done <- worker.Run(ctx, worker.Config{
			Client: client, Default: "bench", Dir: dir, Grace: time.Second,
			Harnesses: map[string]worker.Harness{"bench": h},
		})
	}()

	return func() {
		cancel()
		if err := <-done; err != nil {
			fmt.Fprintln(os.Stderr, "worker:", err)
		}
		client.Close()
	}, nil
}

func (s *server) create(ctx context.Context) (state.Run, error) {
	return s.store.CreateRun(ctx, state.NewRun{
		Title: "bench", Prompt: "Say that the work is done.", Source: "API",
		Creator: state.Creator{Type: "service_account", UID: "key_1", DisplayName: "bench"},
	}, nil, state.Idempotency{})
}

// end waits until an execution of a run has succeeded.
func (s *server) end(ctx context.Context, id string, execution int) (r state.Run, err error) {
	notices, stop := s.store.Subscribe(64, notice.Run)
	defer stop()

	for {
		r, err = s.store.Run(ctx, id)
		switch {
		case err != nil:
			return r, err
		case r.Execution == execution && r.State == state.RunSucceeded:
			return r, nil
		case r.Execution == execution && r.Ended():
			return r, fmt.Errorf("the run is %s: %s", r.State, r.StatusMessage)
		}

		select {
		case <-notices:
		case <-time.After(time.Second):
		}
	}
}

// claimed returns when an execution of a run was claimed.
func (s *server) claimed(ctx context.Context, r state.Run) (time.Time, error) {
	changes, err := s.store.Changes(ctx, r.ID, 100)
	for _, e := range slices.Backward(changes) {
		if e.Change.State == state.RunClaimed {
			return e.At, nil
		}
	}
	return time.Time{}, cmp.Or(err, fmt.Errorf("run %s was not claimed", r.ID))
}

// median returns the middle of durations.
func median(all []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}

// pairs prints the medians of two series, and of their differences.
func pairs(what, beside string, a, b []time.Duration) {
	var more []time.Duration
	for i := range a {
		more = append(more, a[i]-b[i])
	}
	fmt.Printf(
		"%s %v, %s %v; %v more (median of the rounds' differences)\n",
		what,
		median(a).Round(time.Millisecond),
		beside,
		median(b).Round(time.Millisecond),
		median(more).Round(time.Millisecond),
	)
}
