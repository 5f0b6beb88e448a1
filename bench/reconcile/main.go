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
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
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

// repository is a bare repository, a clone to push from, and a clone to fetch into.
type repository struct {
	dir  string
	head string // the commit that was pushed last
}

func (r *repository) bare() string  { return filepath.Join(r.dir, "bare.git") }
func (r *repository) work() string  { return filepath.Join(r.dir, "work") }
func (r *repository) other() string { return filepath.Join(r.dir, "other") }

func (r *repository) create(ctx context.Context, files int, name func(i int) string) error {
	for i := range files {
		if err := r.put(name(i), i, 0); err != nil {
			return err
		}
	}

	for _, args := range [][]string{
		{r.dir, "init", "-q", "--bare", "-b", "main", r.bare()},
		{r.work(), "init", "-q", "-b", "main", "."},
	} {
		if _, err := git(ctx, args[0], args[1:]...); err != nil {
			return err
		}
	}

	if err := r.push(ctx, "Begin"); err != nil {
		return err
	}

	_, err := git(ctx, r.dir, "clone", "-q", "file://"+r.bare(), r.other())
	return err
}

func (r *repository) put(name string, i, edition int) error {
	file := filepath.Join(r.work(), filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}

	text := fmt.Sprintf(
		"---\ntriggers:\n  - provider: schedule\n    event: cron_fired\n    schedule:\n      cron: %d 3 * * *\n---\n"+
			"Look at what happened since yesterday, say which build failed and why, and\n"+
			"open a pull request when the cause is clear. Edition %d of %d.\n",
		i%60,
		edition,
		i,
	)

	return os.WriteFile(file, []byte(text), 0o600)
}

// change pushes a change of one file of the definition.
func (r *repository) change(ctx context.Context, round int) error {
	if err := r.put("factory/automations/a7/automation.md", 7, round+1); err != nil {
		return err
	}
	return r.push(ctx, fmt.Sprintf("Change %d", round))
}

func (r *repository) push(ctx context.Context, message string) (err error) {
	for _, args := range [][]string{{"add", "-A"}, {"commit", "-q", "-m", message}, {"push", "-q", r.bare(), "main"}} {
		if _, err := git(ctx, r.work(), args...); err != nil {
			return err
		}
	}
	r.head, err = git(ctx, r.work(), "rev-parse", "HEAD")
	return err
}

// fetchAndDiff does what is compared with: it fetches a change and names the files that it touches.
func (r *repository) fetchAndDiff(ctx context.Context) error {
	if _, err := git(ctx, r.other(), "fetch", "-q", "origin", "main"); err != nil {
		return err
	}
	names, err := git(ctx, r.other(), "diff", "--name-only", "HEAD", "FETCH_HEAD")
	if err == nil && !strings.Contains(names, "automation.md") {
		err = fmt.Errorf("git names %q", names)
	}
	return err
}

func git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	cmd.Env = append(
		os.Environ(),
		"GIT_CONFIG_GLOBAL="+os.DevNull,
		"GIT_CONFIG_SYSTEM="+os.DevNull,
		"GIT_AUTHOR_NAME=Bench",
		"GIT_AUTHOR_EMAIL=bench@example.com",
		"GIT_COMMITTER_NAME=Bench",
		"GIT_COMMITTER_EMAIL=bench@example.com",
	)

	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, stderr.String())
	}

	return strings.TrimSpace(string(out)), nil
}
