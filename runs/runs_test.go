package runs_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	"millwright/api"
	"millwright/runs"
	"millwright/runs/dispatch"
	"millwright/runs/worker"
	"millwright/state"
	"millwright/state/statetest"
)

// world is an API over a state, called over HTTP; every answer is checked against the document.
type world struct {
	t      *testing.T
	store  *state.Store
	d      *dispatch.Dispatcher
	server *httptest.Server
	router routers.Router
	keys   map[state.Role]string
	uids   map[state.Role]string
}

func each(t *testing.T, f func(w *world)) {
	t.Helper()
	statetest.Each(t, func(t *testing.T, s *state.Store) { f(newWorld(t, s)) })
}

func newWorld(t *testing.T, s *state.Store) *world {
	t.Helper()
	w := &world{t: t, store: s, keys: map[state.Role]string{}, uids: map[state.Role]string{}}
	var err error
	if w.d, err = dispatch.Start(t.Context(), dispatch.Config{Store: s}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.d.Close(context.Background()) })
	a := api.New(api.Config{Store: s, Version: "test", PublicURL: "https://mill.example.com"})
	runs.Register(a, runs.Config{Store: s, Dispatcher: w.d, PublicURL: "https://mill.example.com/", Harnesses: []string{"echo", "claude"}, Models: func() (string, []string) {
		return "gpt-6", []string{"gpt-6", "anthropic/claude-5", "gpt-6"}
	}})
	for _, role := range []state.Role{state.RoleViewer, state.RoleRunner, state.RoleAdmin, state.RoleWorker} {
		key, secret, err := s.CreateKey(t.Context(), string(role), role, nil)
		if err != nil {
			t.Fatal(err)
		}
		w.keys[role], w.uids[role] = secret, key.UID
	}
	w.server = httptest.NewServer(a)
	t.Cleanup(w.server.Close)
	text, err := a.Huma().OpenAPI().Downgrade()
	if err != nil {
		t.Fatal(err)
	}
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		t.Fatal(err)
	}
	doc.Servers = nil
	if w.router, err = gorillamux.NewRouter(doc); err != nil {
		t.Fatal(err)
	}
	return w
}

// response is an answer that the document allows.
type response struct {
	t      *testing.T
	status int
	header http.Header
	text   string
}

// call makes a request as the holder of a key of the role.
func (w *world) call(role state.Role, method, path, body string, headers ...string) response {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.server.URL+api.Base+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	if role != "" {
		req.Header.Set("Authorization", "Bearer "+w.keys[role])
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := w.server.Client().Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	w.validate(req, resp, text)
	return response{w.t, resp.StatusCode, resp.Header, string(text)}
}

// validate compares an answer with what the document says.
func (w *world) validate(req *http.Request, resp *http.Response, text []byte) {
	w.t.Helper()
	plain := req.Clone(req.Context())
	plain.URL.Host, plain.URL.Scheme, plain.Host = "", "", ""
	route, params, err := w.router.FindRoute(plain)
	if err != nil {
		return // not a documented path
	}
	in := &openapi3filter.RequestValidationInput{Request: req, PathParams: params, Route: route}
	out := &openapi3filter.ResponseValidationInput{RequestValidationInput: in, Status: resp.StatusCode, Header: resp.Header}
	out.Options = &openapi3filter.Options{IncludeResponseStatus: true}
	if ct := resp.Header.Get("Content-Type"); strings.HasPrefix(ct, "text/event-stream") {
		out.Options.ExcludeResponseBody = true
	}
	out.SetBodyBytes(text)
	if err := openapi3filter.ValidateResponse(w.t.Context(), out); err != nil {
		w.t.Errorf("%s %s: the document does not allow the answer %d %s: %v", req.Method, req.URL.Path, resp.StatusCode, text, err)
	}
}

// ok requires status 200 and returns the body.
func (r response) ok() map[string]any {
	r.t.Helper()
	if r.status != http.StatusOK {
		r.t.Fatalf("status %d: %s", r.status, r.text)
	}
	var v map[string]any
	if err := json.Unmarshal([]byte(r.text), &v); err != nil {
		r.t.Fatalf("%v: %s", err, r.text)
	}
	return v
}

// problem requires a problem of this status and code that mentions each of the texts.
func (r response) problem(status int, code string, mentions ...string) map[string]any {
	r.t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(r.text), &v); err != nil || r.status != status || v["code"] != code || r.header.Get("Content-Type") != "application/problem+json" {
		r.t.Errorf("want %d %s: %d %s", status, code, r.status, r.text)
		return v
	}
	for _, m := range mentions {
		if !strings.Contains(r.text, m) {
			r.t.Errorf("%q is not in %s", m, r.text)
		}
	}
	return v
}

// create starts a run and returns its ID.
func (w *world) create(body string, headers ...string) string {
	w.t.Helper()
	v := w.call(state.RoleRunner, "POST", "/agent/runs", body, headers...).ok()
	if v["run_id"] != v["task_id"] || v["state"] != "QUEUED" {
		w.t.Errorf("created %v", v)
	}
	return v["run_id"].(string)
}

func (w *world) get(id string) map[string]any {
	w.t.Helper()
	return w.call(state.RoleViewer, "GET", "/agent/runs/"+id, "").ok()
}

// work executes runs until the test ends.
func (w *world) work(harnesses map[string]worker.Harness) {
	w.t.Helper()
	client, err := w.d.Client()
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- worker.Run(ctx, worker.Config{Client: client, Harnesses: harnesses, Dir: w.t.TempDir(), Slots: 2, Name: "tester"})
	}()
	w.t.Cleanup(func() {
		cancel()
		if err, _ := statetest.Receive(w.t, "the worker to end", done); err != nil {
			w.t.Error(err)
		}
		client.Close()
	})
}

// end follows a run's events to its end and returns them.
func (w *world) end(id string) string {
	w.t.Helper()
	r := w.call(state.RoleViewer, "GET", "/agent/runs/"+id+"/events", "")
	if r.status != http.StatusOK || r.header.Get("Content-Type") != "text/event-stream" {
		w.t.Fatalf("events: %d %s", r.status, r.text)
	}
	return r.text
}

func TestCreateAndGet(t *testing.T) {
	each(t, func(w *world) {
		id := w.create(`{"prompt": "\n  Fix the build  \nand the tests", "config": {"name": "ci", "model_id": "m", "environment_id": "e", "base_prompt": "Be kind.",
			"harness": {"type": "claude", "future": 1}, "mcp_servers": {"a": {"url": "https://x", "headers": {"Authorization": "Bearer hunter2"}, "kept": true}}, "kept": {"b": [1]}},
			"metadata": {"ticket": "7"}, "attachments": [{"file_name": "a b.txt", "mime_type": "text/html", "data": "` + base64.StdEncoding.EncodeToString([]byte("<script>")) + `"}], "unknown": null}`)
		got := w.get(id)
		for key, want := range map[string]string{
			"run_id": id, "task_id": id, "root_run_id": id, "title": "Fix the build", "prompt": "\n  Fix the build  \nand the tests", "state": "QUEUED", "source": "API",
			"session_id": id, "session_link": "https://mill.example.com/runs/" + id, "submitted_prompt": "\n  Fix the build  \nand the tests",
		} {
			if got[key] != want {
				t := w.t
				t.Errorf("%s is %v, want %s", key, got[key], want)
			}
		}
		for _, key := range []string{"started_at", "finished_at"} {
			if v, ok := got[key]; !ok || v != nil {
				w.t.Errorf("%s is %v", key, v)
			}
		}
		creator := got["creator"].(map[string]any)
		if creator["type"] != "service_account" || creator["uid"] != w.uids[state.RoleRunner] || creator["display_name"] != "runner" {
			w.t.Errorf("creator %v", creator)
		}
		text, _ := json.Marshal(got["agent_config"])
		want := `{"base_prompt":"Be kind.","environment_id":"e","harness":{"type":"claude"},"kept":{"b":[1]},"mcp_servers":{"a":{"headers":{"Authorization":"***"},"kept":true,"url":"https://x"}},"model_id":"m","name":"ci"}`
		if string(text) != want {
			w.t.Errorf("configuration %s\nwant          %s", text, want)
		}
		if files, _ := json.Marshal(got["attachments"]); string(files) != `[{"file_name":"a b.txt","mime_type":"text/html","size_bytes":8}]` {
			w.t.Errorf("attachments %s", files)
		}
		list := w.call(state.RoleViewer, "GET", "/agent/runs?metadata[ticket]=7", "").ok()
		if item := list["runs"].([]any)[0].(map[string]any); item["run_id"] != id || strings.Contains(fmt.Sprint(item), "hunter2") {
			w.t.Errorf("listed %v", item)
		}
		file := w.call(state.RoleViewer, "GET", "/agent/runs/"+id+"/attachments/a%20b.txt", "")
		if file.status != 200 || file.text != "<script>" || file.header.Get("Content-Disposition") != `attachment; filename="a b.txt"` ||
			file.header.Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(file.header.Get("Content-Security-Policy"), "sandbox") || file.header.Get("Content-Type") != "text/html" {
			w.t.Errorf("file %d %v %q", file.status, file.header, file.text)
		}
		w.call(state.RoleViewer, "GET", "/agent/runs/"+id+"/attachments/other", "").problem(404, "resource_not_found")

		for _, id := range []string{"x", state.NewRunID(), strings.ReplaceAll(id, "-", ""), strings.ToUpper(id), "%00", strings.Repeat("9", 36)} {
			w.call(state.RoleViewer, "GET", "/agent/runs/"+id, "").problem(404, "resource_not_found")
			w.call(state.RoleViewer, "GET", "/agent/runs/"+id+"/conversation", "").problem(404, "resource_not_found")
			w.call(state.RoleViewer, "GET", "/agent/runs/"+id+"/events", "").problem(404, "resource_not_found")
			w.call(state.RoleRunner, "POST", "/agent/runs/"+id+"/cancel", "").problem(404, "resource_not_found")
			w.call(state.RoleRunner, "POST", "/agent/runs/"+id+"/followups", `{"message": "x"}`).problem(404, "resource_not_found")
		}
		w.call(state.RoleViewer, "POST", "/agent/runs", `{"prompt": "x"}`).problem(403, "not_authorized")
		w.call(state.RoleWorker, "GET", "/agent/runs", "").problem(403, "not_authorized")
		tries := 0
		for ; w.call("", "GET", "/agent/runs", "", "Authorization", "Bearer mw_wrong").status == 401 && tries < 100; tries++ {
		}
		if tries < 30 || tries == 100 {
			w.t.Errorf("%d wrong keys were looked at", tries)
		}
		w.call("", "GET", "/agent/runs", "", "Authorization", "Bearer mw_wrong").problem(429, "rate_limited")
		w.call("", "GET", "/agent/runs", "").problem(401, "authentication_required") // no key is no wrong key
	})
}

func TestBadRequestsAreNamed(t *testing.T) {
	w := newWorld(t, statetest.Open(t, statetest.SQLite(t)))
	long := func(n int) string { return strings.Repeat("é", n) }
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	many := func(n int) string {
		m := map[string]string{}
		for i := range n {
			m[fmt.Sprint("k", i)] = "v"
		}
		text, _ := json.Marshal(m)
		return string(text)
	}
	files := func(n, size int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`{"file_name":"f%d","data":"%s"}`, i, base64.StdEncoding.EncodeToString(make([]byte, size))))
		}
		return "[" + strings.Join(all, ",") + "]"
	}
	for _, test := range []struct{ body, field string }{
		{`{}`, "prompt"},
		{`{"prompt": " \n"}`, "prompt"},
		{`{"prompt": "a\u0000b"}`, "prompt"},
		{`{"prompt": 7}`, "prompt"},
		{`{"prompt": "x", "title": "` + long(121) + `"}`, "title"},
		{`{"prompt": "x", "title": "` + long(120) + `"}`, ""},
		{`{"prompt": "x", "title": null, "metadata": null, "attachments": null}`, ""},
		{`{"prompt": "x", "config": []}`, "config"},
		{`{"prompt": "x", "config": {"model_id": 1}}`, "config.model_id"},
		{`{"prompt": "x", "config": {"skill_spec": "repo:name"}}`, "config.skill_spec"},
		{`{"prompt": "x", "config": {"skill_spec": "o/r:a/b.md"}}`, "config.skill_spec"},
		{`{"prompt": "x", "config": {"skill_spec": "o/r:../SKILL.md"}}`, "config.skill_spec"},
		{`{"config": {"skill_spec": "o/r:a/SKILL.md"}}`, ""},
		{`{"config": {"skills": ["a"]}}`, ""},
		{`{"config": {"skills": []}}`, "prompt"},
		{`{"config": {"skills": null}}`, "prompt"},
		{`{"skill": "o/r: "}`, "skill"},
		{`{"skill": "r:name"}`, ""},
		{`{"skill": "nothing"}`, "skill"},
		{`{"prompt": "x", "config": {"harness": {"type": "gpt"}}}`, "config.harness.type"},
		{`{"prompt": "x", "config": {"harness": {"type": "oz"}}}`, ""},
		{`{"prompt": "x", "config": {"mcp_servers": {"a": {}}}}`, "config.mcp_servers.a"},
		{`{"prompt": "x", "config": {"mcp_servers": {"a": {"url": "u", "command": "c"}}}}`, "config.mcp_servers.a"},
		{`{"prompt": "x", "config": {"mcp_servers": {"a": {"warp_id": "w"}}}}`, ""},
		{`{"prompt": "x", "config": {"mcp_servers": {"a": {"url": "u", "headers": {"X": 1}}}}}`, "config.mcp_servers.a.headers.X"},
		{`{"prompt": "x", "agent_identity_uid": "agt_nobody"}`, "agent_identity_uid"},
		{`{"prompt": "x", "conversation_id": "c"}`, "conversation_id"},
		{`{"prompt": "x", "conversation_id": "` + state.NewRunID() + `"}`, "conversation"},
		{`{"prompt": "x", "parent_run_id": "` + state.NewRunID() + `"}`, "parent run"},
		{`{"prompt": "x", "metadata": ` + many(20) + `}`, ""},
		{`{"prompt": "x", "metadata": ` + many(21) + `}`, "metadata"},
		{`{"prompt": "x", "metadata": {"a b": "v"}}`, "metadata"},
		{`{"prompt": "x", "metadata": {"delivery_id": "v"}}`, "metadata.delivery_id"},
		{`{"prompt": "x", "metadata": {"k": "` + long(128) + `"}}`, ""},
		{`{"prompt": "x", "metadata": {"k": "` + long(128) + `x"}}`, "metadata.k"},
		{`{"prompt": "x", "metadata": {"k": 1}}`, "metadata.k"},
		{`{"prompt": "x", "attachments": ` + files(5, 10) + `}`, ""},
		{`{"prompt": "x", "attachments": ` + files(6, 10) + `}`, "attachments"},
		{`{"prompt": "x", "attachments": ` + files(1, 1<<20) + `}`, ""},
		{`{"prompt": "x", "attachments": ` + files(1, 1<<20+1) + `}`, "attachments[0].data"},
		{`{"prompt": "x", "attachments": [{"file_name": "../a", "data": ""}]}`, "attachments[0].file_name"},
		{`{"prompt": "x", "attachments": [{"file_name": "Prompt.md", "data": ""}]}`, "attachments[0].file_name"},
		{`{"prompt": "x", "attachments": [{"file_name": "a", "data": ""}, {"file_name": "A", "data": ""}]}`, "attachments[1].file_name"},
		{`{"prompt": "x", "attachments": [{"file_name": "a", "data": "%"}]}`, "attachments[0].data"},
		{`{"prompt": "x", "attachments": [{"file_name": "a", "mime_type": "x\ny", "data": ""}]}`, "attachments[0].mime_type"},
		{`{"prompt": "x", "conversation_id": "` + long(50) + `x"}`, "conversation_id"},
		{`{"prompt": "x", "agent_identity_uid": "` + long(101) + `"}`, "agent_identity_uid"},
		{`{"skill": "r:` + strings.Repeat("n", 498) + `"}`, ""},
		{`{"skill": "r:` + strings.Repeat("n", 499) + `"}`, "skill"},
		{`{"prompt": "x", "config": {"skill_spec": "o/r:` + strings.Repeat("n", 496) + `"}}`, ""},
		{`{"prompt": "x", "config": {"skill_spec": "o/r:` + strings.Repeat("n", 497) + `"}}`, "config.skill_spec"},
		{`{"prompt": "x", "config": {"name": "` + long(200) + `", "model_id": "` + long(200) + `", "environment_id": "` + long(200) + `", "runner_id": "` + long(200) + `"}}`, ""},
		{`{"prompt": "x", "config": {"name": "` + long(201) + `"}}`, "config.name"},
		{`{"prompt": "x", "config": {"model_id": "` + long(201) + `"}}`, "config.model_id"},
		{`{"prompt": "x", "config": {"environment_id": "` + long(201) + `"}}`, "config.environment_id"},
		{`{"prompt": "x", "config": {"runner_id": "` + long(201) + `"}}`, "config.runner_id"},
		{`{"prompt": "x", "config": {"worker_host": "` + long(201) + `"}}`, "config.worker_host"},
		{`{"prompt": "x", "config": {"idle_timeout_minutes": 10080}}`, ""},
		{`{"prompt": "x", "config": {"idle_timeout_minutes": 10081}}`, "config.idle_timeout_minutes"},
		{`{"prompt": "x", "config": {"idle_timeout_minutes": -1}}`, "config.idle_timeout_minutes"},
		{`{"prompt": "x", "config": {"idle_timeout_minutes": 1.5}}`, "config.idle_timeout_minutes"},
		{`{"prompt": "x", "config": {"idle_timeout_minutes": 1e999}}`, "config.idle_timeout_minutes: want a whole number"},
		{`{"prompt": "x", "unknown": [1e999, ` + deep(1000) + `], "config": {"unknown": ` + deep(32) + `}}`, ""},
		{`{"prompt": "x", "config": {"unknown": ` + deep(33) + `}}`, "config.unknown"},
		{`{"prompt": "x", "config": {"mcp_servers": {"a": {"url": "u", "unknown": ` + deep(33) + `}}}}`, "config.mcp_servers.a.unknown"},
		{`{"prompt": "x", "config": {"unknown": "` + "\xff" + `"}}`, "not valid UTF-8"},
		{`{"prompt": "x", "config": {"harness": {"type": "oz", "model_id": "` + long(200) + `", "reasoning_level": "` + long(100) + `"}}}`, ""},
		{`{"prompt": "x", "config": {"harness": {"model_id": "` + long(201) + `"}}}`, "config.harness.model_id"},
		{`{"prompt": "x", "config": {"harness": {"reasoning_level": "` + long(101) + `"}}}`, "config.harness.reasoning_level"},
		{`{"prompt": "x", "metadata": {"` + strings.Repeat("k", 64) + `": "v"}}`, ""},
		{`{"prompt": "x", "metadata": {"` + strings.Repeat("k", 65) + `": "v"}}`, "metadata"},
		{`{"prompt": "x", "attachments": [{"file_name": "` + long(127) + `x", "data": ""}]}`, ""},
		{`{"prompt": "x", "attachments": [{"file_name": "` + long(128) + `", "data": ""}]}`, "attachments[0].file_name"},
		{`{"prompt": "x", "attachments": [{"file_name": "` + strings.Repeat("f", 200) + `", "data": ""}]}`, ""},
		{`{"prompt": "x", "attachments": [{"file_name": "` + long(201) + `", "data": ""}]}`, "attachments[0].file_name"},
		{`{"prompt": "x", "attachments": [{"file_name": "", "data": ""}]}`, "attachments[0].file_name"},
		{`{"prompt": "x", "attachments": [{"file_name": "a", "mime_type": "x/` + strings.Repeat("y", 198) + `", "data": ""}]}`, ""},
		{`{"prompt": "x", "attachments": [{"file_name": "a", "mime_type": "x/` + strings.Repeat("y", 199) + `", "data": ""}]}`, "attachments[0].mime_type"},
		{`[]`, "body"},
		{`{"prompt": `, ""},
		{``, "body"},
	} {
		r := w.call(state.RoleRunner, "POST", "/agent/runs", test.body)
		if test.field == "" && test.body != `{"prompt": ` {
			r.ok()
			continue
		}
		r.problem(400, "invalid_request", test.field)
	}
	whole := `{"prompt": "` + strings.Repeat("x", 8<<20-14) + `"}`
	w.call(state.RoleRunner, "POST", "/agent/runs", whole).ok()
	w.call(state.RoleRunner, "POST", "/agent/runs", whole+" ").problem(413, "payload_too_large", "larger than 8388608 bytes")
	for kind, status := range map[string]int{"APPLICATION/JSON ; charset=UTF-8": 200, "Text/Plain": 200, "application/xml": 400} {
		if r := w.call(state.RoleRunner, "POST", "/agent/runs", `{"prompt": "x"}`, "Content-Type", kind); r.status != status || r.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d %v %s", kind, r.status, r.header, r.text)
		}
	}
	w.call(state.RoleRunner, "POST", "/agent/runs", `{"prompt": "x"}`, "Idempotency-Key", strings.Repeat("k", 256)).problem(400, "invalid_request", "Idempotency-Key")
}

func TestIdempotencyKey(t *testing.T) {
	each(t, func(w *world) {
		id := w.create(`{"prompt": "x"}`, "Idempotency-Key", "one")
		w.call(state.RoleRunner, "POST", "/agent/runs/"+id+"/cancel", "")
		if again := w.create(`{"prompt": "x"}`, "Idempotency-Key", "one"); again != id {
			w.t.Errorf("a repeat made %s, want %s", again, id)
		}
		if other := w.create(`{"prompt": "x"}`, "Idempotency-Key", "two"); other == id {
			w.t.Error("another key answered with the first run")
		}
		r := w.call(state.RoleRunner, "POST", "/agent/runs", `{"prompt": "y"}`, "Idempotency-Key", "one")
		if v := r.problem(409, "conflict"); v["retryable"] != false || r.header.Get("X-Should-Retry") != "false" {
			w.t.Errorf("another body: %v %v", v, r.header)
		}
	})
}

func TestIdempotentFollowup(t *testing.T) {
	each(t, func(w *world) {
		id, other := w.create(`{"prompt": "x"}`), w.create(`{"prompt": "x"}`)
		send := func(id, body string) response {
			return w.call(state.RoleRunner, "POST", "/agent/runs/"+id+"/followups", body, "Idempotency-Key", "one")
		}
		answers := make(chan string, 20)
		var all sync.WaitGroup
		for range cap(answers) {
			all.Go(func() { answers <- send(id, `{"message": "once"}`).text })
		}
		all.Wait()
		first := <-answers
		for range cap(answers) - 1 {
			if again := <-answers; again != first || !strings.Contains(first, `"queued_prompt"`) {
				w.t.Errorf("repeats: %s %s", first, again)
			}
		}
		w.call(state.RoleRunner, "POST", "/agent/runs/"+id+"/cancel", "")
		if again := send(id, `{"message": "once"}`).text; again != first {
			w.t.Errorf("after the end: %s, want %s", again, first)
		}
		if got := w.get(id); got["submitted_prompt"] != "x\n\nonce" || got["state"] != "CANCELLED" {
			w.t.Errorf("run %v", got)
		}
		for _, r := range []response{send(id, `{"message": "twice"}`), send(other, `{"message": "once"}`)} {
			if v := r.problem(409, "conflict"); v["retryable"] != false || r.header.Get("X-Should-Retry") != "false" {
				w.t.Errorf("another request: %v %v", v, r.header)
			}
		}
	})
}

func TestSourcesAndAlias(t *testing.T) {
	w := newWorld(t, statetest.Open(t, statetest.SQLite(t)))
	for client, want := range map[string]string{"cli": "CLI", "web": "WEB_APP", "other": "API"} {
		if got := w.get(w.create(`{"prompt": "x"}`, "X-Millwright-Client", client))["source"]; got != want {
			t.Errorf("source of %s is %v", client, got)
		}
	}
	if v := w.call(state.RoleRunner, "POST", "/agent/run", `{"prompt": "x"}`).ok(); v["state"] != "QUEUED" {
		t.Errorf("alias: %v", v)
	}
	got := w.get(w.create(`{"skill": "acme/tools:skills/triage/SKILL.md", "config": {"skill_spec": "a/b:c"}}`))
	config := got["agent_config"].(map[string]any)
	if config["name"] != "triage" || config["skill_spec"] != "acme/tools:skills/triage/SKILL.md" || got["prompt"] != "Use skill acme/tools:skills/triage/SKILL.md" || got["title"] != got["prompt"] {
		t.Errorf("run of a skill: %v", got)
	}

	for body, want := range map[string][2]string{
		`{"config": {"skills": ["o/r:a"]}}`:                                {"a", "Use skill o/r:a"},
		`{"config": {"skills": ["o/r:x/b/SKILL.md", "o/r:c"]}}`:            {"b", "Use skills o/r:x/b/SKILL.md, o/r:c"},
		`{"config": {"skills": ["a"], "name": "mine"}, "prompt": "Do it"}`: {"mine", "Do it"},
		`{"skill": "acme/tools:SKILL.md"}`:                                 {"tools", "Use skill acme/tools:SKILL.md"},
		`{"config": {"skill_spec": "acme/tools:SKILL.md"}}`:                {"tools", "Use skill acme/tools:SKILL.md"},
	} {
		got := w.get(w.create(body))
		config, _ := got["agent_config"].(map[string]any)
		if config["name"] != want[0] || got["prompt"] != want[1] {
			t.Errorf("%s: name %v, prompt %v; want %q", body, config["name"], got["prompt"], want)
		}
	}
	parent := w.create(`{"prompt": "x"}`)
	child := w.get(w.create(`{"prompt": "x", "parent_run_id": "` + strings.ToUpper(parent) + `", "conversation_id": "` + w.get(parent)["conversation_id"].(string) + `"}`))
	if child["parent_run_id"] != parent || child["root_run_id"] != parent || child["conversation_id"] != w.get(parent)["conversation_id"] {
		t.Errorf("child: %v", child)
	}
}

func TestListOverHTTP(t *testing.T) {
	each(t, func(w *world) {
		var ids []string
		for i := range 7 {
			ids = append(ids, w.create(fmt.Sprintf(`{"prompt": "p%d", "config": {"name": "n%d"}}`, i, i%2)))
		}
		w.call(state.RoleRunner, "POST", "/agent/runs/"+ids[0]+"/cancel", "")
		list := func(query string) (found []string, cursor string) {
			w.t.Helper()
			v := w.call(state.RoleViewer, "GET", "/agent/runs?"+query, "").ok()
			for _, r := range v["runs"].([]any) {
				found = append(found, r.(map[string]any)["prompt"].(string))
			}
			info := v["page_info"].(map[string]any)
			cursor, _ = info["next_cursor"].(string)
			if info["has_next_page"].(bool) != (cursor != "") {
				w.t.Errorf("page info %v", info)
			}
			return found, cursor
		}
		for query, want := range map[string]string{
			"":                                  "[p0 p6 p5 p4 p3 p2 p1]",
			"sort_by=created_at&sort_order=asc": "[p0 p1 p2 p3 p4 p5 p6]",
			"name=n1":                           "[p5 p3 p1]",
			"state=CANCELLED&state=FAILED":      "[p0]",
			"task_status=cancelled&task_status=complete":    "[p0]",
			"task_status=running&state=CANCELLED":           "[]",
			"task_status=failed":                            "[]",
			"source=CLI&source=SCHEDULED_AGENT":             "[]",
			"execution_location=LOCAL":                      "[]",
			"execution_location=REMOTE&q=P6":                "[p6]",
			"schedule_id=x":                                 "[]",
			"artifact_type=FILE":                            "[]",
			"creator=" + w.uids[state.RoleRunner] + "&q=p1": "[p1]",
			"creator=other":                                 "[]",
			"skill=a&skill_spec=b":                          "[]",
			"metadata[webhook_id]=x&webhook_id=y":           "[]",
			"q=" + ids[3]:                                   "[p3]",
			"ancestor_run_id=" + ids[3]:                     "[]",
			"created_after=2000-01-01T00:00:00Z&limit=1":    "[p0]",
			"created_before=2000-01-01T00:00:00%2B02:00":    "[]",
			"unknown=1&limit=500&factory_only=false":        "[p0 p6 p5 p4 p3 p2 p1]",
			"factory_only=true":                             "[]",
		} {
			if got, _ := list(query); fmt.Sprint(got) != want && !(want == "[]" && len(got) == 0) {
				w.t.Errorf("%s: %v, want %s", query, got, want)
			}
		}
		var all []string
		for cursor := ""; ; {
			page, next := list("limit=2&cursor=" + cursor)
			all = append(all, page...)
			if cursor = next; cursor == "" {
				break
			}
			w.create(`{"prompt": "new"}`)
		}
		if fmt.Sprint(all) != "[p0 p6 p5 p4 p3 p2 p1]" {
			w.t.Errorf("pages: %v", all)
		}
		for query, name := range map[string]string{ // at its limit, and one past it
			"name=%s": "name 200", "model_id=%s": "model_id 200", "creator=%s": "creator 200", "executor=%s": "executor 200", "environment_id=%s": "environment_id 200",
			"skill=%s": "skill 500", "skill_spec=%s": "skill_spec 500", "automation_id=%s": "automation_id 200", "webhook_id=%s": "webhook_id 200",
			"delivery_id=%s": "delivery_id 200", "q=%s": "q 200", "schedule_id=%s": "schedule_id 200",
		} {
			var n int
			fmt.Sscan(name, &name, &n)
			list(fmt.Sprintf(query, strings.Repeat("x", n)))
			w.call(state.RoleViewer, "GET", "/agent/runs?"+fmt.Sprintf(query, strings.Repeat("x", n+1)), "").problem(400, "invalid_request", name)
		}
		for part, n := range map[string]int{"state=QUEUED": 50, "task_status=failed": 50, "source=API": 50, "factory_uid=f": 100} {
			list(strings.Repeat(part+"&", n))
			name, _, _ := strings.Cut(part, "=")
			w.call(state.RoleViewer, "GET", "/agent/runs?"+strings.Repeat(part+"&", n+1), "").problem(400, "invalid_request", name)
		}
		_, cursor := list("limit=2")
		for query, name := range map[string]string{
			"limit=0": "limit", "limit=501": "limit", "limit=x": "limit", "sort_by=id": "sort_by", "sort_order=up": "sort_order", "state=DONE": "state",
			"task_status=x": "task_status", "created_after=yesterday": "created_after: want a time such as", "updated_after=1": "updated_after", "factory_only=maybe": "factory_only",
			"cursor=x": "cursor", "cursor=" + strings.Repeat("x", 4097): "cursor", "cursor=bnVsbA": "cursor", "cursor=" + cursor + "&sort_by=title": "cursor", "cursor=" + cursor + "&sort_order=asc": "cursor",
			"execution_location=MARS": "execution_location", "artifact_type=x": "artifact_type", "ancestor_run_id=x": "ancestor_run_id", "q=%00": "q", "q=%ff": "q", "metadata[]=x": "metadata", "metadata[a%20b]=x": "metadata",
			"name=" + strings.Repeat("x", 201): "name",
		} {
			w.call(state.RoleViewer, "GET", "/agent/runs?"+query, "").problem(400, "invalid_request", name)
		}
	})
}

func TestFollowupAndCancel(t *testing.T) {
	each(t, func(w *world) {
		id := w.create(`{"prompt": "first"}`)
		follow := func(message, want string) {
			w.t.Helper()
			body, _ := json.Marshal(map[string]string{"message": message})
			if v := w.call(state.RoleRunner, "POST", "/agent/runs/"+id+"/followups", string(body)).ok(); v["outcome"] != want || v["followup_id"] == "" {
				w.t.Errorf("follow-up: %v, want %s", v, want)
			}
		}
		follow("second", "queued_prompt")
		if got := w.get(id); got["prompt"] != "first" || got["submitted_prompt"] != "first\n\nsecond" {
			w.t.Errorf("after a follow-up the prompt is %q, and %q is submitted", got["prompt"], got["submitted_prompt"])
		}
		for _, body := range []string{`{}`, `{"message": ""}`, `{"message": " "}`, `{"message": 1}`, `{"message": "\u0000"}`} {
			w.call(state.RoleRunner, "POST", "/agent/runs/"+id+"/followups", body).problem(400, "invalid_request", "message")
		}
		cancel := func(id string) response { return w.call(state.RoleRunner, "POST", "/agent/runs/"+id+"/cancel", "") }
		if r := cancel(id); r.status != 200 || strings.TrimSpace(r.text) != `"`+id+`"` || r.header.Get("Content-Type") != "application/json" {
			w.t.Errorf("cancel: %d %q %v", r.status, r.text, r.header)
		}
		cancel(id).problem(400, "invalid_request", "CANCELLED")
		got := w.get(id)
		if got["state"] != "CANCELLED" || got["cancel_requested_at"] == nil || got["finished_at"] == nil {
			w.t.Errorf("cancelled: %v", got)
		}
		follow("third", "handoff_execution")
		if got := w.get(id); got["state"] != "QUEUED" || got["submitted_prompt"] != "third" || got["finished_at"] != nil || got["cancel_requested_at"] != nil {
			w.t.Errorf("reopened: %v", got)
		}
	})
}

func TestCancelOfARunInProgress(t *testing.T) {
	w := newWorld(t, statetest.Open(t, statetest.SQLite(t)))
	w.work(map[string]worker.Harness{"claude": {Command: []string{"sh", "-c", "echo begun; exec sleep 600"}, SameUser: true}})
	id := w.create(`{"prompt": "x", "config": {"harness": {"type": "claude"}}}`)
	statetest.Until(t, "the run is in progress", func() bool { return w.get(id)["state"] == "INPROGRESS" })

	began := time.Now()
	if r := w.call(state.RoleRunner, "POST", "/agent/runs/"+id+"/cancel", ""); r.status != 200 {
		t.Fatalf("cancel: %d %s", r.status, r.text)
	}
	if got := w.get(id); got["state"] != "CANCELLED" && time.Since(began) < 10*time.Second { // it waits no longer
		t.Errorf("run is %v", got)
	}
	statetest.Until(t, "the run is cancelled", func() bool { return w.get(id)["state"] == "CANCELLED" })
}

func TestConversationAndEvents(t *testing.T) {
	each(t, func(w *world) {
		w.work(map[string]worker.Harness{"claude": {Command: []string{"sh", "-c", `cat; echo; echo '{"type":"action","id":"1","category":"skill","name":"read_skill","input":{"skill_path":"a/SKILL.md","bundled_skill_id":"pr-comments"}}'; cat conversation.json; exit 3`}, SameUser: true}})
		id := w.create(`{"prompt": "first", "config": {"harness": {"type": "claude"}}}`)
		events := w.end(id)
		var names []string
		last := 0
		for line := range strings.Lines(events) {
			if name, ok := strings.CutPrefix(line, "event: "); ok {
				names = append(names, strings.TrimSpace(name))
			}
			if id, ok := strings.CutPrefix(line, "id: "); ok {
				last, _ = strconv.Atoi(strings.TrimSpace(id))
			}
		}
		// What the harness writes may come as several messages.
		if got := strings.Join(slices.Compact(names), " "); got != "state message state message state" {
			w.t.Errorf("events %s:\n%s", got, events)
		}
		for _, want := range []string{`id: 0` + "\n", `"text":"first"`, `"state":"CLAIMED"`, `"state":"INPROGRESS"`, `"state":"FAILED"`, `"error_code":"agent_process_failed"`} {
			if !strings.Contains(events, want) {
				w.t.Errorf("%s is not in:\n%s", want, events)
			}
		}
		rest := w.call(state.RoleViewer, "GET", "/agent/runs/"+id+"/events", "", "Last-Event-ID", "2").text
		if !strings.HasSuffix(events, rest) || !strings.HasPrefix(rest, "id: 3\n") {
			w.t.Errorf("resumed after 2:\n%s", rest)
		}
		if r := w.call(state.RoleViewer, "GET", "/agent/runs/"+id+"/events", "", "Last-Event-ID", strconv.Itoa(last)); r.status != 204 || r.text != "" {
			w.t.Errorf("resumed at the end: %d %s", r.status, r.text)
		}
		for _, bad := range []string{"x", "-1", "1.5", strconv.Itoa(last + 1), "99999999999999999999"} {
			w.call(state.RoleViewer, "GET", "/agent/runs/"+id+"/events", "", "Last-Event-ID", bad).problem(400, "invalid_request", "Last-Event-ID")
		}
		got := w.get(id)
		status := got["status_message"].(map[string]any)
		if got["state"] != "FAILED" || status["error_code"] != "agent_process_failed" || status["retryable"] != false || got["executor"].(map[string]any)["display_name"] != "tester" || !strings.HasPrefix(got["run_time"].(string), "PT") {
			w.t.Errorf("run %v", got)
		}

		w.call(state.RoleRunner, "POST", "/agent/runs/"+id+"/followups", `{"message": "and then?"}`).ok()
		w.end(id)
		second := w.create(`{"prompt": "another run", "conversation_id": "` + got["conversation_id"].(string) + `"}`)
		w.end(second)
		conv := w.call(state.RoleViewer, "GET", "/agent/runs/"+id+"/conversation", "").ok()
		steps := conv["steps"].([]any)
		if len(steps) != 2 || conv["conversation_id"] != got["conversation_id"] {
			w.t.Fatalf("conversation %v", conv)
		}
		text, _ := json.Marshal(steps[0].(map[string]any)["messages"])
		for _, want := range []string{`"role":"user"`, `"role":"assistant"`, `{"category":"skill","id":"1","input":{"bundled_skill_id":"pr-comments","skill_path":"a/SKILL.md"},"name":"read_skill","type":"action"}`} {
			if !strings.Contains(string(text), want) {
				w.t.Errorf("%s is not in %s", want, text)
			}
		}
		text, _ = json.Marshal(steps[1])
		if !strings.Contains(string(text), `and then?`) || !strings.Contains(string(text), `\"text\":\"first\"`) {
			w.t.Errorf("the second execution does not see the first: %s", text)
		}
		whole := w.call(state.RoleViewer, "GET", "/agent/conversations/"+got["conversation_id"].(string), "").ok()
		if len(whole["steps"].([]any)) != 3 {
			w.t.Errorf("whole conversation %v", whole)
		}
		for _, id := range []string{"x", state.NewRunID()} {
			w.call(state.RoleViewer, "GET", "/agent/conversations/"+id, "").problem(404, "resource_not_found")
		}
	})
}

func TestSkillCatalog(t *testing.T) {
	w := newWorld(t, statetest.Open(t, statetest.SQLite(t)))
	v := w.call(state.RoleViewer, "GET", "/agent/skills", "").ok()
	if skills := v["skills"].([]any); len(skills) != 14 || !strings.Contains(v["note"].(string), "not an availability manifest") {
		t.Errorf("catalog %v", v)
	}
}

func TestNothingTellsASecret(t *testing.T) {
	each(t, func(w *world) {
		const secret = "hunter2hunter2"
		id := w.create(`{"prompt": "x", "config": {"mcp_servers": {"a": {"command": "c", "env": {"K": "` + secret + `"}, "ENV": {"L": "` + secret + `"}}},
			"MCP_Servers": {"b": {"command": "c", "Headers": {"K": "` + secret + `"}}}}}`)
		w.work(nil)
		var all bytes.Buffer
		all.WriteString(w.end(id))
		for _, path := range []string{"", "/conversation", "/events"} {
			all.WriteString(w.call(state.RoleViewer, "GET", "/agent/runs/"+id+path, "").text)
		}
		all.WriteString(w.call(state.RoleViewer, "GET", "/agent/runs", "").text)
		if strings.Contains(all.String(), secret) {
			w.t.Errorf("the secret is told: %s", all.String())
		}
		r, err := w.store.Run(w.t.Context(), id)
		if err != nil || strings.Contains(string(r.Config), secret) {
			w.t.Errorf("the secret is stored in clear: %s %v", r.Config, err)
		}
	})
}
