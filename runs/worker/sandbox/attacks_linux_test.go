package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// attacks are what a hostile program tries inside of a sandbox. nil means that it succeeded.
var attacks = map[string]func(args []string) error{
	"mount":        func([]string) error { return unix.Mount("none", "/tmp", "tmpfs", 0, "") },
	"remount":      func([]string) error { return unix.Mount("", "/usr", "", unix.MS_REMOUNT|unix.MS_BIND, "") },
	"unmount":      func([]string) error { return unix.Unmount("/usr", unix.MNT_DETACH) },
	"chroot":       func([]string) error { return unix.Chroot("/tmp") },
	"user-ns":      func([]string) error { return onThread(func() error { return unix.Unshare(unix.CLONE_NEWUSER) }) },
	"clone-ns":     func([]string) error { return cloneUser() },
	"clone3":       func([]string) error { return call(unix.SYS_CLONE3, 0, 0, 0) },
	"net-ns":       func([]string) error { return onThread(func() error { return unix.Unshare(unix.CLONE_NEWNET) }) },
	"setns":        func([]string) error { return setns() },
	"become-root":  func([]string) error { return syscall.Setuid(0) },
	"keys":         func([]string) error { return keys() },
	"bpf":          func([]string) error { return call(unix.SYS_BPF, 0, 0, 0) },
	"io_uring":     func([]string) error { return call(unix.SYS_IO_URING_SETUP, 1, 0, 0) },
	"perf":         func([]string) error { return call(unix.SYS_PERF_EVENT_OPEN, 0, 0, 0) },
	"userfault":    func([]string) error { return call(unix.SYS_USERFAULTFD, 0, 0, 0) },
	"kernel-log":   func([]string) error { return call(unix.SYS_SYSLOG, 3, 0, 0) },
	"device":       func([]string) error { return unix.Mknod("/tmp/disk", unix.S_IFBLK|0o600, int(unix.Mkdev(254, 0))) },
	"raw-socket":   func([]string) error { return socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP) },
	"raw-socket-6": func([]string) error { return socket(unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_ICMPV6) },
	"packet":       func([]string) error { return socket(unix.AF_PACKET, unix.SOCK_RAW, 0) },
	"vsock":        func([]string) error { return socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0) },
	"bluetooth":    func([]string) error { return socket(unix.AF_BLUETOOTH, unix.SOCK_RAW, 0) },
	"kernel-crypt": func([]string) error { return socket(unix.AF_ALG, unix.SOCK_SEQPACKET, 0) },
	"terminal":     func([]string) error { return pushInput() },
	"ptrace":       func(args []string) error { return attach(args[0]) },
	"tcp":          func(args []string) error { return dial("tcp", args[0]) },
	"udp":          func(args []string) error { return exchange(args[0]) },
	"unix":         func(args []string) error { return dial("unix", args[0]) },
	"mptcp":        func(args []string) error { return mptcp(args[0]) },
	"dns":          func(args []string) error { return lookUp(args[0]) },
	"handle":       func([]string) error { return call(unix.SYS_OPEN_BY_HANDLE_AT, 0, 0, 0) },
	"raise":        func([]string) error { return raise() },
	"memory":       func([]string) error { return fill() },
	"memory-tmp":   func([]string) error { return fillShared() },
	"forks":        func([]string) error { return forks() },
	"hang":         func([]string) error { return linger() },
}

// attack runs attacks, and prints why each failed. The arguments of an attack follow its name, with commas.
func attack(all []string) int {
	for _, a := range all {
		args := strings.Split(a, ",")
		err := attacks[args[0]](args[1:])
		var errno syscall.Errno
		switch {
		case err == nil:
			fmt.Println("escaped")
		case errors.As(err, &errno):
			fmt.Println(unix.ErrnoName(errno))
		default:
			fmt.Println(err)
		}
	}
	return 0
}

// onThread calls f on a thread of its own, which ends with it.
func onThread(f func() error) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		result <- f()
	}()
	return <-result
}

func call(number, a, b, c uintptr) error {
	if _, _, errno := unix.Syscall6(number, a, b, c, 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// cloneUser starts a process in a user namespace of its own.
func cloneUser() error {
	cmd := exec.Command("/bin/true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER}
	return cmd.Run()
}

func setns() error {
	f, err := os.Open("/proc/1/ns/net")
	if err != nil {
		return err
	}
	return onThread(func() error { return unix.Setns(int(f.Fd()), 0) })
}

// keys reads the keyring that the worker's session has.
func keys() error {
	_, err := unix.KeyctlString(unix.KEYCTL_DESCRIBE, unix.KEY_SPEC_SESSION_KEYRING)
	return err
}

func socket(family, kind, protocol int) error {
	_, err := unix.Socket(family, kind, protocol)
	return err
}

// pushInput puts a line into the input of the terminal.
func pushInput() error {
	f, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(f.Fd()), unix.TIOCSTI, 'x')
	}
	if pty, err2 := os.OpenFile("/dev/ptmx", os.O_RDWR, 0); err2 == nil { // one of its own
		err = unix.IoctlSetPointerInt(int(pty.Fd()), unix.TIOCSTI, 'x')
	}
	return err
}

func attach(pid string) error {
	number, err := strconv.Atoi(pid)
	if err != nil {
		return err
	}
	return onThread(func() error { return unix.PtraceAttach(number) })
}

func dial(network, address string) error {
	conn, err := net.DialTimeout(network, address, 5*time.Second)
	if err == nil {
		conn.Close()
	}
	return err
}

// exchange sends a datagram, and waits for an answer.
func exchange(address string) error {
	conn, err := net.DialTimeout("udp", address, 5*time.Second)
	if err != nil {
		return err
	}
	conn.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := conn.Write([]byte("out")); err != nil {
		return err
	}
	_, err = conn.Read(make([]byte, 10))
	return err
}

func mptcp(address string) error {
	var d net.Dialer
	d.SetMultipathTCP(true)
	conn, err := d.Dial("tcp", address)
	if err == nil {
		conn.Close()
	}
	return err
}

func lookUp(name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()

	_, err := (&net.Resolver{PreferGo: true}).LookupHost(ctx, name)
	var unknown *net.DNSError
	if errors.As(err, &unknown) {
		return errors.New("not resolved")
	}
	return err
}

// raise tries to raise a limit.
func raise() error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &limit); err != nil {
		return err
	}
	limit.Max++
	limit.Cur = limit.Max
	return unix.Setrlimit(unix.RLIMIT_NPROC, &limit)
}

// fill takes 512 MiB of memory, in two processes.
func fill() error {
	if len(os.Args) > 3 {
		return take(256 << 20)
	}
	cmd := exec.Command("/proc/self/exe", "attack", "memory", "child")
	if err := cmd.Start(); err != nil {
		return err
	}
	return take(256 << 20)
}

// take takes memory, a piece at a time, and keeps it.
func take(size int) error {
	const piece = 4 << 20
	for range size / piece {
		b, err := unix.Mmap(-1, 0, piece, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err != nil {
			return err
		}
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		time.Sleep(2 * time.Millisecond)
	}
	time.Sleep(30 * time.Second)
	return nil
}

// fillShared takes 512 MiB of shared memory that no process has mapped.
func fillShared() error {
	for range 8 {
		id, err := unix.SysvShmGet(0, 64<<20, 0o600|unix.IPC_CREAT)
		if err != nil {
			return err
		}
		b, err := unix.SysvShmAttach(id, 0, 0)
		if err != nil {
			return err
		}
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		if err := unix.SysvShmDetach(b); err != nil {
			return err
		}
	}
	time.Sleep(30 * time.Second)
	return nil
}

// forks starts processes until it may not. It ends some of them then, since this program needs threads to go
// on.
func forks() error {
	const most, ended = 5000, 20
	var pids []int
	for len(pids) < most {
		pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
		if errno != 0 {
			for _, child := range pids[:min(ended, len(pids))] {
				unix.Kill(child, unix.SIGKILL)
				unix.Wait4(child, nil, 0, nil)
			}
			return fmt.Errorf("%s after fewer than 200: %v", unix.ErrnoName(errno), len(pids) < 200)
		}

		if pid == 0 {
			for {
				unix.RawSyscall(unix.SYS_PAUSE, 0, 0, 0)
			}
		}
		pids = append(pids, int(pid))
	}
	return nil
}

// linger leaves a process that holds a file of the test.
func linger() error {
	cmd := exec.Command("/bin/sh", "-c", "trap '' TERM HUP INT; exec 3>held; : >up; while :; do sleep 1; done")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	for {
		if _, err := os.Stat("up"); err == nil {
			return errors.New("left")
		}
		time.Sleep(5 * time.Millisecond)
	}
}
