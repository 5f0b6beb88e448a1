package dashboard

import (
	"crypto/sha256"
	"crypto/subtle"
	"sync"
	"time"

	"millwright/state"
)

// Links signs a browser in by a link that works once. The zero value has no link.
type Links struct {
	mu    sync.Mutex
	hash  [sha256.Size]byte
	key   string // UID of the key to sign in with; empty: there is no link
	until time.Time
}

// New returns the path of a page that signs in with a key, once, until life has passed. It takes the place of
// an earlier one.
func (l *Links) New(keyUID string, life time.Duration) string {
	token := state.NewToken("")

	l.mu.Lock()
	defer l.mu.Unlock()
	l.hash, l.key, l.until = sha256.Sum256([]byte(token)), keyUID, time.Now().Add(life)

	return "/login?once=" + token
}

// take returns the UID of the key that a link's token signs in with, and ends the link.
func (l *Links) take(token string) (keyUID string, ok bool) {
	hash := sha256.Sum256([]byte(token))

	l.mu.Lock()
	defer l.mu.Unlock()
	if l.key == "" || subtle.ConstantTimeCompare(hash[:], l.hash[:]) != 1 || time.Now().After(l.until) {
		return "", false
	}

	keyUID, l.key = l.key, ""
	return keyUID, true
}
