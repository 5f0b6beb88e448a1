package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// repository is a bare repository, a clone to push from, and a clone to fetch into.
type repository struct {
	dir  string
	head string // the commit that was pushed last
}

func (r *repository) bare() string { return filepath.Join(r.dir, "bare.git") }

func (r *repository) work() string { return filepath.Join(r.dir, "work") }

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
