package powerfs

import (
	"context"
	"maps"
	"os"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// Failures returns how often a test lets the power fail: MILLWRIGHT_POWER_FAILURES times, or as often as usual.
func Failures(t testing.TB, usual int) int {
	t.Helper()
	text, ok := os.LookupEnv("MILLWRIGHT_POWER_FAILURES")
	if !ok {
		return usual
	}

	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("MILLWRIGHT_POWER_FAILURES=%q is not a number of failures", text)
	}
	return n
}

// Mount mounts the disk on a directory of its own until the test ends or unmount is called. It skips the test where
// file systems cannot be mounted; under CI=true it fails.
func (d *Disk) Mount(t testing.TB) (dir string, unmount func()) {
	t.Helper()
	dir = t.TempDir()
	long := time.Hour
	server, err := fs.Mount(dir, d.root, &fs.Options{
		AttrTimeout:  &long,
		EntryTimeout: &long,
		MountOptions: fuse.MountOptions{DirectMount: true, FsName: "powerfs", Name: "powerfs"},
	})
	if err != nil && os.Getenv("CI") != "true" {
		t.Skipf("no file system can be mounted here (needs /dev/fuse, and root or fusermount3): %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}

	mounted := true
	unmount = func() {
		if !mounted {
			return
		}
		mounted = false
		defer func() { server, d = nil, nil }() // the test does not keep what the disk held
		if err := server.Unmount(); err != nil {
			_ = syscall.Unmount(dir, syscall.MNT_DETACH)
			t.Errorf("unmount: %v", err)
		}
	}
	t.Cleanup(unmount)
	return dir, unmount
}

var (
	_ fs.NodeOnAdder    = (*node)(nil)
	_ fs.NodeGetattrer  = (*node)(nil)
	_ fs.NodeSetattrer  = (*node)(nil)
	_ fs.NodeOpener     = (*node)(nil)
	_ fs.NodeReader     = (*node)(nil)
	_ fs.NodeWriter     = (*node)(nil)
	_ fs.NodeFsyncer    = (*node)(nil)
	_ fs.NodeCreater    = (*node)(nil)
	_ fs.NodeMkdirer    = (*node)(nil)
	_ fs.NodeLinker     = (*node)(nil)
	_ fs.NodeSymlinker  = (*node)(nil)
	_ fs.NodeReadlinker = (*node)(nil)
	_ fs.NodeUnlinker   = (*node)(nil)
	_ fs.NodeRmdirer    = (*node)(nil)
	_ fs.NodeRenamer    = (*node)(nil)

	_ fs.NodeOpendirHandler = (*node)(nil)
	_ fs.FileReaddirenter   = (*listing)(nil)
	_ fs.FileSeekdirer      = (*listing)(nil)
)

// listing reads a directory. Whoever goes back to its beginning sees the names that it has then.
type listing struct {
	dir  *node
	all  []fuse.DirEntry
	next int
}

// OpendirHandle opens a directory for reading.
func (n *node) OpendirHandle(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) {
	return &listing{dir: n}, 0, 0
}

// Readdirent returns the next name, or nil behind the last one. The kernel asks one at a time.
func (l *listing) Readdirent(context.Context) (*fuse.DirEntry, syscall.Errno) {
	if l.next == 0 {
		l.all = l.dir.list()
	}
	if l.next == len(l.all) {
		return nil, 0
	}

	l.next++
	return &l.all[l.next-1], 0
}

// Seekdir goes to a place that a name was read with.
func (l *listing) Seekdir(_ context.Context, place uint64) syscall.Errno {
	if place > uint64(len(l.all)) {
		return syscall.EINVAL
	}
	l.next = int(place)
	return 0
}

// list returns the names of a directory, in order.
func (n *node) list() []fuse.DirEntry {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()

	all := make([]fuse.DirEntry, 0, len(n.names))
	for i, name := range slices.Sorted(maps.Keys(n.names)) {
		child := n.names[name]
		all = append(all, fuse.DirEntry{
			Name: name,
			Mode: child.Mode(),
			Ino:  child.StableAttr().Ino,
			Off:  uint64(1 + i),
		})
	}
	return all
}

// OnAdd makes what a disk has at its start known to the kernel.
func (n *node) OnAdd(ctx context.Context) {
	for name, child := range n.names {
		n.AddChild(name, n.inode(ctx, child), true)
	}
}

// inode returns the child's part of the tree.
func (n *node) inode(ctx context.Context, child *node) *fs.Inode {
	if child.StableAttr().Ino != 0 { // a second name
		return child.EmbeddedInode()
	}
	return n.NewPersistentInode(ctx, child, fs.StableAttr{Mode: child.mode & syscall.S_IFMT})
}

func (n *node) attributes(out *fuse.Attr) {
	out.Mode = n.mode
	out.Size = uint64(len(n.content))
	out.Blocks = (out.Size + sector - 1) / sector
	out.Nlink = 1
}

// Getattr returns type, permissions and size.
func (n *node) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()

	n.attributes(&out.Attr)
	return 0
}

// Setattr changes size and permissions.
func (n *node) Setattr(
	_ context.Context, _ fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut,
) syscall.Errno {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()

	if size, ok := in.GetSize(); ok {
		if errno := n.apply(write{at: int(size)}); errno != 0 {
			return errno
		}
	}
	if mode, ok := in.GetMode(); ok {
		n.mode = n.mode&syscall.S_IFMT | mode&0o7777
	}

	n.attributes(&out.Attr)
	return 0
}

// Open opens a file without a handle.
func (n *node) Open(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) {
	return nil, fuse.FOPEN_KEEP_CACHE, 0
}

// Read reads the present content, even after the power has failed.
func (n *node) Read(_ context.Context, _ fs.FileHandle, dest []byte, at int64) (fuse.ReadResult, syscall.Errno) {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()

	from := min(int(at), len(n.content))
	to := min(from+len(dest), len(n.content))
	return fuse.ReadResultData(slices.Clone(n.content[from:to])), 0
}

// Write changes the content.
func (n *node) Write(_ context.Context, _ fs.FileHandle, data []byte, at int64) (uint32, syscall.Errno) {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()

	if errno := n.apply(write{int(at), slices.Clone(data)}); errno != 0 {
		return 0, errno
	}
	return uint32(len(data)), 0
}

// Fsync brings a file, or the names of a directory, to disk.
func (n *node) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()

	if errno := n.disk.change(); errno != 0 {
		return errno
	}

	switch {
	case n.names != nil && !n.disk.IgnoreNameSync:
		n.disk.syncNames(n)
	case n.names == nil && !n.disk.IgnoreFileSync:
		n.sync()
	}

	return 0
}

// add makes a name of a new node.
func (n *node) add(ctx context.Context, name string, child *node, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	n.disk.mu.Lock()
	errno := n.disk.rename(entry{n, name, child})
	child.attributes(&out.Attr)
	n.disk.mu.Unlock()

	if errno != 0 {
		return nil, errno
	}
	return n.inode(ctx, child), 0
}

// Create makes a file.
func (n *node) Create(
	ctx context.Context, name string, _ uint32, mode uint32, out *fuse.EntryOut,
) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	child, errno := n.add(ctx, name, n.disk.newNode(syscall.S_IFREG|mode&0o7777), out)
	return child, nil, fuse.FOPEN_KEEP_CACHE, errno
}

// Mkdir makes a directory.
func (n *node) Mkdir(ctx context.Context, name string, mode uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	return n.add(ctx, name, n.disk.newNode(syscall.S_IFDIR|mode&0o7777), out)
}

// Link makes a second name.
func (n *node) Link(
	ctx context.Context, target fs.InodeEmbedder, name string, out *fuse.EntryOut,
) (*fs.Inode, syscall.Errno) {
	return n.add(ctx, name, target.(*node), out)
}

// Symlink makes a symbolic link.
func (n *node) Symlink(
	ctx context.Context, target, name string, out *fuse.EntryOut,
) (*fs.Inode, syscall.Errno) {
	link := n.disk.newNode(syscall.S_IFLNK | 0o777)
	link.target = target
	return n.add(ctx, name, link, out)
}

// Readlink returns the target of a link.
func (n *node) Readlink(context.Context) ([]byte, syscall.Errno) { return []byte(n.target), 0 }

// Unlink removes a name.
func (n *node) Unlink(_ context.Context, name string) syscall.Errno {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()

	return n.disk.rename(entry{n, name, nil})
}

// Rmdir removes an empty directory.
func (n *node) Rmdir(_ context.Context, name string) syscall.Errno {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()

	if dir := n.names[name]; dir != nil && len(dir.names) > 0 {
		return syscall.ENOTEMPTY
	}
	return n.disk.rename(entry{n, name, nil})
}

// Rename gives a file another name, in place of the file that has it.
func (n *node) Rename(
	_ context.Context, name string, parent fs.InodeEmbedder, newName string, flags uint32,
) syscall.Errno {
	if flags != 0 {
		return syscall.EINVAL
	}

	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()

	return n.disk.rename(entry{n, name, nil}, entry{parent.(*node), newName, n.names[name]})
}
