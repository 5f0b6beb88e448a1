package admin

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"millwright/api"
)

// requestKey is the context key of the request, for endpoints that need more of it than their input has.
type requestKey struct{}

// requestOf returns the request that perSender let through.
func requestOf(ctx context.Context) *http.Request {
	r, _ := ctx.Value(requestKey{}).(*http.Request)
	return r
}

// perSender answers 429 to senders whose budget is spent. It charges each request if asked to; if not,
// the endpoint charges what it minds.
func (s *service) perSender(budget *api.Budget, charge bool) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		r, _ := humachi.Unwrap(ctx)
		sender := api.SenderOf(r, s.TrustedProxies).Key
		if wait := budget.Spent(sender, time.Now()); wait > 0 {
			s.refuse(ctx, api.Problem("rate_limited", "too many requests without a key from this address").WithRetryAfter(wait))
			return
		}
		if charge {
			budget.Charge(sender, time.Now())
		}
		next(huma.WithValue(ctx, requestKey{}, r))
	}
}

// inSlot bounds how many bodies are read at once from those who show no key.
func (s *service) inSlot(ctx huma.Context, next func(huma.Context)) {
	select {
	case s.reading <- struct{}{}:
		defer func() { <-s.reading }()
		next(ctx)
	default:
		s.refuse(ctx, api.Problem("resource_unavailable", "too many requests without a key at once: try again soon").WithRetryAfter(2))
	}
}

// refuse answers a request before its body is read.
func (s *service) refuse(ctx huma.Context, e *api.Error) {
	for name, values := range e.GetHeaders() {
		for _, v := range values {
			ctx.SetHeader(name, v)
		}
	}
	huma.WriteErr(s.api.Huma(), ctx, e.Status, e.Detail)
}
