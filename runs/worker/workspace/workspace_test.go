//go:build unix

package workspace_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"millwright/runs/worker/workspace"
)

// nest makes directories within one another, and a file of size bytes in the last one.
func nest(t *testing.T, top string, depth int, size int64) {
	t.Helper()
	at, err := unix.Open(top, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	for range depth {
		if err := unix.Mkdirat(at, "d", 0o700); err != nil {
			t.Fatal(err)
		}
		next, err := unix.Openat(at, "d", unix.O_RDONLY|unix.O_DIRECTORY, 0)
		if err != nil {
			t.Fatal(err)
		}
		unix.Close(at)
		at = next
	}
	fd, err := unix.Openat(at, "file", unix.O_CREAT|unix.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	defer unix.Close(at)
	if err := unix.Ftruncate(fd, size); err != nil {
		t.Fatal(err)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// TestNestedDirectories measures and removes directories deeper than any path, with a bounded number of
// descriptors.
func TestNestedDirectories(t *testing.T) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	few := limit
	few.Cur = uint64(descriptors(t) + 64)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	defer unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)

	deepest := 25_000
	if testing.Short() {
		deepest = 2_500
	}
	for _, depth := range []int{0, 15, 16, 17, deepest} {
		top := filepath.Join(t.TempDir(), "run")
		if err := os.Mkdir(top, 0o700); err != nil {
			t.Fatal(err)
		}
		nest(t, top, depth, 100<<20)
		nest(t, mkdir(t, top, "beside"), 40, 1<<20)

		entries := int64(depth + 2 + 41)
		most := 100<<20 + 1<<20 + (entries-2)*4096
		before := descriptors(t)
		if workspace.Exceeds(top, most) || !workspace.Exceeds(top, most-1) {
			t.Errorf("%d levels are not measured as %d bytes", depth, most)
		}
		if err := workspace.Remove(top); err != nil {
			t.Errorf("remove %d levels: %v", depth, err)
		}
		if _, err := os.Lstat(top); !os.IsNotExist(err) {
			t.Errorf("%d levels are left: %v", depth, err)
		}
		if after := descriptors(t); after != before {
			t.Errorf("%d descriptors before, %d after", before, after)
		}
	}
}

func mkdir(t *testing.T, elements ...string) string {
	t.Helper()
	dir := filepath.Join(elements...)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func write(t *testing.T, path string, size int) {
	t.Helper()
	if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestLinksAreNotFollowed has a directory point outside in every way: nothing outside is counted, given away,
// changed or removed.
func TestLinksAreNotFollowed(t *testing.T) {
	outside := mkdir(t, t.TempDir(), "outside")
	write(t, filepath.Join(outside, "file"), 1<<20)
	if err := os.Chmod(outside, 0o755); err != nil {
		t.Fatal(err)
	}

	top := mkdir(t, t.TempDir(), "run")
	for _, name := range []string{"a", "b/c", "closed/d"} {
		if err := os.Symlink(outside, filepath.Join(mkdir(t, top, filepath.Dir(name)), filepath.Base(name))); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(top, "closed"), 0); err != nil {
		t.Fatal(err)
	}

	if workspace.Exceeds(top, 64<<10) {
		t.Error("what a link points to is counted")
	}
	if err := workspace.Give(top, os.Getuid(), os.Getgid()); err != nil {
		t.Error(err)
	}
	if err := workspace.Remove(top); err != nil {
		t.Error(err)
	}
	info, err := os.Stat(outside)
	if err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("outside: %v %v", info, err)
	}
	if _, err := os.Stat(filepath.Join(outside, "file")); err != nil {
		t.Error(err)
	}

	link := filepath.Join(t.TempDir(), "run")
	if err := os.Symlink(outside, link); err != nil {
		t.Fatal(err)
	}
	if err := workspace.Remove(link); err == nil {
		t.Error("a link in place of the directory is followed")
	}
	if err := workspace.Give(link, os.Getuid(), os.Getgid()); err == nil {
		t.Error("a link in place of the directory is given away")
	}
}

// TestManyEntries removes more entries than are read at once, with names in the way of those it makes itself.
func TestManyEntries(t *testing.T) {
	top := mkdir(t, t.TempDir(), "run")
	for i := range 600 {
		write(t, filepath.Join(top, strings.Repeat("f", 1+i%200)+string(rune('a'+i/200))), 0)
		mkdir(t, top, "d", strings.Repeat("e", 1+i%200)+string(rune('a'+i/200)), "x")
	}
	for _, name := range []string{".millwright-removed-1", ".millwright-removed-2"} {
		write(t, filepath.Join(mkdir(t, top, name), "file"), 0)
	}
	write(t, filepath.Join(top, ".millwright-removed-3"), 0)
	if err := workspace.Remove(top); err != nil {
		t.Error(err)
	}
	if err := workspace.Remove(top); err != nil {
		t.Errorf("a directory that is gone: %v", err)
	}
}
