package db

import (
	"errors"
	"fmt"

	"github.com/klauspost/compress/s2"
)

// errStored reports a compressed value that is not one that Compress returned.
var errStored = errors.New("the stored value is damaged")

// Compress returns the form in which a value is stored: compressed, or as it is when that is no shorter.
// A database writes whole pages, so that fewer bytes are fewer pages of its log, its file and its backups.
func Compress(value []byte) []byte {
	if out := s2.Encode(nil, value); len(out) < len(value) {
		return out
	}
	return value
}

// Decompress returns the value of so many bytes that Compress stored. The value is stored itself, or in dst
// where it fits into its capacity.
func Decompress(dst, stored []byte, size int64) ([]byte, error) {
	if int64(len(stored)) == size {
		return stored, nil
	}

	n, err := s2.DecodedLen(stored)
	if err != nil || int64(n) != size {
		return nil, fmt.Errorf("%w: it is not of %d bytes", errStored, size)
	}

	value, err := s2.Decode(dst, stored)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errStored, err)
	}

	return value, nil
}
