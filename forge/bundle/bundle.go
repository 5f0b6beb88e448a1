// Package bundle reads git packs and bundles of strangers. It bounds what they hold before it spends memory on them,
// executes no git, and trusts no object that it did not hash.
//
// A bundle that Open accepts has one branch, whose commits descend from one known commit. Beside the new objects its
// pack has that commit, and of its trees and files those that the changes touch, so that the changes can be shown
// without the repository.
package bundle

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// Limits of a bundle.
const (
	MaxBytes    = 50 << 20
	MaxUnpacked = 200 << 20 // bytes of objects
	MaxFiles    = 10_000    // changed files
	MaxCommits  = 10_000

	maxObjects = 200_000
	maxObject  = 64 << 20
	maxHeader  = 64 << 10
)

// RefusedError is the reason why a bundle is not accepted.
type RefusedError struct{ Reason string }

// Error returns the reason.
func (e *RefusedError) Error() string { return e.Reason }

func refused(format string, args ...any) error { return &RefusedError{fmt.Sprintf(format, args...)} }

// Bundle is a bundle that was checked.
type Bundle struct {
	Base string // the commit that its changes begin at
	Head string // the commit of its branch, which descends from Base

	dir     string
	store   *filesystem.Storage
	changed map[string]change
}

// change is what a path was and is. The zero entry is no file.
type change struct{ was, now file }

// file is a file of a tree.
type file struct {
	mode uint32
	hash plumbing.Hash
}

// Close removes the unpacked bundle.
func (b *Bundle) Close() error {
	if b.store != nil {
		_ = b.store.ObjectStorage.Close() // it was only read
	}
	return os.RemoveAll(b.dir)
}

// Pack returns the objects of the bundle as a pack.
func (b *Bundle) Pack() (io.ReadCloser, error) {
	files, err := filepath.Glob(filepath.Join(b.dir, "objects", "pack", "*.pack"))
	if err != nil || len(files) != 1 {
		return nil, fmt.Errorf("the pack of the bundle is gone: %w", err)
	}
	return os.Open(files[0])
}

// Paths lists the changed files, sorted. They are as git has them: any bytes but NUL.
func (b *Bundle) Paths() []string {
	var all []string
	for path := range b.changed {
		all = append(all, path)
	}
	slices.Sort(all)
	return all
}
