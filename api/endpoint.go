package api

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"millwright/state"
)

// answer is a response with a JSON body.
type answer[T any] struct{ Body T }

// Handle registers an endpoint that answers with a JSON value. Its input is a huma input struct.
func Handle[I, T any](a *API, op huma.Operation, f func(context.Context, *I) (T, error)) {
	Register(a, op, func(ctx context.Context, in *I) (*answer[T], error) {
		v, err := f(ctx, in)
		return &answer[T]{v}, err
	})
}

// HandleEmpty registers an endpoint that answers 204 No Content.
func HandleEmpty[I any](a *API, op huma.Operation, f func(context.Context, *I) error) {
	op.DefaultStatus = http.StatusNoContent
	Register(a, op, func(ctx context.Context, in *I) (*struct{}, error) { return nil, f(ctx, in) })
}

// Register registers an endpoint whose output is a huma output struct. It converts errors of package state
// to problems. It logs any other error and answers internal_error.
func Register[I, O any](a *API, op huma.Operation, f func(context.Context, *I) (*O, error)) {
	if op.Responses == nil {
		op.Responses = map[string]*huma.Response{}
	}

	op.BodyReadTimeout = -1 // receive has read the body
	op.Middlewares = append(slices.Clip(op.Middlewares), a.receive)
	huma.Register(a.huma, op, func(ctx context.Context, in *I) (*O, error) {
		out, err := f(ctx, in)
		if err != nil {
			return nil, a.problem(ctx, op, err)
		}

		return out, nil
	})

	a.correct(op)
}

// correct lists the statuses that an endpoint really answers: an invalid request is 400 here and not 422,
// and a body may be too large.
func (a *API) correct(op huma.Operation) {
	item := a.huma.OpenAPI().Paths[op.Path]
	for _, listed := range []*huma.Operation{item.Get, item.Put, item.Post, item.Delete, item.Patch} {
		if listed != nil && listed.Method == op.Method && listed.RequestBody != nil {
			if content := listed.RequestBody.Content; content["application/json"] != nil {
				delete(content, "application/octet-stream") // also of operations with raw bodies
			}
			op.Responses["413"] = &huma.Response{
				Description: http.StatusText(http.StatusRequestEntityTooLarge),
				Content:     op.Responses["400"].Content,
			}
		}
	}

	if !slices.Contains(op.Errors, http.StatusUnprocessableEntity) {
		delete(op.Responses, "422")
	}
	if !strings.Contains(op.Path, "{") {
		delete(op.Responses, "404")
	}
}

func (a *API) problem(ctx context.Context, op huma.Operation, err error) error {
	err = FromState(err)
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	if ctx.Err() == nil {
		a.cfg.Log.Error("API request failed", "request_id", RequestID(ctx), "operation", op.OperationID, "error", err)
	}
	return Problem("internal_error", "")
}

// Also adds statuses to those that all operations answer.
func Also(op huma.Operation, statuses ...int) huma.Operation {
	op.Errors = append(slices.Clip(op.Errors), statuses...)
	return op
}

// Explained adds a sentence to an operation's description.
func Explained(op huma.Operation, text string) huma.Operation {
	op.Description = strings.TrimSpace(text + " " + op.Description)
	return op
}

// Unsupported registers an endpoint that answers operation_not_supported and names the alternative. It is no
// part of the document.
func (a *API) Unsupported(method, path string, role state.Role, instead string) {
	a.router.Method(method, Base+path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, problem := a.caller(r, role)
		if problem == nil {
			problem = Problem("operation_not_supported", "%s", instead)
		}
		a.write(w, r, problem)
	}))
}
