package bundle

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
)

// PackLimits bound the objects of a pack.
type PackLimits struct {
	Objects       int64 // number
	ObjectBytes   int64 // of one
	UnpackedBytes int64 // of all
}

// LimitError reports a pack beyond a limit.
type LimitError struct {
	// Excess is what there is too much of, as "9 new objects: more than 5".
	Excess string
}

// Error returns what there is too much of.
func (e LimitError) Error() string { return e.Excess }

func excess(format string, args ...any) error { return LimitError{fmt.Sprintf(format, args...)} }

// ErrDamaged reports a pack that cannot be read.
var ErrDamaged = errors.New("damaged pack")

// Inspect returns a LimitError for a pack that would unpack to more than the limits, before it unpacks much of it.
func Inspect(pack io.ReadSeeker, limits PackLimits) error {
	if _, err := pack.Seek(0, io.SeekStart); err != nil {
		return err
	}

	scanner := packfile.NewScanner(pack)
	_, count, err := scanner.Header()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if int64(count) > limits.Objects {
		return excess("%d new objects: more than %d", count, limits.Objects)
	}

	var total int64
	add := func(size int64) error {
		if size < 0 || size > limits.ObjectBytes {
			return excess("an object of %d bytes: more than %d MiB", size, limits.ObjectBytes>>20)
		}
		if total += size; total > limits.UnpackedBytes {
			return excess("more than %d MiB of new objects", limits.UnpackedBytes>>20)
		}

		return nil
	}

	for range count {
		header, err := scanner.NextObjectHeader()
		if err != nil {
			return fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		if err := add(header.Length); err != nil {
			return err
		}

		head := &prefix{max: 2 * binary.MaxVarintLen64}
		if n, _, err := scanner.NextObject(head); err != nil || n != header.Length {
			return fmt.Errorf("%w: %w", ErrDamaged, cmp.Or(err, io.ErrUnexpectedEOF))
		}

		if header.Type.IsDelta() {
			size, err := deltaTarget(head.data)
			if err != nil {
				return err
			}
			if err := add(size); err != nil {
				return err
			}
		}
	}

	return nil
}

// prefix keeps the first bytes of what is written to it.
type prefix struct {
	data []byte
	max  int
}

// Write keeps the bytes that still fit.
func (p *prefix) Write(b []byte) (int, error) {
	p.data = append(p.data, b[:min(len(b), p.max-len(p.data))]...)
	return len(b), nil
}

// deltaTarget returns the size of a delta's result. A delta begins with two variable-length integers, the
// sizes of its base and of its result (gitformat-pack).
func deltaTarget(delta []byte) (int64, error) {
	r := bytes.NewReader(delta)
	if _, err := binary.ReadUvarint(r); err != nil {
		return 0, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	size, err := binary.ReadUvarint(r)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return int64(size), nil
}

// Index moves a pack that is not thin into a directory of packs, with its index. Inspect must have bounded it.
func Index(pack *os.File, dir string) error {
	if _, err := pack.Seek(0, io.SeekStart); err != nil {
		return err
	}

	entries := new(idxfile.Writer)
	parser, err := packfile.NewParser(packfile.NewScanner(pack), entries)
	if err != nil {
		return err
	}

	sum, err := parser.Parse()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}

	list, err := entries.Index()
	if err != nil {
		return err
	}

	var idx bytes.Buffer
	if _, err := idxfile.NewEncoder(&idx).Encode(list); err != nil {
		return err
	}

	base := filepath.Join(dir, "pack-"+sum.String())
	if err := os.WriteFile(base+".idx", idx.Bytes(), 0o600); err != nil {
		return err
	}

	return os.Rename(pack.Name(), base+".pack")
}
