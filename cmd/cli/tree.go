package cli

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"millwright/schema"
)

// root is a tree to check: a directory, or files of one.
type root struct {
	wd   string   // the working directory
	dir  string   // where it is
	show string   // the same, relative to the working directory, with forward slashes
	only []string // the files of it to speak of, relative to it; nil for all
	err  error    // why there is nothing to check
}

// roots finds the trees that paths name. A file stands for itself in the tree that it belongs to. What
// cannot be found is a root too, so that it is reported with the rest.
func roots(paths []string) ([]root, error) {
	wd, err := os.Getwd()
	if err != nil {
		return nil, err
	}

	var all []root
	for _, p := range paths {
		r := rootOf(wd, p)
		same := func(o root) bool { return o.dir == r.dir && o.err == nil && r.err == nil }
		if i := slices.IndexFunc(all, same); i < 0 {
			all = append(all, r)
		} else if all[i].only == nil || r.only == nil {
			all[i].only = nil // the whole tree was asked for as well
		} else {
			all[i].only = append(all[i].only, r.only...)
		}
	}

	return all, nil
}

func rootOf(wd, p string) root {
	abs := p
	if !filepath.IsAbs(abs) {
		abs = filepath.Join(wd, p)
	}

	r := root{wd: wd, dir: filepath.Clean(abs), show: shownPath(wd, abs)}
	info, err := os.Stat(abs)
	if err != nil || info.IsDir() {
		return r // the loader reports the problems of a directory
	}

	dir, file, ok := schema.RootOf(abs)
	if !ok {
		r.err = errors.New(
			"no definition is read from a file here: give the directory that holds webhooks/ and automations/",
		)
		return r
	}

	return root{wd: wd, dir: dir, show: shownPath(wd, dir), only: []string{file}}
}

func shownPath(wd, abs string) string {
	rel, err := filepath.Rel(wd, abs)
	if err != nil {
		rel = abs
	}
	return filepath.ToSlash(rel)
}

// shown is a path of the tree as it is to be shown.
func (r root) shown(p string) string {
	if p == "." {
		return r.show
	}
	return shownPath(r.wd, filepath.Join(r.dir, filepath.FromSlash(p)))
}

// noDefinition returns the problem of a tree without definitions: a check of the wrong directory must not pass
// for a good one. With CI set in the environment it is an error.
func (r root) noDefinition() schema.Problem {
	p := schema.NoDefinition(r.elsewhere())
	if r.only != nil {
		p.Message = "no definition is read from this file, so nothing was checked"
		p.Path = r.only[0]
	}
	if ci := os.Getenv("CI"); ci != "" && ci != "false" && ci != "0" {
		p.Severity = schema.SeverityError
	}

	return p
}

// elsewhere names a definition outside of the tree: above it or below it.
func (r root) elsewhere() string {
	if r.only != nil {
		return "give the directory that holds webhooks/ and automations/"
	}
	if dir, _, ok := schema.RootOf(filepath.Join(r.dir, "x")); ok {
		return "check the directory " + shownPath(r.wd, dir)
	}
	if dir := schema.FindDefinition(os.DirFS(r.dir)); dir != "" {
		return "there is one in " + r.shown(dir)
	}

	return "a definition is a directory with webhooks/ and automations/: millwright init makes one"
}

// wants reports whether problems of a path of the tree are to be shown.
func (r root) wants(p string) bool {
	return r.only == nil || p == "." || slices.Contains(r.only, p)
}

// reading is a directory that notes, if asked to, what the loader looks at.
type reading struct {
	fs.FS
	noting bool
	opens  atomic.Int64
	mu     sync.Mutex
	opened map[string]bool
	listed map[string][]fs.DirEntry
}

func newReading(dir string, noting bool) *reading {
	return &reading{FS: os.DirFS(dir), noting: noting, opened: map[string]bool{}, listed: map[string][]fs.DirEntry{}}
}

// Open opens a file or directory.
func (r *reading) Open(name string) (fs.File, error) {
	f, err := r.FS.Open(name)
	if n := r.opens.Add(1); n%4096 == 0 {
		allowMemory(n)
	}
	if !r.noting {
		return f, err
	}

	r.mu.Lock()
	defer r.mu.Unlock()

	r.opened[name] = true
	if d, ok := f.(fs.ReadDirFile); ok && err == nil {
		return &openedFile{d, r, name}, nil
	}

	return f, err
}

type openedFile struct {
	fs.ReadDirFile
	in   *reading
	name string
}

// ReadDir lists a directory.
func (f *openedFile) ReadDir(n int) ([]fs.DirEntry, error) {
	entries, err := f.ReadDirFile.ReadDir(n)
	f.in.mu.Lock()
	defer f.in.mu.Unlock()
	f.in.listed[f.name] = append(f.in.listed[f.name], entries...)
	return entries, err
}

// files returns what a server needs to judge the tree as the loader did: the files at resource paths with
// their contents, and the names of those that are nearly there. Some trees cannot be sent.
func (r *reading) files(loaded *schema.Result) ([]schema.File, error) {
	if loaded.Err != nil {
		return nil, errors.New("the tree cannot be read in full")
	}

	var out []schema.File
	size := 0
	for name := range r.opened {
		if _, dir := r.listed[name]; dir {
			continue
		}

		src := loaded.Source(name)
		switch {
		case src == nil:
			return nil, fmt.Errorf("%s is too large to send", name)
		case !utf8.Valid(src):
			return nil, fmt.Errorf("%s is not UTF-8", name)
		}

		size += len(src)
		out = append(out, schema.File{Path: name, Content: string(src)})
	}

	for dir, entries := range r.listed {
		for _, e := range entries {
			p := path.Join(dir, e.Name())
			if !r.opened[p] && e.Type().IsRegular() && nearDefinition(dir, e.Name()) && fs.ValidPath(p) {
				out = append(out, schema.File{Path: p})
			}
		}
	}

	if len(out) > MaxSentFiles || size > maxSentBytes {
		return nil, fmt.Errorf(
			"it has %d files with %d bytes; a server takes %d files and %d bytes",
			len(out),
			size,
			MaxSentFiles,
			maxSentBytes,
		)
	}

	slices.SortFunc(out, func(a, b schema.File) int { return strings.Compare(a.Path, b.Path) })
	return out, nil
}

// Limits of a tree that a server accepts. The rest of 8 MiB is for the JSON around it.
const (
	MaxSentFiles = 2000
	maxSentBytes = 7 << 20
)

// nearDefinition reports whether the loader could have something to say about a file that it did not open.
func nearDefinition(dir, name string) bool {
	ext := strings.ToLower(path.Ext(name))
	if dir == "." {
		switch strings.ToLower(strings.TrimSuffix(name, path.Ext(name))) {
		case "factory", "webhooks", "automations", "automation", "agents", "runners", "environments", "notifications",
			"secrets", "skills":
			return true
		}
		return false
	}
	return slices.Contains([]string{".yaml", ".yml", ".json", ".md", ".markdown", ".age"}, ext)
}

// mark is a hash of everything that the loader looked at.
func (r *reading) mark(loaded *schema.Result) [sha256.Size]byte {
	h := sha256.New()
	names := make([]string, 0, len(r.opened))
	for name := range r.opened {
		names = append(names, name)
	}

	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(h, "%q %d\n", name, len(loaded.Source(name)))
		h.Write(loaded.Source(name))
		for _, e := range r.listed[name] {
			if dir := name; e.IsDir() || nearDefinition(dir, e.Name()) {
				fmt.Fprintf(h, "%q %v\n", e.Name(), e.Type())
			}
		}
	}

	for _, p := range loaded.Problems { // such as a file that was too large to keep
		fmt.Fprintf(h, "%q %d %d %q\n", p.Path, p.Line, p.Column, p.Message)
	}

	return [sha256.Size]byte(h.Sum(nil))
}

// dirs returns the directories that the loader listed.
func (r *reading) dirs() []string {
	out := make([]string, 0, len(r.listed))
	for dir := range r.listed {
		out = append(out, dir)
	}
	return out
}

// replaceFile writes a file anew, all at once, and keeps its mode.
func replaceFile(name string, content []byte) error {
	info, err := os.Stat(name)
	if err != nil {
		return err
	}

	tmp, err := os.CreateTemp(filepath.Dir(name), ".millwright-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // gone already when all went well

	_, err = tmp.Write(content)
	if err = errors.Join(err, tmp.Chmod(info.Mode().Perm()), tmp.Close()); err != nil {
		return err
	}

	return os.Rename(tmp.Name(), name)
}
