package admin

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"millwright/api"
)

// DefinitionFile is a file of a definition tree.
type DefinitionFile struct {
	Path    string `json:"path" minLength:"1" maxLength:"1024" doc:"Path relative to the root of the tree, with forward slashes" example:"webhooks/alerts.yaml"`
	Content string `json:"content" doc:"Text of the file"`
}

// maxPathDepth bounds the elements of a path; the work for a path grows with their square.
const maxPathDepth = 32

// checkPaths checks that each path names a different file.
func checkPaths(files []DefinitionFile) error {
	seen := make(map[string]bool, len(files))
	for i, f := range files {
		field := fmt.Sprintf("files[%d].path", i)
		switch {
		case !validPath(f.Path):
			return api.InvalidField(
				field,
				"%q is not a path relative to the root of the tree: elements are separated by single "+
					"forward slashes, and none is . or ..",
				f.Path,
			)

		case strings.Count(f.Path, "/") >= maxPathDepth:
			return api.InvalidField(field, "has more than %d elements", maxPathDepth)
		case seen[f.Path]:
			return api.InvalidField(field, "%q is here twice", f.Path)
		}

		seen[f.Path] = true
	}

	for i, f := range files {
		for dir := path.Dir(f.Path); dir != "."; dir = path.Dir(dir) {
			if seen[dir] {
				return api.InvalidField(
					fmt.Sprintf("files[%d].path", i),
					"%q lies in %q, which is a file",
					f.Path,
					dir,
				)
			}
		}
	}

	return nil
}

// newTree returns files as a file system. Invalid and duplicate paths are an invalid_request. The tree is
// an uncompressed zip archive in memory: the standard library reads it as a file system with directories,
// in logarithmic time and concurrently.
func newTree(files []DefinitionFile) (fs.FS, error) {
	if err := checkPaths(files); err != nil {
		return nil, err
	}

	var archive bytes.Buffer
	w := zip.NewWriter(&archive)
	for _, f := range files {
		entry, err := w.CreateHeader(&zip.FileHeader{Name: f.Path, Method: zip.Store})
		if err != nil {
			return nil, err
		}
		if _, err := entry.Write([]byte(f.Content)); err != nil {
			return nil, err
		}
	}

	if err := w.Close(); err != nil {
		return nil, err
	}

	return zip.NewReader(bytes.NewReader(archive.Bytes()), int64(archive.Len()))
}

// validPath reports whether p names a file in a tree. It refuses backslashes, which an archive would take
// for slashes.
func validPath(p string) bool {
	return fs.ValidPath(p) && p != "." && !strings.Contains(p, `\`)
}
