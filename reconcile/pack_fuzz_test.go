package reconcile

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"millwright/forge/bundle"
	"millwright/schema"

	"github.com/go-git/go-git/v5/plumbing"
)

// FuzzPack stores foreign bytes as a pack, and reads what it says main points to.
func FuzzPack(f *testing.F) {
	seeds, err := filepath.Glob("testdata/packs/*.pack")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range seeds {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, false)
		f.Add(data, true)
	}
	f.Add([]byte("PACK\x00\x00\x00\x02\x00\x00\x00\x01"), false)
	f.Fuzz(func(t *testing.T, data []byte, thin bool) {
		source, err := Git(GitConfig{URL: "https://git.example.com/r.git", CloneDir: t.TempDir(), MaxObjectBytes: 1 << 20, MaxUnpackedBytes: 4 << 20})
		if err != nil {
			t.Fatal(err)
		}
		defer source.Close()
		g := source.(*gitSource)
		if err := g.store(bytes.NewReader(data), thin); err != nil {
			if !errors.Is(err, bundle.ErrDamaged) && !errors.As(err, new(limitError)) {
				t.Fatalf("neither damaged nor too large: %v", err)
			}
			return
		}
		commits, err := g.storage().IterEncodedObjects(plumbing.CommitObject)
		if err != nil {
			return
		}
		_ = commits.ForEach(func(c plumbing.EncodedObject) error {
			if snap, err := g.read(c.Hash()); err == nil {
				schema.Load(snap.FS, nil)
			}
			return nil
		})
	})
}
