package api

import (
	"crypto/sha256"
	"sync"
)

// mostRightKeys bounds rightKeys. Strangers cannot add to it.
const mostRightKeys = 4096

// rightKeys remembers the hashes of keys that were right once.
type rightKeys struct {
	mu     sync.RWMutex
	hashes map[[sha256.Size]byte]struct{}
}

func (k *rightKeys) has(secret string) bool {
	k.mu.RLock()
	defer k.mu.RUnlock()
	_, ok := k.hashes[sha256.Sum256([]byte(secret))]
	return ok
}

func (k *rightKeys) add(secret string) {
	if k.has(secret) {
		return
	}

	k.mu.Lock()
	defer k.mu.Unlock()

	if len(k.hashes) >= mostRightKeys || k.hashes == nil {
		k.hashes = map[[sha256.Size]byte]struct{}{}
	}
	k.hashes[sha256.Sum256([]byte(secret))] = struct{}{}
}
