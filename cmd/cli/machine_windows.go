package cli

import (
	"os/exec"

	"golang.org/x/sys/windows"
)

// lookUp finds the program of a harness. Harnesses run on other systems.
func lookUp(program, _ string) (string, error) { return exec.LookPath(program) }

// freeSpace returns the bytes that a user may still write below dir.
func freeSpace(dir string) (free uint64, known bool) {
	name, err := windows.UTF16PtrFromString(dir)
	if err == nil {
		err = windows.GetDiskFreeSpaceEx(name, &free, nil, nil)
	}
	return free, err == nil
}
