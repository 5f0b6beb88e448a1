package ingress

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// answer is the answer to a request, and the result that metrics count it as.
type answer struct {
	status      int
	result      result
	body        []byte
	contentType string // application/json where empty
	wait        int    // seconds, for Retry-After
}

// refused returns an answer that reveals only its status.
func refused(status int, r result) answer {
	return answer{
		status: status,
		result: r,
		body:   []byte(`{"error":"` + strings.ToLower(http.StatusText(status)) + `"}` + "\n"),
	}
}

func tooMany(r result, wait time.Duration) answer {
	a := refused(http.StatusTooManyRequests, r)
	a.wait = seconds(wait)
	return a
}

func unavailable() answer {
	a := refused(http.StatusServiceUnavailable, resultUnavailable)
	a.wait = 1
	return a
}

// seconds rounds up, so that a retry after that many seconds succeeds.
func seconds(d time.Duration) int { return max(int((d+time.Second-1)/time.Second), 1) }

func accepted(deliveryUID string, duplicate bool) answer {
	if duplicate {
		return answer{
			status: http.StatusAccepted,
			result: resultDuplicate,
			body:   []byte(`{"delivery_id":"` + deliveryUID + `","duplicate":true}` + "\n"),
		}
	}

	return answer{
		status: http.StatusAccepted,
		result: resultAccepted,
		body:   []byte(`{"delivery_id":"` + deliveryUID + `"}` + "\n"),
	}
}

// writeTimeout is how long an HTTP/2 client may take to read its answer.
const writeTimeout = 10 * time.Second

// write sends the answer. If the body has not been read to its end, it closes the connection and does not
// wait for the rest.
func (q *request) write(a answer) {
	h := q.w.Header()
	switch {
	case len(a.body) > 0:
		h.Set("Content-Type", orJSON(a.contentType))
		h.Set("Content-Length", strconv.Itoa(len(a.body)))
	case a.status != http.StatusNoContent:
		h.Set("Content-Length", "0")
	}

	switch a.status {
	case http.StatusMethodNotAllowed:
		h.Set("Allow", http.MethodPost)
	case http.StatusUnauthorized:
		if q.bearer {
			h.Set("WWW-Authenticate", "Bearer")
		}
	}

	if a.wait > 0 {
		h.Set("Retry-After", strconv.Itoa(a.wait))
	}

	early := !q.ended && q.r.ContentLength != 0
	if early && q.r.ProtoMajor == 1 {
		h.Set("Connection", "close")
		abandonBody(q.w)
	}
	if q.r.ProtoMajor == 2 { // or a stream whose window is closed stays open for ever
		_ = http.NewResponseController(q.w).SetWriteDeadline(time.Now().Add(writeTimeout))
	}

	q.w.WriteHeader(a.status)
	if q.r.Method != http.MethodHead {
		_, _ = q.w.Write(a.body) // a sender that went away will retry
	}
	if early && q.r.ProtoMajor == 1 {
		// Otherwise the server would read the rest of the body after the answer.
		_ = http.NewResponseController(q.w).SetReadDeadline(time.Unix(1, 0))
	}
}

// abandonBody makes the server close the connection after the answer, write side first, although the body
// was not read: otherwise a reset could lose the answer. net/http does that only for a body beyond the
// limit of http.MaxBytesReader, so it gets one.
func abandonBody(w http.ResponseWriter) {
	var b [1]byte
	_, _ = http.MaxBytesReader(w, io.NopCloser(strings.NewReader("x")), 0).Read(b[:])
}

func orJSON(contentType string) string {
	if contentType == "" {
		return "application/json"
	}
	return contentType
}
