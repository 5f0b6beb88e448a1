//go:build unix

package collect

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
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

// modeOfCommit is the mode of a submodule.
const modeOfCommit = "160000"

// maxLine is how long a line of git's output may be, in bytes.
const maxLine = 64 << 10

// lines calls f with each part of git's output that ends with a byte.
func lines(end byte, f func(string) error) func(io.Reader) error {
	return func(r io.Reader) error {
		in := bufio.NewReaderSize(r, maxLine)
		for {
			line, err := in.ReadSlice(end)
			if errors.Is(err, io.EOF) && len(line) == 0 {
				return nil
			}
			if err != nil {
				return errors.New("git's output cannot be read")
			}
			if err := f(string(line[:len(line)-1])); err != nil {
				return err
			}
		}
	}
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
