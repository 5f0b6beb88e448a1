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
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"millwright/runs/worker/workspace"
)

// Bounds of the changes of a repository.
const (
	MaxBundle   = 50 << 20  // bytes of a bundle or patch
	MaxUnpacked = 200 << 20 // bytes of all new objects
	MaxFiles    = 10_000    // changed files
	maxObjects  = 200_000   // new objects
)

// Git calls git for a run.
type Git interface {
	// Run calls git as the run: in its account, and with everything that it started dead when it returns. dir and
	// the variables name places as the run sees them.
	Run(ctx context.Context, c Command) error
	// Seen returns where the run sees a place below its directory.
	Seen(place string) string
	// Give makes the run's account the owner of a directory.
	Give(dir string) error
}

// Command is a call of git. It needs no directories but those in Reads and Writes, which are named as this
// process sees them.
type Command struct {
	Dir    string
	Args   []string
	Env    []string
	Reads  []string
	Writes []string
	In     []byte
	Out    func(io.Reader) error // nil: there is none that matters
}

// Checkout is a checkout that a harness worked in.
type Checkout struct {
	Work   string   // the directory
	Base   string   // the directory of the objects that it began with
	Commit string   // that it began at
	Own    []string // names of our files at its top
	Author string   // of the commit with what the harness did not commit
	Title  string   // of this commit
	SetUp  Changed  // what set-up commands left; nil: nothing
}

// Changed has files by their paths.
type Changed map[string]Entry

// Entry is the mode and object of a file; those of one that is gone are zeros.
type Entry struct{ Mode, Object string }

func (e Entry) isDir() bool { return e.Mode == "040000" }

// Changes are the changes of a checkout.
type Changes struct {
	Commit   string // with all changes
	Squashed string // reason why the harness's own commits are one here; empty: they are not
	Nested   int    // repositories inside of the checkout, which are left out
	Bundle   *os.File
	Patch    *os.File // nil: it would be too large
}

// Close closes the files.
func (c *Changes) Close() {
	for _, f := range []*os.File{c.Bundle, c.Patch} {
		if f != nil {
			f.Close()
		}
	}
}

// TooLargeError reports changes beyond a bound.
type TooLargeError struct{ What string }

func (e TooLargeError) Error() string { return e.What }

func tooLarge(format string, args ...any) error { return TooLargeError{fmt.Sprintf(format, args...)} }

// collector collects one checkout.
type collector struct {
	Checkout
	git Git
	dir string // of the repository of our own
	env []string
}

// open makes the repository in dir, a new directory.
func open(c Checkout, git Git, dir string) (*collector, error) {
	for _, part := range []string{"objects/info", "refs/heads", "info"} {
		if err := os.MkdirAll(filepath.Join(dir, part), 0o700); err != nil {
			return nil, err
		}
	}

	alternates := git.Seen(c.Base) + "\n"
	if c.objectsArePlain() {
		alternates += git.Seen(filepath.Join(c.Work, ".git", "objects")) + "\n"
	}

	var excluded strings.Builder
	for _, name := range c.Own {
		fmt.Fprintf(&excluded, "/%s\n", Pattern(name))
	}

	for name, text := range map[string]string{
		"HEAD":                    "ref: refs/heads/none\n",
		"config":                  "[core]\n\trepositoryformatversion = 0\n\tbare = false\n",
		"info/exclude":            excluded.String(),
		"objects/info/alternates": alternates,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}

	if err := git.Give(dir); err != nil {
		return nil, err
	}

	const identity = "@millwright.invalid"
	author := cleanName(c.Author)
	k := &collector{Checkout: c, git: git, dir: dir}
	k.env = []string{
		"GIT_DIR=" + git.Seen(dir), "GIT_WORK_TREE=" + git.Seen(c.Work),
		"GIT_AUTHOR_NAME=" + author, "GIT_AUTHOR_EMAIL=automation" + identity,
		"GIT_COMMITTER_NAME=" + author, "GIT_COMMITTER_EMAIL=automation" + identity,
	}
	return k, nil
}

// cleanName returns a name that git takes for an author.
func cleanName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || strings.ContainsRune("<>", r) {
			return -1
		}
		return r
	}, name)
	if strings.Trim(name, " .,:;\"'") == "" {
		return "millwright"
	}
	return name
}

// Pattern returns the pattern of an ignored file that matches one name.
func Pattern(name string) string {
	var out strings.Builder
	for _, r := range name {
		if strings.ContainsRune(`*?[]\!# `, r) {
			out.WriteByte('\\')
		}
		out.WriteRune(r)
	}
	return out.String()
}

// objectsArePlain reports whether the objects of the checkout are files of the harness alone, and lead nowhere else.
func (c Checkout) objectsArePlain() bool {
	own := filepath.Join(c.Work, ".git")
	for _, dir := range []string{c.Work, own} {
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() {
			return false
		}
	}

	objects := filepath.Join(own, "objects")
	for _, name := range []string{"alternates", "http-alternates"} {
		if _, err := os.Lstat(filepath.Join(objects, "info", name)); !errors.Is(err, fs.ErrNotExist) {
			return false
		}
	}
	return workspace.Plain(objects)
}

// run calls git in the repository of our own.
func (k *collector) run(ctx context.Context, in []byte, out func(io.Reader) error, args ...string) error {
	return k.git.Run(ctx, Command{
		Dir: k.git.Seen(k.Work), Args: args, Env: k.env,
		Reads: []string{k.Work, k.Base}, Writes: []string{k.dir},
		In: in, Out: out,
	})
}

// ask calls git and returns its output, without the last line end.
func (k *collector) ask(ctx context.Context, in []byte, args ...string) (string, error) {
	var out bytes.Buffer
	err := k.run(ctx, in, bounded(&out, maxText), args...)
	return strings.TrimSuffix(out.String(), "\n"), err
}

// maxText is how much of git's output is read, in bytes.
const maxText = 32 << 20

// bounded copies git's output to w, at most max bytes.
func bounded(w io.Writer, max int64) func(io.Reader) error {
	return func(r io.Reader) error {
		n, err := io.Copy(w, io.LimitReader(r, max+1))
		if err == nil && n > max {
			return tooLarge("more than %d bytes", max)
		}
		return err
	}
}

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

// differences calls f with each file that two trees or commits have differently.
func (k *collector) differences(ctx context.Context, from, to string, f func(path string, was, now Entry)) error {
	var fields []string
	return k.run(ctx, nil, lines(0, func(text string) error {
		if fields == nil {
			fields = strings.Fields(strings.TrimPrefix(text, ":"))
			if len(fields) < 4 {
				return errors.New("git's output cannot be read")
			}
			return nil
		}

		f(text, Entry{fields[0], fields[2]}, Entry{fields[1], fields[3]})
		fields = nil
		return nil
	}), "diff-tree", "-r", "-t", "-z", "--raw", "--no-renames", "--no-abbrev", from, to)
}

// commit returns the commit with a tree, which is made unless head has this tree.
func (k *collector) commit(ctx context.Context, head, tree string) (string, error) {
	same, err := k.ask(ctx, nil, "rev-parse", "--verify", "--end-of-options", head+"^{tree}")
	if err != nil || same == tree {
		return head, err
	}
	return k.ask(ctx, []byte(k.Title+"\n"), "commit-tree", tree, "-p", head)
}
