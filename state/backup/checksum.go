package backup

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
)

// A backup has a checksum: SQLite would not notice a payload in which one bit is another. It is kept in the
// two fields of four bytes that SQLite leaves to programs in the header of a database, user_version and
// application_id. In a state both are 0.
const (
	userVersionAt   = 60
	applicationIDAt = 68
	headerSize      = 100
)

type checksum [8]byte

// setChecksum writes the checksum of a copy into it.
func setChecksum(file string) error {
	is, _, err := checksumOf(file)
	if err != nil {
		return err
	}
	return writeChecksum(file, is)
}

func writeChecksum(file string, sum checksum) error {
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(sum[:4], userVersionAt)
	_, err2 := f.WriteAt(sum[4:], applicationIDAt)
	return errors.Join(err, err2, f.Sync(), f.Close())
}

// checkChecksum refuses a copy that is not what its checksum was made of. One without a checksum is as good
// as SQLite finds it.
func checkChecksum(file string) error {
	is, has, err := checksumOf(file)
	if err == nil && has != (checksum{}) && has != is {
		err = fmt.Errorf("%s is damaged, or was changed since the backup: its checksum is another", file)
	}
	return err
}

// checksumOf returns the beginning of the SHA-256 of a file without its checksum, and the checksum in it.
func checksumOf(file string) (is, has checksum, err error) {
	f, err := os.Open(file)
	if err != nil {
		return is, has, err
	}
	defer f.Close()

	header := make([]byte, headerSize)
	if _, err := io.ReadFull(f, header); err != nil {
		return is, has, err
	}

	for i, at := range []int{userVersionAt, applicationIDAt} {
		copy(has[4*i:], header[at:at+4])
		clear(header[at : at+4])
	}

	h := sha256.New()
	h.Write(header)
	if _, err := io.Copy(h, f); err != nil {
		return is, has, err
	}

	copy(is[:], h.Sum(nil))
	return is, has, nil
}
