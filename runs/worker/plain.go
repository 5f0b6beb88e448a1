//go:build unix

package worker

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"millwright/runs/wire"
)

// openPlain opens a regular file that has one name, and belongs to the owner of the directory.
func openPlain(dir *os.Root, name string) (f *os.File, size int64, ok bool) {
	place, err := dir.Lstat(".")
	if err != nil {
		return nil, 0, false
	}
	info, err := dir.Lstat(name)
	if err != nil || !info.Mode().IsRegular() {
		return nil, 0, false
	}

	owner, ok1 := place.Sys().(*syscall.Stat_t)
	stat, ok2 := info.Sys().(*syscall.Stat_t)
	if !ok1 || !ok2 || stat.Nlink != 1 || stat.Uid != owner.Uid {
		return nil, 0, false
	}

	f, err = dir.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // it may have become a pipe
	if err != nil {
		return nil, 0, false
	}
	if opened, err := f.Stat(); err != nil || !os.SameFile(info, opened) {
		f.Close()
		return nil, 0, false
	}
	return f, info.Size(), true
}

// openPrompt opens the file with the prompt. Set-up commands and agents may have put something else in its
// place, so it opens only a file of the working directory.
func (t Task) openPrompt() (*os.File, error) {
	root, err := os.OpenRoot(t.Dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()

	f, _, ok := openPlain(root, filepath.Join(t.ownDir, wire.PromptFile))
	if !ok {
		return nil, fmt.Errorf("%s is not a file of the working directory", wire.PromptFile)
	}
	return f, nil
}
