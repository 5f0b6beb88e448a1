// Command workspace measures how long a run waits for its checkout: with a new mirror and with one that is up to
// date, beside `git clone` and `git clone --local` of the same repository in the same rounds. It also measures how
// the disk of the mirrors grows over many runs. bench/README.md has the figures.
package main

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"millwright/runs/worker/checkout"
)

func main() {
	files := flag.Int("files", 10_000, "files of the repository")
	rounds := flag.Int("rounds", 5, "rounds, of which the medians are printed")
	runs := flag.Int("runs", 100, "runs, one after the other, for the growth of the disk")
	dir := flag.String("dir", "", "directory to work in (default a temporary one)")
	flag.Parse()

	if err := measure(context.Background(), *dir, *files, *rounds, *runs); err != nil {
		fmt.Fprintln(os.Stderr, "workspace:", err)
		os.Exit(1)
	}
}

func measure(ctx context.Context, dir string, files, rounds, runs int) error {
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "workspace-"); err != nil {
			return err
		}
		defer os.RemoveAll(dir)
	}

	bare := filepath.Join(dir, "shop.git")
	if err := fill(ctx, bare, filepath.Join(dir, "shop"), files); err != nil {
		return err
	}

	times := map[string][]time.Duration{}
	kept := checkout.Open(filepath.Join(dir, "kept"), 10<<30)
	source := checkout.Source{URL: "file://" + bare, Author: "bench"}
	place := filepath.Join(dir, "work")
	ours := func(m *checkout.Mirrors) func() error {
		return func() error {
			_, err := m.Checkout(ctx, source, place, place+"-base")
			return err
		}
	}
	if err := ours(kept)(); err != nil {
		return err
	}

	ways := []struct {
		name string
		run  func() error
	}{
		{"cold checkout", func() error { return ours(checkout.Open(filepath.Join(dir, "cold"), 10<<30))() }},
		{"git clone", func() error { return git(ctx, dir, "clone", "--quiet", "file://"+bare, place) }},
		{"warm checkout", ours(kept)},
		{"git clone --local", func() error { return git(ctx, dir, "clone", "--quiet", "--local", bare, place) }},
	}
	for range rounds {
		for _, w := range ways {
			if err := remove(place, place+"-base", filepath.Join(dir, "cold")); err != nil {
				return err
			}

			began := time.Now()
			if err := w.run(); err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
			times[w.name] = append(times[w.name], time.Since(began))
		}
	}

	fmt.Printf("%d files, medians of %d rounds\n\n", files, rounds)
	for _, w := range ways {
		fmt.Printf("%-18s %6d ms\n", w.name, median(times[w.name]).Milliseconds())
	}

	before, err := size(filepath.Join(dir, "kept"))
	if err != nil {
		return err
	}
	for range runs {
		if err := remove(place, place+"-base"); err != nil {
			return err
		}
		if err := ours(kept)(); err != nil {
			return err
		}
	}
	after, err := size(filepath.Join(dir, "kept"))
	fmt.Printf("\nmirror: %d bytes before and %d after %d runs\n", before, after, runs)
	return err
}

// fill makes a bare repository with files in directories of a hundred.
func fill(ctx context.Context, bare, work string, files int) error {
	for i := range files {
		name := filepath.Join(work, fmt.Sprintf("d%03d", i/100), fmt.Sprintf("f%05d.txt", i))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}

		body := fmt.Sprintf("file %d\n", i)
		for line := range 40 {
			body += fmt.Sprintf("line %d of the file %d, which is like others\n", line, i)
		}
		if err := os.WriteFile(name, []byte(body), 0o600); err != nil {
			return err
		}
	}

	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=main", work},
		{"-C", work, "add", "--all"},
		{"-C", work, "-c", "user.name=bench", "-c", "user.email=bench@example.com", "commit", "--quiet", "--message=x"},
		{"clone", "--quiet", "--bare", work, bare},
		{"-C", bare, "repack", "-adq"},
	} {
		if err := git(ctx, "/", args...); err != nil {
			return err
		}
	}
	return nil
}

func git(ctx context.Context, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git %s: %w: %s", args[0], err, out)
	}
	return nil
}

func remove(places ...string) error {
	for _, place := range places {
		if err := os.RemoveAll(place); err != nil {
			return err
		}
	}
	return nil
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

// size returns the bytes of the files below a directory.
func size(dir string) (total int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			total += info.Size()
		}
		return err
	})
	return total, err
}
