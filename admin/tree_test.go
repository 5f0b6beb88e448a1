package admin

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"millwright/api"
)

// FuzzNewTree: a list of paths is refused as the client's mistake, or it becomes a tree of exactly these
// files.
func FuzzNewTree(f *testing.F) {
	for _, paths := range []string{
		"webhooks/a.yaml", "a\na/b", "a/b\na", "a\na", "../a", "a//b", "a/./b", "/a", "a/", "", ".", "a\\b", "\x00", "é/ü", "a b/%2F",
		"b/c\na\nb/a\nb.d\nb/c.d/e", "C:\\x", "\xff\xfe", strings.Repeat("a/", 200) + "b",
	} {
		f.Add(paths)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var files []DefinitionFile
		var paths []string
		for i, p := range strings.Split(text, "\n") {
			if i == 50 {
				break
			}
			files = append(files, DefinitionFile{Path: p, Content: strings.Repeat(p, i)})
			paths = append(paths, p)
		}
		tree, err := newTree(files)
		if err != nil {
			var problem *api.Error
			if !errors.As(err, &problem) || problem.Code != "invalid_request" || len(problem.Errors) != 1 {
				t.Fatalf("%q: %v", paths, err)
			}
			return
		}
		for _, file := range files {
			got, err := fs.ReadFile(tree, file.Path)
			if err != nil || string(got) != file.Content {
				t.Fatalf("%q: read %q: %q, %v", paths, file.Path, got, err)
			}
		}
		var found []string
		err = fs.WalkDir(tree, ".", func(p string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				found = append(found, p)
			}
			return err
		})
		slices.Sort(found)
		slices.Sort(paths)
		if err != nil || !slices.Equal(found, paths) {
			t.Fatalf("found %q, want %q: %v", found, paths, err)
		}
	})
}

func TestNewTreeIsAFileSystem(t *testing.T) {
	tree, err := newTree([]DefinitionFile{{"factory.yaml", "name: x"}, {"webhooks/b.yaml", "b"}, {"webhooks/a.yaml", ""}, {"automations/ci/automation.md", "---"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := fstest.TestFS(tree, "factory.yaml", "webhooks/a.yaml", "webhooks/b.yaml", "automations/ci/automation.md"); err != nil {
		t.Error(err)
	}
}
