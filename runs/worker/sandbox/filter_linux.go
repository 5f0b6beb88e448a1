package sandbox

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// Kernel constants that the unix package lacks.
const (
	x32Bit      = 0x40000000 // of the numbers of system calls of the x32 ABI
	archOffset  = 4          // in seccomp_data
	firstOffset = 16         // of the arguments, whose low halves come first
)

// forbidden are system calls that a command does without: they reach beyond the namespaces of the sandbox
// (keys, descriptors of a file by its handle), or reach much of the kernel for little use.
var forbidden = []uint32{
	unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_SETNS,
	unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE,
	unix.SYS_MOUNT_SETATTR, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_FANOTIFY_INIT,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, // has its own way to open sockets
	unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
	unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_SYSLOG, unix.SYS_ACCT, unix.SYS_QUOTACTL,
	unix.SYS_MOVE_PAGES, unix.SYS_MIGRATE_PAGES, unix.SYS_MBIND, unix.SYS_SET_MEMPOLICY, unix.SYS_GET_MEMPOLICY,
	unix.SYS_VHANGUP, unix.SYS_LOOKUP_DCOOKIE, unix.SYS_NFSSERVCTL, unix.SYS_KCMP,
	unix.SYS_MEMFD_SECRET, // its memory is not in the counts of processes
}

// families are the kinds of sockets that a command may open. Others are not bound to a network namespace
// (AF_VSOCK reaches the host of a virtual machine), or reach much of the kernel for little use.
var families = []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}

// filter returns a program of seccomp in the form of the kernel.
func filter() ([]byte, error) {
	arch, ok := map[string]uint32{
		"amd64": unix.AUDIT_ARCH_X86_64,
		"arm64": unix.AUDIT_ARCH_AARCH64,
	}[runtime.GOARCH]
	if !ok {
		return nil, fmt.Errorf("there is no filter of system calls for %s", runtime.GOARCH)
	}

	var p program
	p.load(archOffset)
	p.when(unix.BPF_JEQ, arch, 1, 0)
	p.fail(unix.ENOSYS)

	p.load(0)
	p.when(unix.BPF_JSET, x32Bit, 0, 1)
	p.fail(unix.ENOSYS)

	for _, number := range forbidden {
		p.when(unix.BPF_JEQ, number, 0, 1)
		p.fail(unix.EPERM)
	}
	p.when(unix.BPF_JEQ, unix.SYS_CLONE3, 0, 1) // its flags lie in memory; the C library goes on with clone
	p.fail(unix.ENOSYS)

	for _, number := range []uint32{unix.SYS_CLONE, unix.SYS_UNSHARE} {
		p.when(unix.BPF_JEQ, number, 0, 4)
		p.load(firstOffset)
		p.when(unix.BPF_JSET, unix.CLONE_NEWUSER, 0, 1)
		p.fail(unix.EPERM)
		p.load(0)
	}

	p.when(unix.BPF_JEQ, unix.SYS_IOCTL, 0, 6)
	p.load(firstOffset + 8)
	for _, request := range []uint32{unix.TIOCSTI, unix.TIOCLINUX} { // puts text into the input of a terminal
		p.when(unix.BPF_JEQ, request, 0, 1)
		p.fail(unix.EPERM)
	}
	p.load(0)

	p.when(unix.BPF_JEQ, unix.SYS_SOCKET, 0, uint8(len(families)+2))
	p.load(firstOffset)
	for i, family := range families {
		p.when(unix.BPF_JEQ, family, uint8(len(families)-i), 0)
	}
	p.fail(unix.EAFNOSUPPORT)

	p.end(unix.SECCOMP_RET_ALLOW)
	return p.Bytes(), nil
}

// program is a program of the classic packet filter.
type program struct{ bytes.Buffer }

func (p *program) add(code uint16, yes, no uint8, k uint32) {
	binary.Write(p, binary.NativeEndian, unix.SockFilter{Code: code, Jt: yes, Jf: no, K: k}) // a buffer takes all
}

// load loads a word of the system call.
func (p *program) load(offset uint32) { p.add(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, 0, 0, offset) }

// when skips instructions, depending on a comparison of the word.
func (p *program) when(comparison uint16, k uint32, yes, no uint8) {
	p.add(unix.BPF_JMP|comparison|unix.BPF_K, yes, no, k)
}

// fail ends the system call with an error.
func (p *program) fail(errno unix.Errno) { p.end(unix.SECCOMP_RET_ERRNO | uint32(errno)) }

func (p *program) end(action uint32) { p.add(unix.BPF_RET|unix.BPF_K, 0, 0, action) }
