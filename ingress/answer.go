package ingress

import (
	"net/http"
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
