//go:build unix

// Package collect packs what a harness changed in a checkout. The checkout is hostile by then, and so is its .git:
// git never reads the configuration, hooks, index or refs in it. A repository of our own borrows its objects, after
// a check that they are files of the harness alone, and git runs in the account and sandbox of the run.
package collect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Collect packs the changes of a checkout, nil if there are none. dir is a new directory for its own use. Nothing of
// the run may live.
func Collect(ctx context.Context, c Checkout, git Git, dir string) (*Changes, error) {
	k, err := open(c, git, dir)
	if err != nil {
		return nil, err
	}

	changes := &Changes{}
	head, err := k.head(ctx, changes)
	if err != nil {
		return nil, err
	}

	tree, err := k.tree(ctx, head, changes)
	if err != nil {
		return nil, err
	}

	if changes.Commit, err = k.commit(ctx, head, tree); err != nil {
		return nil, err
	}
	if changes.Commit == c.Commit {
		return nil, nil
	}

	if err := k.pack(ctx, changes); err != nil {
		changes.Close()
		return nil, err
	}
	return changes, nil
}

// SetUp returns what set-up commands changed in a checkout. dir is as of Collect.
func SetUp(ctx context.Context, c Checkout, git Git, dir string) (Changed, error) {
	k, err := open(c, git, dir)
	if err != nil {
		return nil, err
	}

	tree, err := k.tree(ctx, c.Commit, &Changes{})
	if err != nil {
		return nil, err
	}

	changed := Changed{}
	err = k.differences(ctx, c.Commit, tree, func(path string, was, now Entry) {
		if !was.isDir() && !now.isDir() {
			changed[path] = now
		}
	})
	return changed, err
}

// head returns the commit that the harness left. If this cannot be read, or does not continue the commit that the
// checkout began at, it returns the latter: then all changes become one commit.
func (k *collector) head(ctx context.Context, changes *Changes) (string, error) {
	squash := func(reason string) (string, error) {
		changes.Squashed = reason
		return k.Commit, nil
	}
	if !k.objectsArePlain() {
		return squash("the .git of the checkout cannot be used")
	}

	head, ok := headOf(filepath.Join(k.Work, ".git"))
	switch {
	case !ok:
		return squash("its HEAD cannot be read")
	case head == k.Commit:
		return head, nil
	}

	if err := k.run(ctx, nil, nil, "merge-base", "--is-ancestor", k.Commit, head); err != nil {
		if ctx.Err() != nil {
			return "", err
		}
		return squash("its commits do not continue the one that the run began with")
	}

	count := 0
	err := k.run(ctx, nil, lines('\n', func(string) error {
		if count++; count > maxObjects {
			return tooLarge("more than %d new objects", maxObjects)
		}
		return nil
	}), "rev-list", "--objects", "--missing=error", head, "^"+k.Commit)
	var large TooLargeError
	switch {
	case errors.As(err, &large) || ctx.Err() != nil:
		return "", err
	case err != nil:
		return squash("objects of its commits are missing or damaged")
	}

	other := false
	err = k.run(ctx, nil, lines('\n', func(line string) error {
		before, boundary := strings.CutPrefix(line, "-")
		other = other || boundary && before != k.Commit
		return nil
	}), "rev-list", "--boundary", head, "^"+k.Commit)
	if err != nil {
		return "", err
	}
	if other {
		return squash("its commits merge a branch that began before the run's commit")
	}
	return head, nil
}

// tree returns the tree of the files in the checkout, but for those that are ignored, ours, or as set-up commands
// left them.
func (k *collector) tree(ctx context.Context, head string, changes *Changes) (string, error) {
	if err := k.run(ctx, nil, nil, "read-tree", head); err != nil {
		return "", err
	}

	submodules := map[string]bool{}
	err := k.run(ctx, nil, lines(0, func(line string) error {
		if entry, name, _ := strings.Cut(line, "\t"); strings.HasPrefix(entry, modeOfCommit) {
			submodules[name] = true
		}
		return nil
	}), "ls-files", "-z", "--stage")
	if err != nil {
		return "", err
	}

	var names []string
	err = k.run(ctx, nil, lines(0, func(name string) error {
		if strings.HasSuffix(name, "/") || submodules[name] {
			changes.Nested++
			return nil
		}
		if names = append(names, name); len(names) > 2*MaxFiles { // a file can be there twice
			return tooLarge("more than %d changed files", MaxFiles)
		}
		return nil
	}), "ls-files", "-z", "--modified", "--deleted", "--others", "--exclude-standard")
	if err != nil {
		return "", err
	}

	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) > MaxFiles {
		return "", tooLarge("more than %d changed files", MaxFiles)
	}
	if err := k.checkSizes(names); err != nil {
		return "", err
	}
	if len(names) > 0 {
		in := []byte(strings.Join(names, "\x00") + "\x00")
		if err := k.run(ctx, in, nil, "update-index", "--add", "--remove", "-z", "--stdin"); err != nil {
			return "", err
		}
	}

	tree, err := k.ask(ctx, nil, "write-tree")
	if err != nil || len(k.SetUp) == 0 {
		return tree, err
	}

	var back bytes.Buffer
	if err := k.differences(ctx, head, tree, func(path string, was, now Entry) {
		if left, ok := k.SetUp[path]; ok && left == now && !was.isDir() {
			fmt.Fprintf(&back, "%s %s\t%s\x00", was.Mode, was.Object, path)
		}
	}); err != nil || back.Len() == 0 {
		return tree, err
	}

	if err := k.run(ctx, back.Bytes(), nil, "update-index", "-z", "--index-info"); err != nil {
		return "", err
	}
	return k.ask(ctx, nil, "write-tree")
}

// checkSizes returns an error if changed files have more bytes than changes may have.
func (k *collector) checkSizes(names []string) error {
	size := int64(0)
	for _, name := range names {
		if info, err := os.Lstat(filepath.Join(k.Work, name)); err == nil && info.Mode().IsRegular() {
			size += info.Size()
		}
	}
	if size > MaxUnpacked {
		return tooLarge("more than %d bytes", MaxUnpacked)
	}
	return nil
}

// commit returns the commit with a tree, which is made unless head has this tree.
func (k *collector) commit(ctx context.Context, head, tree string) (string, error) {
	same, err := k.ask(ctx, nil, "rev-parse", "--verify", "--end-of-options", head+"^{tree}")
	if err != nil || same == tree {
		return head, err
	}
	return k.ask(ctx, []byte(k.Title+"\n"), "commit-tree", tree, "-p", head)
}
