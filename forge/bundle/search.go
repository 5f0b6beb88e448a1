package bundle

import (
	"io"

	"github.com/go-git/go-git/v5/plumbing"
)

// Contains reports whether found is true of a file that is new or changed in one of the commits, of a
// directory with the names of its files, or of the message and authors of a commit.
func (b *Bundle) Contains(found func(text []byte) bool) (bool, error) {
	known := map[plumbing.Hash]bool{plumbing.NewHash(b.Base): true}
	for _, c := range b.changed {
		known[c.was.hash] = true
	}

	all, err := b.store.IterEncodedObjects(plumbing.AnyObject)
	if err != nil {
		return false, err
	}
	defer all.Close()

	for {
		o, err := all.Next()
		if err == io.EOF {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if known[o.Hash()] {
			continue
		}

		r, err := o.Reader()
		if err != nil {
			return false, err
		}
		text, err := io.ReadAll(io.LimitReader(r, maxObject))
		r.Close()
		if err != nil {
			return false, err
		}
		if found(text) {
			return true, nil
		}
	}
}
