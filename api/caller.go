package api

import (
	"context"

	"millwright/state"
	"millwright/state/audit"
)

// Caller is who sent a request, with the key that decides what the request may do.
type Caller struct {
	state.Key
	Kind   CallerKind
	Sender string // the address, as SenderOf returns it
}

// CallerKind names how a caller authenticated.
type CallerKind string

// The kinds of callers.
const (
	CallerKey     CallerKind = "key"     // with an API key
	CallerSession CallerKind = "session" // with a session of the dashboard
	CallerToken   CallerKind = "oidc"    // with an ID token
)

// CallerOf returns the caller of the request of ctx; the zero Caller if the endpoint needs none.
func CallerOf(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey).(Caller)
	return c
}

// acting returns a context of the changes of a caller, to whom the audit log attributes them.
func acting(ctx context.Context, c Caller) context.Context {
	by := audit.Actor{Kind: string(c.Kind), UID: c.UID, Name: c.Name, Source: c.Sender}
	return audit.WithActor(context.WithValue(ctx, callerKey, c), by)
}

// KeyOf returns the key of the caller of ctx.
func KeyOf(ctx context.Context) state.Key { return CallerOf(ctx).Key }
