package bounds

import (
	"errors"
	"io"
)

// Errors of ReadBody.
var (
	ErrTooLarge = errors.New("the body is larger than it may be")
	ErrNoRoom   = errors.New("too many bytes of bodies in flight")
)

// A body's memory grows with the bytes that arrive, whatever the announced length.
const (
	firstRead  = 4 << 10
	readGrowth = 4 // times
)

// ReadBody reads a body of the given length, or of unknown length if it is negative. It takes memory from
// the hold as the body arrives, and reads at most one byte more than most. It returns the bytes read, also
// with an error: ErrTooLarge, ErrNoRoom or that of the reader.
func (h *Hold) ReadBody(from io.Reader, length, most int64) ([]byte, error) {
	if length > most {
		return nil, ErrTooLarge
	}

	whole := most + 1
	if length >= 0 {
		whole = length
	}

	body := []byte{}
	for int64(len(body)) < whole {
		if len(body) == cap(body) {
			size := min(max(firstRead, readGrowth*int64(cap(body))), whole)
			if !h.Grow(size - int64(cap(body))) {
				return body, ErrNoRoom
			}

			grown := make([]byte, len(body), size)
			copy(grown, body)
			body = grown
		}

		n, err := from.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case int64(len(body)) > most:
			return body, ErrTooLarge
		case int64(len(body)) == length:
			return body, nil
		case err == io.EOF && length < 0:
			return body, nil
		case err == io.EOF:
			return body, io.ErrUnexpectedEOF
		case err != nil:
			return body, err
		}
	}

	return body, nil
}

// Reader returns a reader of from that takes the bytes read from the hold, for bodies that other code
// collects.
func (h *Hold) Reader(from io.ReadCloser) io.ReadCloser { return &heldReader{from, h} }

type heldReader struct {
	io.ReadCloser
	hold *Hold
}

// Read reads, or returns ErrNoRoom if the pool has no room for the bytes.
func (r *heldReader) Read(b []byte) (int, error) {
	n, err := r.ReadCloser.Read(b)
	if n > 0 && !r.hold.Grow(int64(n)) {
		return 0, ErrNoRoom
	}
	return n, err
}

// Values returns an upper bound of the number of JSON values in a body, without member names. It scans only
// strings and brackets, so it is cheap on any input.
func Values(body []byte) (n int) {
	n = 1
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case ',', '[', '{':
			n++
		case '"':
			for i++; i < len(body) && body[i] != '"'; i++ {
				if body[i] == '\\' {
					i++
				}
			}
		}
	}

	return n
}
