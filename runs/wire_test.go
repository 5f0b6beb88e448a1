package runs_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"millwright/api"
	"millwright/state"
	"millwright/state/statetest"
)

// wire sends the text of a request, and no more where it breaks off there, and returns the answer.
func (w *world) wire(text string, breaksOff bool) *http.Response {
	w.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.server.URL, "http://"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { conn.Close() })
	if _, err := io.WriteString(conn, strings.ReplaceAll(text, "\n", "\r\n")); err != nil {
		w.t.Fatal(err)
	}
	if breaksOff {
		conn.(*net.TCPConn).CloseWrite()
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp
}

// TestBrokenBodies sends bodies that do not arrive whole: it is the sender's mistake, and what is announced
// as too large is refused before it is sent.
func TestBrokenBodies(t *testing.T) {
	w := newWorld(t, statetest.Open(t, statetest.SQLite(t)))
	head := "POST /api/v1/agent/runs HTTP/1.1\nHost: x\nAuthorization: Bearer " + w.keys[state.RoleRunner] + "\nContent-Type: application/json\n"
	for rest, want := range map[string]int{
		"Transfer-Encoding: chunked\n\nzz\n{}\n0\n\n":                 400,
		"Content-Length: 100\n\n{\"prompt\": \"x\"}":                  400,
		"Expect: 100-continue\nContent-Length: 8388609\n\n":           413,
		"Transfer-Encoding: chunked\n\nf\n{\"prompt\": \"x\"}\n0\n\n": 200,
	} {
		resp := w.wire(head+rest, strings.HasSuffix(rest, "}"))
		text, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != want || want != 200 && resp.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%q: %d %s %v", rest, resp.StatusCode, text, err)
		}
	}
}

// TestEventStreamOpensAtOnce opens streams of a run in which nothing happens: the headers do not wait for
// the first event.
func TestEventStreamOpensAtOnce(t *testing.T) {
	w := newWorld(t, statetest.Open(t, statetest.SQLite(t)))
	id := w.create(`{"prompt": "x"}`)
	req, err := http.NewRequestWithContext(t.Context(), "GET", w.server.URL+api.Base+"/agent/runs/"+id+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+w.keys[state.RoleViewer])
	req.Header.Set("Last-Event-ID", "0")
	resp, err := w.server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	w.call(state.RoleRunner, "POST", "/agent/runs/"+id+"/cancel", "")
	text, err := io.ReadAll(resp.Body)
	if err != nil || !strings.HasPrefix(string(text), "id: 1\nevent: state\n") { // else a sign of life opened it
		t.Errorf("%s %v", text, err)
	}
}

// TestHead asks with HEAD: the answer is that to GET without its body, and ends where a stream would go on.
func TestHead(t *testing.T) {
	w := newWorld(t, statetest.Open(t, statetest.SQLite(t)))
	id := w.create(`{"prompt": "x"}`)
	for path, want := range map[string]string{"/agent/runs/" + id: "application/json", "/agent/runs/" + id + "/events": "text/event-stream", "/openapi.yaml": "application/yaml"} {
		r := w.call(state.RoleViewer, "HEAD", path, "")
		if ct := r.header.Get("Content-Type"); r.status != 200 || !strings.HasPrefix(ct, want) || r.text != "" {
			t.Errorf("%s: %d %s %q", path, r.status, ct, r.text)
		}
	}
	for path, want := range map[string]int{"/agent/runs/nothing": 404, "/nothing": 404, "/agent/runs/" + id + "/cancel": 405} {
		if r := w.call(state.RoleViewer, "HEAD", path, ""); r.status != want || r.text != "" {
			t.Errorf("%s: %d %q", path, r.status, r.text)
		}
	}
	if r := w.call("", "HEAD", "/agent/runs", ""); r.status != 401 {
		t.Errorf("without a key: %d", r.status)
	}
	r := w.call(state.RoleRunner, "DELETE", "/agent/runs", "")
	if r.problem(405, "invalid_request"); r.header.Get("Allow") != "GET, HEAD, POST" {
		t.Errorf("Allow: %s", r.header.Get("Allow"))
	}
}

// TestMalformedPlaces are refused: a condition that cannot be read is not left out, and no database is asked
// for what it cannot hold.
func TestMalformedPlaces(t *testing.T) {
	each(t, func(w *world) {
		for _, query := range []string{"name=%zz", "name=a;b"} {
			w.call(state.RoleViewer, "GET", "/agent/runs?"+query, "").problem(400, "invalid_request", "query")
		}
		w.call(state.RoleViewer, "GET", "/agent/runs?unknown=%00%ff", "").ok()
		id := w.create(`{"prompt": "x"}`)
		for _, bad := range []string{"%00", "%ff"} {
			w.call(state.RoleRunner, "POST", "/factory/"+bad+"/runs", `{"prompt": "x"}`).problem(404, "resource_not_found")
			for _, path := range []string{"runs/" + bad, "runs/" + id + "/attachments/" + bad, "conversations/" + bad} {
				w.call(state.RoleViewer, "GET", "/agent/"+path, "").problem(404, "resource_not_found")
			}
		}
		w.call(state.RoleRunner, "POST", "/agent/runs", `{"prompt": "x", "agent_identity_uid": "agt_\u0000"}`).problem(400, "invalid_request", "agent_identity_uid")
	})
}
