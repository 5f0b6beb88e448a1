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
		t.report(p, "unreadable", "cannot be read: "+cause(err), "")
		return nil
	}

	if p == "." {
		if errors.Is(err, fs.ErrNotExist) {
			t.report(p, "missing-path", "the definition's directory does not exist", "check the path")
		} else {
			t.report(p, "unreadable", "the definition's directory cannot be read: "+cause(err), "")
		}

		return err
	}

	t.report(p, "unreadable", "cannot be read: "+cause(err), "")
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

func (t *tree) report(p, code, message, hint string) {
	t.problems = append(t.problems, newProblem(p, fileSpan(), SeverityError, code, message, hint))
}

func (t *tree) warn(p, code, message, hint string) {
	t.problems = append(t.problems, newProblem(p, fileSpan(), SeverityWarning, code, message, hint))
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
		t.report(en.path, "unsupported-path", "this is not a regular file", "put a file here, or nothing")
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
		"symlink",
		"a symbolic link or a submodule at a resource path is never followed",
		"put the file itself here",
	)
}

func (t *tree) checkName(p, name string) {
	switch {
	case len(name) > MaxNameBytes:
		t.report(
			p,
			"invalid-name",
			fmt.Sprintf(
				"the name is %d characters long; at most %d are allowed",
				utf8.RuneCountInString(name),
				MaxNameBytes,
			),
			"rename it",
		)

	case name[0] == '.':
		t.report(p, "invalid-name", fmt.Sprintf("the name %s begins with a dot", quoted(name)), "rename it")
	default:
		for _, r := range name {
			if r >= utf8.RuneSelf || !isAlnum(byte(r)) && !strings.ContainsRune("._-", r) {
				t.report(
					p,
					"invalid-name",
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
var directories = []string{"agents", "automations", "runners", "skills", "webhooks"}

// top looks at one entry of the root.
func (t *tree) top(e fs.DirEntry, root []fs.DirEntry) error {
	name := e.Name()
	switch {
	case name == "factory.yaml":
		return t.take(e, entry{path: name, kind: kindFactory, name: name})
	case !e.IsDir() && (name == "factory.yml" || strings.EqualFold(name, "factory.yaml") || strings.EqualFold(name, "factory.yml")):
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
			t.report(name, "unsupported-path", "this is a file; a directory belongs here", "")
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

// resources looks at one of the directories of a tree.
func (t *tree) resources(dir string) error {
	switch dir {
	case "webhooks":
		return t.flat(dir, kindWebhook)
	case "runners":
		return t.flat(dir, kindRunner)
	case "automations":
		return t.folders(dir, kindAutomation, "")
	case "agents":
		return t.folders(dir, kindAgent, "")
	default:
		return t.folders(dir, kindSkill, "")
	}
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

// litter says whether a dot file is what editors and systems leave behind.
func litter(name string) bool {
	return strings.HasPrefix(name, ".") &&
		(strings.HasPrefix(name, "._") || strings.HasPrefix(name, ".#") || !isAlnum(append([]byte(name), 0)[1]) || stem(name) == "")
}

// flat reads webhooks/ or runners/: one YAML file for each resource.
func (t *tree) flat(dir string, kind fileKind) error {
	list, err := t.list(dir, func(e fs.DirEntry) bool {
		name := e.Name()
		return !litter(name) &&
			(isYAML(name) || name[0] != '.' && (e.IsDir() || path.Ext(name) == ".json" || e.Type()&fs.ModeSymlink != 0 && path.Ext(name) == ""))
	})
	if err != nil {
		return err
	}

	for _, e := range list {
		p := dir + "/" + e.Name()
		switch {
		case e.IsDir():
			err = t.nested(p, dir, 1)
		case path.Ext(p) == "": // it may lead to a directory of definitions
			t.symlink(p)
		case path.Ext(p) == ".json": // a payload to try, or a resource in the wrong language
			t.warn(
				p,
				"unsupported-path",
				"no definition is read from here",
				"if it is one, move it to "+clip(dir+"/"+stem(e.Name())+".yaml"),
			)

		case path.Ext(p) != ".yaml":
			err = t.misplaced(p, dir+"/"+stem(e.Name())+".yaml")
		default:
			err = t.take(e, entry{path: p, kind: kind, name: stem(e.Name())})
		}

		if err != nil {
			return err
		}
	}

	return nil
}

// mainFile is the file that holds a resource which has a directory of its own.
func mainFile(kind fileKind) string {
	return map[fileKind]string{kindAutomation: "automation.md", kindAgent: "agent.md", kindSkill: "SKILL.md"}[kind]
}

// folders reads automations/, agents/ or a skills/ directory: a directory for
// each resource, with one main file.
func (t *tree) folders(dir string, kind fileKind, agent string) error {
	list, err := t.list(dir, func(e fs.DirEntry) bool {
		name := e.Name()
		return !litter(name) &&
			(name[0] != '.' && (e.IsDir() || e.Type()&fs.ModeSymlink != 0) || isMarkdown(name) || isYAML(name))
	})
	if err != nil {
		return err
	}

	// A directory for each resource makes this most of the walk: the directories
	// are read side by side, and what they hold is taken in order.
	parts := make([]*tree, len(list))
	errs := make([]error, len(list))
	parallel(len(list), func(i int) {
		if e := list[i]; e.IsDir() {
			part := t.part()
			parts[i] = part
			errs[i] = t.memory.walk(
				part,
				dir+"/"+e.Name(),
				func() error { return part.folder(dir, e.Name(), kind, agent) },
			)
		}
	})

	for i, e := range list {
		name := e.Name()
		p := dir + "/" + name
		switch {
		case e.IsDir():
			t.add(parts[i])
			err = errs[i]
		case kind == kindAutomation && path.Ext(name) == ".md":
			if e.Type().IsRegular() {
				t.warn(
					p,
					"flat-automation",
					"an automation has a directory of its own",
					fmt.Sprintf("move it to %s/%s/automation.md", dir, clip(stem(name))),
				)
			}

			err = t.take(e, entry{path: p, kind: kind, name: stem(name), flat: true})

		case isMarkdown(name), isYAML(name):
			err = t.misplaced(p, dir+"/"+stem(name)+"/"+mainFile(kind))
		default:
			t.symlink(p)
		}

		if err != nil {
			return err
		}
	}

	return nil
}

// folder reads the directory of one automation, agent or skill.
func (t *tree) folder(parent, name string, kind fileKind, agent string) error {
	dir, want := parent+"/"+name, mainFile(kind)
	files := false
	list, err := t.list(dir, func(e fs.DirEntry) bool {
		n := e.Name()
		if n[0] == '.' {
			return false
		}

		files = files || !e.IsDir()
		return n == want || nearMain(n, kind) || e.IsDir() || kind == kindAgent && fold(n) == "skills"
	})
	if err != nil {
		return err
	}

	found := false
	for _, e := range list {
		n := e.Name()
		p := dir + "/" + n
		switch {
		case n == want:
			found = true
			if e.IsDir() {
				t.report(p, "unsupported-path", "this is a directory; a file belongs here", "")
				break
			}

			err = t.take(e, entry{path: p, kind: kind, name: name, agent: agent})

		case !e.IsDir() && nearMain(n, kind):
			found = true
			err = t.misplaced(p, dir+"/"+want)
		case kind == kindAgent && e.Type()&fs.ModeSymlink != 0 && n == "skills":
			t.symlink(p)
		case kind == kindAgent && n == "skills" && e.IsDir():
			err = t.folders(p, kindSkill, name)
		case kind == kindAgent && e.IsDir() && (fold(n) == "skill" || fold(n) == "skills"):
			err = t.nearFolders(p, dir+"/skills", kindSkill)
		}

		if err != nil {
			return err
		}
	}

	for _, e := range list {
		if !e.IsDir() || e.Name() == want || found && kind == kindSkill ||
			kind == kindAgent && (fold(e.Name()) == "skill" || fold(e.Name()) == "skills") {
			continue
		}

		depth := 1
		if found {
			depth = 0 // its own files are its own affair
		}
		if err := t.nestedFolders(dir+"/"+e.Name(), parent, kind, depth); err != nil {
			return err
		}
	}

	if !found && files && len(t.problems) == 0 {
		t.warn(
			dir,
			"missing-path",
			fmt.Sprintf("this directory has no %s, so nothing is defined here", want),
			"add "+clip(dir)+"/"+want+", or move the files elsewhere",
		)
	}

	return nil
}
