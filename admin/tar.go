package admin

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"millwright/api"
	"millwright/schema"
)

// writeTar returns sorted files as a tar. The same files and time give the same bytes.
func writeTar(files []schema.File, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range files {
		h := &tar.Header{
			Name:     f.Path,
			Typeflag: tar.TypeReg,
			Mode:     0o644,
			Size:     int64(len(f.Content)),
			ModTime:  at.Truncate(time.Second),
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := io.WriteString(w, f.Content); err != nil {
			return nil, err
		}
	}

	err := w.Close()
	return out.Bytes(), err
}

// readTar returns the files of a tar: the last one of each path, as unpacking it would leave them. What is
// in .git is left out, so that a checkout may be sent as it is. Links are refused, because a definition has
// none; so is what a managed definition cannot have, and a tar without its end: what was cut off
// would be deleted.
func readTar(r io.Reader) ([]DefinitionFile, error) {
	var files []DefinitionFile
	at := map[string]int{}
	left := int64(maxManagedBytes)
	var end tail
	for archive := tar.NewReader(io.TeeReader(r, &end)); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) && !bytes.Equal(end, endOfTar) {
			return nil, api.Problem(
				"invalid_request",
				"the body is a tar that was cut off: the mark of its end is missing",
			)
		} else if errors.Is(err, io.EOF) {
			return files, checkPaths(files)
		} else if err != nil {
			return nil, api.Problem("invalid_request", "the body is not a tar that can be read")
		}

		name := strings.TrimSuffix(strings.TrimPrefix(path.Clean(h.Name), "./"), "/")
		if name == "." || name == ".git" || strings.HasPrefix(name, ".git/") {
			continue
		}

		switch h.Typeflag {
		case tar.TypeReg:
		case tar.TypeDir, tar.TypeXGlobalHeader:
			continue
		default:
			return nil, api.InvalidField(field(name), "is neither a file nor a directory: a definition has no links")
		}

		if h.Size > schema.MaxFileBytes {
			return nil, api.InvalidField(
				field(name),
				"the file has %d bytes; at most %d are held",
				h.Size,
				schema.MaxFileBytes,
			)
		}

		content, err := io.ReadAll(io.LimitReader(archive, schema.MaxFileBytes+1))
		if err != nil {
			return nil, api.Problem("invalid_request", "the body is not a tar that can be read")
		}

		if left -= int64(len(content)); left < 0 || len(files) >= maxManagedFiles {
			return nil, api.InvalidField(
				"files",
				"there are more than %d files, or more than %d bytes in them",
				maxManagedFiles,
				maxManagedBytes,
			)
		}

		f := DefinitionFile{Path: name, Content: string(content)}
		if i, again := at[name]; again {
			files[i] = f
			continue
		}

		at[name] = len(files)
		files = append(files, f)
	}
}

// endOfTar are the two empty blocks that end a tar (POSIX.1-2017, pax, ustar Interchange Format).
var endOfTar = make([]byte, 2*512)

// tail keeps the last bytes written to it, as many as endOfTar has.
type tail []byte

// Write never fails.
func (t *tail) Write(p []byte) (int, error) {
	all := append(*t, p[max(0, len(p)-len(endOfTar)):]...)
	*t = append((*t)[:0], all[max(0, len(all)-len(endOfTar)):]...)
	return len(p), nil
}

// field returns a path from a tar as the field of a problem.
func field(name string) string {
	if !utf8.ValidString(name) || len(name) > maxPathBytes {
		return "path"
	}
	return name
}
