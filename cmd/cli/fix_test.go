package cli

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
)

func TestFixLeavesWhatHasChanged(t *testing.T) {
	tree := writeTree(t, map[string]string{"webhooks/hook.yaml": "secretname: A\n"})
	v := validation{Streams: Streams{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}, fix: true}
	var err error
	if v.roots, err = roots([]string{tree}); err != nil {
		t.Fatal(err)
	}
	if _, err := v.check(t.Context()); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(tree, filepath.FromSlash("webhooks/hook.yaml"))
	if err := os.WriteFile(file, []byte("secretname: B\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var e *Exit
	if n, err := v.mend(); n != 0 || !errors.As(err, &e) || e.Status != ExitUnreachable {
		t.Errorf("%d fixes, error %v", n, err)
	}
	if now, _ := os.ReadFile(file); string(now) != "secretname: B\n" {
		t.Errorf("the file was overwritten: %s", now)
	}
}

// writeTree writes files to a new directory and returns the directory.
func writeTree(t testing.TB, content map[string]string) string {
	t.Helper()
	tree := fstest.MapFS{}
	for name, text := range content {
		tree[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o640}
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, tree); err != nil {
		t.Fatal(err)
	}

	return dir
}
