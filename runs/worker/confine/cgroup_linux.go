package confine

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// groupPrefix begins the names of the control groups of workers.
const groupPrefix = "millwright-"

// cgroup is a directory of the cgroup v2 hierarchy.
type cgroup string

// openCgroup makes a control group below the one of this process.
func openCgroup(label string) (cgroup, error) {
	base, err := ownCgroup()
	if err != nil {
		return "", err
	}
	if err := unix.Access(filepath.Join(base, "cgroup.procs"), unix.W_OK); err != nil {
		return "", err
	}

	g := cgroup(filepath.Join(base, groupPrefix+label))
	if err := os.Mkdir(string(g), 0o755); err != nil {
		return "", err
	}

	err = g.probe()
	if err != nil {
		os.Remove(string(g))
	}

	return g, err
}

// ownCgroup returns the directory of the control group that this process is in.
func ownCgroup() (string, error) {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}

	own := ""
	for line := range strings.Lines(string(text)) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			own = path
		}
	}

	if own == "" {
		return "", errors.New("no cgroup v2 hierarchy is mounted")
	}

	mounts, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	defer mounts.Close()

	for lines := bufio.NewScanner(mounts); lines.Scan(); {
		where, what, _ := strings.Cut(lines.Text(), " - ")
		fields := strings.Fields(where)
		if !strings.HasPrefix(what, "cgroup2 ") || len(fields) < 5 {
			continue
		}

		below, err := filepath.Rel(fields[3], own)
		if err == nil && filepath.IsLocal(below) {
			return filepath.Join(fields[4], below), nil
		}
	}

	return "", errors.New("the control group of this process is not mounted")
}

// probe reports why no process can be started in a group, or killed with it.
func (g cgroup) probe() error {
	if err := unix.Access(filepath.Join(string(g), "cgroup.kill"), unix.W_OK); err != nil {
		return err
	}

	dir, err := g.open()
	if err != nil {
		return err
	}
	defer dir.Close()

	// The kernel puts the process into the group before it finds that the program does not exist.
	const none = "/proc/self/no-such-program"
	attributes := &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	_, err = syscall.ForkExec(none, []string{none}, &syscall.ProcAttr{Sys: attributes})
	if err == syscall.ENOENT {
		return nil
	}

	return fmt.Errorf("start a process in %s: %w", g, err)
}

func (g cgroup) open() (*os.File, error) {
	return os.OpenFile(string(g), unix.O_PATH|unix.O_DIRECTORY, 0)
}

// child makes a group below this one.
func (g cgroup) child(name string) (cgroup, error) {
	c := cgroup(filepath.Join(string(g), name))
	return c, os.Mkdir(string(c), 0o755)
}

// end kills everything in the group and removes it.
func (g cgroup) end() error {
	pause := time.Millisecond
	for deadline := time.Now().Add(endWithin); ; pause = min(2*pause, 50*time.Millisecond) {
		err := g.remove()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes of the run do not end: control group %s: %w", g, err)
		}

		err = os.WriteFile(filepath.Join(string(g), "cgroup.kill"), []byte("1"), 0)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}

		time.Sleep(pause)
	}
}

// remove removes the group, and those that were made in it, unless processes live there.
func (g cgroup) remove() error {
	err := unix.Rmdir(string(g))
	if err == nil || err == unix.ENOENT {
		return nil
	}

	entries, _ := os.ReadDir(string(g))
	for _, e := range entries {
		if e.IsDir() {
			if err := cgroup(filepath.Join(string(g), e.Name())).remove(); err != nil {
				return err
			}
		}
	}

	if err = unix.Rmdir(string(g)); err == unix.ENOENT {
		return nil
	}

	return err
}

// SweepWorker kills the remaining processes of a killed worker. mark is the result of its Host.Mark.
func SweepWorker(mark string) error {
	if mark == "" {
		return nil
	}
	if !strings.HasPrefix(filepath.Base(mark), groupPrefix) || filepath.Clean(mark) != mark {
		return fmt.Errorf("%q is no control group of a worker", mark)
	}

	var stat unix.Statfs_t
	if err := unix.Statfs(mark, &stat); err != nil || stat.Type != unix.CGROUP2_SUPER_MAGIC {
		return nil // it is gone
	}

	return cgroup(mark).end()
}
