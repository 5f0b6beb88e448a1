package bundle

import (
	"bytes"
	"io"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
	"github.com/go-git/go-git/v5/plumbing"
)

// Limits of a patch that is compared with a bundle.
const (
	MaxPatch      = 16 << 20 // bytes
	maxPatchLines = 500_000
	maxApplied    = 256 << 20 // bytes of all files before and after
)

// ErrLargePatch reports a patch that is too large to compare.
var ErrLargePatch = refused("the patch is too large to compare with the bundle")

// ShownBy returns nil if a patch shows what the bundle changes: all of it, and nothing else. It applies the patch to
// the files that were there before and compares the results.
func (b *Bundle) ShownBy(patch io.Reader) error {
	text, err := io.ReadAll(io.LimitReader(patch, MaxPatch+1))
	if err != nil {
		return err
	}
	if len(text) > MaxPatch || bytes.Count(text, []byte("\n")) > maxPatchLines {
		return ErrLargePatch
	}

	files, before, err := gitdiff.Parse(bytes.NewReader(text))
	if err != nil || before != "" {
		return refused("the patch cannot be read")
	}

	a := applied{bundle: b, now: map[string]file{}}
	for _, f := range files {
		if err := a.apply(f); err != nil {
			return err
		}
	}

	for path, change := range b.changed {
		if now, shown := a.now[path]; !shown || now != change.now {
			return refused("the patch does not show the change of %q as the bundle has it", path)
		}
	}
	for path, now := range a.now {
		if change, changed := b.changed[path]; !changed && now != change.was {
			return refused("the patch shows a change of %q, which the bundle does not have", path)
		}
	}
	return nil
}

// applied is a patch as far as it was applied.
type applied struct {
	bundle *Bundle
	now    map[string]file // the paths that the patch names
	bytes  int64
}

// apply applies the part of a patch about one file.
func (a *applied) apply(f *gitdiff.File) error {
	var was file
	if !f.IsNew {
		change, known := a.bundle.changed[f.OldName]
		if was = change.was; !known || was == (file{}) {
			return refused("the patch shows a change of %q, which the bundle does not have", f.OldName)
		}
	}

	content, err := a.content(was)
	if err != nil {
		return err
	}

	result := &limited{left: maxObject}
	err = gitdiff.Apply(result, bytes.NewReader(content), f, gitdiff.WithMaxBinaryFragmentBytes(maxObject))
	if err != nil {
		return refused("the patch does not fit the file %q as it was", f.OldName)
	}
	if a.bytes += int64(len(content) + result.Len()); a.bytes > maxApplied {
		return ErrLargePatch
	}

	now := file{was.mode, plumbing.ComputeHash(plumbing.BlobObject, result.Bytes())}
	if f.NewMode != 0 {
		now.mode = uint32(f.NewMode)
	}

	switch {
	case f.IsDelete && result.Len() > 0:
		return refused("the patch does not show all that is deleted with %q", f.OldName)
	case f.IsDelete:
		return a.put(f.OldName, file{})
	case f.IsRename:
		if err := a.put(f.OldName, file{}); err != nil {
			return err
		}
	}
	return a.put(f.NewName, now)
}

// put records what a patch makes of a path. A patch has a path twice only to delete a file and make another one.
func (a *applied) put(path string, now file) error {
	before, twice := a.now[path]
	if anew := before == (file{}) && now != (file{}); twice && !anew {
		return refused("the patch shows the file %q twice", path)
	}
	a.now[path] = now
	return nil
}

// content returns a file as it was.
func (a *applied) content(was file) ([]byte, error) {
	if was == (file{}) {
		return nil, nil
	}

	o, err := a.bundle.object(plumbing.BlobObject, was.hash, maxObject)
	if err != nil {
		return nil, err
	}
	if o == nil {
		return nil, refused("the bundle lacks the file %s, which the changes touch", was.hash)
	}

	r, err := o.Reader()
	if err != nil {
		return nil, refused("the file %s cannot be read", was.hash)
	}
	defer r.Close()

	content, err := io.ReadAll(io.LimitReader(r, maxObject))
	if err != nil {
		return nil, refused("the file %s cannot be read", was.hash)
	}
	return content, nil
}

// limited is a buffer of bounded size.
type limited struct {
	bytes.Buffer
	left int
}

// Write adds bytes, or fails when they are too many.
func (l *limited) Write(b []byte) (int, error) {
	if l.left -= len(b); l.left < 0 {
		return 0, ErrLargePatch
	}
	return l.Buffer.Write(b)
}
