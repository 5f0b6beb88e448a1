package confine

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// HideMemory closes the memory of this process to other processes of its user, and wipes /proc/PID/environ.
// os.Getenv still returns every variable. The process dumps no core from now on.
func HideMemory() error {
	if err := wipeEnvironment(); err != nil {
		return fmt.Errorf("wipe the environment of this process: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("close the memory of this process: %w", err)
	}
	return nil
}

// wipeEnvironment overwrites the kernel's text of the environment. The Go runtime has its own copy.
func wipeEnvironment() error {
	const startField, endField = 50, 51 // env_start and env_end, counted from 1: proc_pid_stat(5)
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return err
	}

	afterName := bytes.LastIndexByte(stat, ')') + 1
	fields := strings.Fields(string(stat[afterName:]))
	const skipped = 2 // the fields before and of the name
	if len(fields) < endField-skipped {
		return errors.New("the kernel does not tell where it is")
	}

	start, err1 := strconv.ParseInt(fields[startField-skipped-1], 10, 64)
	end, err2 := strconv.ParseInt(fields[endField-skipped-1], 10, 64)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}

	const most = 8 << 20
	if start <= 0 || end < start || end-start > most {
		return errors.New("the kernel does not tell where it is")
	}

	memory, err := os.OpenFile("/proc/self/mem", os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer memory.Close()

	_, err = memory.WriteAt(make([]byte, end-start), start)
	return err
}
