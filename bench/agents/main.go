// Command agents measures what millwright adds to coding agents: how much later the model gets the first
// request of an agent than from the same program started by hand, how much longer a follow-up on another
// worker takes with a large snapshot, and how a state grows with the snapshots of many runs. bench/README.md
// has the figures.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"millwright/runs/worker"
	"millwright/state"
)

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
