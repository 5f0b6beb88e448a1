package bundle

import (
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// Bounds of objects that are read into memory, in bytes.
const (
	maxCommit = 1 << 20
	maxTree   = 4 << 20
	maxTrees  = 256 << 20 // a tree counts for each of its places
	maxPath   = 4096
	maxDepth  = 256
)

// check checks the history and the trees of a bundle, and finds out what it changes.
func (b *Bundle) check() error {
	base, err := b.commit(plumbing.NewHash(b.Base))
	if err != nil {
		return err
	}
	if base == nil {
		return refused("the bundle lacks the commit %s, which its changes begin at", b.Base)
	}

	commits, err := b.history()
	if err != nil {
		return err
	}

	w := &walk{bundle: b, seen: map[[2]plumbing.Hash]bool{}}
	for _, c := range commits {
		w.record = c.Hash.String() == b.Head
		if w.record {
			clear(w.seen)
		}
		if err := w.tree("", base.TreeHash, c.TreeHash); err != nil {
			return err
		}
	}

	if len(b.changed) == 0 {
		return refused("the bundle changes nothing")
	}
	return nil
}

// history returns the new commits. Each must descend from the base, and from nothing else that is not in the bundle.
func (b *Bundle) history() (commits []*object.Commit, err error) {
	base := plumbing.NewHash(b.Base)
	queue := []plumbing.Hash{plumbing.NewHash(b.Head)}
	seen := map[plumbing.Hash]bool{}
	for len(queue) > 0 {
		hash := queue[0]
		queue = queue[1:]
		if hash == base || seen[hash] {
			continue
		}

		seen[hash] = true
		c, err := b.commit(hash)
		switch {
		case err != nil:
			return nil, err
		case c == nil:
			return nil, refused("the bundle lacks the commit %s", hash)
		case len(c.ParentHashes) == 0:
			return nil, refused("the commit %s does not descend from %s", hash, b.Base)
		case len(seen) > MaxCommits:
			return nil, refused("the bundle has more than %d commits", MaxCommits)
		}

		commits = append(commits, c)
		queue = append(queue, c.ParentHashes...)
	}

	if len(commits) == 0 {
		return nil, refused("the bundle has no new commit")
	}
	return commits, nil
}

// object returns an object of the pack, nil when it is not there.
func (b *Bundle) object(kind plumbing.ObjectType, hash plumbing.Hash, most int64) (plumbing.EncodedObject, error) {
	o, err := b.store.EncodedObject(plumbing.AnyObject, hash)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return nil, nil
	}
	switch {
	case err != nil:
		return nil, refused("the object %s cannot be read", hash)
	case o.Type() != kind:
		return nil, refused("the object %s is a %s where a %s belongs", hash, o.Type(), kind)
	case o.Size() > most:
		return nil, refused("the %s %s has more than %d MiB", kind, hash, most>>20)
	}
	return o, nil
}

// commit returns a commit of the pack, nil when it is not there.
func (b *Bundle) commit(hash plumbing.Hash) (*object.Commit, error) {
	o, err := b.object(plumbing.CommitObject, hash, maxCommit)
	if o == nil || err != nil {
		return nil, err
	}

	var c object.Commit
	if c.Decode(o) != nil || c.TreeHash.IsZero() {
		return nil, refused("the commit %s cannot be read", hash)
	}
	return &c, nil
}

// walk compares trees.
type walk struct {
	bundle *Bundle
	seen   map[[2]plumbing.Hash]bool // pairs of trees that were compared
	bytes  int64
	record bool // the changes are those of the bundle
}

// tree compares the tree of a directory with what it was; a zero hash is no tree.
func (w *walk) tree(dir string, was, now plumbing.Hash) error {
	if was == now || !w.record && w.seen[[2]plumbing.Hash{was, now}] {
		return nil
	}

	w.seen[[2]plumbing.Hash{was, now}] = true
	if len(dir) > maxPath || strings.Count(dir, "/") > maxDepth {
		return refused("the bundle has a directory that is too deep")
	}

	before, known, err := w.entries(was)
	if err != nil {
		return err
	}
	after, _, err := w.entries(now)
	if err != nil {
		return err
	}

	for name, now := range after {
		if !known && now.mode != modeSubmodule {
			before[name] = file{mode: now.mode} // another one
		}
		if err := w.entry(path.Join(dir, name), before[name], now); err != nil {
			return err
		}
	}
	for name, was := range before {
		if _, still := after[name]; !still {
			if err := w.entry(path.Join(dir, name), was, file{}); err != nil {
				return err
			}
		}
	}
	return nil
}

// Modes of entries.
const (
	modeTree      = uint32(filemode.Dir)
	modeSubmodule = uint32(filemode.Submodule)
)

// entry compares an entry of a tree with what it was.
func (w *walk) entry(at string, was, now file) error {
	if was == now {
		return nil
	}
	if was.mode == modeSubmodule || now.mode == modeSubmodule {
		return refused("the changes have another commit of the submodule %q", at)
	}

	wasTree, nowTree := plumbing.ZeroHash, plumbing.ZeroHash
	if was.mode == modeTree {
		wasTree, was = was.hash, file{}
	}
	if now.mode == modeTree {
		nowTree, now = now.hash, file{}
	}

	if was != now && w.record {
		if w.bundle.changed[at] = (change{was, now}); len(w.bundle.changed) > MaxFiles {
			return refused("the bundle changes more than %d files", MaxFiles)
		}
	}
	return w.tree(at, wasTree, nowTree)
}

// entries reads a tree. known is false for one that is not in the pack: then it is no tree of the last commit, and
// was in the repository before.
func (w *walk) entries(hash plumbing.Hash) (all map[string]file, known bool, err error) {
	all = map[string]file{}
	if hash.IsZero() {
		return all, true, nil
	}

	o, err := w.bundle.object(plumbing.TreeObject, hash, maxTree)
	switch {
	case err != nil:
		return nil, false, err
	case o == nil && w.record:
		return nil, false, refused("the bundle lacks the tree %s, which the changes touch", hash)
	case o == nil:
		return all, false, nil
	}
	if w.bytes += o.Size(); w.bytes > maxTrees {
		return nil, false, refused("the bundle has more than %d MiB of directories", maxTrees>>20)
	}

	var t object.Tree
	if t.Decode(o) != nil {
		return nil, false, refused("the tree %s cannot be read", hash)
	}
	for _, e := range t.Entries {
		switch _, twice := all[e.Name]; {
		case twice:
			return nil, false, refused("the tree %s has two entries named %q", hash, e.Name)
		case !validName(e.Name):
			return nil, false, refused("the tree %s has an entry named %q, which no file may have", hash, e.Name)
		}
		all[e.Name] = file{uint32(e.Mode), e.Hash}
	}
	return all, true, nil
}

// validName reports whether git checks out a file of this name on any system: no .git, also not as file systems
// that fold case, drop characters or shorten names read it.
func validName(name string) bool {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return false
	}

	folded := strings.ToLower(strings.Map(func(r rune) rune {
		if r >= 0x200c && r <= 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x206a && r <= 0x206f || r == 0xfeff {
			return -1 // HFS+ ignores it
		}
		return r
	}, name))
	folded, _, _ = strings.Cut(folded, ":") // a stream of NTFS
	for part := range strings.SplitSeq(folded, `\`) {
		if part = strings.TrimRight(part, " ."); part == ".git" || part == "git~1" {
			return false
		}
	}
	return true
}

// Follows reports whether the head descends from a commit, which is the base or a new one.
func (b *Bundle) Follows(commit string) (bool, error) {
	commits, err := b.history()
	if err != nil {
		return false, err
	}

	return commit == b.Base || slices.ContainsFunc(commits, func(c *object.Commit) bool {
		return c.Hash.String() == commit
	}), nil
}
