package state

import (
	"crypto/sha256"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// DeliveryOutcome is what became of a request to a webhook.
type DeliveryOutcome string

// The values of DeliveryOutcome.
const (
	DeliveryAccepted     DeliveryOutcome = "accepted"
	DeliveryDuplicate    DeliveryOutcome = "duplicate"
	DeliveryRejectedAuth DeliveryOutcome = "rejected_auth"
	DeliveryInvalidJSON  DeliveryOutcome = "rejected_invalid_json"
	DeliveryTooLarge     DeliveryOutcome = "rejected_too_large"
	DeliveryHandshake    DeliveryOutcome = "handshake" // a provider's set-up probe, answered
)

// DeliveryOutcomes are all values of DeliveryOutcome.
func DeliveryOutcomes() []DeliveryOutcome {
	return []DeliveryOutcome{
		DeliveryAccepted,
		DeliveryDuplicate,
		DeliveryRejectedAuth,
		DeliveryInvalidJSON,
		DeliveryTooLarge,
		DeliveryHandshake,
	}
}

// Label returns the outcome as text for people.
func (o DeliveryOutcome) Label() string {
	switch o {
	case DeliveryAccepted:
		return "Accepted"
	case DeliveryDuplicate:
		return "Duplicate"
	case DeliveryRejectedAuth:
		return "Rejected (auth)"
	case DeliveryInvalidJSON:
		return "Rejected (invalid JSON)"
	case DeliveryTooLarge:
		return "Rejected (too large)"
	case DeliveryHandshake:
		return "Handshake"
	}

	return string(o)
}

// IdentitySource is the origin of a delivery's identity (docs/contract.md, section 8).
type IdentitySource string

// The values of IdentitySource, in order of preference.
const (
	IdentityHeader        IdentitySource = "header"         // the header of the webhook's deliveryIdHeader
	IdentityProvider      IdentitySource = "provider"       // the provider's own delivery header
	IdentityServiceHeader IdentitySource = "service_header" // X-Service-Delivery-Id
	IdentityBodyHash      IdentitySource = "body_hash"      // SHA-256 of the body
)

// Identity is what tells deliveries of one webhook apart. The zero Identity is none.
type Identity struct {
	Source  IdentitySource
	Hash    [16]byte // of source and value, so that tiers never collide
	Preview string   // the value, escaped and cut for people to read
}

// IdentityOf returns the identity that value gives in the tier source. The value is foreign text.
func IdentityOf(source IdentitySource, value string) Identity {
	h := sha256.New()
	h.Write([]byte(source))
	h.Write([]byte{0})
	h.Write([]byte(value))
	id := Identity{Source: source, Preview: Preview(value)}
	copy(id.Hash[:], h.Sum(nil))
	return id
}

// previewLength is how much of a foreign string is kept for people to read, in characters.
const previewLength = 128

// Preview returns foreign text as printable ASCII, escaped as in a Go string, at most 128 characters
// of it; what was cut shows as "...".
func Preview(text string) string {
	if len(text) <= previewLength && printable(text) {
		return text
	}

	var b strings.Builder
	for rest := text; rest != ""; {
		_, size := utf8.DecodeRuneInString(rest)
		quoted := strconv.QuoteToASCII(rest[:size])
		piece := quoted[1 : len(quoted)-1]
		if b.Len()+len(piece) > previewLength-3 {
			b.WriteString("...")
			break
		}

		b.WriteString(piece)
		rest = rest[size:]
	}

	return b.String()
}

// printable reports whether text needs no escaping.
func printable(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// Delivery is a row of a webhook's log.
type Delivery struct {
	UID            string
	FactoryUID     string
	WebhookUID     string
	Outcome        DeliveryOutcome
	Reason         string // the precise cause, for the owner; may be empty
	Size           *int64 // of the body in bytes, as far as known; the smallest where Count is above 1
	SizeMax        *int64 // the largest, where Count is above 1
	Received       time.Time
	Identity       string // preview; empty unless the request got that far
	IdentitySource IdentitySource
	Sender         string // client address, or IPv6 network
	DuplicateOf    string // UID of the delivery that was accepted first
	ReplayOf       string // UID of the delivery that was started again
	Event          string // preview of the provider's kind of event
	Generation     int64  // of the factory's definition that judged it
	Count          int64  // of requests that share this row
	Last           *time.Time
}
