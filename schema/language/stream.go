package language

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"github.com/sourcegraph/jsonrpc2"
)

// Bounds of what a client may send.
const (
	maxMessage = 8 << 20
	maxHeader  = 4096 // bytes of all header lines of a message
)

// stream reads and writes messages with the headers of the Language Server Protocol. A message that is too
// large, or that is not one of JSON-RPC, is answered with an error, and the next one is read.
type stream struct {
	in  *bufio.Reader
	out io.Writer
	end func() error

	mu sync.Mutex // of out
}

func newStream(in io.Reader, out io.Writer, end func() error) *stream {
	return &stream{in: bufio.NewReaderSize(in, maxHeader), out: out, end: end}
}

// Close ends reading.
func (s *stream) Close() error { return s.end() }

// WriteObject writes a message.
func (s *stream) WriteObject(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	_, err = s.out.Write(fmt.Appendf(nil, "Content-Length: %d\r\n\r\n%s", len(text), text))
	return err
}

// ReadObject reads the next message into v. An error ends the connection: where the next message begins is
// not known.
func (s *stream) ReadObject(v any) error {
	for {
		size, err := s.header()
		if err != nil {
			return err
		}

		if size > maxMessage {
			if _, err := io.CopyN(io.Discard, s.in, size); err != nil {
				return err
			}
			if err := s.refuse(jsonrpc2.CodeInvalidRequest, "the message is too large"); err != nil {
				return err
			}
			continue
		}

		text := make([]byte, size)
		if _, err := io.ReadFull(s.in, text); err != nil {
			return err
		}

		reflect.ValueOf(v).Elem().SetZero() // a message that was refused may have left something
		if err = json.Unmarshal(text, v); err == nil {
			return nil
		}

		code, message := int64(jsonrpc2.CodeInvalidRequest), "the message is neither a request nor an answer"
		if !json.Valid(text) {
			code, message = jsonrpc2.CodeParseError, "the message is not JSON"
		}
		if err := s.refuse(code, message); err != nil {
			return err
		}
	}
}

// header reads the headers of a message and returns its size.
func (s *stream) header() (size int64, err error) {
	size = -1
	for read := 0; ; {
		line, err := s.in.ReadSlice('\n')
		if read += len(line); errors.Is(err, bufio.ErrBufferFull) || read > maxHeader {
			return 0, errors.New("the headers of a message are too long")
		}
		if err != nil {
			return 0, err
		}

		text := strings.TrimRight(string(line), "\r\n")
		if text == "" {
			break
		}

		name, value, _ := strings.Cut(text, ":")
		if strings.EqualFold(strings.TrimSpace(name), "Content-Length") {
			if size, err = strconv.ParseInt(strings.TrimSpace(value), 10, 64); err != nil || size < 0 {
				return 0, errors.New("the Content-Length of a message is no number")
			}
		}
	}

	if size < 0 {
		return 0, errors.New("a message has no Content-Length")
	}
	return size, nil
}

// refuse answers a message whose ID is not known.
func (s *stream) refuse(code int64, message string) error {
	return s.WriteObject(map[string]any{
		"jsonrpc": "2.0", "id": nil, "error": map[string]any{"code": code, "message": message},
	})
}
