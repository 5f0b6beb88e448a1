package schema

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync/atomic"
	"unicode/utf8"
)

// The size of a tree.
const (
	MaxFiles     = 20_000    // at or near resource paths
	MaxFileBytes = 256 << 10 // of one file
	MaxTreeBytes = 16 << 20  // of all files at resource paths together
	MaxNameBytes = 64        // of a resource's name

	// MaxUnfoldedBytes bounds what runs of all automations would be given, each with its agent's file and
	// factory.yaml. It keeps a small tree from taking a server's memory.
	MaxUnfoldedBytes = 128 << 20
)

// maxDirectories bounds the directories that are looked into; a resource has at
// most a few.
const maxDirectories = 4 * MaxFiles

// fileKind is the kind of resource a path stands for.
type fileKind int

const (
	kindFactory fileKind = iota
	kindWebhook
	kindAutomation
	kindAgent
	kindRunner
	kindSkill
	kindEnvironment
	kindNotification
	kindSecret
)

// entry is a file at a resource path.
type entry struct {
	path  string
	kind  fileKind
	name  string
	agent string // of an agent's own skill
	flat  bool   // automations/<name>.md
	same  bool   // it is in a directory that is as it was in the tree before: see Cache
}

// tree is what a walk over the resource paths, or over a part of them, finds.
type tree struct {
	fsys     fs.FS
	entries  []entry
	problems []Problem
	count    *atomic.Int64 // files at or near resource paths
	dirs     *atomic.Int64 // directories looked into
	listed   int64         // those of this part
	memory   *memory
	err      error
}

// part returns an empty part of the tree.
func (t *tree) part() *tree {
	return &tree{fsys: t.fsys, count: t.count, dirs: t.dirs, memory: t.memory}
}

// add takes what a part has found.
func (t *tree) add(part *tree) {
	t.entries = append(t.entries, part.entries...)
	t.problems = append(t.problems, part.problems...)
	t.listed += part.listed
	t.err = cmp.Or(t.err, part.err)
}

var errTooMany = errors.New("too many files")

// walk finds the files at resource paths and reports those that are nearly at
// one. It reads directories in parts and stops at the limit of files, so that
// its memory is bounded whatever the tree holds.
func walk(fsys fs.FS, m *memory) (*tree, error) {
	t := &tree{fsys: fsys, count: new(atomic.Int64), dirs: new(atomic.Int64), memory: m}
	root, err := t.list(".", func(fs.DirEntry) bool { return true })
	if err != nil {
		return t, err
	}

	for _, e := range root {
		if err := t.top(e, root); err != nil {
			return t, err
		}
	}

	slices.SortFunc(t.entries, func(a, b entry) int { return strings.Compare(a.path, b.path) })
	return t, t.err
}

// list returns the entries of a directory that keep admits, sorted by name.
func (t *tree) list(dir string, keep func(fs.DirEntry) bool) ([]fs.DirEntry, error) {
	t.listed++
	if t.dirs.Add(1) > maxDirectories {
		return nil, errTooMany
	}

	f, err := t.fsys.Open(dir)
	if err != nil {
		return nil, t.unreadable(dir, err)
	}
	defer func() { _ = f.Close() }()

	r, ok := f.(fs.ReadDirFile)
	if !ok {
		return nil, t.unreadable(dir, errors.New("not a directory"))
	}

	var out []fs.DirEntry
	for {
		part, err := r.ReadDir(dirPart)
		for _, e := range part {
			if name := e.Name(); name != "" && keep(e) {
				out = append(out, e)
			}
		}

		if len(out) > 2*MaxFiles {
			return nil, errTooMany
		}
		if errors.Is(err, io.EOF) || err == nil && (len(part) == 0 || len(part) < dirPart && ofSystem(f)) {
			break
		}
		if err != nil {
			return nil, t.unreadable(dir, err)
		}
	}

	slices.SortFunc(out, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return out, nil
}

// dirPart is how many entries of a directory are read at a time.
const dirPart = 512

// ofSystem says whether a file is the operating system's. One of those gives
// all that is asked for unless it is at its end, which saves asking again: a
// tree of many small files costs mostly system calls.
func ofSystem(f fs.File) bool {
	_, ok := f.(interface{ Fd() uintptr })
	return ok
}

// Malformed is an error of a file system that comes again at every look: what it
// says is a problem of the tree, and not one of reading it.
type Malformed struct{ Text string }

func (m Malformed) Error() string { return m.Text }

// unreadable notes that a part of the tree cannot be read. The walk goes on:
// what else is wrong is reported too.
func (t *tree) unreadable(p string, err error) error {
	if errors.As(err, new(Malformed)) {
		t.report(p, ruleUnreadable, "cannot be read: "+cause(err), "")
		return nil
	}

	if p == "." {
		if errors.Is(err, fs.ErrNotExist) {
			t.report(p, ruleMissingPath, "the definition's directory does not exist", "check the path")
		} else {
			t.report(p, ruleUnreadable, "the definition's directory cannot be read: "+cause(err), "")
		}

		return err
	}

	t.report(p, ruleUnreadable, "cannot be read: "+cause(err), "")
	if t.err == nil {
		t.err = fmt.Errorf("%s: %w", clip(p), err)
	}

	return nil
}

// cause is an error without the path, which the problem names already.
func cause(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return clip(err.Error())
}

func (t *tree) report(p string, rule RuleID, message, hint string) {
	t.problems = append(t.problems, FileProblem(p, rule, message, hint))
}

func (t *tree) warn(p string, rule RuleID, message, hint string) {
	t.problems = append(t.problems, FileProblem(p, rule, message, hint).as(SeverityWarning))
}

// take adds a file at a resource path.
func (t *tree) take(e fs.DirEntry, en entry) error {
	if t.count.Add(1) > MaxFiles {
		return errTooMany
	}
	if e.Type()&fs.ModeSymlink != 0 {
		t.symlink(en.path)
		return nil
	}
	if !e.Type().IsRegular() {
		t.report(en.path, ruleUnsupportedPath, "this is not a regular file", "put a file here, or nothing")
		return nil
	}

	if en.kind != kindFactory {
		t.checkName(en.path, en.name)
		if en.agent != "" {
			t.checkName(en.path, en.agent)
		}
	}

	if !fs.ValidPath(en.path) {
		return nil // the name was refused; such a path cannot even be opened
	}

	t.entries = append(t.entries, en)
	return nil
}

func (t *tree) symlink(p string) {
	t.report(
		p,
		ruleSymlink,
		"a symbolic link or a submodule at a resource path is never followed",
		"put the file itself here",
	)
}

func (t *tree) checkName(p, name string) {
	switch {
	case len(name) > MaxNameBytes:
		t.report(
			p,
			ruleInvalidName,
			fmt.Sprintf(
				"the name is %d characters long; at most %d are allowed",
				utf8.RuneCountInString(name),
				MaxNameBytes,
			),
			"rename it",
		)

	case name[0] == '.':
		t.report(p, ruleInvalidName, fmt.Sprintf("the name %s begins with a dot", quoted(name)), "rename it")
	default:
		for _, r := range name {
			if r >= utf8.RuneSelf || !isAlnum(byte(r)) && !strings.ContainsRune("._-", r) {
				t.report(
					p,
					ruleInvalidName,
					fmt.Sprintf(
						"the name %s holds the character %q; a name consists of a-z A-Z 0-9 . _ -",
						quoted(name),
						r,
					),
					"rename it",
				)
				return
			}
		}
	}
}

// The directories of a tree, each with what its resources look like.
var directories = []string{
	"agents", "automations", "environments", "notifications", "runners", "secrets", "skills", "webhooks",
}

// top looks at one entry of the root.
func (t *tree) top(e fs.DirEntry, root []fs.DirEntry) error {
	name := e.Name()
	switch {
	case name == "factory.yaml":
		return t.take(e, entry{path: name, kind: kindFactory, name: name})
	case !e.IsDir() && (strings.EqualFold(name, "factory.yaml") || strings.EqualFold(name, "factory.yml")):
		return t.misplaced(name, "factory.yaml")
	case name == "scorers" || name == "benchmarks" || strings.HasPrefix(name, "."):
		return nil
	}

	if slices.Contains(directories, name) {
		if e.Type()&fs.ModeSymlink != 0 {
			t.symlink(name)
			return nil
		}
		if !e.IsDir() { // a link that was checked out as text, for example
			t.report(name, ruleUnsupportedPath, "this is a file; a directory belongs here", "")
			return nil
		}

		part := t.part()
		err := t.memory.walk(part, name, func() error { return part.resources(name) })
		t.add(part)
		return err
	}

	if right := nearDirectory(name); right != "" && e.IsDir() {
		return t.nearly(name, right)
	}
	if right := t.nearRoot(name, root); right != "" && !e.IsDir() {
		return t.misplaced(name, right)
	}

	return nil
}
