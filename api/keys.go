package api

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"millwright/api/identity"
	"millwright/bounds"
	"millwright/state"
)

// authorise lets a request through if its key may call the endpoint. Endpoints that need no key still check
// one if present, since its holder has larger bounds than strangers.
func (a *API) authorise(ctx huma.Context, next func(huma.Context)) {
	r, w := humachi.Unwrap(ctx)
	role, _ := ctx.Operation().Metadata["role"].(state.Role)
	if role == "" && ctx.Operation().RequestBody == nil {
		next(ctx)
		return
	}

	caller, problem := a.caller(r, role)
	if problem == nil && role != "" {
		problem = a.reach(ctx, caller.Key)
	}

	switch {
	case problem == nil:
		w.Header().Set(RoleHeader, string(caller.Role))
		ctx = huma.WithContext(ctx, acting(ctx.Context(), caller))
	case role != "":
		a.write(w, r, problem)
		return
	}

	next(ctx)
}

// Authorised wraps a handler that is not registered with huma. The empty role stands for any key, also one that is
// limited to factories; the handler then has to call the API for its caller. With a role it refuses limited keys.
func (a *API) Authorised(role state.Role, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller, problem := a.caller(r, role)
		if problem == nil && role != "" && caller.Limited() {
			problem = concernsAll(caller.Key)
		}
		if problem != nil {
			a.write(w, r, problem)
			return
		}

		w.Header().Set(RoleHeader, string(caller.Role))
		h.ServeHTTP(w, r.WithContext(acting(r.Context(), caller)))
	})
}

// caller returns the caller of a request, which needs a role.
func (a *API) caller(r *http.Request, need state.Role) (Caller, *Error) {
	if caller, ok := r.Context().Value(calledByKey).(Caller); ok {
		return caller, allowed(caller.Key, need)
	}

	secret, ok := bearer(r.Header)
	if !ok {
		return Caller{}, Problem("authentication_required", "send an API key: Authorization: Bearer mw_…")
	}

	kind, lookUp := CallerKey, a.cfg.Store.KeyBySecret
	if a.cfg.Tokens != nil && identity.IsToken(secret) {
		kind, lookUp = CallerToken, a.keyOfToken
	}

	sender := a.SenderOf(r)
	key, problem := a.identify(r.Context(), a.cfg.Bounds.WrongKeys, sender, secret, lookUp)
	if problem != nil {
		return Caller{}, problem
	}

	return Caller{key, kind, sender}, allowed(key, need)
}

// Identify returns the key with this secret. Wrong keys are charged to the sender's rate. It still looks up
// the keys of a sender over its rate, at a pace, so that a right key works behind a shared address. Keys that
// were right before do not wait.
func (a *API) Identify(ctx context.Context, wrong *bounds.Rate, sender, secret string) (state.Key, *Error) {
	return a.identify(ctx, wrong, sender, secret, a.cfg.Store.KeyBySecret)
}

// identify is Identify with a look-up of keys or of ID tokens.
func (a *API) identify(
	ctx context.Context,
	wrong *bounds.Rate,
	sender, secret string,
	lookUp func(ctx context.Context, secret string) (state.Key, error),
) (state.Key, *Error) {
	wait := wrong.Spent(sender, time.Now())
	if wait > 0 && !a.right.has(secret) {
		leave, ok := a.cfg.Bounds.Suspects.Enter(ctx, sender)
		if !ok {
			return state.Key{}, Problem("resource_unavailable", "too many wrong API keys at once: try again soon")
		}
		defer leave()
	}

	reason := "this API key is unknown, revoked or expired"
	key, err := lookUp(ctx, secret)
	var refusal *identity.Refusal
	switch {
	case err == nil:
		a.right.add(secret)
		return key, nil
	case errors.Is(err, identity.ErrUnavailable):
		return state.Key{}, Problem("resource_unavailable", "%s", err).WithRetryAfter(10)
	case errors.As(err, &refusal):
		reason = refusal.Reason
	case !errors.Is(err, state.ErrNotFound):
		a.cfg.Log.Error("API key look-up", "request_id", RequestID(ctx), "error", err)
		return state.Key{}, Problem("resource_unavailable", "the state cannot be reached just now")
	}

	if wait == 0 {
		wait = wrong.Charge(sender, time.Now())
	}

	if err := a.cfg.Store.Audit().Refused(ctx, sender); err != nil {
		a.cfg.Log.Warn("refused keys are not in the audit log", "error", err)
	}

	if wait > 0 {
		return state.Key{}, Problem(
			"rate_limited",
			"too many wrong API keys from this address",
		).WithRetryAfter(Seconds(wait))
	}

	return state.Key{}, Problem("authentication_required", "%s", reason)
}

// keyOfToken returns a key that may do what an ID token is worth.
func (a *API) keyOfToken(ctx context.Context, raw string) (state.Key, error) {
	g, err := a.cfg.Tokens.Verify(ctx, raw)
	if err != nil {
		return state.Key{}, err
	}

	key := state.Key{Name: g.Name(), Role: g.Role, Created: time.Now().UTC(), Expires: &g.Expires}
	if g.Factories != nil {
		if key.Factories, err = a.cfg.Store.FactoryUIDs(ctx, g.Factories); err != nil {
			return state.Key{}, err
		}
	}

	key.UID = g.UID(key.Factories)
	return key, nil
}

// Seconds returns the seconds after which to retry, rounded up.
func Seconds(d time.Duration) int { return max(int((d+time.Second-1)/time.Second), 1) }

// allowed returns nil if key has the role need or a higher one.
func allowed(key state.Key, need state.Role) *Error {
	if need == "" && key.Role.Allows(state.RolePlanner) || key.Role.Allows(need) {
		return nil
	}
	return Problem("not_authorized", "this needs role %s; the key %q has role %s", need, key.Name, key.Role)
}

// bearer returns the token of the single Authorization header: the scheme in any case, then one or more
// spaces.
func bearer(h http.Header) (string, bool) {
	values := h.Values("Authorization")
	if len(values) != 1 || len(values[0]) < 8 || !strings.EqualFold(values[0][:7], "bearer ") {
		return "", false
	}
	token := strings.Trim(values[0][7:], " ")
	return token, token != ""
}
