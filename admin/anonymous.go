package admin

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"millwright/api"
	"millwright/bounds"
)

// requestKey is the context key of the request, for endpoints that need more of it than their input has.
type requestKey struct{}

// requestOf returns the request that perSender let through.
func requestOf(ctx context.Context) *http.Request {
	r, _ := ctx.Value(requestKey{}).(*http.Request)
	return r
}

// perSender answers 429 to senders without a key whose rate is spent. It charges each request if asked to;
// if not, the endpoint charges what it minds.
func (s *service) perSender(rate *bounds.Rate, charge bool) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		r, _ := humachi.Unwrap(ctx)
		if api.KeyOf(ctx.Context()).UID == "" {
			allow := rate.Spent
			if charge {
				allow = rate.Charge
			}

			if wait := allow(s.api.SenderOf(r), time.Now()); wait > 0 {
				s.refuse(
					ctx,
					api.Problem("rate_limited", "too many requests without a key from this address").
						WithRetryAfter(api.Seconds(wait)),
				)
				return
			}
		}

		next(huma.WithValue(ctx, requestKey{}, r))
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
