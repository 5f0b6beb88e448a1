package admin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"millwright/admin"
	"millwright/api"
	"millwright/bounds"
	"millwright/reconcile/plan"
	"millwright/state"
	"millwright/state/statetest"
)

// world is a server of the management API over a real state, with a key of each role.
type world struct {
	t      *testing.T
	store  *state.Store
	url    string
	keys   map[state.Role]string
	bounds *bounds.Bounds
}

// each runs f against a server over every database.
func each(t *testing.T, cfg admin.Config, f func(w *world)) {
	t.Helper()
	statetest.Each(t, func(t *testing.T, store *state.Store) { f(serve(t, store, cfg)) })
}

func serve(t *testing.T, store *state.Store, cfg admin.Config) *world {
	t.Helper()
	cfg.Store = store
	if cfg.PublicURL == "" {
		cfg.PublicURL = "https://hooks.example.com"
	}
	a := api.New(api.Config{Store: store, Version: "test", PublicURL: cfg.PublicURL})
	admin.Register(a, cfg)
	srv := httptest.NewServer(a)
	t.Cleanup(srv.Close)
	w := &world{t: t, store: store, url: srv.URL + api.Base, keys: map[state.Role]string{}, bounds: a.Bounds()}
	for _, role := range []state.Role{state.RoleViewer, state.RoleRunner, state.RoleAdmin, state.RoleWorker} {
		_, secret, err := store.CreateKey(context.Background(), string(role), role, nil)
		if err != nil {
			t.Fatal(err)
		}
		w.keys[role] = secret
	}
	return w
}

// reply is an answer, its body as bytes and as JSON.
type reply struct {
	t      *testing.T
	status int
	header http.Header
	body   []byte
	json   any
}

// call sends a request as role ("": without a key). The body is JSON text, or nothing.
func (w *world) call(role state.Role, method, path, body string, header ...string) *reply {
	w.t.Helper()
	req, err := http.NewRequest(method, w.url+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if role != "" {
		req.Header.Set("Authorization", "Bearer "+w.keys[role])
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	r := &reply{t: w.t, status: res.StatusCode, header: res.Header, body: raw}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&r.json); err != nil && len(raw) > 0 && strings.HasSuffix(res.Header.Get("Content-Type"), "json") {
		w.t.Fatalf("%s %s: the body is not JSON: %v: %s", method, path, err, raw)
	}
	return r
}

// want checks the status and returns r.
func (r *reply) want(status int) *reply {
	r.t.Helper()
	if r.status != status {
		r.t.Fatalf("status %d, want %d: %s", r.status, status, r.body)
	}
	return r
}

// problem checks that r is a problem of that status and code, complete, and returns r.
func (r *reply) problem(status int, code string) *reply {
	r.t.Helper()
	r.want(status)
	if got := r.header.Get("Content-Type"); got != "application/problem+json" {
		r.t.Errorf("Content-Type %q", got)
	}
	if got := r.at("code"); got != code {
		r.t.Fatalf("code %v, want %s: %s", got, code, r.body)
	}
	if got := r.at("trace_id"); got == "" || got != r.header.Get("X-Request-Id") {
		r.t.Errorf("trace_id %v, X-Request-Id %q", got, r.header.Get("X-Request-Id"))
	}
	if _, ok := r.at("instance").(string); !ok {
		r.t.Errorf("no instance: %s", r.body)
	}
	return r
}

// at returns the value at a path of keys and indexes.
func (r *reply) at(path ...any) any {
	r.t.Helper()
	v := r.json
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, ok := v.(map[string]any)
			if !ok {
				r.t.Fatalf("no object at %v of %v: %s", step, path, r.body)
			}
			v = m[step]
		case int:
			l, ok := v.([]any)
			if !ok || len(l) <= step {
				r.t.Fatalf("no element %d of %v: %s", step, path, r.body)
			}
			v = l[step]
		}
	}
	return v
}

// keys returns the sorted keys of the object at a path.
func (r *reply) keysAt(path ...any) []string {
	r.t.Helper()
	m, ok := r.at(path...).(map[string]any)
	if !ok {
		r.t.Fatalf("no object at %v: %s", path, r.body)
	}
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// hasKeys checks that the object at a path has these members and no others.
func (r *reply) hasKeys(want string, path ...any) {
	r.t.Helper()
	names := strings.Fields(want)
	slices.Sort(names)
	if got := r.keysAt(path...); !slices.Equal(got, names) {
		r.t.Errorf("members at %v\n got %v\nwant %v", path, got, names)
	}
}

// length checks the length of the list at a path.
func (r *reply) length(n int, path ...any) {
	r.t.Helper()
	l, ok := r.at(path...).([]any)
	if !ok || len(l) != n {
		r.t.Fatalf("want a list of %d at %v: %s", n, path, r.body)
	}
}

// all reads a list page by page and returns the named member of each of its elements.
func (w *world) all(path, plural, member string, limit int) []string {
	w.t.Helper()
	var got []string
	sep := "?"
	if strings.Contains(path, "?") {
		sep = "&"
	}
	next := ""
	for range 100 {
		r := w.call(state.RoleAdmin, "GET", path+sep+"limit="+itoa(limit)+"&cursor="+next, "").want(200)
		r.hasKeys(plural + " page_info")
		r.hasKeys("has_next_page next_cursor", "page_info")
		for _, row := range r.at(plural).([]any) {
			got = append(got, row.(map[string]any)[member].(string))
		}
		next = r.at("page_info", "next_cursor").(string)
		if more := r.at("page_info", "has_next_page"); more != (next != "") {
			w.t.Fatalf("has_next_page %v, next_cursor %q", more, next)
		}
		if next == "" {
			return got
		}
		if n := len(r.at(plural).([]any)); n != limit {
			w.t.Fatalf("a page of %d with more to come, limit %d", n, limit)
		}
	}
	w.t.Fatal("the list does not end")
	return nil
}

func itoa(n int) string { return string(json.RawMessage(mustJSON(n))) }

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// factory configures a factory and applies files to it, without a controller.
func (w *world) factory(name string, source state.Source, files map[string]string) state.Factory {
	w.t.Helper()
	f, err := w.store.EnsureFactory(context.Background(), name, source, false)
	if err != nil {
		w.t.Fatal(err)
	}
	if files != nil {
		w.apply(f.UID, files)
	}
	return f
}

// apply applies files to a factory.
func (w *world) apply(factoryUID string, files map[string]string) {
	w.applyForgetting(factoryUID, files)
}

// applyForgetting applies files to a factory, and forgets webhooks that it deletes.
func (w *world) applyForgetting(factoryUID string, files map[string]string, forget ...string) {
	w.t.Helper()
	tree := fstest.MapFS{}
	for path, content := range files {
		tree[path] = &fstest.MapFile{Data: []byte(content)}
	}
	cur, err := w.store.Current(context.Background(), factoryUID)
	if err != nil {
		w.t.Fatal(err)
	}
	p, app := plan.Make(cur, tree, plan.Options{Revision: state.Revision{ID: "rev-" + time.Now().Format(time.RFC3339Nano)}, AllowPrune: true, Now: time.Now()})
	if app == nil {
		w.t.Fatalf("the tree is refused: %v %v", p.Problems, p.Err)
	}
	app.ForgetWebhooks = forget
	if err := w.store.Apply(context.Background(), *app); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) secret(name, value string) {
	w.t.Helper()
	if _, err := w.store.SetSecret(context.Background(), name, []byte(value)); err != nil {
		w.t.Fatal(err)
	}
}

func TestKeysAreAsked(t *testing.T) {
	each(t, admin.Config{}, func(w *world) {
		f := w.factory("payments", state.Source{Kind: "dir", Path: "/srv/factory"}, nil)
		in := "/factory/" + f.UID
		viewer, runner, boss := state.RoleViewer, state.RoleRunner, state.RoleAdmin
		for _, e := range []struct {
			need         state.Role
			method, path string
		}{
			{viewer, "GET", "/factory"},
			{viewer, "GET", in},
			{viewer, "GET", in + "/syncs"},
			{boss, "POST", in + "/sync"},
			{viewer, "GET", "/secrets"},
			{boss, "PUT", "/secrets/A"},
			{boss, "DELETE", "/secrets/A"},
			{boss, "GET", "/keys"},
			{boss, "POST", "/keys"},
			{boss, "DELETE", "/keys/key_x"},
		} {
			r := w.call("", e.method, e.path, "").problem(401, "authentication_required")
			if got := r.header.Get("WWW-Authenticate"); got != "Bearer" {
				t.Errorf("%s %s: WWW-Authenticate %q", e.method, e.path, got)
			}
			for _, role := range []state.Role{viewer, runner, boss, state.RoleWorker} {
				r := w.call(role, e.method, e.path, "")
				if allowed := role.Allows(e.need); allowed == (r.status == 403) {
					t.Errorf("%s %s as %s: status %d", e.method, e.path, role, r.status)
				}
				if r.status == 403 {
					r.problem(403, "not_authorized")
				}
			}
		}
		w.call(boss, "GET", "/nothing", "").problem(404, "resource_not_found")
		w.call(boss, "PATCH", "/secrets", "").problem(405, "invalid_request")
	})
}
