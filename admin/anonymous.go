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

// requestKey is the context key of the HTTP request.
type requestKey struct{}

// requestOf returns the HTTP request of an endpoint behind perSender.
func requestOf(ctx context.Context) *http.Request {
	r, _ := ctx.Value(requestKey{}).(*http.Request)
	return r
}

// perSender answers 429 to senders without a key that exceed the rate. It charges each request if charge is
// set; otherwise the endpoint charges.
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
