package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// queue measures how soon queued runs begin, as a user's servers do it: with programs of this tree and,
// where -before names one, of another. They take turns, so that other work on the machine hits both alike.
func queue(ctx context.Context, o options) error {
	after := filepath.Join(o.dir, "millwright")
	build := exec.CommandContext(ctx, "go", "build", "-o", after, "./cmd/millwright")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the program: %w\n%s", err, out)
	}

	programs := []string{mustAbs(after)}
	if o.before != "" {
		programs = append(programs, mustAbs(o.before))
	}

	scenarios := []struct {
		name    string
		servers int // on PostgreSQL; 0: one on SQLite
		measure func(context.Context, *fleet, options) error
	}{
		{"one server on SQLite", 0, paced},
		{"one server", 1, paced},
		{"three servers", 3, paced},
		{"backlog on SQLite", 0, backlog},
		{"backlog", 1, backlog},
		{"one of three killed", 3, killed},
		{"database restarted", 3, restarted},
	}

	for _, s := range scenarios {
		if o.postgres == "" && s.servers > 0 || o.restart == "" && s.name == "database restarted" ||
			!strings.Contains(s.name, o.only) {
			continue
		}

		found := make([][]figures, len(programs))
		for round := range o.pairs {
			for i := range programs {
				i = (i + round) % len(programs)
				f, err := o.inFleet(ctx, programs[i], s.servers, s.measure)
				if err != nil {
					return fmt.Errorf("%s: %s: %w", s.name, programs[i], err)
				}

				found[i] = append(found[i], f)
			}
		}

		report(s.name, found)
	}

	return nil
}

// report prints the median of each figure, and its ratio to that of the other program.
func report(name string, found [][]figures) {
	fmt.Println(name)
	for _, figure := range sortedKeys(found[0][0]) {
		line := fmt.Sprintf("  %-40s", figure)
		var medians []float64
		for _, rounds := range found {
			var all []float64
			for _, f := range rounds {
				all = append(all, f[figure])
			}

			slices.Sort(all)
			medians = append(medians, all[len(all)/2])
			line += fmt.Sprintf(" %10.1f (%.1f to %.1f)", all[len(all)/2], all[0], all[len(all)-1])
		}

		if len(medians) == 2 && medians[1] != 0 {
			line += fmt.Sprintf("  ratio %.2f", medians[0]/medians[1])
		}

		fmt.Println(line)
	}
}

func sortedKeys(f figures) []string {
	var keys []string
	for k := range f {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// paced measures the pickup of runs at the given rate.
func paced(ctx context.Context, f *fleet, o options) error {
	if err := f.startAll(ctx, o.workers/len(f.ports)+1); err != nil {
		return err
	}

	all := func() []string { return f.ports }
	f.send(ctx, o.rate/2, o.rate, all, nil) // warm
	if _, err := f.drained(ctx, 0); err != nil {
		return err
	}

	began := time.Now().UnixMicro()
	accepted := f.send(ctx, int(o.duration.Seconds()*float64(o.rate)), o.rate, all, nil)
	runs, err := f.drained(ctx, accepted)
	f.pickups("pickup", slices.DeleteFunc(runs, func(r ran) bool { return r.queued < began }))
	return err
}

// backlog measures how fast 16 slots work off what waits.
func backlog(ctx context.Context, f *fleet, o options) error {
	if err := f.startAll(ctx, 0); err != nil {
		return err
	}

	accepted := f.send(ctx, o.queued, 0, func() []string { return f.ports }, nil)
	f.stop()
	if err := f.startAll(ctx, 16); err != nil {
		return err
	}

	runs, err := f.drained(ctx, accepted)
	if err != nil || len(runs) == 0 {
		return fmt.Errorf("%d runs: %w", len(runs), err)
	}

	first := slices.MinFunc(runs, func(a, b ran) int { return cmp.Compare(a.started, b.started) }).started
	last := slices.MaxFunc(runs, func(a, b ran) int { return cmp.Compare(a.finished, b.finished) }).finished
	f.found["drained, s"] = float64(last-first) / 1e6
	return nil
}

// killed measures what becomes of runs when one of the servers is killed with its worker, under load.
func killed(ctx context.Context, f *fleet, o options) error {
	if err := f.startAll(ctx, o.workers/len(f.ports)+1); err != nil {
		return err
	}

	var dead atomic.Int64
	ports := func() []string {
		if dead.Load() > 0 {
			return f.ports[:2]
		}
		return f.ports
	}

	accepted := f.send(ctx, int(2*o.duration.Seconds()*float64(o.rate)), o.rate, ports, func() {
		dead.Store(time.Now().UnixMicro())
		_ = f.servers[2].Process.Kill()
	})
	runs, err := f.drained(ctx, accepted)
	f.pickups(
		"pickup after the kill",
		slices.DeleteFunc(slices.Clone(runs), func(r ran) bool { return r.queued < dead.Load() || r.attempt > 1 }),
	)
	again := 0.0
	for _, r := range runs {
		if r.attempt > 1 {
			again = max(again, float64(r.started-dead.Load())/1e6)
		}
	}

	f.found["held by the killed until begun again, s"] = again
	return err
}

// restarted measures what becomes of runs when the database is started again under load.
func restarted(ctx context.Context, f *fleet, o options) error {
	if err := f.startAll(ctx, o.workers/len(f.ports)+1); err != nil {
		return err
	}

	var back atomic.Int64
	var failed error
	accepted := f.send(
		ctx,
		int(2*o.duration.Seconds()*float64(o.rate)),
		o.rate,
		func() []string { return f.ports },
		func() {
			out, err := exec.CommandContext(ctx, "sh", "-c", o.restart).CombinedOutput()
			if err != nil {
				failed = fmt.Errorf("%s: %w: %s", o.restart, err, out)
			}

			back.Store(time.Now().UnixMicro())
		},
	)
	if failed != nil {
		return failed
	}

	// The load may have ended before the database was back.
	all := func() []string { return f.ports }
	err := await(ctx, "the servers", func() bool { return f.send(ctx, 3, o.rate, all, nil) == 3 })
	if err != nil {
		return err
	}

	runs, err := f.drained(ctx, accepted)
	first := math.Inf(1)
	for _, r := range runs {
		if r.started > back.Load() {
			first = min(first, float64(r.started-back.Load())/1000)
		}
	}

	f.found["first run after the restart, ms"] = first
	f.pickups("pickup", runs)
	return err
}
