package signature

import (
	"fmt"
	"strconv"
)

// The codes of a refusal: few, so that they can label a metric.
const (
	CodeMissingHeader   = "missing_header"
	CodeDuplicateHeader = "duplicate_header"
	CodeMalformed       = "malformed"
	CodeStale           = "stale"
	CodeFuture          = "future"
	CodeMismatch        = "mismatch"
	CodeNoSecret        = "no_secret"
)

// Refusal is the reason of a refused request. It is for the webhook's owner and never for the sender.
type Refusal struct {
	// Code is one of the Code constants.
	Code string
	// Reason is one sentence of at most a few hundred bytes. Foreign text in
	// it is cut and escaped. It contains neither the secret nor a signature.
	Reason string
}

func (r *Refusal) Error() string { return r.Reason }

func refuse(code, format string, args ...any) *Refusal {
	return &Refusal{Code: code, Reason: fmt.Sprintf(format, args...)}
}

// preview returns foreign text in quotes, escaped to ASCII, at most 32 bytes of it.
func preview(text string) string {
	const most = 32
	if len(text) > most {
		return strconv.QuoteToASCII(text[:most]) + "…"
	}
	return strconv.QuoteToASCII(text)
}
