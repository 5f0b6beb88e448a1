package checkout_test

import (
	"crypto/rand"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"millwright/runs/worker/checkout"
)

// TestDiskFills has the disk of the worker fill while a mirror is fetched, and while files are checked out.
// Once there is room, the same mirrors serve again.
func TestDiskFills(t *testing.T) {
	probe := t.TempDir()
	if err := unix.Mount("tmpfs", probe, "tmpfs", 0, "size=8m"); err != nil {
		inNamespaces(t, err)
		return
	}
	if err := unix.Unmount(probe, unix.MNT_DETACH); err != nil {
		t.Fatal(err)
	}

	noise := make([]byte, 12<<20)
	rand.Read(noise)
	for name, body := range map[string]string{
		"fetch":    string(noise),
		"checkout": strings.Repeat("text\n", 12<<20/5),
	} {
		t.Run(name, func(t *testing.T) {
			disk := t.TempDir()
			if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=8m,mode=0700"); err != nil {
				t.Fatal(err)
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

// inNamespaces runs a test again as root of namespaces of its own, since it cannot mount file systems here.
// Where that is forbidden too, the test is skipped, or fails where CI=true.
func inNamespaces(t *testing.T, refused error) {
	t.Helper()
	give := t.Skipf
	if os.Getenv("CI") == "true" {
		give = t.Fatalf
	}

	const variable = "MILLWRIGHT_TEST_NAMESPACES"
	if os.Getenv(variable) != "" {
		give("a small file system cannot be mounted in a namespace either: %v", refused)
	}

	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), variable+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}

	out, err := cmd.CombinedOutput()
	var failed *exec.ExitError
	switch {
	case errors.As(err, &failed):
		t.Fatalf("in a namespace: %v\n%s", err, out)
	case err != nil:
		give("a small file system cannot be mounted (%v), nor a namespace be made: %v", refused, err)
	case strings.Contains(string(out), "--- SKIP"):
		t.Skipf("%s", out)
	}
}
