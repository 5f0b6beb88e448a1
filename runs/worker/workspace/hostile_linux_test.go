package workspace_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"millwright/runs/worker/workspace"
)

// TestExchangedDirectories measures and removes a directory while links to the outside take the places of its
// own directories, again and again: nothing outside is touched, and the walks end.
func TestExchangedDirectories(t *testing.T) {
	outside := mkdir(t, t.TempDir(), "outside")
	write(t, filepath.Join(outside, "file"), 64<<20)
	if err := os.Chmod(outside, 0o751); err != nil {
		t.Fatal(err)
	}
	parent := t.TempDir()

	rounds := 10
	for range rounds {
		top := mkdir(t, parent, "run")
		inner := top
		for range 20 {
			inner = mkdir(t, inner, "d")
			if err := os.Symlink(outside, inner+"-link"); err != nil {
				t.Fatal(err)
			}
		}

		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			dir := filepath.Join(top, "d", "d", "d")
			for {
				select {
				case <-stop:
					return
				default:
					unix.Renameat2(unix.AT_FDCWD, dir, unix.AT_FDCWD, dir+"-link", unix.RENAME_EXCHANGE)
				}
			}
		}()
		for began := time.Now(); time.Since(began) < 20*time.Millisecond; {
			if workspace.Exceeds(top, 32<<20) {
				t.Fatal("a link is followed")
			}
		}
		workspace.Remove(top) // it may fail: what it is about to remove is replaced
		close(stop)
		<-stopped
		if err := workspace.Remove(top); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(outside)
	if err != nil || info.Mode().Perm() != 0o751 {
		t.Errorf("outside: %v %v", info, err)
	}
	if _, err := os.Stat(filepath.Join(outside, "file")); err != nil {
		t.Error(err)
	}
}

// TestClosedDirectories measures and removes directories that their owner may not read, as that owner.
func TestClosedDirectories(t *testing.T) {
	parent := t.TempDir()
	top := mkdir(t, parent, "run")
	deep := mkdir(t, top, "a", "b", "c")
	write(t, filepath.Join(deep, "file"), 1<<20)
	mkdir(t, top, "empty")
	for _, dir := range []string{deep, filepath.Join(top, "a", "b"), filepath.Join(top, "a"), filepath.Join(top, "empty"), top} {
		if os.Getuid() == 0 {
			if err := os.Lchown(dir, 65534, 65534); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(dir, 0o100); err != nil {
			t.Fatal(err)
		}
	}
	if os.Getuid() == 0 {
		for dir := parent; dir != "/"; dir = filepath.Dir(dir) {
			if info, err := os.Stat(dir); err == nil && info.Mode().Perm()&0o001 == 0 {
				os.Chmod(dir, info.Mode().Perm()|0o111)
			}
		}
		if err := os.Chown(parent, 65534, 65534); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(top, 0o700); err != nil {
		t.Fatal(err)
	}

	asOwner(t, func() {
		if !workspace.Exceeds(top, 1<<20) {
			t.Error("what is closed is not counted")
		}
		if err := workspace.Remove(top); err != nil {
			t.Error(err)
		}
	})
	if _, err := os.Lstat(top); !os.IsNotExist(err) {
		t.Errorf("it is left: %v", err)
	}
}

// asOwner calls f as the user without rights whom root gave the files to, and as this user otherwise.
func asOwner(t *testing.T, f func()) {
	t.Helper()
	if os.Getuid() != 0 {
		f()
		return
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // the thread ends with this goroutine
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, 65534, 65534, 65534); errno != 0 {
			done <- errno
			return
		}
		f()
		done <- nil
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
