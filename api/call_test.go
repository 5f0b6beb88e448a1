package api_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-chi/chi/v5"

	"millwright/api"
	"millwright/state"
)

type echoBody struct {
	Body struct {
		Text string `json:"text" minLength:"2"`
	}
}

// echoAPI echoes its input, with the caller.
func echoAPI() *api.API {
	a := api.New(api.Config{})
	huma.Register(a.Huma(), api.Operation(http.MethodPost, "/echo", "echo", state.RoleRunner, "Echo"), func(ctx context.Context, in *echoBody) (*echoBody, error) {
		out := *in
		out.Body.Text += " by " + api.KeyOf(ctx).Name
		if c := api.CallerOf(ctx); c.Kind != "" {
			out.Body.Text += fmt.Sprintf(" (%s from %s)", c.Kind, c.Sender)
		}
		return &out, nil
	})
	return a
}

func TestCall(t *testing.T) {
	a := echoAPI()
	caller := api.Caller{
		Key:    state.Key{UID: "key_1", Name: "ada", Role: state.RoleRunner},
		Kind:   api.CallerSession,
		Sender: "192.0.2.1",
	}
	var out struct{ Text string }
	if err := a.Call(t.Context(), caller, http.MethodPost, "/echo", map[string]string{"text": "hello"}, &out); err != nil || out.Text != "hello by ada (session from 192.0.2.1)" {
		t.Errorf("answer %+v, %v", out, err)
	}
	var raw bytes.Buffer
	if err := a.Call(t.Context(), caller, http.MethodPost, "/echo", []byte(`{"text":"hello"}`), &raw); err != nil || raw.String() != "{\"text\":\"hello by ada (session from 192.0.2.1)\"}\n" {
		t.Errorf("copied answer %q, %v", &raw, err)
	}
	if err := a.Call(t.Context(), caller, http.MethodPost, "/echo", map[string]string{"text": "hello"}, nil); err != nil {
		t.Errorf("without out: %v", err)
	}

	// A request inside another router is routed by this one.
	inside := chi.NewRouter()
	inside.Get("/*", func(w http.ResponseWriter, r *http.Request) {
		if err := a.Call(r.Context(), caller, http.MethodPost, "/echo", map[string]string{"text": "hello"}, nil); err != nil {
			t.Errorf("inside a router: %v", err)
		}
	})
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "/somewhere/else", nil)
	inside.ServeHTTP(nil, r)
}

func TestCallRefusesAsTheEndpointDoes(t *testing.T) {
	a := echoAPI()
	ok := map[string]string{"text": "hello"}
	for _, c := range []struct {
		name string
		role state.Role
		path string
		in   any
		code string
	}{
		{"role too low", state.RoleViewer, "/echo", ok, "not_authorized"},
		{"worker", state.RoleWorker, "/echo", ok, "not_authorized"},
		{"no key", "", "/echo", ok, "not_authorized"},
		{"bad field", state.RoleAdmin, "/echo", map[string]string{"text": "x"}, "invalid_request"},
		{"no body", state.RoleAdmin, "/echo", nil, "invalid_request"},
		{"no endpoint", state.RoleAdmin, "/nothing", ok, "resource_not_found"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := a.Call(t.Context(), api.Caller{Key: state.Key{Role: c.role}}, http.MethodPost, c.path, c.in, nil)
			var problem *api.Error
			if !errors.As(err, &problem) || problem.Code != c.code {
				t.Fatalf("error %v, want %s", err, c.code)
			}
			if c.name == "bad field" && (len(problem.Errors) != 1 || problem.Errors[0].Field != "text") {
				t.Errorf("fields: %+v", problem.Errors)
			}
		})
	}
}
