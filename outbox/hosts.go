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
}

func newHosts() *hosts {
	return &hosts{doors: map[string]door{}, logins: map[string]fact[string]{}, privates: map[string]fact[bool]{}}
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
