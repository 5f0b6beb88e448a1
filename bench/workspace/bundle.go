package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"millwright/forge"
	"millwright/forge/bundle"
	"millwright/runs/worker/checkout"
	"millwright/runs/worker/collect"
)

// nearlyFull is the size of a new file whose bundle is just within the limit.
const nearlyFull = collect.MaxBundle - 1<<20

// measureBundle prints how long it takes to collect changes of nearly 50 MiB, to check their bundle as the
// server does, and to push it to a repository of this machine.
func measureBundle(ctx context.Context, dir string, rounds int) error {
	taken := map[string][]spent{}
	for round := range rounds {
		place := filepath.Join(dir, fmt.Sprint("bundle-", round))
		if err := bundleRound(ctx, place, taken); err != nil {
			return err
		}
		if err := remove(place); err != nil {
			return err
		}
	}

	fmt.Printf("\na bundle of %d MiB, medians of %d rounds\n\n", nearlyFull>>20, rounds)
	fmt.Printf("%-24s %8s %8s\n", "", "ms", "CPU ms")
	for _, step := range []string{"collect", "check", "push"} {
		fmt.Printf("%-24s %8.0f %8.0f\n", step, median(taken[step], spent.wall), median(taken[step], spent.cpu))
	}
	return nil
}

func bundleRound(ctx context.Context, dir string, taken map[string][]spent) error {
	bare := filepath.Join(dir, "acme", "shop.git")
	if err := fill(ctx, bare, filepath.Join(dir, "shop"), 100); err != nil {
		return err
	}

	work, base := filepath.Join(dir, "work"), filepath.Join(dir, "base")
	source := checkout.Source{URL: "file://" + bare, Author: "bench"}
	made, err := checkout.Open(filepath.Join(dir, "mirrors"), 10<<30).Checkout(ctx, source, work, base)
	if err != nil {
		return err
	}

	noise := make([]byte, nearlyFull)
	rand.Read(noise)
	if err := os.WriteFile(filepath.Join(work, "noise"), noise, 0o600); err != nil {
		return err
	}

	var changes *collect.Changes
	step := func(name string, f func() error) error {
		one, err := timed(f)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		taken[name] = append(taken[name], one)
		return nil
	}
	if err := step("collect", func() error {
		c := collect.Checkout{
			Work: work, Base: base, Commit: made.Commit, Author: "bench", Title: "Add noise",
		}
		changes, err = collect.Collect(ctx, c, ownGit{}, filepath.Join(dir, "collect"))
		return err
	}); err != nil {
		return err
	}
	defer changes.Close()

	if err := step("check", func() error {
		b, err := bundle.Open(changes.Bundle, made.Commit)
		if err != nil {
			return err
		}
		return b.Close()
	}); err != nil {
		return err
	}

	if _, err := changes.Bundle.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return step("push", func() error { return pushBundle(ctx, dir, made.Commit, changes) })
}

// pushBundle pushes changes to the repository acme/shop of a directory.
func pushBundle(ctx context.Context, dir, base string, changes *collect.Changes) error {
	forges, err := forge.Open(forge.Config{Forges: map[string]forge.Settings{
		"local": {Kind: forge.Git, URL: "file://" + dir + "/{owner}/{name}.git"},
	}})
	if err != nil {
		return err
	}

	repo := forge.Repository{Owner: "acme", Name: "shop"}
	host, err := forges.Of(repo)
	if err != nil {
		return err
	}
	return forge.Push(ctx, host, repo, forge.Change{
		Bundle: changes.Bundle, Base: base, Head: changes.Commit, Branch: "agent/noise", Prefix: "agent/",
	})
}

// ownGit calls git as this process.
type ownGit struct{}

// Seen implements collect.Git.
func (ownGit) Seen(place string) string { return place }

// Give implements collect.Git.
func (ownGit) Give(string) error { return nil }

// Run implements collect.Git.
func (ownGit) Run(ctx context.Context, c collect.Command) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()

	cmd := exec.CommandContext(ctx, "git", checkout.Arguments(c.Args...)...)
	cmd.Dir, cmd.Env = c.Dir, append(checkout.Environment("file"), c.Env...)
	if c.In != nil {
		in, err := cmd.StdinPipe()
		if err != nil {
			return err
		}
		go func() {
			in.Write(c.In)
			in.Close()
		}()
	}

	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}

	read := c.Out
	if read == nil {
		read = func(r io.Reader) error {
			_, err := io.Copy(io.Discard, r)
			return err
		}
	}
	failed := read(out)
	if failed != nil {
		cmd.Process.Kill()
	}
	return errors.Join(failed, cmd.Wait())
}
