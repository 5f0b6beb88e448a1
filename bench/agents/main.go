// Command agents measures what millwright adds to coding agents: how much later the model gets the first
// request of an agent than from the same program started by hand, how much longer a follow-up on another
// worker takes with a large snapshot, and how a state grows with the snapshots of many runs. bench/README.md
// has the figures.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
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

func main() {
	o := options{}
	flag.StringVar(&o.program, "program", "", "the program of Claude Code, for start")
	flag.IntVar(&o.rounds, "rounds", 7, "rounds, of which the medians are printed")
	flag.IntVar(&o.size, "size", 10_000_000, "bytes of a snapshot, for followup")
	flag.IntVar(&o.runs, "runs", 1000, "runs with snapshots, for growth")
	flag.Parse()

	measures := map[string]func(context.Context, options) error{
		"start":    start,
		"followup": followup,
		"growth":   growth,
	}
	measure := measures[flag.Arg(0)]
	if measure == nil {
		fmt.Fprintln(os.Stderr, "agents: want start, followup or growth")
		os.Exit(2)
	}

	var err error
	if o.dir, err = os.MkdirTemp("/var/tmp", "agents-"); err == nil {
		defer os.RemoveAll(o.dir)
		err = measure(context.Background(), o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "agents:", err)
		os.RemoveAll(o.dir)
		os.Exit(1)
	}
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

// followup measures the time from a message until the harness of another worker runs, with and without a
// large file in the snapshot.
func followup(ctx context.Context, o options) error {
	s, err := o.serve(ctx)
	if err != nil {
		return err
	}
	defer s.close(ctx)

	var large, small []time.Duration
	for range o.rounds {
		for _, size := range []int{o.size, 0} {
			taken, err := s.followed(ctx, o, size)
			if err != nil {
				return err
			}
			if size > 0 {
				large = append(large, taken)
			} else {
				small = append(small, taken)
			}
		}
	}

	pairs(fmt.Sprintf("follow-up with a snapshot of %d bytes:", o.size), "without:", large, small)
	return nil
}

// followed returns how long a follow-up on another worker takes to begin after an execution that left a file.
func (s *server) followed(ctx context.Context, o options, size int) (time.Duration, error) {
	h := worker.Harness{SameUser: true, Command: []string{
		"sh", "-c", fmt.Sprintf("date +%%s%%N; [ -e f ] || head -c %d /dev/urandom >f", size),
	}}
	stop, err := s.work(ctx, o, h)
	if err != nil {
		return 0, err
	}
	run, err := s.create(ctx)
	if err == nil {
		_, err = s.end(ctx, run.ID, 1)
	}
	stop()
	if err != nil {
		return 0, err
	}

	if stop, err = s.work(ctx, o, h); err != nil {
		return 0, err
	}
	defer stop()

	other, err := s.create(ctx) // its end shows that the worker takes runs
	if err == nil {
		_, err = s.end(ctx, other.ID, 1)
	}
	if err != nil {
		return 0, err
	}

	asked := time.Now()
	if _, _, err := s.store.Followup(ctx, run.ID, "go on", state.Idempotency{}); err != nil {
		return 0, err
	}
	r, err := s.end(ctx, run.ID, 2)
	if err != nil {
		return 0, err
	}

	steps, err := s.store.Steps(ctx, r, 0)
	if err != nil {
		return 0, err
	}
	messages := steps[1].Messages
	text := messages[len(messages)-1].Content[0].Text
	at, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	return time.Unix(0, at).Sub(asked), err
}
