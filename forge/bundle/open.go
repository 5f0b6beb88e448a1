package bundle

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// Open checks a bundle whose changes begin at a commit. It returns a RefusedError for a bundle that must not
// be used. The caller closes the result.
func Open(content io.Reader, base string) (b *Bundle, err error) {
	dir, err := os.MkdirTemp("", "bundle-")
	if err != nil {
		return nil, err
	}

	b = &Bundle{Base: base, dir: dir, changed: map[string]change{}}
	if err := b.read(content); err != nil {
		b.Close()
		return nil, refusal(err)
	}

	return b, nil
}

// refusal makes the errors of packs refusals.
func refusal(err error) error {
	var large LimitError
	switch {
	case errors.As(err, &large):
		return refused("the bundle has %s", large.Excess)
	case errors.Is(err, ErrDamaged):
		return refused("the bundle has a damaged pack")
	}
	return err
}

// read unpacks and checks a bundle.
func (b *Bundle) read(content io.Reader) error {
	in := bufio.NewReaderSize(io.LimitReader(content, MaxBytes+1), 64<<10)
	size, err := b.readHeader(in)
	if err != nil {
		return err
	}

	packs := filepath.Join(b.dir, "objects", "pack")
	if err := os.MkdirAll(packs, 0o700); err != nil {
		return err
	}
	pack, err := os.CreateTemp(packs, "tmp_pack_")
	if err != nil {
		return err
	}
	defer pack.Close()

	n, err := io.Copy(pack, in)
	if err != nil {
		return err
	}
	if int64(size)+n > MaxBytes {
		return refused("the bundle has more than %d MiB", MaxBytes>>20)
	}

	limits := PackLimits{
		Objects: maxObjects, ObjectBytes: maxObject,
		UnpackedBytes: MaxUnpacked + MaxBytes, // and deltas
	}
	if err := Inspect(pack, limits); err != nil {
		return err
	}
	if err := Index(pack, packs); err != nil {
		return err
	}

	b.store = filesystem.NewStorageWithOptions(
		osfs.New(b.dir),
		cache.NewObjectLRU(8*cache.MiByte),
		filesystem.Options{ExclusiveAccess: true, KeepDescriptors: true},
	)
	return b.check()
}

// readHeader reads the text before the pack, and returns its size.
func (b *Bundle) readHeader(in *bufio.Reader) (size int, err error) {
	line := func() (string, error) {
		text, err := in.ReadSlice('\n')
		size += len(text)
		switch {
		case err != nil && err != io.EOF && err != bufio.ErrBufferFull:
			return "", err
		case err != nil, size > maxHeader:
			return "", refused("the file is not a git bundle")
		}
		return string(text[:len(text)-1]), nil
	}

	first, err := line()
	if err != nil {
		return size, err
	}
	if first != "# v2 git bundle" {
		return size, refused("the file is not a git bundle of version 2")
	}

	for {
		text, err := line()
		if err != nil {
			return size, err
		}

		needs, prerequisite := strings.CutPrefix(text, "-")
		name, _, _ := strings.Cut(needs, " ")
		switch {
		case text == "" && b.Head == "":
			return size, refused("the bundle has no branch")
		case text == "":
			return size, nil
		case !plumbing.IsHash(name):
			return size, refused("the bundle has a header that cannot be read")
		case prerequisite && name != b.Base:
			return size, refused("the bundle needs the commit %s, which is not the one that the changes begin at", name)
		case prerequisite:
		case b.Head != "":
			return size, refused("the bundle has more than one branch")
		default:
			b.Head = name
		}
	}
}
