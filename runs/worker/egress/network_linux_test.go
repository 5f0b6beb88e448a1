package egress_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"millwright/runs/worker/confine"
	"millwright/runs/worker/sandbox"
)

// The tests run in a network namespace of their own, in which loopback has public addresses.
const (
	publicAddress  = "93.184.215.14"
	privateAddress = "10.20.30.40"
	inNamespace    = "MILLWRIGHT_TEST_IN_NAMESPACE"
)

// noNetwork is the reason why the tests have no network namespace; empty: they have one.
var noNetwork string

// enter is the command by which the test program runs itself inside of a sandbox.
const enter = "enter-sandbox"

func TestMain(m *testing.M) {
	switch {
	case filepath.Base(os.Args[0]) == "keeper":
		os.Exit(confine.Keep(os.Args[1:]))
	case len(os.Args) > 1 && os.Args[1] == enter:
		os.Exit(sandbox.Enter())
	case len(os.Args) > 2 && os.Args[1] == "fetch":
		os.Exit(fetch(os.Args[2:]))
	}

	if os.Getenv(inNamespace) == "" {
		noNetwork = again()
		if noNetwork == "" {
			os.Exit(0)
		}
	} else if err := setUpNetwork(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// again runs the tests in a network namespace, and ends this process with their status. It returns the reason
// why there is none.
func again() string {
	attributes := &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET}
	if uid, gid := os.Getuid(), os.Getgid(); uid != 0 {
		attributes.Cloneflags |= unix.CLONE_NEWUSER
		attributes.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: uid, Size: 1}}
		attributes.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: gid, Size: 1}}
	}
	cmd := exec.Command(os.Args[0], os.Args[1:]...)
	cmd.Env = append(os.Environ(), inNamespace+"=1")
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = os.Stdout, os.Stderr, attributes
	if err := cmd.Start(); err != nil {
		return err.Error()
	}
	if err := cmd.Wait(); err != nil {
		os.Exit(1)
	}
	return ""
}

// setUpNetwork gives loopback its addresses.
func setUpNetwork() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)

	for i, address := range []string{"127.0.0.1", publicAddress, privateAddress} {
		name := "lo"
		if i > 0 {
			name = fmt.Sprintf("lo:%d", i)
		}

		r, err := unix.NewIfreq(name)
		if err != nil {
			return err
		}
		if err := r.SetInet4Addr(net.ParseIP(address).To4()); err != nil {
			return err
		}
		if err := ioctl(fd, unix.SIOCSIFADDR, r); err != nil {
			return fmt.Errorf("%s: %w", address, err)
		}
	}

	r, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return ioctl(fd, unix.SIOCSIFFLAGS, r)
}

func ioctl(fd int, request uintptr, r *unix.Ifreq) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(unsafe.Pointer(r))); errno != 0 {
		return errno
	}
	return nil
}

// wantNetwork skips a test without a network namespace, or fails it where CI=true.
func wantNetwork(t *testing.T) {
	t.Helper()
	switch {
	case noNetwork == "":
	case os.Getenv("CI") == "true":
		t.Fatal("no network namespace: ", noNetwork)
	default:
		t.Skip("no network namespace: ", noNetwork)
	}
}
