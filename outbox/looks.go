package outbox

import (
	"sync"
	"time"

	"millwright/state"
)

// pullLooks are the pull requests whose states are to be read.
type pullLooks struct {
	queue chan state.Artifact

	mu   sync.Mutex
	last map[string]time.Time // by UID of the link
}

const maxLooks = 64 // that wait

func newLooks() *pullLooks {
	return &pullLooks{queue: make(chan state.Artifact, maxLooks), last: map[string]time.Time{}}
}

// due reports whether a pull request is to be looked at now, and remembers that it is.
func (l *pullLooks) due(uid string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()

	if now.Sub(l.last[uid]) < lookAgain {
		return false
	}
	if len(l.last) >= maxLooked {
		clear(l.last)
	}
	l.last[uid] = now
	return true
}

const (
	lookAgain = time.Minute // between two looks at a pull request
	maxLooked = 1000        // pull requests whose last look is remembered
)
