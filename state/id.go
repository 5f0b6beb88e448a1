package state

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strconv"
	"strings"

	"github.com/google/uuid"
)

// Prefixes of identifiers (docs/contract.md, section 1).
const (
	PrefixFactory     = "fac"
	PrefixWebhook     = "wh"
	PrefixAutomation  = "auto"
	PrefixAgent       = "agt"
	PrefixRunner      = "rnr"
	PrefixEnvironment = "env"
	PrefixSkill       = "skl"
	PrefixDelivery    = "dlv"
	PrefixKey         = "key"
	PrefixReplica     = "rep"
	PrefixFollowup    = "fup"
	PrefixWorker      = "wrk"
	PrefixArtifact    = "art"
	PrefixOutput      = "out"
)

const idAlphabet = "0123456789abcdefghjkmnpqrstvwxyz"

// NewID returns a fresh identifier in TypeID form: the prefix, an underscore, and a version 7 UUID as
// 26 characters of lower-case base32, so that identifiers of one kind sort by their time of making.
func NewID(prefix string) string {
	return prefix + "_" + encodeID(uuid.Must(uuid.NewV7()))
}

// NewRunID returns a fresh run identifier: a version 7 UUID in its usual form.
func NewRunID() string { return uuid.Must(uuid.NewV7()).String() }

// WebhookUID returns the UID that a webhook of this name gets in the factory whose key is given, when
// ordinal webhooks of that name came before it. It is a keyed hash, so a plan can name the UID
// before the first apply, and nobody without the key can guess it.
func WebhookUID(factoryKey []byte, name string, ordinal int) string {
	mac := hmac.New(sha256.New, factoryKey)
	mac.Write([]byte("webhook\x00" + name + "\x00" + strconv.Itoa(ordinal)))
	return PrefixWebhook + "_" + encodeID([16]byte(mac.Sum(nil)[:16]))
}

// encodeID writes 128 bits as 26 base32 digits, most significant first; the first digit is 0 to 7.
func encodeID(b [16]byte) string {
	hi, lo := binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])
	var out [26]byte
	for i := 25; i >= 0; i-- {
		out[i] = idAlphabet[lo&31]
		lo = lo>>5 | hi<<59
		hi >>= 5
	}
	return string(out[:])
}

// ValidID reports whether s is an identifier of the given prefix.
func ValidID(prefix, s string) bool {
	rest, ok := strings.CutPrefix(s, prefix+"_")
	if !ok || len(rest) != 26 || rest[0] > '7' {
		return false
	}
	for i := range len(rest) {
		if strings.IndexByte(idAlphabet, rest[i]) < 0 {
			return false
		}
	}
	return true
}

// TokenPrefix begins every token that is made up for a webhook, so that a leaked one can be told.
const TokenPrefix = "mwt_"

// NewToken returns prefix and 32 random bytes as URL-safe text.
func NewToken(prefix string) string {
	var b [32]byte
	rand.Read(b[:])
	return prefix + base64.RawURLEncoding.EncodeToString(b[:])
}

// HashToken returns the stored form of a random token: its SHA-256.
func HashToken(token string) []byte {
	sum := sha256.Sum256([]byte(token))
	return sum[:]
}
