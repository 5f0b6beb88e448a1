package api

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"millwright/bounds"
	"millwright/state"
)

// KeyOf returns the API key that the request of ctx was made with; the zero Key when the endpoint needs
// none.
func KeyOf(ctx context.Context) state.Key {
	k, _ := ctx.Value(keyKey).(state.Key)
	return k
}

// authorise lets a request through to its endpoint when its key may call it. Where none is needed, one is
// asked for all the same, since more is held for its holder than for a stranger.
func (a *API) authorise(ctx huma.Context, next func(huma.Context)) {
	r, w := humachi.Unwrap(ctx)
	role, _ := ctx.Operation().Metadata["role"].(state.Role)
	if role == "" && ctx.Operation().RequestBody == nil {
		next(ctx)
		return
	}

	switch key, problem := a.key(r, role); {
	case problem == nil:
		ctx = huma.WithValue(ctx, keyKey, key)
	case role != "":
		a.write(w, r, problem)
		return
	}

	next(ctx)
}

// Authorised wraps a handler that is not registered with huma.
func (a *API) Authorised(role state.Role, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key, problem := a.key(r, role)
		if problem != nil {
			a.write(w, r, problem)
			return
		}
		h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), keyKey, key)))
	})
}

func (a *API) key(r *http.Request, need state.Role) (state.Key, *Error) {
	if key, ok := r.Context().Value(callerKey).(state.Key); ok {
		return key, allowed(key, need)
	}

	secret, ok := bearer(r.Header)
	if !ok {
		return state.Key{}, Problem("authentication_required", "send an API key: Authorization: Bearer mw_…")
	}

	key, problem := a.Identify(r.Context(), a.cfg.Bounds.WrongKeys, a.SenderOf(r), secret)
	if problem != nil {
		return state.Key{}, problem
	}

	return key, allowed(key, need)
}

// Identify returns the key with this secret. Wrong ones are charged to the sender's rate. A sender that has
// spent it is still asked for a key, and let through with a right one: others may share its address. Its
// look-ups wait for each other, so that they do not keep the state busy, unless the key was right before.
func (a *API) Identify(ctx context.Context, wrong *bounds.Rate, sender, secret string) (state.Key, *Error) {
	wait := wrong.Spent(sender, time.Now())
	if wait > 0 && !a.right.has(secret) {
		leave, ok := a.cfg.Bounds.Suspects.Enter(ctx, sender)
		if !ok {
			return state.Key{}, Problem("resource_unavailable", "too many wrong API keys at once: try again soon")
		}
		defer leave()
	}

	key, err := a.cfg.Store.KeyBySecret(ctx, secret)
	switch {
	case err == nil:
		a.right.add(secret)
		return key, nil
	case !errors.Is(err, state.ErrNotFound):
		a.cfg.Log.Error("API key look-up", "request_id", RequestID(ctx), "error", err)
		return state.Key{}, Problem("resource_unavailable", "the state cannot be reached just now")
	case wait == 0:
		wait = wrong.Charge(sender, time.Now())
	}

	if wait > 0 {
		return state.Key{}, Problem(
			"rate_limited",
			"too many wrong API keys from this address",
		).WithRetryAfter(Seconds(wait))
	}

	return state.Key{}, Problem("authentication_required", "this API key is unknown, revoked or expired")
}

// rightKeys remembers the hashes of keys that were right, not that they still are.
type rightKeys struct {
	mu     sync.RWMutex
	hashes map[[sha256.Size]byte]struct{}
}

// mostRightKeys bounds what is remembered. Strangers cannot add to it.
const mostRightKeys = 4096

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

// Seconds returns the whole seconds after which a retry succeeds.
func Seconds(d time.Duration) int { return max(int((d+time.Second-1)/time.Second), 1) }

// allowed returns nil when the holder of key may do what needs role need.
func allowed(key state.Key, need state.Role) *Error {
	if need == "" && key.Role.Allows(state.RoleViewer) || key.Role.Allows(need) {
		return nil
	}
	return Problem("not_authorized", "this needs role %s; the key %q has role %s", need, key.Name, key.Role)
}

// bearer reads the one Authorization header: the scheme in any case, then one or more spaces.
func bearer(h http.Header) (string, bool) {
	values := h.Values("Authorization")
	if len(values) != 1 || len(values[0]) < 8 || !strings.EqualFold(values[0][:7], "bearer ") {
		return "", false
	}
	token := strings.Trim(values[0][7:], " ")
	return token, token != ""
}
