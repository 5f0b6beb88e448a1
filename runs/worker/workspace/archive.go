//go:build unix

package workspace

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Bounds of an archive.
const (
	maxArchived = 64 << 20 // bytes of all files together
	maxFiles    = 10_000
	maxDepth    = 60  // directories in each other
	maxPath     = 500 // bytes of a name
	maxStream   = 2*maxArchived + maxFiles*4096
)

// Tree is a directory that an archive holds, or is unpacked into.
type Tree struct {
	Path   string
	Prefix string                 // of its files in the archive
	Only   []string               // the files and directories that belong to it; nil: all
	Skip   func(name string) bool // of what lies directly in it; nil: none
}

// has reports whether a file belongs to the tree, or a directory may hold what does.
func (t Tree) has(name string, dir bool) bool {
	if t.Skip != nil && t.Skip(firstOf(name)) {
		return false
	}
	if t.Only == nil {
		return true
	}

	for _, place := range t.Only {
		if name == place || strings.HasPrefix(name, place+"/") || dir && strings.HasPrefix(place, name+"/") {
			return true
		}
	}
	return false
}

func firstOf(name string) string {
	first, _, _ := strings.Cut(name, "/")
	return first
}

// LeftOut lists what an archive omits: files beyond its bounds, links, and special files.
type LeftOut struct {
	Files    int      `json:"files"`
	Examples []string `json:"examples"`
}

func (l *LeftOut) note(name string) {
	if l.Files++; len(l.Examples) < 5 {
		l.Examples = append(l.Examples, name)
	}
}

// packer writes an archive.
type packer struct {
	out    *tar.Writer
	have   map[string]bool
	size   int64
	uid    uint32 // whose files are packed
	left   LeftOut
	failed error
}

// Pack writes the regular files of directories into an archive, and returns how many it has. A file of another
// owner than the directory's, or with more than one name, is left out: it may not be the harness's own. Nothing of
// the run may live any more.
func Pack(w io.Writer, trees []Tree) (packed int, left LeftOut, err error) {
	zip, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return 0, left, err
	}

	p := &packer{out: tar.NewWriter(zip), have: map[string]bool{}}
	for _, t := range trees {
		dir, err := openDir(unix.AT_FDCWD, t.Path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, left, err
		}

		var stat unix.Stat_t
		if err := unix.Fstat(int(dir.Fd()), &stat); err != nil {
			dir.Close()
			return 0, left, err
		}

		p.uid = stat.Uid
		p.walk(dir, t, "", 0)
		dir.Close()
	}

	return len(p.have), p.left, errors.Join(p.failed, p.out.Close(), zip.Close())
}

func (p *packer) walk(dir *os.File, t Tree, below string, depth int) {
	err := each(dir, func(e entry) bool {
		name := path.Join(below, e.name)
		if !t.has(name, e.isDir()) {
			return true
		}

		switch {
		case !e.isDir() && !e.isFile(), depth > maxDepth, len(name) > maxPath:
			p.left.note(name)
		case e.isDir():
			child, err := openClosed(dir, e.name, 0o500)
			if err != nil {
				p.left.note(name)
				return true
			}
			p.walk(child, t, name, depth+1)
			child.Close()
		case !p.have[path.Join(t.Prefix, name)]:
			p.file(dir, e.name, path.Join(t.Prefix, name))
		}

		return p.failed == nil
	})
	if p.failed == nil {
		p.failed = err
	}
}

// file packs one file.
func (p *packer) file(dir *os.File, base, name string) {
	const flags = unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC
	fd, err := unix.Openat(int(dir.Fd()), base, flags, 0)
	if err != nil {
		p.left.note(name)
		return
	}

	file := os.NewFile(uintptr(fd), base)
	defer file.Close()

	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		p.failed = err
		return
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFREG || stat.Nlink != 1 || stat.Uid != p.uid ||
		p.size+stat.Size > maxArchived || len(p.have) >= maxFiles {
		p.left.note(name)
		return
	}

	header := &tar.Header{Name: name, Mode: int64(stat.Mode & 0o700), Size: stat.Size}
	if err := p.out.WriteHeader(header); err != nil {
		p.failed = err
		return
	}
	if _, err := io.CopyN(p.out, file, stat.Size); err != nil {
		p.failed = err
		return
	}

	p.have[name] = true
	p.size += stat.Size
}

// Unpack writes the files of an archive into new directories, which nobody else may write to yet. Whoever made
// the archive may be hostile: a file that belongs to none of the trees, anything that is no regular file, and an
// archive beyond the bounds of Pack is an error.
func Unpack(r io.Reader, trees []Tree) error {
	zip, err := gzip.NewReader(r)
	if err != nil {
		return fmt.Errorf("archive: %w", err)
	}

	roots := map[string]*os.Root{}
	for _, t := range trees {
		if err := os.MkdirAll(t.Path, 0o700); err != nil {
			return err
		}
		root, err := os.OpenRoot(t.Path)
		if err != nil {
			return err
		}
		defer root.Close()
		roots[t.Prefix] = root
	}

	in := tar.NewReader(io.LimitReader(zip, maxStream))
	files, size := 0, int64(0)
	for {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("archive: %w", err)
		}

		files++
		if size += max(0, header.Size); files > maxFiles || size > maxArchived || header.Size < 0 {
			return errors.New("archive: more than it may hold")
		}
		if err := unpackFile(in, header, trees, roots); err != nil {
			return err
		}
	}
}

func unpackFile(in io.Reader, h *tar.Header, trees []Tree, roots map[string]*os.Root) error {
	prefix, name, _ := strings.Cut(h.Name, "/")
	bad := h.Typeflag != tar.TypeReg || path.Clean(name) != name || !filepath.IsLocal(name) || name == "." ||
		len(name) > maxPath || strings.Count(name, "/") > maxDepth+1 || strings.ContainsAny(name, "\x00\\")
	if bad {
		return fmt.Errorf("archive: %.100q may not be in it", h.Name)
	}

	for _, t := range trees {
		if t.Prefix != prefix {
			continue
		}
		if !t.has(name, false) {
			return fmt.Errorf("archive: %.100q may not be in it", h.Name)
		}
		return writeNew(roots[prefix], name, fs.FileMode(h.Mode)&0o700|0o600, in)
	}

	return nil // of a home that this harness does not have
}

func writeNew(root *os.Root, name string, mode fs.FileMode, in io.Reader) error {
	if err := root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return fmt.Errorf("archive: %w", err)
	}

	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return fmt.Errorf("archive: %w", err)
	}

	_, err = io.Copy(file, in)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	return nil
}
