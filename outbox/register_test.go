package outbox_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"millwright/forge"
	"millwright/forge/forgetest"
	"millwright/outbox"
	"millwright/reconcile/plan"
	"millwright/state"
	"millwright/state/notice"
	"millwright/state/registrations"
	"millwright/state/statetest"
)

// hub serves the part of GitHub's API that webhooks need, as its documentation describes it.
type hub struct {
	mu         sync.Mutex
	next       int64
	hooks      map[int64]map[string]any
	deliveries []map[string]any // newest first
	redeliver  []string         // IDs of deliveries
	refuse     map[string]int   // status for an ID that is not sent again
	away       bool
	asked      int // while away
}

func (h *hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()

	var body map[string]any
	text, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(text, &body)
	path := strings.TrimPrefix(r.URL.Path, "/api/v3/repos/acme/shop/hooks")
	var id int64
	_, _ = fmt.Sscanf(path, "/%d", &id)
	answer := func(status int, v any) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v)
	}

	switch {
	case h.away:
		h.asked++
		w.Header().Set("Retry-After", "60")
		answer(http.StatusServiceUnavailable, map[string]any{})
	case path == "" && r.Method == http.MethodGet:
		all := []any{}
		for _, hook := range h.hooks {
			all = append(all, hook)
		}
		answer(http.StatusOK, all)
	case path == "" && r.Method == http.MethodPost:
		h.next++
		body["id"] = h.next
		h.hooks[h.next] = body
		answer(http.StatusCreated, body)
	case strings.HasSuffix(path, "/deliveries"):
		answer(http.StatusOK, h.deliveries)
	case strings.HasSuffix(path, "/attempts"):
		asked := strings.Split(path, "/")[3]
		h.redeliver = append(h.redeliver, asked)
		answer(cmp.Or(h.refuse[asked], http.StatusAccepted), map[string]any{})
	case r.Method == http.MethodPatch && h.hooks[id] != nil:
		for k, v := range body {
			h.hooks[id][k] = v
		}
		answer(http.StatusOK, h.hooks[id])
	case r.Method == http.MethodDelete && h.hooks[id] != nil:
		delete(h.hooks, id)
		w.WriteHeader(http.StatusNoContent)
	default:
		answer(http.StatusNotFound, map[string]any{"message": "Not Found"})
	}
}

// registry is a state whose outbox registers webhooks at a forge.
type registry struct {
	*testing.T
	kind  string
	store *state.Store
	uid   string // of the factory
	forge forge.Hooks
	lose  atomic.Bool // the answers to creations
}

// newRegistry returns a registry at the forge behind an address. The factory shop may use acme/*.
func newRegistry(t *testing.T, s *state.Store, kind, address, token string) *registry {
	t.Helper()
	r := &registry{T: t, kind: kind, store: s}
	to, err := url.Parse(address)
	r.must(err)
	forward := httputil.NewSingleHostReverseProxy(to)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method == http.MethodPost && strings.HasSuffix(req.URL.Path, "/hooks") && r.lose.CompareAndSwap(true, false) {
			forward.ServeHTTP(httptest.NewRecorder(), req)
			panic(http.ErrAbortHandler) // it was made, and nobody hears of it
		}
		forward.ServeHTTP(w, req)
	}))
	t.Cleanup(proxy.Close)

	forges, err := forge.Open(forge.Config{
		Forges:  map[string]forge.Settings{"acme": {Kind: kind, URL: proxy.URL, TokenSecret: "TOKEN"}},
		Allowed: map[string][]string{"shop": {"acme/*"}},
		Secret:  func(context.Context, string) ([]byte, error) { return []byte(token), nil },
	})
	r.must(err)
	f, err := forges.Of(forge.Repository{Owner: "acme", Name: "shop"})
	r.must(err)
	r.forge = f.(forge.Hooks)

	factory, err := s.EnsureFactory(t.Context(), "shop", state.Source{Kind: "dir"}, false)
	r.must(err)
	r.uid = factory.UID
	out, err := outbox.New(outbox.Config{
		Store: s, Forges: forges, PublicURL: "http://127.0.0.1:1", CheckEvery: 100 * time.Millisecond,
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	r.must(err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); out.Run(ctx) }()
	t.Cleanup(func() { stop(); <-ended })
	return r
}

func (r *registry) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// apply applies a webhook registered at a repository, or none for "".
func (r *registry) apply(repository string) {
	r.Helper()
	tree := fstest.MapFS{"webhooks/other.yaml": {Data: []byte("secretName: OTHER\n")}}
	if repository != "" {
		tree["webhooks/shop.yaml"] = &fstest.MapFile{Data: []byte(fmt.Sprintf(
			"authMode: signature\nsignatureScheme: %s\nsecretName: SHOP_HOOK\nregister: {forge: %[1]s, repository: %s, events: [push, pull_request]}\n",
			r.kind, repository))}
	}
	_, err := r.store.SetSecret(r.Context(), "OTHER", []byte("x"))
	r.must(err)
	cur, err := r.store.Current(r.Context(), r.uid)
	r.must(err)
	p, app := plan.Make(cur, tree, plan.Options{Revision: state.Revision{ID: state.NewID("rev")}})
	if app == nil {
		r.Fatalf("refused: %v", p.Problems)
	}
	r.must(r.store.Apply(r.Context(), *app))
}

// until waits until the registrations of the factory are these, as "state: reason".
func (r *registry) until(want ...string) {
	r.Helper()
	var got []string
	defer func() {
		if r.Failed() {
			r.Logf("registrations %q, want %q", got, want)
		}
	}()
	statetest.Until(r, fmt.Sprintf("registrations %q", want), func() bool {
		r.store.Notify(notice.Sync, r.uid)
		all, err := r.store.Registrations().Of(r.Context(), r.uid)
		r.must(err)
		got = nil
		for _, row := range all {
			got = append(got, strings.TrimSuffix(string(row.State)+": "+row.Reason, ": "))
		}
		return slices.EqualFunc(got, want, func(g, w string) bool {
			return g == w || strings.HasSuffix(w, "…") && strings.HasPrefix(g, strings.TrimSuffix(w, "…"))
		})
	})
}

// stays waits for two more looks at the forge, after which the registration is as before.
func (r *registry) stays(want string) {
	r.Helper()
	checked := func() time.Time {
		all, err := r.store.Registrations().Of(r.Context(), r.uid)
		r.must(err)
		return all[0].Checked
	}
	for range 2 {
		before := checked()
		statetest.Until(r, "another look at the forge", func() bool {
			r.store.Notify(notice.Sync, r.uid)
			return checked().After(before)
		})
	}
	r.until(want)
}

var shop = forge.Repository{Owner: "acme", Name: "shop"}

// hooks returns the webhooks that the forge has.
func (r *registry) hooks(want int) []forge.Hook {
	r.Helper()
	all, err := r.forge.Hooks(r.Context(), shop)
	r.must(err)
	if len(all) != want {
		r.Fatalf("the forge has %d webhooks, want %d: %+v", len(all), want, all)
	}
	return all
}

// registers walks a webhook through its life at a forge.
func (r *registry) registers() {
	r.apply("acme/shop")
	r.until("registered")
	made := r.hooks(1)[0]
	cur, err := r.store.Current(r.Context(), r.uid)
	r.must(err)
	hook := cur.Webhooks[slices.IndexFunc(cur.Webhooks, func(w state.Webhook) bool { return w.Spec.Name == "shop" })]
	if made.URL != "http://127.0.0.1:1/webhooks/w/"+hook.UID || !made.Active || !slices.Equal(made.Events, []string{"pull_request", "push"}) {
		r.Errorf("the forge has %+v", made)
	}
	secret, err := r.store.WebhookSecret(r.Context(), hook.UID)
	r.must(err)
	if len(secret) < 26 {
		r.Errorf("a secret of %d characters", len(secret))
	}

	r.stays("registered")
	r.must(r.forge.UpdateHook(r.Context(), shop, made.ID, forge.NewHook{URL: made.URL, Secret: "x", Events: []string{"push"}}))
	r.until("drifted: someone removed pull_request there")
	r.apply("acme/shop")
	r.until("registered")
	if again := r.hooks(1)[0]; again.ID != made.ID || len(again.Events) != 2 {
		r.Errorf("repaired to %+v", again)
	}

	r.must(r.forge.DeleteHook(r.Context(), shop, made.ID))
	r.until("drifted: someone removed the webhook there")
	r.lose.Store(true)
	r.apply("acme/shop")
	r.until("registered")
	if r.lose.Load() {
		r.Error("no creation was lost")
	}
	r.hooks(1)

	r.apply("evil/shop")
	r.until(`failed: the server's settings do not allow the factory "shop" to use the repository evil/shop…`)
	r.hooks(0)
	r.apply("acme/shop")
	r.until("registered")
	r.hooks(1)
	r.apply("")
	r.until()
	r.hooks(0)
}

func TestRegistersAtGitHub(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		server := httptest.NewServer(&hub{hooks: map[int64]map[string]any{}})
		t.Cleanup(server.Close)
		newRegistry(t, s, forge.GitHub, server.URL, "tok").registers()
	})
}

func TestAcceptanceRegistersAtGitea(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		gitea := forgetest.Start(t)
		gitea.Organization("acme")
		gitea.Repository("acme", "shop", map[string]string{"README.md": "Shop\n"})
		newRegistry(t, s, forge.Gitea, gitea.URL, gitea.Token).registers()
	})
}

// TestPublicURLChanges moves a webhook at the forge to the new address of the server. It makes no second one.
func TestPublicURLChanges(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		server := httptest.NewServer(&hub{hooks: map[int64]map[string]any{}})
		t.Cleanup(server.Close)
		r := newRegistry(t, s, forge.GitHub, server.URL, "tok")
		r.apply("acme/shop")
		r.until("registered")

		made := r.hooks(1)[0]
		was := strings.Replace(made.URL, "127.0.0.1:1", "old.example.com", 1)
		r.must(r.forge.UpdateHook(t.Context(), shop, made.ID, forge.NewHook{URL: was, Secret: "x", Events: made.Events}))
		statetest.Until(t, "the webhook to have the present address", func() bool {
			s.Notify(notice.Sync, r.uid)
			now := r.hooks(1)[0]
			return now.ID == made.ID && now.URL == made.URL
		})
		r.stays("registered")
	})
}

// TestForgeIsAway asks a forge that is away once, whatever else is to be registered there.
func TestForgeIsAway(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		h := &hub{away: true}
		server := httptest.NewServer(h)
		t.Cleanup(server.Close)
		r := newRegistry(t, s, forge.GitHub, server.URL, "tok")

		for n, repository := range []string{"acme/shop", "acme/other", "acme/third"} {
			r.apply(repository)
			statetest.Until(t, "all registrations to wait", func() bool { // the first one for its answer
				s.Notify(notice.Sync, r.uid)
				all, err := s.Registrations().Of(t.Context(), r.uid)
				r.must(err)
				return !slices.ContainsFunc(all, func(row registrations.Registration) bool {
					return row.NextAt.Before(time.Now().Add(45*time.Second)) || n == 0 && row.Reason == ""
				})
			})
		}

		h.mu.Lock()
		defer h.mu.Unlock()
		if h.asked != 1 {
			t.Errorf("the forge was asked %d times", h.asked)
		}
	})
}

// TestCatchesUp asks GitHub for what it could not deliver, once. A delivery that GitHub refuses to send again does
// not hold back the others.
func TestCatchesUp(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		h := &hub{hooks: map[int64]map[string]any{}}
		server := httptest.NewServer(h)
		t.Cleanup(server.Close)
		r := newRegistry(t, s, forge.GitHub, server.URL, "tok")
		r.apply("acme/shop")
		r.until("registered")

		delivery := func(id int, guid, event string, status int, at time.Time) map[string]any {
			return map[string]any{"id": id, "guid": guid, "event": event, "status_code": status, "delivered_at": at.UTC().Format(time.RFC3339)}
		}
		now := time.Now().Add(time.Second)
		h.mu.Lock()
		h.deliveries = []map[string]any{
			delivery(8, "lost", "push", 503, now),
			delivery(7, "ping", "ping", 500, now),
			delivery(6, "mended", "push", 202, now),
			delivery(5, "refused", "push", 0, now),
			delivery(4, "lost", "push", 502, now),
			delivery(3, "mended", "push", 500, now),
			delivery(2, "good", "push", 202, now),
			delivery(10, "gone", "push", 500, now),
			delivery(9, "unsendable", "push", 500, now),
			delivery(1, "old", "push", 500, now.Add(-time.Hour)),
		}
		h.refuse = map[string]int{"9": http.StatusUnprocessableEntity, "10": http.StatusNotFound}
		h.mu.Unlock()

		var rows []registrations.Registration
		statetest.Until(t, "four deliveries asked for again", func() bool {
			s.Notify(notice.Sync, r.uid)
			h.mu.Lock()
			defer h.mu.Unlock()
			return len(h.redeliver) >= 4
		})
		rows, err := s.Registrations().Of(t.Context(), r.uid)
		r.must(err)
		looked := rows[0].Checked
		statetest.Until(t, "two more looks", func() bool {
			s.Notify(notice.Sync, r.uid)
			rows, err := s.Registrations().Of(t.Context(), r.uid)
			r.must(err)
			return rows[0].Checked.After(looked.Add(250 * time.Millisecond))
		})

		h.mu.Lock()
		defer h.mu.Unlock()
		if want := []string{"9", "10", "5", "8"}; !slices.Equal(h.redeliver, want) {
			t.Errorf("asked for %v, want %v", h.redeliver, want)
		}
		for guid, want := range map[string]bool{"lost": true, "refused": true, "mended": false, "ping": false, "old": false} {
			if asked, err := s.Registrations().Asked(t.Context(), rows[0].WebhookUID, guid); err != nil || asked != want {
				t.Errorf("delivery %s was asked for: %v, %v", guid, asked, err)
			}
		}
	})
}
