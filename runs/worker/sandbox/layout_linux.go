package sandbox

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"millwright/runs/worker/confine"
)

// Places inside of the sandbox.
const (
	ownPath    = "/run/millwright/millwright" // this program
	socketPath = "/run/millwright/proxy"
)

// system are the directories and links of the machine that a command sees.
var system = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/gnu/store",
}

// configuration are the files of /etc that a command sees: those that programs and libraries need, and no
// others, since the rest may have secrets.
var configuration = []string{
	"alternatives", "bash.bashrc", "ca-certificates", "ca-certificates.conf", "crypto-policies",
	"debian_version", "default/locale", "fonts", "gai.conf", "gitconfig", "host.conf", "inputrc", "java",
	"java-11-openjdk", "java-17-openjdk", "java-21-openjdk", "ld.so.cache", "ld.so.conf", "ld.so.conf.d",
	"locale.alias", "locale.conf", "localtime", "login.defs", "lsb-release", "magic", "magic.mime",
	"maven", "mime.types", "nsswitch.conf", "os-release", "perl", "pki/ca-trust", "pki/java",
	"pki/tls/cert.pem", "pki/tls/certs", "pki/tls/openssl.cnf", "profile", "profile.d", "protocols",
	"python3", "redhat-release", "rpc", "services", "shells", "ssl/cert.pem", "ssl/certs",
	"ssl/openssl.cnf", "terminfo", "timezone", "xdg",
}

// resolving are the files of /etc by which names are resolved. Only a command that shares the network of the
// machine sees them.
var resolving = []string{"hosts", "resolv.conf"}

// namespaces returns the arguments of bwrap for the namespaces of a sandbox.
func namespaces(n Network) []string {
	args := []string{
		"--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--hostname", "sandbox",
		"--die-with-parent", "--new-session",
	}
	if os.Getuid() != 0 {
		args = append(args, "--unshare-user")
	} else { // the part inside becomes the account
		args = append(args, "--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID")
	}
	if n != Shared {
		args = append(args, "--unshare-net")
	}
	return args
}

// arguments are the arguments of bwrap for a sandbox.
type arguments struct {
	list  []string
	made  map[string]bool // directories
	files []*os.File      // that bwrap reads, from the descriptor after ownFD on
}

func (a *arguments) add(words ...string) { a.list = append(a.list, words...) }

// at adds an operation on a place inside, behind the directories that lead there. bwrap would make them for
// its own user alone.
func (a *arguments) at(place string, words ...string) {
	for i, c := range place {
		if dir := place[:i]; i > 0 && c == '/' && !a.made[dir] {
			a.made[dir] = true
			a.add("--perms", "0755", "--dir", dir)
		}
	}
	a.add(words...)
	a.add(place)
}

// layout returns the arguments of bwrap for a sandbox. The caller closes the files, also after an error.
func layout(s Spec) (*arguments, error) {
	a := &arguments{list: namespaces(s.Network), made: map[string]bool{}}
	for _, place := range system {
		a.show(place)
	}

	a.add("--proc", "/proc", "--dev", "/dev")
	for _, name := range configuration {
		a.showFile("/etc/" + name)
	}
	if s.Network == Shared {
		for _, name := range resolving {
			a.showFile("/etc/" + name)
		}
	}
	if err := a.accountFiles(s); err != nil {
		return a, err
	}

	for _, place := range s.ReadOnly {
		a.at(place, "--ro-bind", place)
	}
	a.hide(s.Hidden, slices.Concat(system, s.ReadOnly))

	if err := a.directories(s); err != nil {
		return a, err
	}

	a.at(ownPath, "--ro-bind", "/proc/self/fd/"+strconv.Itoa(ownFD))
	if s.Network == Proxied {
		a.at(socketPath, "--ro-bind", s.Socket)
	}
	a.add("--remount-ro", "/dev", "--remount-ro", "/", "--seccomp", strconv.Itoa(filterFD))
	return a, nil
}

// directories shows the directories of the run. bwrap follows links, so none may lead to one of them. A
// command of the run cannot plant one meanwhile: it does not see the directories that hold them.
func (a *arguments) directories(s Spec) error {
	parts := s.Parts
	if parts == nil {
		parts = []Part{{Path: confine.Work}, {Path: confine.Home}}
	}

	root, err := os.OpenRoot(s.Root)
	if err != nil {
		return err
	}
	defer root.Close()

	for _, p := range append([]Part{{Path: confine.Tmp}}, parts...) {
		if err := checkPart(root, p.Path); err != nil {
			return err
		}
	}

	for _, place := range []string{"/tmp", "/var/tmp", "/dev/shm"} {
		a.at(place, "--bind", filepath.Join(s.Root, confine.Tmp))
	}
	for _, p := range parts {
		bind := "--bind"
		if p.ReadOnly {
			bind = "--ro-bind"
		}
		a.at(filepath.Join(Dir, p.Path), bind, filepath.Join(s.Root, p.Path))
	}
	return nil
}

// checkPart returns an error unless a path leads through directories to a directory, and through no link.
func checkPart(root *os.Root, path string) error {
	if !filepath.IsLocal(path) || filepath.Clean(path) != path || path == "." {
		return fmt.Errorf("%s is not below the directory of the run", path)
	}

	for end, c := range path + "/" {
		if c != '/' {
			continue
		}
		if info, err := root.Lstat(path[:end]); err != nil || !info.IsDir() {
			return fmt.Errorf("%s is not a directory of the run", path[:end])
		}
	}
	return nil
}

// show shows a directory of the system, or the link in its place.
func (a *arguments) show(place string) {
	info, err := os.Lstat(place)
	if err != nil {
		return
	}
	if target, err := os.Readlink(place); err == nil {
		a.at(place, "--symlink", target)
	} else if info.IsDir() {
		a.at(place, "--ro-bind", place)
	}
}

// showFile shows a file or directory, behind the links that lead to it.
func (a *arguments) showFile(place string) {
	if real, err := filepath.EvalSymlinks(place); err == nil {
		a.at(place, "--ro-bind", real)
	}
}

// hide puts something empty in front of what a command does not see.
func (a *arguments) hide(hidden, shown []string) {
	for _, place := range hidden {
		real, err := filepath.EvalSymlinks(place)
		if err != nil || !slices.ContainsFunc(shown, func(dir string) bool { return within(real, dir) }) {
			continue
		}

		info, err := os.Stat(real)
		switch {
		case err != nil:
		case info.IsDir():
			a.add("--tmpfs", real, "--remount-ro", real)
		default:
			a.add("--ro-bind", "/dev/null", real)
		}
	}
}

// within reports whether a place is in a directory of the machine, or is that directory.
func within(place, dir string) bool {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return false
	}
	below, err := filepath.Rel(real, place)
	return err == nil && filepath.IsLocal(below)
}

// Shows reports whether a command sees a place of the machine.
func (s Spec) Shows(place string) bool {
	real, err := filepath.EvalSymlinks(place)
	if err != nil {
		return false
	}

	in := func(dir string) bool { return within(real, dir) }
	return slices.ContainsFunc(slices.Concat(system, s.ReadOnly), in) && !slices.ContainsFunc(s.Hidden, in)
}

// accountFiles shows files by which programs find the name of their account. They exist in memory alone.
func (a *arguments) accountFiles(s Spec) error {
	uid, gid := s.UID, s.GID
	if uid < 0 {
		uid, gid = os.Getuid(), os.Getgid()
	}

	files := map[string]string{
		"passwd": fmt.Sprintf("root:x:0:0::/:/bin/false\nagent:x:%d:%d::%s/%s:/bin/sh\n"+
			"nobody:x:65534:65534::/:/bin/false\n",
			uid, gid, Dir, confine.Home),
		"group": fmt.Sprintf("root:x:0:\nagent:x:%d:\nnogroup:x:65534:\n", gid),
	}
	if s.Network != Shared {
		files["hosts"] = "127.0.0.1 localhost sandbox\n::1 localhost\n"
	}

	for name, text := range files {
		f, err := inMemory([]byte(text))
		if err != nil {
			return err
		}

		a.files = append(a.files, f)
		a.at("/etc/"+name, "--perms", "0644", "--ro-bind-data", strconv.Itoa(ownFD+len(a.files)))
	}
	return nil
}

// Descriptors of the part inside of the sandbox. bwrap reads its arguments and the filter from two more,
// and the files of its arguments from those after ownFD.
const (
	ordersFD = 3 + iota
	reportsFD
	planFD
	argumentsFD
	filterFD
	ownFD
)

// inMemory returns a file with the content that has no name on any disk.
func inMemory(content []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("millwright", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("memfd: %w", err)
	}

	f := os.NewFile(uintptr(fd), "memory")
	if _, err := f.Write(content); err != nil {
		f.Close()
		return nil, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
