// Package powerfs is a file system for tests that loses what was not synced when its power fails.
//
// It keeps beside the present content of files and directories what a disk would certainly have: the content at
// the last fsync of a file, and the names at the last fsync of a directory. A [Disk] fails after a number of
// changes; from then on every change is an error. [Disk.AfterFailure] is the disk that the next start finds: of
// each file, the synced content with any part of the later writes, torn at 512 bytes; of each directory, the synced
// names with the oldest of its later changes. The fsync of a directory brings neither the directories above it nor
// the content of its files to disk. POSIX promises no more.
package powerfs

import (
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
)

// sector is what a disk writes at once.
const sector = 512

// Disk is a file system whose power can fail. Mount makes it reachable.
type Disk struct {
	// IgnoreFileSync makes the fsync of files do nothing, as on a disk that lies: a harness which works finds
	// what is lost then.
	IgnoreFileSync bool
	// IgnoreNameSync makes the fsync of directories do nothing.
	IgnoreNameSync bool

	mu      sync.Mutex
	root    *node
	journal []change // of names that are not synced, the oldest first
	changes int      // so far
	failAt  int      // the number of changes at which the power fails; 0 for never
	failed  chan struct{}
}

// node is a file, a directory or a symbolic link.
type node struct {
	fs.Inode
	disk   *Disk
	mode   uint32 // type and permissions
	target string // of a link

	content []byte
	synced  []byte
	pending []write // since the last fsync

	names       map[string]*node
	syncedNames map[string]*node
}

// write is a change of a file's content: data at an offset, or a new size.
type write struct {
	at   int
	data []byte // nil for a new size
}

// change is one change of names, of one directory or, for a rename, of two.
type change []entry

type entry struct {
	dir  *node
	name string
	to   *node // nil for a name that is removed
}

// NewDisk returns an empty disk.
func NewDisk() *Disk {
	d := &Disk{failed: make(chan struct{})}
	d.root = d.newNode(syscall.S_IFDIR | 0o755)
	return d
}

func (d *Disk) newNode(mode uint32) *node {
	n := &node{disk: d, mode: mode}
	if mode&syscall.S_IFMT == syscall.S_IFDIR {
		n.names, n.syncedNames = map[string]*node{}, map[string]*node{}
	}
	return n
}

// FailAfter lets the power fail at the n-th change from now on. An fsync is a change, too.
func (d *Disk) FailAfter(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failAt = d.changes + n
}

// Fail lets the power fail now.
func (d *Disk) Fail() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fail()
}

// Failed is closed when the power has failed.
func (d *Disk) Failed() <-chan struct{} { return d.failed }

// Changes returns how many changes there were.
func (d *Disk) Changes() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.changes
}

func (d *Disk) fail() {
	select {
	case <-d.failed:
	default:
		close(d.failed)
	}
}

// change begins a change, and returns EIO if the power has failed. d.mu is held.
func (d *Disk) change() syscall.Errno {
	d.changes++
	if d.failAt > 0 && d.changes >= d.failAt {
		d.fail()
	}

	select {
	case <-d.failed:
		return syscall.EIO
	default:
		return 0
	}
}

// rename makes one change of names.
func (d *Disk) rename(all ...entry) syscall.Errno {
	if errno := d.change(); errno != 0 {
		return errno
	}

	d.journal = append(d.journal, all)
	for _, e := range all {
		e.set(e.dir.names)
	}
	return 0
}

func (e entry) set(names map[string]*node) {
	if e.to == nil {
		delete(names, e.name)
	} else {
		names[e.name] = e.to
	}
}

// syncNames brings the names of a directory to disk. A rename from or to it brings what was before it in the other
// directory.
func (d *Disk) syncNames(dir *node) {
	synced := map[*node]bool{dir: true}
	reached := make([]bool, len(d.journal))
	for i, c := range slices.Backward(d.journal) {
		reached[i] = c.in(synced)
		if reached[i] {
			c.mark(synced)
		}
	}

	var left []change
	for i, c := range d.journal {
		if !reached[i] {
			left = append(left, c)
			continue
		}
		for _, e := range c {
			e.set(e.dir.syncedNames)
		}
	}
	d.journal = left
}

// in reports whether the change is in one of the directories.
func (c change) in(dirs map[*node]bool) bool {
	return slices.ContainsFunc(c, func(e entry) bool { return dirs[e.dir] })
}

// mark adds the directories of the change.
func (c change) mark(dirs map[*node]bool) {
	for _, e := range c {
		dirs[e.dir] = true
	}
}

// survivors returns the changes that reached the disk without a sync: at times the oldest of all, at times the
// oldest of each directory.
func (d *Disk) survivors(random *rand.Rand) []change {
	if random.IntN(2) == 0 {
		return d.journal[:random.IntN(len(d.journal)+1)]
	}

	share := random.Float64()
	lost := map[*node]bool{}
	var all []change
	for _, c := range d.journal {
		if c.in(lost) || random.Float64() < share {
			c.mark(lost)
			continue
		}
		all = append(all, c)
	}
	return all
}

// AfterFailure returns a disk with what is left after a failure: each time another part of what was not synced.
func (d *Disk) AfterFailure(random *rand.Rand) *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()

	names := map[*node]map[string]*node{}
	of := func(dir *node) map[string]*node {
		if names[dir] == nil {
			names[dir] = map[string]*node{}
			for name, n := range dir.syncedNames {
				names[dir][name] = n
			}
		}
		return names[dir]
	}
	for _, c := range d.survivors(random) {
		for _, e := range c {
			e.set(of(e.dir))
		}
	}

	left := NewDisk()
	left.IgnoreFileSync, left.IgnoreNameSync = d.IgnoreFileSync, d.IgnoreNameSync
	kept := []float64{0, 0.5, 0.9, 1}[random.IntN(4)]
	copies := map[*node]*node{}
	var survive func(n *node) *node
	survive = func(n *node) *node {
		if c := copies[n]; c != nil { // a second name
			return c
		}

		c := left.newNode(n.mode)
		copies[n] = c
		c.target = n.target
		c.content = n.torn(random, kept)
		c.synced = slices.Clone(c.content)
		if c.names != nil {
			for name, child := range of(n) {
				c.names[name] = survive(child)
				c.syncedNames[name] = c.names[name]
			}
		}
		return c
	}

	left.root = survive(d.root)
	return left
}

// torn returns the synced content with each sector of the later writes with the probability kept.
func (n *node) torn(random *rand.Rand, kept float64) []byte {
	content := slices.Clone(n.synced)
	for _, w := range n.pending {
		if w.data == nil {
			if random.Float64() < kept {
				content = resized(content, w.at)
			}
			continue
		}

		for from := 0; from < len(w.data); {
			to := min(len(w.data), from+sector-(w.at+from)%sector)
			if random.Float64() < kept {
				content = write{w.at + from, w.data[from:to]}.in(content)
			}
			from = to
		}
	}
	return content
}

// in returns content with the write.
func (w write) in(content []byte) []byte {
	if w.data == nil {
		return resized(content, w.at)
	}
	if end := w.at + len(w.data); end > len(content) {
		content = resized(content, end)
	}
	copy(content[w.at:], w.data)
	return content
}

func resized(content []byte, size int) []byte {
	if size <= len(content) {
		return content[:size]
	}
	return append(content, make([]byte, size-len(content))...)
}

// apply makes a change of a file's content.
func (n *node) apply(w write) syscall.Errno {
	if errno := n.disk.change(); errno != 0 {
		return errno
	}

	n.pending = append(n.pending, w)
	n.content = w.in(n.content)
	return 0
}

// sync brings the content of a file to disk.
func (n *node) sync() {
	for _, w := range n.pending {
		n.synced = w.in(n.synced)
	}
	n.pending = nil
}
