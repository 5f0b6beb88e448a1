//go:build unix

package workspace

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// RefusedError is the reason why an archive is not taken.
type RefusedError struct{ Reason string }

func (e RefusedError) Error() string { return e.Reason }

// Receive writes the directories, files and links of a tar archive into a directory that nobody else writes
// to yet: at most max bytes, counting at least 4096 for each entry. Whoever made the archive may be hostile:
// nothing is written outside of the directory. Special files are left out.
func Receive(r io.Reader, dir string, max int64) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()

	in := tar.NewReader(r)
	for size := int64(0); ; {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("archive: %w", err)
		}

		if size += block + header.Size; size > max {
			return RefusedError{fmt.Sprintf("the files have more than %d bytes", max)}
		}
		if err := receiveEntry(root, header, in); err != nil {
			return err
		}
	}
}

func receiveEntry(root *os.Root, h *tar.Header, in io.Reader) error {
	name := path.Clean(h.Name)
	if name == "." {
		return nil
	}
	if !filepath.IsLocal(name) || strings.ContainsRune(name, 0) {
		return RefusedError{fmt.Sprintf("the archive has a file %.100q", h.Name)}
	}
	if err := root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return received(err)
	}

	switch h.Typeflag {
	case tar.TypeDir:
		return received(root.MkdirAll(name, 0o700))
	case tar.TypeSymlink:
		return received(root.Symlink(h.Linkname, name))
	case tar.TypeLink:
		return received(root.Link(path.Clean(h.Linkname), name))
	case tar.TypeReg:
		file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fs.FileMode(h.Mode)&0o700|0o600)
		if err != nil {
			return received(err)
		}
		_, err = io.Copy(file, in)
		return errors.Join(err, file.Close())
	}
	return nil
}

// received returns the reason of an error, for a path that is the archive's.
func received(err error) error {
	if place, ok := errors.AsType[*fs.PathError](err); ok {
		return RefusedError{fmt.Sprintf("%.100q: %v", place.Path, place.Err)}
	}
	if link, ok := errors.AsType[*os.LinkError](err); ok {
		return RefusedError{fmt.Sprintf("%.100q: %v", link.New, link.Err)}
	}
	return err
}
