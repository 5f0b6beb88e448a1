// Command reconcile measures how long it takes from a push notice of a git host to the commit being
// applied, and served by an ingress, for a change of one file in a large repository, beside what the git
// program takes for `git fetch && git diff --name-only` of the same change. Both read the same bare
// repository on this machine, one after the other, in rounds.
//
//	go run ./bench/reconcile [-files 10000] [-rounds 15]
//
// With -factories it measures something else: the memory and the processor time of a process with so many
// factories, each with a directory of the same repository, while nothing changes.
//
//	go run ./bench/reconcile -factories 100 [-idle 90s]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"time"

	"millwright/ingress"
	"millwright/reconcile"
	"millwright/state"
)

func main() {
	files := flag.Int("files", 10_000, "files of the repository")
	rounds := flag.Int("rounds", 15, "how many changes are pushed; medians are shown")
	factories := flag.Int("factories", 0, "measure an idle process with so many factories")
	idle := flag.Duration("idle", 90*time.Second, "how long")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()

	if root := os.Getenv(hostRoot); root != "" {
		fail(host(root))
		return
	}
	if *factories > 0 {
		fail(measureIdle(ctx, *files, *factories, *idle))
		return
	}

	fmt.Printf("%-34s %12s %12s %8s %10s\n", "one file changes, of", "git", "millwright", "ratio", "worst")
	for _, part := range []int{100, 10, 1} {
		fail(measure(ctx, *files, *files/part, *rounds))
	}
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// measure prints one line: for a repository of so many files, of which so many are the definition's.
func measure(ctx context.Context, files, definition, rounds int) (err error) {
	dir, err := os.MkdirTemp("", "reconcile")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	r := repository{dir: dir}
	if err := r.create(ctx, files, func(i int) string {
		if i < definition {
			return fmt.Sprintf("factory/automations/a%d/automation.md", i)
		}
		return fmt.Sprintf("services/s%d/f%d.txt", i%500, i)
	}); err != nil {
		return err
	}

	s, err := state.Open(ctx, state.Config{DSN: filepath.Join(dir, "state.db"), MasterKey: make([]byte, 32)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()

	serving, err := ingress.New(ctx, ingress.Config{Store: s})
	if err != nil {
		return err
	}
	defer serving.Close(ctx)

	source, err := reconcile.Git(
		reconcile.GitConfig{URL: "file://" + r.bare(), Path: "factory", CloneDir: filepath.Join(dir, "clone")},
	)
	if err != nil {
		return err
	}
	defer source.Close()

	factory, err := s.EnsureFactory(ctx, "bench", source.Describe(), false)
	if err != nil {
		return err
	}

	loop := reconcile.New(reconcile.Config{Store: s, Factory: factory, Source: source})

	// A notice only wakes the loop. The attempt that it then makes returns when the commit is served.
	attempt := func() error {
		result := loop.Once(ctx, reconcile.Request{})
		if result.Outcome != state.OutcomeApplied || result.Revision.ID != r.head {
			return fmt.Errorf("%s: %s %s", r.head, result.Outcome, result.Message)
		}

		return nil
	}
	if err := attempt(); err != nil {
		return err
	}

	var git, ours []time.Duration
	for round := range rounds {
		if err := r.change(ctx, round); err != nil {
			return err
		}

		began := time.Now()
		if err := r.fetchAndDiff(ctx); err != nil {
			return err
		}

		git = append(git, time.Since(began))
		began = time.Now()
		if err := attempt(); err != nil {
			return err
		}

		ours = append(ours, time.Since(began))
	}

	slices.Sort(git)
	slices.Sort(ours)
	g, o := git[len(git)/2], ours[len(ours)/2]
	fmt.Printf(
		"%6d files, %6d of a definition %12s %12s %8.1f %10s\n",
		files,
		definition,
		g.Round(10*time.Microsecond),
		o.Round(10*time.Microsecond),
		float64(o)/float64(g),
		ours[len(ours)-1].Round(10*time.Microsecond),
	)

	return nil
}
