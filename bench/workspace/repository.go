package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

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

// commit pushes a commit that changes one file.
func commit(ctx context.Context, bare, work string) error {
	name := filepath.Join(work, "d000", "f00000.txt")
	if err := os.WriteFile(name, []byte(time.Now().String()), 0o600); err != nil {
		return err
	}
	if err := git(ctx, work, "-c", "user.name=bench", "-c", "user.email=bench@example.com", "commit", "--quiet",
		"--all", "--message=x"); err != nil {
		return err
	}
	return git(ctx, work, "push", "--quiet", bare, "HEAD:main")
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
