package dispatch_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"millwright/bounds"
	"millwright/forge"
	"millwright/runs/dispatch"
	"millwright/runs/wire"
	"millwright/schema"
	"millwright/state"
	"millwright/state/statetest"
)

const longToken = "t0ken-that-lives-long"

// newHost is a host of repositories. It answers by the name of the repository.
func newHost(t *testing.T) *httptest.Server {
	t.Helper()
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password != longToken {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}

		name := strings.Split(r.URL.Path, "/")[2]
		switch name {
		case "moved.git":
			http.Redirect(w, r, "/elsewhere", http.StatusMovedPermanently)
		case "denied.git":
			http.Error(w, longToken, http.StatusUnauthorized)
		case "busy.git":
			w.Header().Set("Retry-After", "7")
			http.Error(w, longToken, http.StatusTooManyRequests)
		case "broken.git":
			http.Error(w, longToken, http.StatusInternalServerError)
		case "endless.git":
			w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
			fmt.Fprint(w, "the first part")
			http.NewResponseController(w).Flush()
			<-r.Context().Done()
		case "silent.git":
			<-r.Context().Done()
		case "page.git":
			fmt.Fprint(w, longToken)
		case "shop.git":
			kind := "advertisement"
			if r.Method == http.MethodPost {
				kind = "result"
			}
			w.Header().Set("Content-Type", "application/x-git-upload-pack-"+kind)
			body, _ := io.ReadAll(r.Body)
			fmt.Fprintf(w, "%s %s %s %s", r.Method, r.URL.RequestURI(), r.Header.Get("Git-Protocol"), body)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(host.Close)
	return host
}

// relayed is a server with a run of a factory that lists repositories.
type relayed struct {
	t     *testing.T
	s     *state.Store
	d     *dispatch.Dispatcher
	relay *httptest.Server
}

func newRelayed(t *testing.T, s *state.Store, url, publicURL string) *relayed {
	t.Helper()
	w := &relayed{t: t, s: s}
	limits := bounds.New(bounds.Config{})
	senderOf := func(r *http.Request) string { return r.Header.Get("X-Sender") }
	w.relay = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		w.d.Relay(limits, senderOf).ServeHTTP(out, r)
	}))
	t.Cleanup(w.relay.Close)
	if publicURL == "" {
		publicURL = w.relay.URL
	}

	forges, err := forge.Open(forge.Config{
		Forges: map[string]forge.Settings{
			"long":   {Kind: forge.Git, URL: url + "/{owner}/{name}.git", TokenSecret: "T"},
			"local":  {Kind: forge.Git, URL: "file:///srv/{owner}/{name}.git"},
			"public": {Kind: forge.Git, URL: url + "/public/{owner}/{name}.git"},
		},
		Default: "long",
		Allowed: map[string][]string{"f": {"acme/*", "local:acme/*", "public:acme/*"}},
		Secret:  func(context.Context, string) ([]byte, error) { return []byte(longToken), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	w.d = startDispatch(t, dispatch.Config{Store: s, Listen: "127.0.0.1:0", Forges: forges, PublicURL: publicURL, Poll: 20 * time.Millisecond})
	return w
}

// run starts a run in repositories.
func (w *relayed) run(repositories ...schema.Repository) state.Run {
	w.t.Helper()
	f, err := w.s.EnsureFactory(w.t.Context(), "f", state.Source{Kind: "dir", Path: "x"}, false)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.s.Apply(w.t.Context(), state.ChangeSet{
		FactoryUID: f.UID, Base: f.Generation, BaseRevision: f.Applied.ID, Started: time.Now(),
		Revision: state.Revision{ID: fmt.Sprint("r", f.Generation)}, FileChanged: true,
		File: &schema.FactoryFile{Name: "f", Repositories: repositories},
	}); err != nil {
		w.t.Fatal(err)
	}
	return create(w.t, w.s, func(n *state.NewRun) { n.FactoryUID = f.UID })
}

// worker connects a worker of another machine.
func (w *relayed) worker() (*wire.Client, state.Key) {
	w.t.Helper()
	key, _, file := workerKey(w.t, w.s, state.RoleWorker)
	c, err := wire.Connect(w.t.Context(), "nats://"+w.d.Addr(), file, "", nil)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(c.Close)
	return c, key
}

// ask sends a request to the relay, and returns the status and body of the answer.
func (w *relayed) ask(method, path, user, password string) (int, string) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.relay.URL+path, strings.NewReader(""))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Git-Protocol", "version=2")
	r.Header.Set("X-Sender", "192.0.2.1")
	if user != "" {
		r.SetBasicAuth(user, password)
	}

	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

func repositories(names ...string) (all []schema.Repository) {
	for _, name := range names {
		all = append(all, schema.Repository{Owner: "acme", Name: name})
	}
	return all
}

// TestRelay has a worker elsewhere read the repositories of its run, without the token of their forge.
func TestRelay(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		w := newRelayed(t, s, newHost(t).URL, "")
		c, key := w.worker()
		r := w.run(repositories("shop", "moved", "denied", "busy", "broken", "page", "gone")...)
		o := order(t, c)
		body, err := json.Marshal(o)
		if err != nil || strings.Contains(string(body), longToken) {
			t.Errorf("the order has the token: %s %v", body, err)
		}

		shop := o.Checkout.Repositories[0]
		below := dispatch.RelayPath + r.ID
		if shop.Via != w.relay.URL+below+"/0" || shop.User != key.UID || shop.Password != o.Token {
			t.Errorf("repository %+v", shop)
		}

		const refs, read = "/info/refs?service=git-upload-pack", "/git-upload-pack"
		other, otherKey := w.worker()
		otherRun := w.run(repositories("shop")...)
		otherOrder := order(t, other)
		for _, test := range []struct {
			name, method, path, user, password string
			want                               int
		}{
			{"refs", "GET", below + "/0" + refs, key.UID, o.Token, 200},
			{"objects", "POST", below + "/0" + read, key.UID, o.Token, 200},
			{"no credential", "GET", below + "/0" + refs, "", "", 401},
			{"wrong token", "GET", below + "/0" + refs, key.UID, "x", 403},
			{"no token", "GET", below + "/0" + refs, key.UID, "", 403},
			{"another worker", "GET", below + "/0" + refs, otherKey.UID, o.Token, 403},
			{"another worker with its own token", "GET", below + "/0" + refs, otherKey.UID, otherOrder.Token, 403},
			{"another run", "GET", dispatch.RelayPath + otherRun.ID + "/0" + refs, key.UID, o.Token, 403},
			{"the worker of the server", "GET", below + "/0" + refs, "local", o.Token, 403},
			{"no such repository", "GET", below + "/7" + refs, key.UID, o.Token, 404},
			{"negative", "GET", below + "/-1" + refs, key.UID, o.Token, 404},
			{"to write", "GET", below + "/0/info/refs?service=git-receive-pack", key.UID, o.Token, 404},
			{"to write objects", "POST", below + "/0/git-receive-pack", key.UID, o.Token, 404},
			{"a file", "GET", below + "/0/HEAD", key.UID, o.Token, 404},
			{"another query", "GET", below + "/0" + refs + "&x=y", key.UID, o.Token, 404},
			{"another repository", "GET", below + "/0/..%2f..%2fother/x.git" + refs, key.UID, o.Token, 404},
			{"moved", "GET", below + "/1" + refs, key.UID, o.Token, 301},
			{"denied", "GET", below + "/2" + refs, key.UID, o.Token, 403},
			{"busy", "GET", below + "/3" + refs, key.UID, o.Token, 429},
			{"broken", "GET", below + "/4" + refs, key.UID, o.Token, 502},
			{"no git server", "GET", below + "/5" + refs, key.UID, o.Token, 200},
			{"gone", "GET", below + "/6" + refs, key.UID, o.Token, 404},
		} {
			status, said := w.ask(test.method, test.path, test.user, test.password)
			if status != test.want || strings.Contains(said, longToken) {
				t.Errorf("%s: %d %q, want %d", test.name, status, said, test.want)
			}
			if test.name == "refs" && said != "GET /acme/shop.git/info/refs?service=git-upload-pack version=2 " {
				t.Errorf("the host was asked %q", said)
			}
		}

		// The claim ends with the run.
		if _, err := c.Start(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Finish(t.Context(), o, wire.Result{State: wire.Succeeded}); err != nil {
			t.Fatal(err)
		}
		if status, said := w.ask("GET", below+"/0"+refs, key.UID, o.Token); status != http.StatusForbidden {
			t.Errorf("after the run: %d %q", status, said)
		}

		if err := s.RevokeKey(t.Context(), otherKey.UID); err != nil {
			t.Fatal(err)
		}
		status, said := w.ask("GET", dispatch.RelayPath+otherRun.ID+"/0"+refs, otherKey.UID, otherOrder.Token)
		if status != http.StatusForbidden {
			t.Errorf("with a revoked key: %d %q", status, said)
		}
	})
}

// TestRelayIsShared has a worker read more repositories at once than the server does for all. Another worker
// reads at once. What the first one reads ends with its claim.
func TestRelayIsShared(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		w := newRelayed(t, s, newHost(t).URL, "")
		c, key := w.worker()
		r := w.run(repositories("endless", "silent")...)
		o := order(t, c)
		if _, err := c.Start(t.Context(), o); err != nil {
			t.Fatal(err)
		}

		const refs = "/info/refs?service=git-upload-pack"
		ended := make(chan struct{})
		for i := range 20 {
			path := fmt.Sprint(dispatch.RelayPath, r.ID, "/", i%2, refs)
			req, err := http.NewRequestWithContext(t.Context(), "GET", w.relay.URL+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.SetBasicAuth(key.UID, o.Token)
			go func() {
				if res, err := http.DefaultClient.Do(req); err == nil {
					_, _ = io.Copy(io.Discard, res.Body)
					res.Body.Close()
				}
				ended <- struct{}{}
			}()
		}

		other, otherKey := w.worker()
		otherRun := w.run(repositories("shop")...)
		otherOrder := order(t, other)
		path := dispatch.RelayPath + otherRun.ID + "/0" + refs
		if status, said := w.ask("GET", path, otherKey.UID, otherOrder.Token); status != http.StatusOK {
			t.Errorf("another worker: %d %q", status, said)
		}
		select {
		case <-ended:
			t.Error("a transfer ended before its claim")
		default:
		}

		if _, err := c.Finish(t.Context(), o, wire.Result{State: wire.Succeeded}); err != nil {
			t.Fatal(err)
		}
		late := time.After(statetest.Patience)
		for i := range 20 {
			select {
			case <-ended:
			case <-late:
				t.Fatalf("%d of 20 transfers have ended %v after their claim", i, statetest.Patience)
			}
		}
	})
}

// TestRelayBoundsWrongTokens refuses senders of many wrong tokens. A right one is still answered.
func TestRelayBoundsWrongTokens(t *testing.T) {
	s := statetest.Open(t, statetest.SQLite(t))
	w := newRelayed(t, s, newHost(t).URL, "")
	c, key := w.worker()
	r := w.run(repositories("shop")...)
	o := order(t, c)
	path := dispatch.RelayPath + r.ID + "/0/info/refs?service=git-upload-pack"

	for i := range 32 {
		user, want := []string{key.UID, state.NewID(state.PrefixKey)}[i%2], http.StatusForbidden
		if i >= 30 {
			want = http.StatusTooManyRequests
		}
		if status, said := w.ask("GET", path, user, fmt.Sprint("wrong", i)); status != want {
			t.Errorf("wrong token %d: %d %q, want %d", i, status, said, want)
		}
	}
	if status, said := w.ask("GET", path, key.UID, o.Token); status != http.StatusOK {
		t.Errorf("right token: %d %q", status, said)
	}
}

// TestOneNameAtTwoForges ends a run whose factory lists one repository at two forges. A repeated one is one.
func TestOneNameAtTwoForges(t *testing.T) {
	s := statetest.Open(t, statetest.SQLite(t))
	w := newRelayed(t, s, newHost(t).URL, "")
	c, _ := w.worker()
	shop := schema.Repository{Owner: "acme", Name: "shop"}
	again, public := shop, shop
	again.CodeForge, public.CodeForge = "long", "public"
	twice := w.run(shop, public)
	next := create(t, s, nil)
	if o := order(t, c); o.RunID != next.ID {
		t.Errorf("order of run %s, want %s", o.RunID, next.ID)
	}
	got := run(t, s, twice.ID)
	const want = "the run has repository acme/shop of the forges long and public: it can have one of them"
	if got.State != state.RunError || got.ErrorCode != "environment_setup_failed" || got.StatusMessage != want {
		t.Errorf("run is %s: %s: %s", got.State, got.ErrorCode, got.StatusMessage)
	}

	w.run(shop, again)
	if o := order(t, c); len(o.Checkout.Repositories) != 1 {
		t.Errorf("checkout %+v", o.Checkout)
	}
}

// TestRemoteWorkersGetNoLongToken has workers elsewhere take runs that cannot be executed there. They end
// with the reason, and the worker goes on.
func TestRemoteWorkersGetNoLongToken(t *testing.T) {
	s := statetest.Open(t, statetest.SQLite(t))
	host := newHost(t)
	for name, test := range map[string]struct {
		publicURL string
		repo      schema.Repository
		want      string // empty: the worker gets it
	}{
		"relay":          {"", schema.Repository{Owner: "acme", Name: "shop"}, ""},
		"https":          {"https://millwright.example.com", schema.Repository{Owner: "acme", Name: "shop"}, ""},
		"public access":  {"http://hooks.example.com", schema.Repository{CodeForge: "public", Owner: "acme", Name: "shop"}, ""},
		"http elsewhere": {"http://hooks.example.com", schema.Repository{Owner: "acme", Name: "shop"}, "set publicUrl to an https address"},
		"directory": {
			"",
			schema.Repository{CodeForge: "local", Owner: "acme", Name: "shop"},
			"a directory of the server, which a worker elsewhere cannot fetch",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newRelayed(t, s, host.URL, test.publicURL)
			c, _ := w.worker()
			r := w.run(test.repo)
			if test.want == "" {
				o := order(t, c)
				if got := o.Checkout.Repositories[0]; got.Password == longToken || (got.Via == "") != (name == "public access") {
					t.Errorf("repository %+v", got)
				}
				return
			}

			next := create(t, s, nil)
			if o := order(t, c); o.RunID != next.ID {
				t.Errorf("order of run %s, want %s", o.RunID, next.ID)
			}
			got := run(t, s, r.ID)
			if got.State != state.RunError || got.ErrorCode != "environment_setup_failed" || !strings.Contains(got.StatusMessage, test.want) {
				t.Errorf("run is %s: %s: %s", got.State, got.ErrorCode, got.StatusMessage)
			}
		})
	}
}
