package sandbox_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"millwright/runs/worker/confine"
	"millwright/runs/worker/confine/confinetest"
	"millwright/runs/worker/sandbox"
)

// enter is the command by which the test program runs itself inside of a sandbox.
const enter = "enter-sandbox"

func TestMain(m *testing.M) {
	switch {
	case filepath.Base(os.Args[0]) == "keeper":
		os.Exit(confine.Keep(os.Args[1:]))
	case len(os.Args) > 1 && os.Args[1] == enter:
		os.Exit(sandbox.Enter())
	case len(os.Args) > 2 && os.Args[1] == "attack":
		os.Exit(attack(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// box is a sandbox for commands of a test.
type box struct {
	testing.TB
	*sandbox.Sandbox
	host *confine.Host
	spec sandbox.Spec
	run  confine.Run
}

// account is the first account of the tests' commands when root starts them. Each sandbox has its own, since
// the kernel counts the processes of an account together.
const account = 731100

var opened atomic.Uint32

// open opens a sandbox with the directories of a run. Where this machine has none, the test is skipped, or
// fails where CI=true.
func open(t testing.TB) *box {
	t.Helper()
	s, err := sandbox.Open()
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}

	b := &box{TB: t, Sandbox: s, host: confine.Open(confine.Config{NoCgroup: true, Keeper: []string{"keeper"}})}
	t.Cleanup(b.host.Close)
	b.spec = sandbox.Spec{Enter: []string{enter}, Root: t.TempDir(), UID: -1, GID: -1}
	b.run = confine.Run{Name: "run", Dir: b.spec.Root, Sandboxed: true}
	if os.Getuid() == 0 {
		uid := account + opened.Add(1)
		b.run.Account = &confine.Account{Name: "test", UID: uid, GID: uid}
		b.spec.UID, b.spec.GID = int(uid), int(uid)
	}

	work := filepath.Join(b.spec.Root, confine.Work)
	if err := errors.Join(os.Mkdir(work, 0o700), confine.Give(b.run, true)); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		if err := os.Chown(work, b.spec.UID, b.spec.GID); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// sh runs a script in the sandbox, and returns what it said.
func (b *box) sh(script string, args ...string) (said string, err error) {
	b.Helper()
	var out bytes.Buffer
	cmd := &exec.Cmd{
		Path: "/bin/sh", Args: append([]string{"sh", "-c", script, "sh"}, args...),
		Dir:    sandbox.Dir + "/" + confine.Work,
		Env:    []string{"PATH=" + confine.DefaultPath, "HOME=" + sandbox.Dir + "/home", "TMPDIR=/tmp"},
		Stdout: &out, Stderr: &out,
	}
	p, err := b.Start(b.host, cmd, b.run, b.spec)
	if err != nil {
		return out.String(), err
	}
	err = p.Wait()
	if alive := p.Kill(); alive != nil {
		b.Error(alive)
	}
	return strings.TrimSpace(out.String()), err
}

// attack runs an attack of a hostile program in the sandbox, and returns how it went.
func (b *box) attack(args ...string) string {
	b.Helper()
	said, err := b.sh(`exec /run/millwright/millwright attack "$@"`, args...)
	if err != nil {
		said = strings.TrimSpace(said + "\n" + err.Error())
	}
	return said
}

// TestThreadsEnd ends the threads of this process while it tries bwrap. That kills no bwrap.
func TestThreadsEnd(t *testing.T) {
	open(t) // or it is skipped

	var tries sync.WaitGroup
	for range 200 {
		tries.Go(func() {
			if _, err := sandbox.Open(); err != nil {
				t.Error(err)
			}
		})
	}

	done := make(chan struct{})
	go func() {
		defer close(done)
		tries.Wait()
	}()
	for {
		select {
		case <-done:
			return
		default:
			confinetest.EndThreads()
		}
	}
}

// TestEscapes tries what docs/operating/isolation.md lists.
func TestEscapes(t *testing.T) {
	// What there is to reach: files of the server and of another run, and its ports and sockets.
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret of the server"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SECRET_OF_THE_SERVER", "secret of the server")
	tcp, udp, path, abstract := listeners(t)
	pid := strconv.Itoa(os.Getpid())

	scripts := []struct{ name, script, want string }{
		{"a file of the server", `cat ` + secret, "cat: " + secret + ": No such file or directory"},
		{"a link to a file of the server", `ln -s ` + secret + ` link; cat link`, "cat: link: No such file or directory"},
		{"a path out of the working directory", `cat ../../../../..` + secret + ` ../../../other; ls ..`, "cat: ../../../../.." + secret +
			": No such file or directory\ncat: ../../../other: No such file or directory\nhome\nwork"},
		{"the variables of the server", `tr '\0' '\n' </proc/1/environ | grep SECRET; env | grep SECRET; echo end`, "end"},
		{
			"the processes of the machine", `ls -d /proc/` + pid + `; [ $(ls /proc | grep -c '^[0-9]') -lt 10 ] && echo few; tr '\0' ' ' </proc/1/cmdline`,
			"ls: cannot access '/proc/" + pid + "': No such file or directory\nfew\nbwrap --args 6 -- /run/millwright/millwright enter-sandbox",
		},
		{"the home of the user", `ls -d ~root /root /home; ls ~; echo $HOME`, "ls: cannot access '/root': No such file or directory\n" +
			"ls: cannot access '/home': No such file or directory\n/\n/run/millwright/run/home"},
		{"the sockets of the machine's programs", `ls /run /var /srv /mnt 2>&1 | grep -v millwright`, "ls: cannot access '/srv': No such file or directory\n" +
			"ls: cannot access '/mnt': No such file or directory\n/run:\n\n/var:\ntmp"},
		{
			"secrets in /etc", `ls /etc/shadow /etc/ssl/private /etc/ssh /etc/millwright; cat /etc/passwd | grep -c .`,
			"ls: cannot access '/etc/shadow': No such file or directory\nls: cannot access '/etc/ssl/private': No such file or directory\n" +
				"ls: cannot access '/etc/ssh': No such file or directory\nls: cannot access '/etc/millwright': No such file or directory\n3",
		},
		{"writing to the system", `for f in /usr/bin/x /etc/x /etc/passwd /x /dev/x /run/millwright/millwright; do (: >$f); done 2>&1 | grep -c -i 'read-only\|denied'; ` +
			`[ "$(id -u)" != 0 ] && echo other`, "6\nother"},
		{"descriptors of the worker", `ls /proc/self/fd | wc -l; ls /proc/$$/fd | tr '\n' ' '`, "4\n0 1 2"},
		{"programs that gain rights", `grep NoNewPrivs /proc/self/status; grep -c 'CapEff.*0000000000000000' /proc/self/status; ` +
			`su -c id </dev/null >/dev/null 2>&1 || echo not`, "NoNewPrivs:\t1\n1\nnot"},
		{"settings of the kernel", `echo x >/proc/sys/kernel/core_pattern; echo b >/proc/sysrq-trigger; echo end`, "end"},
		{"disks and memory as devices", `ls /dev`, "core\nfd\nfull\nnull\nptmx\npts\nrandom\nshm\nstderr\nstdin\nstdout\ntty\nurandom\nzero"},
		{"killing the worker", `kill -9 ` + pid + ` 2>&1 | grep -c 'No such process'; kill -9 1 2>/dev/null; echo end`, "1\nend"},
	}

	// One sandbox runs all scripts, each in a shell of its own.
	b, all := open(t), ""
	for i, c := range scripts {
		all += fmt.Sprintf("echo; echo =%d; (%s) 2>&1\n", i, c.script)
	}
	said, err := b.sh(all + "true")
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	for i, c := range scripts {
		t.Run(c.name, func(t *testing.T) {
			listed(t, c.name)
			_, got, _ := strings.Cut("\n"+said, fmt.Sprintf("\n=%d\n", i))
			got, _, _ = strings.Cut(got, fmt.Sprintf("\n=%d\n", i+1))
			if got = withoutPrefixes(got); got != c.want {
				t.Errorf("said %q, want %q", got, c.want)
			}
		})
	}

	programs := []struct {
		name string
		args []string
		want string
	}{
		{"mounting", []string{"mount"}, "EPERM"},
		{"making the system writable", []string{"remount"}, "EPERM"},
		{"unmounting what hides the machine", []string{"unmount"}, "EPERM"},
		{"another root directory", []string{"chroot"}, "EPERM"},
		{"a user namespace", []string{"user-ns"}, "EPERM"},
		{"a process in a user namespace", []string{"clone-ns"}, "EPERM"},
		{"a process in a user namespace, by clone3", []string{"clone3"}, "ENOSYS"},
		{"a network namespace", []string{"net-ns"}, "EPERM"},
		{"the namespaces of another process", []string{"setns"}, "EPERM EACCES"},
		{"becoming root", []string{"become-root"}, "EPERM EINVAL"},
		{"the keys of the worker's session", []string{"keys"}, "EPERM"},
		{"a program in the kernel", []string{"bpf"}, "EPERM"},
		{"system calls by io_uring", []string{"io_uring"}, "EPERM"},
		{"counters of the kernel", []string{"perf"}, "EPERM"},
		{"page faults", []string{"userfault"}, "EPERM"},
		{"the log of the kernel", []string{"kernel-log"}, "EPERM"},
		{"a device of its own", []string{"device"}, "EPERM"},
		{"files by their handles", []string{"handle"}, "EPERM"},
		{"typing into the terminal", []string{"terminal"}, "EPERM ENXIO"},
		{"tracing the part of the worker inside", []string{"ptrace", "2"}, "EPERM"},
		{"tracing a process of the machine", []string{"ptrace", pid}, "ESRCH"},
		{"raw sockets", []string{"raw-socket"}, "EPERM"},
		{"raw sockets of IPv6", []string{"raw-socket-6"}, "EPERM"},
		{"packet sockets", []string{"packet"}, "EAFNOSUPPORT"},
		{"sockets to the host of the virtual machine", []string{"vsock"}, "EAFNOSUPPORT"},
		{"Bluetooth", []string{"bluetooth"}, "EAFNOSUPPORT"},
		{"cryptography of the kernel", []string{"kernel-crypt"}, "EAFNOSUPPORT"},
		{"TCP to the machine", []string{"tcp", tcp}, "ECONNREFUSED"},
		{"TCP to the Internet", []string{"tcp", "1.1.1.1:443"}, "ENETUNREACH"},
		{"TCP over IPv6", []string{"tcp", "[2606:4700:4700::1111]:443"}, "ENETUNREACH EADDRNOTAVAIL"},
		{"the metadata of a cloud", []string{"tcp", "169.254.169.254:80"}, "ENETUNREACH"},
		{"UDP to the machine", []string{"udp", udp}, "ECONNREFUSED"},
		{"UDP to the Internet", []string{"udp", "1.1.1.1:53"}, "ENETUNREACH"},
		{"MPTCP", []string{"mptcp", "1.1.1.1:443"}, "ENETUNREACH"},
		{"DNS", []string{"dns", "example.com"}, "not resolved"},
		{"a Unix socket of the machine", []string{"unix", path}, "ENOENT"},
		{"an abstract Unix socket of the machine", []string{"unix", abstract}, "ECONNREFUSED"},
		{"raising a limit", []string{"raise"}, "EPERM"},
	}

	// One program tries all that leaves it as it is.
	b = open(t)
	var tries []string
	for _, c := range programs {
		tries = append(tries, strings.Join(c.args, ","))
	}
	results := strings.Split(b.attack(tries...), "\n")
	if len(results) != len(programs) {
		t.Fatal(results)
	}
	for i, c := range programs {
		t.Run(c.name, func(t *testing.T) {
			listed(t, c.name)
			if !slices.Contains(append(strings.Fields(c.want), c.want), results[i]) {
				t.Errorf("got %q, want %s", results[i], c.want)
			}
		})
	}

	for _, c := range []struct{ name, attack, want string }{
		{"a fork bomb", "forks", "EAGAIN after fewer than 200: true"},
		{"a memory bomb", "memory", "the run used more memory than its sandbox has"},
		{"a bomb of shared memory", "memory-tmp", "the run used more memory than its sandbox has"},
		{"leaving processes", "hang", "left"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			listed(t, c.name)
			b := open(t)
			b.spec.Memory, b.spec.Processes = 128<<20, 150
			if got := b.attack(c.attack); got != c.want {
				t.Errorf("got %q, want %s", got, c.want)
			}
			if b.lives() {
				t.Error("a process lives on")
			}
		})
	}
}

// listed checks that the documentation lists an escape that is tried.
func listed(t *testing.T, name string) {
	t.Helper()
	text, err := os.ReadFile("../../../docs/operating/isolation.md")
	if errors.Is(err, fs.ErrNotExist) { // of another user
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`[|;] ` + regexp.QuoteMeta(name) + `[;\s]`).Match(text) {
		t.Errorf("isolation.md does not list %q", name)
	}
}

// TestAcceptanceEscapesOfAnotherUser tries the escapes with a worker of another user than root, which needs
// user namespaces.
func TestAcceptanceEscapesOfAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("TestEscapes runs as another user already")
	}

	dir, err := os.MkdirTemp("/var/tmp", "millwright-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	program := filepath.Join(dir, "test")
	text, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(program, text, 0o755), os.Chmod(dir, 0o777)); err != nil {
		t.Fatal(err)
	}

	cmd := exec.Command(program, "-test.run=^TestEscapes$", "-test.v")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "TMPDIR="+dir, "HOME="+dir, "CI=")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: account, Gid: account}}
	out, err := cmd.CombinedOutput()
	switch {
	case err != nil:
		t.Errorf("%v\n%s", err, out)
	case bytes.Contains(out, []byte("--- SKIP")):
		t.Skipf("this machine forbids user namespaces:\n%s", out)
	}
}

// withoutPrefixes removes the names of shells from errors.
func withoutPrefixes(said string) string {
	var lines []string
	for line := range strings.Lines(said) {
		if !strings.HasPrefix(line, "sh: ") {
			lines = append(lines, strings.TrimSuffix(line, "\n"))
		}
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

// listeners listens on loopback and on Unix sockets of the machine.
func listeners(t *testing.T) (tcp, udp, path, abstract string) {
	t.Helper()
	path, abstract = filepath.Join(t.TempDir(), "socket"), "@millwright-test-"+strconv.Itoa(os.Getpid())
	for _, l := range []struct{ network, address string }{{"tcp", "127.0.0.1:0"}, {"unix", path}, {"unix", abstract}} {
		ln, err := net.Listen(l.network, l.address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ln.Close() })
		if l.network == "tcp" {
			tcp = ln.Addr().String()
		}
		if err := dial(l.network, ln.Addr().String()); err != nil { // it can be reached from outside
			t.Fatal(err)
		}
	}

	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { packets.Close() })
	return tcp, packets.LocalAddr().String(), path, abstract
}

// lives reports whether a process of the sandbox holds a file in the working directory open.
func (b *box) lives() bool {
	b.Helper()
	held := filepath.Join(b.spec.Root, confine.Work, "held")
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	return slices.ContainsFunc(links, func(link string) bool {
		target, err := os.Readlink(link)
		return err == nil && strings.HasSuffix(target, held)
	})
}
