//go:build unix

package workspace

import (
	"os"

	"golang.org/x/sys/unix"
)

const (
	// block is the minimum size of an entry, in bytes.
	block = 4096
	// heldOpen is how many levels of directories are held open. The walk leaves deeper ones through "..",
	// after checking that it leads back to the expected directory.
	heldOpen = 16
	// maxPending bounds the names of unread directories, in bytes.
	maxPending = 64 << 20
)

// maxReserve bounds the reserve of a large file system, in bytes.
const maxReserve = 2 << 30

// Reserve returns how many bytes must stay free on the file system of a directory: a twentieth of it, and
// at most 2 GiB. scarce reports whether less is free, and is false if that is unknown.
func Reserve(path string) (reserve int64, scarce bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return 0, false
	}

	unit := int64(s.Bsize)
	reserve = min(int64(s.Blocks)*unit/20, maxReserve)
	return reserve, int64(s.Bavail)*unit < reserve
}

// Exceeds reports whether the files in a directory have more than max bytes in all, counting at least 4096
// for each entry. A harness may write there meanwhile; the walk may then miss moved files. A directory with
// more sub-directories than the walk can remember exceeds every bound.
func Exceeds(path string, max int64) bool {
	top, err := openDir(unix.AT_FDCWD, path)
	if err != nil {
		return false // it is gone
	}

	m := measure{max: max}
	defer m.close()

	m.enter(top)

	for len(m.levels) > 0 && !m.exceeds() {
		if name, ok := m.next(); !ok {
			m.leave()
		} else if child, err := openClosed(m.at, name, 0o500); err == nil {
			m.enter(child)
		}
	}

	return m.exceeds()
}

// measure is a walk that adds up sizes.
type measure struct {
	max, size int64
	levels    []level // from the top to where the walk is
	at        *os.File
	dev       uint64
	pending   int // bytes of names
}

// level is a directory on the path of the walk.
type level struct {
	place
	held *os.File // nil: reached through ".."
	dirs []string // still to be read
}

func (m *measure) exceeds() bool { return m.size > m.max || m.pending > maxPending }

// enter adds up the entries of a directory and moves the walk there.
func (m *measure) enter(dir *os.File) {
	at, err := placeOf(dir)
	if len(m.levels) == 0 {
		m.dev = at.dev
	}
	if err != nil || at.dev != m.dev {
		dir.Close()
		return
	}

	l := level{place: at}
	each(dir, func(e entry) bool {
		m.size += block
		switch {
		case e.isFile() && e.stat.Size > block:
			m.size += e.stat.Size - block
		case e.isDir():
			l.dirs = append(l.dirs, e.name)
			m.pending += len(e.name)
		}

		return !m.exceeds()
	})

	if n := len(m.levels); n > 0 && m.levels[n-1].held == nil {
		m.at.Close()
	}
	if len(m.levels) < heldOpen {
		l.held = dir
	}

	m.levels, m.at = append(m.levels, l), dir
}

// next removes and returns the name of an unread directory at the current place.
func (m *measure) next() (string, bool) {
	l := &m.levels[len(m.levels)-1]
	last := len(l.dirs) - 1
	if last < 0 {
		return "", false
	}

	name := l.dirs[last]
	l.dirs = l.dirs[:last]
	m.pending -= len(name)
	return name, true
}

// leave goes up one level, or to the deepest open one if the path has changed.
func (m *measure) leave() {
	n := len(m.levels) - 1
	left := m.at
	defer left.Close()

	m.levels, m.at = m.levels[:n], nil
	if n == 0 {
		return
	}
	if m.at = m.levels[n-1].held; m.at != nil {
		return
	}

	if up, err := openDir(int(left.Fd()), ".."); err == nil {
		if at, err := placeOf(up); err == nil && at == m.levels[n-1].place {
			m.at = up
			return
		}
		up.Close()
	}

	for _, l := range m.levels[heldOpen:] {
		for _, name := range l.dirs {
			m.pending -= len(name)
		}
	}

	m.levels = m.levels[:heldOpen]
	m.at = m.levels[heldOpen-1].held
}

// close closes the open directories of the walk.
func (m *measure) close() {
	for _, l := range m.levels {
		if l.held != nil {
			l.held.Close()
		}
	}
	if n := len(m.levels); n > 0 && m.levels[n-1].held == nil {
		m.at.Close()
	}
}
