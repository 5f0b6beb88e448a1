package schema

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// File is a definition file outside a file system, as the API takes it.
type File struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

// FilesFS makes a read-only file system of files. It refuses a path that is not
// plain (fs.ValidPath: relative, with forward slashes, without "." and ".."),
// one that is there twice, and one that is both a file and a directory.
func FilesFS(files []File) (fs.FS, error) {
	m := memoryFS{".": {dir: true}}
	for _, f := range files {
		if !fs.ValidPath(f.Path) || f.Path == "." {
			return nil, fmt.Errorf("path %s is not a plain relative path with forward slashes", quoted(f.Path))
		}
		if _, twice := m[f.Path]; twice {
			return nil, fmt.Errorf("path %s is there twice", quoted(f.Path))
		}

		m[f.Path] = &memoryFile{name: path.Base(f.Path), content: f.Content}
		child := f.Path
		for dir := path.Dir(child); ; dir = path.Dir(dir) {
			parent, ok := m[dir]
			if !ok {
				parent = &memoryFile{name: path.Base(dir), dir: true}
				m[dir] = parent
			}
			if !parent.dir {
				return nil, fmt.Errorf("path %s is both a file and a directory", quoted(dir))
			}

			parent.children = append(parent.children, m[child])
			if ok || dir == "." {
				break
			}

			child = dir
		}
	}

	for _, f := range m {
		slices.SortFunc(f.children, func(a, b *memoryFile) int { return strings.Compare(a.name, b.name) })
	}

	return m, nil
}

type memoryFS map[string]*memoryFile

// memoryFile is a file or directory, and its own fs.FileInfo and fs.DirEntry.
type memoryFile struct {
	name     string
	content  string
	dir      bool
	children []*memoryFile
}

func (m memoryFS) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}

	f, ok := m[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	if f.dir {
		return &openDir{memoryFile: f}, nil
	}

	return &openFile{memoryFile: f, Reader: strings.NewReader(f.content)}, nil
}

func (f *memoryFile) Name() string               { return f.name }
func (f *memoryFile) Size() int64                { return int64(len(f.content)) }
func (f *memoryFile) ModTime() time.Time         { return time.Time{} }
func (f *memoryFile) IsDir() bool                { return f.dir }
func (f *memoryFile) Sys() any                   { return nil }
func (f *memoryFile) Type() fs.FileMode          { return f.Mode().Type() }
func (f *memoryFile) Info() (fs.FileInfo, error) { return f, nil }

func (f *memoryFile) Mode() fs.FileMode {
	if f.dir {
		return fs.ModeDir | 0o555
	}
	return 0o444
}

type openFile struct {
	*memoryFile
	*strings.Reader
}

func (f *openFile) Size() int64                { return f.memoryFile.Size() }
func (f *openFile) Stat() (fs.FileInfo, error) { return f.memoryFile, nil }
func (f *openFile) Close() error               { return nil }

type openDir struct {
	*memoryFile
	at int
}

func (d *openDir) Stat() (fs.FileInfo, error) { return d.memoryFile, nil }
func (d *openDir) Close() error               { return nil }

func (d *openDir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.name, Err: errors.New("is a directory")}
}

func (d *openDir) ReadDir(n int) ([]fs.DirEntry, error) {
	rest := d.children[d.at:]
	if n > 0 {
		if len(rest) == 0 {
			return nil, io.EOF
		}
		rest = rest[:min(n, len(rest))]
	}

	d.at += len(rest)
	out := make([]fs.DirEntry, len(rest))
	for i, c := range rest {
		out[i] = c
	}

	return out, nil
}
