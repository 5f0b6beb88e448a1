package db_test

import (
	"bytes"
	"strings"
	"testing"

	"millwright/state/db"
)

func FuzzCompress(f *testing.F) {
	for _, value := range []string{"", "a", `{"a":1}`, strings.Repeat(`{"id":1},`, 100), "\x00\xff"} {
		f.Add([]byte(value), int64(len(value)))
	}

	f.Fuzz(func(t *testing.T, value []byte, size int64) {
		stored := db.Compress(value)
		if len(stored) > len(value) {
			t.Errorf("%d bytes are stored as %d", len(value), len(stored))
		}

		back, err := db.Decompress(nil, stored, int64(len(value)))
		if err != nil || !bytes.Equal(back, value) {
			t.Errorf("%q came back as %q: %v", value, back, err)
		}

		// Foreign bytes are a value of the size that was asked for, or an error.
		back, err = db.Decompress(nil, value, size)
		if err == nil && int64(len(back)) != size {
			t.Errorf("%d bytes came back, not %d", len(back), size)
		}
	})
}
