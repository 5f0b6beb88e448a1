package admin

import (
	"context"
	"net/http"
	"time"

	"millwright/api"
	"millwright/bounds"
	"millwright/signature"
)

func (s *service) registerPush() {
	op := api.Explained(
		api.Also(api.Operation(
			http.MethodPost,
			"/factory/{uid}/push",
			"notifyPush",
			"",
			"Accept a git host's push notice, and read the factory's source",
		), http.StatusUnauthorized, http.StatusTooManyRequests),
		"Needs no key: the git host signs the notice with the team secret that the source's settings name.",
	)

	op.SkipValidateBody = true // only the signature of a notice counts; the body may be a form
	op.MaxBodyBytes = bounds.MaxPushNotice + 1
	op = api.WithBounds(op, api.Bounded{Bytes: s.api.Bounds().Pushes, Raw: true})
	wrong := s.api.Bounds().WrongPushes
	op.Middlewares = append(op.Middlewares, s.perSender(wrong, false))
	api.HandleEmpty(s.api, op, func(ctx context.Context, in *struct {
		FactoryUID
		RawBody []byte `contentType:"application/json"`
	},
	) error {
		r := requestOf(ctx)
		if why := s.verifyPush(ctx, in.Factory, r, in.RawBody); why != nil {
			wrong.Charge(s.api.SenderOf(r), time.Now())
			s.Log.Warn("push notice refused", "request_id", api.RequestID(ctx), "factory", in.Factory, "reason", why)
			return api.Problem(
				"authentication_required",
				"the notice is not signed with the push secret of this factory's source",
			)
		}

		s.Notice(in.Factory)
		return nil
	})
}

// verifyPush returns the reason to refuse a push notice, or nil. The sender does not get the reason.
func (s *service) verifyPush(ctx context.Context, factoryUID string, r *http.Request, body []byte) error {
	if s.PushSecret == nil || s.Notice == nil {
		return &signature.Refusal{Code: signature.CodeNoSecret, Reason: "this server takes no push notices"}
	}

	scheme, name, ok := s.PushSecret(factoryUID)
	if !ok {
		return &signature.Refusal{
			Code:   signature.CodeNoSecret,
			Reason: "the factory does not exist, or its source has no pushSecret",
		}
	}

	known, ok := signature.Lookup(scheme)
	if !ok {
		return &signature.Refusal{Code: signature.CodeNoSecret, Reason: "the source's pushScheme is unknown"}
	}

	secret, err := s.Store.SecretValue(ctx, name)
	if err != nil {
		return err
	}

	verifier, err := known.Verifier(secret)
	if err != nil {
		return err
	}

	_, err = verifier.Verify(
		signature.Message{Method: r.Method, URL: s.PublicURL + r.URL.RequestURI(), Header: r.Header, Body: body},
		time.Now(),
	)
	return err
}
