package bundle_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"millwright/forge/bundle"
)

// FuzzOpen reads foreign bytes as a bundle and as its patch: they are accepted or refused, with a reason.
func FuzzOpen(f *testing.F) {
	r := newRepository(f, map[string]string{"a": "1\n", "dir/b": "2\n", "c.bin": noise(300)})
	head := r.commit(map[string]string{"a": "2\n", "dir/b": "", "dir/c": "3\n", "c.bin": noise(310)})
	content, patch := r.bundle(head), r.patch(head)
	f.Add(content, []byte(patch))
	f.Add(content, []byte(strings.ReplaceAll(patch, "-", "+")))
	f.Add(content[:len(content)/2], []byte("diff --git a/a b/a\ndeleted file mode 100644\n"))
	f.Add([]byte("# v2 git bundle\n\n"), []byte("--- a\n+++ b\n@@ -1 +1 @@\n-1\n+2\n"))

	f.Fuzz(func(t *testing.T, content, patch []byte) {
		var refused *bundle.RefusedError
		b, err := bundle.Open(bytes.NewReader(content), r.base)
		if err != nil {
			if !errors.As(err, &refused) {
				t.Fatalf("no reason: %v", err)
			}
			return
		}
		defer b.Close()

		if len(b.Paths()) == 0 || len(b.Head) != 40 {
			t.Errorf("%s with %d paths", b.Head, len(b.Paths()))
		}
		if err := b.ShownBy(bytes.NewReader(patch)); err != nil && !errors.As(err, &refused) {
			t.Fatalf("no reason: %v", err)
		}
	})
}
