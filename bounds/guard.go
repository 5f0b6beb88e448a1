package bounds

import (
	"io"
	"net/http"
	"time"
)

// smallHeader is the size of headers that the bound on connections covers.
const smallHeader = 4 << 10

// HeaderBytes returns the bytes of a request's headers beyond the few that every request has.
func HeaderBytes(h http.Header) int64 {
	n := 0
	for name, values := range h {
		for _, v := range values {
			n += len(name) + len(v) + 32
		}
	}
	return int64(max(n-smallHeader, 0))
}

// Guard returns a handler that bounds how long next waits for the body of a request and for the receiver of
// its answer. It also reserves room for large headers. A handler that sets a deadline itself replaces that
// of Guard.
func (b *Bounds) Guard(next http.Handler, senderOf func(*http.Request) string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		headers := b.Keyless.Hold(senderOf(r))
		defer headers.Release()

		if !headers.Grow(HeaderBytes(r.Header)) {
			Refuse(w)
			return
		}

		control := http.NewResponseController(w)
		if r.ProtoMajor == 2 {
			_ = control.SetWriteDeadline(time.Time{}) // otherwise the stream would end between writes
		}

		if r.Body != nil && r.Body != http.NoBody {
			_ = control.SetReadDeadline(time.Now().Add(BodyTime))
			body := r.Body
			r = r.WithContext(r.Context())
			r.Body = &timedBody{body, control}
		}

		next.ServeHTTP(&timedWriter{ResponseWriter: w, control: control}, r)
	})
}

// Refuse answers 503 and closes the connection.
func Refuse(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Retry-After", "1")
	h.Set("Connection", "close")
	h.Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = io.WriteString(w, `{"error":"service unavailable"}`+"\n")
}

// timedBody is a body that is read under a deadline. It clears the deadline at its end, which would
// otherwise look like a disconnected sender.
type timedBody struct {
	io.ReadCloser
	control *http.ResponseController
}

// Read reads the next part of the body.
func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// slowest is the minimum rate of a receiver, in bytes a second.
const slowest = 16 << 10

// timedWriter writes an answer under a deadline, part by part.
type timedWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	own     bool // the handler sets deadlines
}

// WriteHeader begins the answer.
func (w *timedWriter) WriteHeader(status int) {
	w.extend(0)
	w.ResponseWriter.WriteHeader(status)
}

// Write writes a part of the answer.
func (w *timedWriter) Write(p []byte) (int, error) {
	w.extend(len(p))
	return w.ResponseWriter.Write(p)
}

// extend extends the deadline by the time for n bytes.
func (w *timedWriter) extend(n int) {
	if !w.own {
		_ = w.control.SetWriteDeadline(time.Now().Add(WriteTime + time.Duration(n/slowest)*time.Second))
	}
}

// Flush sends what was written.
func (w *timedWriter) Flush() { _ = w.control.Flush() }

// SetReadDeadline sets the time at which reading fails.
func (w *timedWriter) SetReadDeadline(at time.Time) error { return w.control.SetReadDeadline(at) }

// SetWriteDeadline sets the time at which writing fails.
func (w *timedWriter) SetWriteDeadline(at time.Time) error {
	w.own = true
	return w.control.SetWriteDeadline(at)
}

// Unwrap returns the writer below.
func (w *timedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
