// Command workspace measures how long a run waits for its checkout: with a new mirror and with one that is up
// to date, beside `git clone` and `git clone --local` of the same repository in the same rounds. It also
// measures how the disk of the mirrors grows over many runs, and how long a bundle of nearly the largest size
// takes to be collected, checked and pushed. bench/README.md has the figures.
package main

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"millwright/runs/worker/checkout"
)

// The ways to get a repository.
const (
	cold  = "cold checkout"
	clone = "git clone"
	warm  = "warm checkout"
	newer = "warm, one commit newer"
	local = "git clone --local"
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

	taken := map[string][]spent{}
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
		{cold, ours(checkout.Open(filepath.Join(dir, "cold"), 10<<30))},
		{clone, func() error { return git(ctx, dir, "clone", "--quiet", "file://"+bare, place) }},
		{newer, ours(kept)},
		{warm, ours(kept)},
		{local, func() error { return git(ctx, dir, "clone", "--quiet", "--local", bare, place) }},
	}
	for range rounds {
		for _, w := range ways {
			if err := remove(place, place+"-base", filepath.Join(dir, "cold")); err != nil {
				return err
			}

			if w.name == newer {
				if err := commit(ctx, bare, filepath.Join(dir, "shop")); err != nil {
					return err
				}
			}

			one, err := timed(w.run)
			if err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
			taken[w.name] = append(taken[w.name], one)
		}
	}

	fmt.Printf("%d files, medians of %d rounds\n\n%-24s %8s %8s\n", files, rounds, "", "ms", "CPU ms")
	for _, w := range ways {
		all := taken[w.name]
		fmt.Printf("%-24s %8.0f %8.0f\n", w.name, median(all, spent.wall), median(all, spent.cpu))
	}
	fmt.Println("\nratios, medians of those of each round")
	for _, pair := range [][2]string{{cold, clone}, {warm, local}, {newer, local}} {
		ours, theirs := taken[pair[0]], taken[pair[1]]
		fmt.Printf("%-40s %8.2f %8.2f\n", pair[0]+" / "+pair[1],
			ratio(ours, theirs, spent.wall), ratio(ours, theirs, spent.cpu))
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
	if err != nil {
		return err
	}
	return measureBundle(ctx, dir, rounds)
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
