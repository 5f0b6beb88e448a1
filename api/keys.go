package api

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"millwright/state"
)

// KeyOf returns the API key that the request of ctx was made with; the zero Key when the endpoint needs
// none.
func KeyOf(ctx context.Context) state.Key {
	k, _ := ctx.Value(keyKey).(state.Key)
	return k
}

// authorise lets a request through to its endpoint when its key may call it, and its body is not too large.
func (a *API) authorise(ctx huma.Context, next func(huma.Context)) {
	r, w := humachi.Unwrap(ctx)
	if role, _ := ctx.Operation().Metadata["role"].(state.Role); role != "" {
		key, problem := a.key(r, role)
		if problem != nil {
			a.write(w, r, problem)
			return
		}
		ctx = huma.WithValue(ctx, keyKey, key)
	}
	if limit := ctx.Operation().MaxBodyBytes; limit > 0 && r.ContentLength >= limit && r.Header.Get("Expect") != "" { // it is not sent yet
		a.write(w, r, tooLarge(limit-1))
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
	sender := SenderOf(r, a.cfg.TrustedProxies).Key
	if wait := a.wrong.Spent(sender, time.Now()); wait > 0 {
		return state.Key{}, Problem("rate_limited", "too many wrong API keys from this address").WithRetryAfter(wait)
	}
	key, err := a.cfg.Store.KeyBySecret(r.Context(), secret)
	if errors.Is(err, state.ErrNotFound) {
		a.wrong.Charge(sender, time.Now())
		return state.Key{}, Problem("authentication_required", "this API key is unknown, revoked or expired")
	}
	if err != nil {
		a.cfg.Log.Error("API key look-up", "request_id", RequestID(r.Context()), "error", err)
		return state.Key{}, Problem("resource_unavailable", "the state cannot be reached just now")
	}
	return key, allowed(key, need)
}

// allowed returns nil when the holder of key may do what needs role need.
func allowed(key state.Key, need state.Role) *Error {
	if key.Role.Allows(need) {
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

// wrongKeysPerMinute is how many wrong keys one sender may try in a minute.
const wrongKeysPerMinute = 30
