package bundle_test

import (
	"bytes"
	"crypto/sha1"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"millwright/forge/bundle"
)

// summed returns a bundle whose pack ends with the sum of what is before, as far as it is one: else nothing
// behind the check of the sum is reached.
func summed(content []byte) []byte {
	at := bytes.Index(content, []byte("PACK"))
	if at < 0 || len(content)-at <= sha1.Size {
		return content
	}

	end := len(content) - sha1.Size
	if content[len(content)-1] == '\n' { // behind the pack
		end--
	}
	sum := sha1.Sum(content[at:end])
	return slices.Concat(content[:end], sum[:])
}

// FuzzOpen reads foreign bytes as a bundle and as its patch: they are accepted or refused, with a reason.
func FuzzOpen(f *testing.F) {
	if _, err := os.Stat("/dev/shm"); err == nil { // bundles are unpacked into files
		f.Setenv("TMPDIR", "/dev/shm")
	}

	r := newRepository(f, map[string]string{"a": "1\n", "dir/b": "2\n", "c.bin": noise(300)})
	head := r.commit(map[string]string{"a": "2\n", "dir/b": "", "dir/c": "3\n", "c.bin": noise(310)})
	content, patch := r.bundle(head), r.patch(head)
	f.Add(content, []byte(patch))
	f.Add(content, []byte(strings.ReplaceAll(patch, "-", "+")))
	f.Add(content[:len(content)/2], []byte("diff --git a/a b/a\ndeleted file mode 100644\n"))
	f.Add([]byte("# v2 git bundle\n\n"), []byte("--- a\n+++ b\n@@ -1 +1 @@\n-1\n+2\n"))

	f.Fuzz(func(t *testing.T, content, patch []byte) {
		var refused *bundle.RefusedError
		b, err := bundle.Open(bytes.NewReader(summed(content)), r.base)
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
