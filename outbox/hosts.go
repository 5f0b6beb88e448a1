package outbox

import (
	"context"
	"errors"
	"sync"
	"time"

	"millwright/forge"
)

const (
	factTime  = 10 * time.Minute // for which an answer about an account or a repository counts
	maxFacts  = 1000
	firstDoor = time.Second
)

// hosts remembers what forges answered.
type hosts struct {
	mu       sync.Mutex
	doors    map[string]door // by forge
	logins   map[string]fact[string]
	privates map[string]fact[bool] // by forge and repository

	inside map[string]int    // checks that are being published, by forge
	forges map[string]string // of factories whose checks met a forge with too many
}

func newHosts() *hosts {
	return &hosts{
		doors:    map[string]door{},
		logins:   map[string]fact[string]{},
		privates: map[string]fact[bool]{},
		inside:   map[string]int{},
		forges:   map[string]string{},
	}
}

// door is closed while a forge is away, or asked to wait.
type door struct {
	until    time.Time
	failures int
}

type fact[T any] struct {
	value T
	until time.Time
}

// door returns until when a forge is not asked.
func (h *hosts) door(name string) time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.doors[name].until
}

const (
	checksOfForge = 4
	maxBackoff    = 15 * time.Minute
)

// enter lets a check of a factory go to its forge, unless its door is closed or as many checks as may are there:
// then it returns until when. leave ends what enter began.
func (h *hosts) enter(name, factory string) (until time.Time, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()

	now := time.Now()
	if until := h.doors[name].until; now.Before(until) {
		return until, false
	}
	if h.inside[name] >= checksOfForge {
		if len(h.forges) >= maxFacts {
			clear(h.forges)
		}
		h.forges[factory] = name
		return now, false
	}

	h.inside[name]++
	return time.Time{}, true
}

func (h *hosts) leave(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.inside[name]--
}

// busy returns the factories whose forge has as many checks as may be there. A forge that never answers so holds back
// no other.
func (h *hosts) busy() (factories []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for factory, name := range h.forges {
		if h.inside[name] >= checksOfForge {
			factories = append(factories, factory)
		}
	}
	return factories
}

// answered closes the door of a forge for longer and longer while it is away, or as long as it asks for.
func (h *hosts) answered(name string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	d := h.doors[name]
	switch {
	case errors.Is(err, forge.ErrLater), errors.Is(err, context.DeadlineExceeded):
		pause := min(firstDoor<<min(d.failures, 20), maxBackoff)
		d.until = time.Now().Add(max(pause, min(forge.RetryAfter(err), time.Hour)))
		d.failures++
		h.doors[name] = d
	case err == nil:
		delete(h.doors, name)
	}
}

// login returns the account of a forge's credential.
func (h *hosts) login(ctx context.Context, f forge.Forge) (string, error) {
	h.mu.Lock()
	known := h.logins[f.Name()]
	h.mu.Unlock()
	if time.Now().Before(known.until) {
		return known.value, nil
	}

	login, err := f.Login(ctx)
	if err != nil {
		return "", err
	}

	h.mu.Lock()
	defer h.mu.Unlock()
	remember(h.logins, f.Name(), login)
	return login, nil
}

// private reports whether a repository is private. It remembers only that one is not: it may be opened at any time.
func (h *hosts) private(ctx context.Context, f forge.Forge, repo forge.Repository) (bool, error) {
	key := f.Name() + ":" + repo.String()
	h.mu.Lock()
	known := h.privates[key]
	h.mu.Unlock()
	if time.Now().Before(known.until) {
		return known.value, nil
	}

	private, err := f.Private(ctx, repo)
	if err != nil || private {
		return private && err == nil, err
	}

	h.mu.Lock()
	defer h.mu.Unlock()
	remember(h.privates, key, private)
	return private, nil
}

func remember[T any](facts map[string]fact[T], key string, value T) {
	if len(facts) >= maxFacts {
		clear(facts)
	}
	facts[key] = fact[T]{value, time.Now().Add(factTime)}
}
