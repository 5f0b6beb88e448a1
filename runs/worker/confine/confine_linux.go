package confine

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// Open prepares to start runs in the best way that this machine supports.
func Open(cfg Config) *Host {
	h := &Host{cfg: cfg, private: canMount()}
	if cfg.NoCgroup {
		h.why = errors.New("control groups are switched off")
	} else {
		h.cgroup, h.why = openCgroup(cfg.Label)
	}
	if h.why != nil {
		h.cgroup = ""
	}
	return h
}

// Describe names the way in which runs are ended.
func (h *Host) Describe() string {
	switch {
	case h.cgroup != "":
		return "control groups"
	case h.cfg.Keeper != nil:
		return fmt.Sprintf("a keeper process, as there are no control groups: %v", h.why)
	}
	return fmt.Sprintf("process groups, as there are no control groups: %v", h.why)
}

// Sweeps reports whether all processes of a run can be killed, also those that leave its process group.
func (h *Host) Sweeps() bool { return h.cgroup != "" || h.cfg.Keeper != nil }

// Private reports whether runs have their own /tmp, /var/tmp and /dev/shm, all the same directory.
func (h *Host) Private() bool { return h.private }

// CheckShown reports that runs do not see a program of the machine, since they have their own /tmp.
func (h *Host) CheckShown(program string) error {
	real, err := filepath.EvalSymlinks(program)
	if err != nil || !h.private {
		return nil // the start reports what is wrong
	}

	for _, dir := range shared {
		if strings.HasPrefix(real, dir+"/") {
			return fmt.Errorf("runs have their own %s: put the program into another directory", dir)
		}
	}
	return nil
}

// Seen returns the path under which the processes of a run see its directory.
func (h *Host) Seen(dir string) string {
	if h.private {
		return seenAt
	}
	return dir
}

// Mark returns text by which SweepWorker finds the processes of this worker if it is killed.
func (h *Host) Mark() string { return string(h.cgroup) }

// Close removes the host's own files and groups.
func (h *Host) Close() {
	if h.cgroup != "" {
		h.cgroup.end()
	}
}

// process is a run that leads a process group and may have a control group and an account.
type process struct {
	*group
	cgroup  cgroup
	account *Account
}

// Start starts the command of a run. Its directories must exist.
func (h *Host) Start(cmd *exec.Cmd, run Run) (Process, error) {
	if h.cgroup == "" && (run.Account == nil || run.Sandboxed) && h.cfg.Keeper != nil {
		return h.startKept(cmd, run)
	}

	cmd.SysProcAttr = GroupAttributes()
	p := &process{}
	if !run.Shared {
		p.account = run.Account
	}
	if a := run.Account; a != nil && !run.Sandboxed {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: a.UID, Gid: a.GID}
	}

	if h.cgroup != "" {
		var err error
		if p.cgroup, err = h.cgroup.child(run.Name); err != nil {
			return nil, err
		}

		dir, err := p.cgroup.open()
		if err != nil {
			return nil, err
		}
		defer dir.Close()

		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(dir.Fd())
	}

	g, err := h.start(cmd, run)
	if err != nil {
		if p.cgroup != "" {
			p.cgroup.end()
		}
		return nil, err
	}

	p.group = g
	return p, nil
}

// Kill kills the process group, the control group and everything else of the account.
func (p *process) Kill() error {
	err := p.group.Kill()
	if p.cgroup != "" {
		err = errors.Join(err, p.cgroup.end())
	}
	if p.account != nil {
		err = errors.Join(err, KillUser(p.account.UID))
	}
	return err
}
