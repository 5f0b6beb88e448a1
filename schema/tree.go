package schema

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
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

// Identified is a tree that knows what a file or directory says without reading it, as git does.
type Identified interface {
	fs.FS
	// Identity names the content and the kind of a file, or of all that is in a directory: two of one path
	// and one identity, in trees of one source, are the same. It is empty where that is not known.
	Identity(name string) string
}

// memory is what one load has of a cache. A nil *memory remembers nothing.
type memory struct {
	tree      Identified
	last      map[string]kept
	lastParts map[string]keptFolder

	mu        sync.Mutex
	next      map[string]kept
	nextParts map[string]keptFolder
}

// kept is a file without a problem.
type kept struct {
	identity string
	kind     fileKind
	loaded
}

// keptFolder is a directory in which the walk found no problem.
type keptFolder struct {
	identity string
	entries  []entry
	listed   int64 // directories
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
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
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

// loaded is the result of reading one file.
type loaded struct {
	doc      *document // kept only when its text could not be parsed
	src      []byte
	resource any
	problems []Problem
	facts    []fact
	err      error
}

func isYAML(name string) bool {
	ext := strings.ToLower(path.Ext(name))
	return ext == ".yaml" || ext == ".yml"
}

func isMarkdown(name string) bool {
	ext := strings.ToLower(path.Ext(name))
	return (ext == ".md" || ext == ".markdown") && !strings.EqualFold(stem(name), "readme")
}

func stem(name string) string { return strings.TrimSuffix(name, path.Ext(name)) }

// mainFile is the file that holds a resource which has a directory of its own.
func mainFile(kind fileKind) string {
	return map[fileKind]string{kindAutomation: "automation.md", kindAgent: "agent.md", kindSkill: "SKILL.md"}[kind]
}
