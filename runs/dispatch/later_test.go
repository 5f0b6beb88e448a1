package dispatch_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"millwright/forge"
	"millwright/runs/dispatch"
	"millwright/runs/wire"
	"millwright/state"
	"millwright/state/statetest"
)

// newAppHost is GitHub for a GitHub App. It fails while broken is set.
func newAppHost(t *testing.T, broken *atomic.Bool) *forge.Set {
	t.Helper()
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case broken.Load():
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, `{"message": "no server is available"}`)
		case strings.HasSuffix(r.URL.Path, "/installation"):
			fmt.Fprint(w, `{"id": 7, "app_id": 1}`)
		default:
			w.WriteHeader(http.StatusCreated)
			fmt.Fprintf(w, `{"token": "ghs_1", "expires_at": %q}`, time.Now().Add(time.Hour).Format(time.RFC3339))
		}
	}))
	t.Cleanup(host.Close)

	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	secret := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	forges, err := forge.Open(forge.Config{
		Forges: map[string]forge.Settings{
			"github": {URL: host.URL, App: &forge.App{ID: 1, PrivateKeySecret: "K"}},
		},
		Allowed: map[string][]string{"f": {"acme/*"}},
		Secret:  func(context.Context, string) ([]byte, error) { return secret, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return forges
}

// TestForgeThatFailsForAWhile has a forge issue no token at first. The run waits with the reason, and other runs
// pass it. It is executed when the forge works again, and ends when that takes too long.
func TestForgeThatFailsForAWhile(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		var broken atomic.Bool
		broken.Store(true)
		w := &relayed{t: t, s: s}
		r := w.run(repositories("shop")...)
		w.d = startDispatch(t, dispatch.Config{Store: s, Forges: newAppHost(t, &broken)})
		c := localClient(t, w.d)
		other := create(t, s, nil)

		if o := order(t, c); o.RunID != other.ID {
			t.Fatalf("order of run %s, want %s", o.RunID, other.ID)
		}
		got := run(t, s, r.ID)
		if got.State != state.RunQueued || got.WaitsFor != "retry" || got.Attempt != 1 ||
			!strings.Contains(got.StatusMessage, "no server is available (503); the server tries again in 1s") {
			t.Errorf("run is %s, waits for %q: %s", got.State, got.WaitsFor, got.StatusMessage)
		}

		broken.Store(false)
		if o := order(t, c); o.RunID != r.ID || o.Checkout.Repositories[0].Password != "ghs_1" {
			t.Errorf("order %+v", o)
		}
	})
}

// TestForgeThatFailsForLong ends a run whose forge failed at each of many claims.
func TestForgeThatFailsForLong(t *testing.T) {
	s := statetest.Open(t, statetest.SQLite(t))
	var broken atomic.Bool
	broken.Store(true)
	w := &relayed{t: t, s: s}
	r := w.run(repositories("shop")...)
	postponed(t, s, r.ID, 11)

	w.d = startDispatch(t, dispatch.Config{Store: s, Forges: newAppHost(t, &broken)})
	other := create(t, s, nil)
	if o := order(t, localClient(t, w.d)); o.RunID != other.ID {
		t.Fatalf("order of run %s, want %s", o.RunID, other.ID)
	}
	got := run(t, s, r.ID)
	if got.State != state.RunError || got.ErrorCode != "environment_setup_failed" ||
		!strings.Contains(got.StatusMessage, "no server is available") {
		t.Errorf("run is %s: %s: %s", got.State, got.ErrorCode, got.StatusMessage)
	}
}

// TestWorkerThatCannotFetch has a worker ask for a later attempt. The run waits, and ends when that was asked too
// often.
func TestWorkerThatCannotFetch(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		c := localClient(t, startDispatch(t, dispatch.Config{Store: s}))
		for before, want := range map[int]state.RunState{0: state.RunQueued, 10: state.RunQueued, 11: state.RunError} {
			r := create(t, s, nil)
			postponed(t, s, r.ID, before)
			o := order(t, c)
			if _, err := c.Start(t.Context(), o); err != nil {
				t.Fatal(err)
			}

			now, err := c.Finish(t.Context(), o, wire.Result{
				State: wire.Error, ErrorCode: "environment_setup_failed", Message: "the forge is away", Later: true,
			})
			got := run(t, s, r.ID)
			if err != nil || string(now) != string(want) || got.State != want || got.Attempt != 1 ||
				!strings.HasPrefix(got.StatusMessage, "the forge is away") {
				t.Errorf("after %d claims: the run is %s, %s: %s, %v", before, now, got.State, got.StatusMessage, err)
			}
			if (got.WaitsFor == "retry") != (want == state.RunQueued) {
				t.Errorf("after %d claims: the run waits for %q", before, got.WaitsFor)
			}

			if want == state.RunQueued { // the next order is not of this run
				if _, err := s.RequestCancel(t.Context(), r.ID, "ci"); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// postponed has a run claimed and postponed n times.
func postponed(t *testing.T, s *state.Store, id string, n int) {
	t.Helper()
	for range n {
		claim, _, err := s.ClaimRun(t.Context(), id, "elsewhere", "elsewhere", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.PostponeRun(t.Context(), claim, "", 0); err != nil {
			t.Fatal(err)
		}
		if _, err := s.ReleaseDue(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
