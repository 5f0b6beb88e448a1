package checkout_test

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"millwright/runs/worker/checkout"
)

// TestDiskFills has the disk of the worker fill while a mirror is fetched, and while files are checked out. Once there
// is room, the same mirrors serve again.
func TestDiskFills(t *testing.T) {
	noise := make([]byte, 12<<20)
	rand.Read(noise)
	for name, body := range map[string]string{
		"fetch":    string(noise),
		"checkout": strings.Repeat("text\n", 12<<20/5),
	} {
		t.Run(name, func(t *testing.T) {
			disk := t.TempDir()
			if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=8m,mode=0700"); err != nil {
				t.Skipf("a small file system cannot be mounted: %v", err)
			}
			t.Cleanup(func() { unix.Unmount(disk, unix.MNT_DETACH) })

			large, small := newRemote(t), newRemote(t)
			large.commit("main", map[string]string{"large": body})
			commit := small.commit("main", map[string]string{"small": "text"})
			m := checkout.Open(filepath.Join(disk, "mirrors"), maxBytes)
			work := filepath.Join(disk, "run")
			_, err := m.Checkout(t.Context(), checkout.Source{URL: large.url()}, filepath.Join(work, "w"), filepath.Join(work, "b"))
			if err == nil || err.Error() != "the disk of the worker is full" {
				t.Errorf("error %v", err)
			}
			if err := os.RemoveAll(work); err != nil {
				t.Fatal(err)
			}

			got, err := m.Checkout(t.Context(), checkout.Source{URL: small.url()}, filepath.Join(work, "w"), filepath.Join(work, "b"))
			if err != nil || got.Commit != commit {
				t.Errorf("made %+v %v", got, err)
			}
		})
	}
}
