package ingress_test

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"millwright/bounds"
	"millwright/ingress"
	"millwright/state"
	"millwright/state/statetest"
)

// head is the start of a raw request to the named webhook, headers to follow.
func (w *world) head(name string, headers ...string) string {
	return "POST /webhooks/w/" + w.uids[name] + " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + tokenSecret + "\r\n" + strings.Join(headers, "\r\n") + "\r\n\r\n"
}

// An answer that is given before the body's end comes at once, and the connection ends: the test never
// sends the body that was announced.
func TestAnswersBeforeTheBodysEnd(t *testing.T) {
	w := onSQLite(t, ingress.Config{DeliveriesPerMinute: 3, FailedAuthPerMinute: 9})
	w.hook(enabled("live"))
	w.hook(enabled("spent"))
	w.secret("GH", "gh")
	w.hook(signed("gh", "github", "GH"))
	for i := range 3 {
		want(t, w.deliver("spent", fmt.Sprint(i)), 202)
	}
	uid := w.uids["live"]
	for _, c := range []struct {
		name, request string
		want          int
	}{
		{"unknown", "POST /webhooks/w/x HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n", 404},
		{"method", "PUT /webhooks/w/" + uid + " HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n", 405},
		{"no token", "POST /webhooks/w/" + uid + " HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n", 401},
		{"no token, chunked", "POST /webhooks/w/" + uid + " HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", 401},
		{"no token, expecting", "POST /webhooks/w/" + uid + " HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 100\r\n\r\n", 401},
		{"too large", w.head("live", "Content-Length: 262145"), 413},
		{"too large, expecting", w.head("live", "Expect: 100-continue", "Content-Length: 262145"), 413},
		{"10 GiB", w.head("live", "Content-Length: 10737418240"), 413},
		{"too large, unsigned", w.head("gh", "Content-Length: 262145"), 413},
		{"budget", w.head("spent", "Content-Length: 100"), 429},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, r := w.raw(c.request)
			a := w.answer(r)
			if a.StatusCode != c.want || !a.Close {
				t.Errorf("%d, closes %t; want %d and the end", a.StatusCode, a.Close, c.want)
			}
			w.closed(r)
		})
	}
}

// A sender that continues to send gets the answer too, and no reset.
func TestAnswerSurvivesASenderThatGoesOn(t *testing.T) {
	w := onSQLite(t, ingress.Config{DeliveriesPerMinute: -1})
	w.hook(enabled("live"))
	for range 20 {
		c, r := w.raw(w.head("live", "Transfer-Encoding: chunked"))
		go func() {
			chunk := "10000\r\n" + strings.Repeat("1", 0x10000) + "\r\n"
			for range 64 {
				if _, err := io.WriteString(c, chunk); err != nil {
					return
				}
			}
		}()
		want(t, w.answer(r), 413)
		c.Close()
	}
	if rows := w.rows("live"); len(rows) != 20 || *rows[0].Size != ingress.MaxBody+1 {
		t.Errorf("%d rows", len(rows))
	}
}

func TestContinueIsSentOnlyWhenTheBodyIsWanted(t *testing.T) {
	w := onSQLite(t, ingress.Config{})
	w.hook(enabled("live"))
	c, r := w.raw(w.head("live", "Expect: 100-continue", "Content-Length: 2"))
	a := w.answer(r)
	want(t, a, 100)
	if _, err := io.WriteString(c, "{}"); err != nil {
		t.Fatal(err)
	}
	want(t, w.answer(r), 202)
}

func TestBrokenTransfers(t *testing.T) {
	w := onSQLite(t, ingress.Config{BodyTimeout: 200 * time.Millisecond, DeliveriesPerMinute: -1})
	w.hook(enabled("live"))
	for name, request := range map[string]string{
		"short":             w.head("live", "Content-Length: 100") + `{}`,
		"slow":              w.head("live", "Content-Length: 100") + `{`,
		"chunk size":        w.head("live", "Transfer-Encoding: chunked") + "zz\r\n{}\r\n0\r\n\r\n",
		"bare LF in chunks": w.head("live", "Transfer-Encoding: chunked") + "2\n{}\n0\n\n",
		"cut chunk":         w.head("live", "Transfer-Encoding: chunked") + "5\r\n{}",
	} {
		t.Run(name, func(t *testing.T) {
			c, r := w.raw(request)
			if name == "short" || name == "cut chunk" {
				if err := c.(*net.TCPConn).CloseWrite(); err != nil {
					t.Fatal(err)
				}
			}
			a := w.answer(r)
			if a.StatusCode != 400 || !a.Close {
				t.Errorf("%d, closes %t", a.StatusCode, a.Close)
			}
			w.closed(r)
		})
	}
	if n := len(w.rows("live")); n != 0 {
		t.Errorf("broken transfers are in the log: %d rows", n)
	}
}

// Requests that net/http itself refuses or joins: never two requests, never a misread one.
func TestMalformedRequests(t *testing.T) {
	w := onSQLite(t, ingress.Config{DeliveriesPerMinute: -1})
	uid := w.hook(enabled("live"))
	start := "POST /webhooks/w/" + uid + " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + tokenSecret + "\r\n"
	for _, c := range []struct {
		name, request string
		want          int
	}{
		{"negative length", start + "Content-Length: -1\r\n\r\n{}", 400},
		{"signed length", start + "Content-Length: +2\r\n\r\n{}", 400},
		{"20 digits", start + "Content-Length: 99999999999999999999\r\n\r\n{}", 400},
		{"two lengths", start + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} ", 400},
		{"gzip, chunked", start + "Transfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 501},
		{"xchunked", start + "Transfer-Encoding: xchunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 501},
		{"two transfer encodings", start + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 501},
		{"no host", "POST /webhooks/w/" + uid + " HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}", 400},
		{"space before colon", start + "X-A : b\r\nContent-Length: 2\r\n\r\n{}", 400},
		{"bad escape", "POST /webhooks/w/" + uid + "/%zz HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}", 400},
		{"header too large", start + "X-A: " + strings.Repeat("a", 64<<10) + "\r\nContent-Length: 2\r\n\r\n{}", 431},
		{"too many headers", start + strings.Repeat("X-A: b\r\n", 300) + "Content-Length: 2\r\n\r\n{}", 431},
		{"unknown expectation", start + "Expect: tea\r\nContent-Length: 2\r\n\r\n{}", 417},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, r := w.raw(c.request)
			a := w.answer(r)
			if a.StatusCode != c.want || !a.Close {
				t.Errorf("%d, closes %t; want %d and the end", a.StatusCode, a.Close, c.want)
			}
		})
	}
	_, r := w.raw(start + "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}")
	want(t, w.answer(r), 202)
	_, r = w.raw("POST /webhooks/w/" + uid + " HTTP/1.0\r\nAuthorization: Bearer " + tokenSecret + "\r\nContent-Length: 3\r\n\r\n[1]")
	want(t, w.answer(r), 202)
	if n := len(w.rows("live")); n != 2 {
		t.Errorf("%d rows, want 2", n)
	}
}

func TestPipelinedRequests(t *testing.T) {
	w := onSQLite(t, ingress.Config{})
	w.hook(enabled("live"))
	_, r := w.raw(w.head("live", "Content-Length: 1") + "1" + w.head("live", "Content-Length: 1") + "2" + w.head("live", "Content-Length: 1") + "1")
	first, second, third := w.answer(r), w.answer(r), w.answer(r)
	if first.StatusCode != 202 || second.StatusCode != 202 || first.deliveryID() == second.deliveryID() || third.deliveryID() != first.deliveryID() {
		t.Errorf("%q, %q, %q", first.body, second.body, third.body)
	}
}

// What follows a chunked request is never taken for another one: with a length too, a proxy may have counted
// it to the body (RFC 9112, section 6.3).
func TestNothingFollowsAChunkedRequest(t *testing.T) {
	w := onSQLite(t, ingress.Config{})
	w.hook(enabled("live"))
	for i, headers := range [][]string{{"Transfer-Encoding: chunked"}, {"Content-Length: 400", "Transfer-Encoding: chunked"}, {"Transfer-Encoding: chunked", "Content-Length: 0"}} {
		_, r := w.raw(w.head("live", headers...) + fmt.Sprintf("1\r\n%d\r\n0\r\n\r\n", i) + w.head("live", "Content-Length: 1") + "9")
		if a := w.answer(r); a.StatusCode != 202 || !a.Close {
			t.Errorf("%q: %d, closes %t", headers, a.StatusCode, a.Close)
		}
	}
	if n := len(w.rows("live")); n != 3 {
		t.Errorf("%d rows, want 3", n)
	}
}

// A sender that ends its side after the request still gets its 202.
func TestHalfClosedSender(t *testing.T) {
	w := onSQLite(t, ingress.Config{})
	w.hook(enabled("live"))
	c, r := w.raw(w.head("live", "Content-Length: 2") + "{}")
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	want(t, w.answer(r), 202)
}

func TestManyOneByteChunks(t *testing.T) {
	w := onSQLite(t, ingress.Config{})
	w.hook(enabled("live"))
	var b strings.Builder
	for range 250_000 {
		b.WriteString("1\r\n1\r\n")
	}
	_, r := w.raw(w.head("live", "Transfer-Encoding: chunked") + b.String() + "0\r\n\r\n")
	want(t, w.answer(r), 202)
}

func TestInFlightBytesAreBounded(t *testing.T) {
	reg := prometheus.NewRegistry()
	w := onSQLite(t, ingress.Config{InFlightBytes: 1 << 20, BodyTimeout: time.Hour, Registerer: reg})
	w.hook(enabled("live"))

	c, r := w.raw(w.head("live", "Content-Length: 262144") + `"` + strings.Repeat("x", 200_000))
	statetest.Until(t, "the first request holds room for what has arrived", func() bool {
		return gauge(t, reg, "millwright_ingress_in_flight_bytes") == 262144
	})

	a := w.deliver("live", `"`+strings.Repeat("x", 100_000)+`"`)
	want(t, a, 503)
	if a.Header.Get("Retry-After") == "" || a.body != `{"error":"service unavailable"}`+"\n" {
		t.Errorf("%v %q", a.Header, a.body)
	}
	want(t, w.deliver("live", `1`), 202)

	if _, err := io.WriteString(c, strings.Repeat("x", 62_142)+`"`); err != nil {
		t.Fatal(err)
	}
	want(t, w.answer(r), 202)
	want(t, w.deliver("live", `"`+strings.Repeat("x", 100_001)+`"`), 202)
}

func TestHTTP2(t *testing.T) {
	w := onSQLite(t, ingress.Config{DeliveriesPerMinute: 5, FailedAuthPerMinute: 2})
	w.hook(enabled("live"))
	srv := httptest.NewUnstartedServer(ingress.NewServer(ingress.ServerConfig{Ingress: w.in}).Handler)
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()
	send := func(method, path string, body io.Reader, headers ...string) reply {
		t.Helper()
		req, err := http.NewRequest(method, srv.URL+path, body)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(headers); i += 2 {
			req.Header.Add(headers[i], headers[i+1])
		}
		resp, err := srv.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		if resp.ProtoMajor != 2 {
			t.Fatal(resp.Proto)
		}
		return reply{resp, string(b)}
	}
	path, auth := "/webhooks/w/"+w.uids["live"], []string{"Authorization", "Bearer " + tokenSecret}
	want(t, send("POST", path, strings.NewReader(`{}`), auth...), 202)
	want(t, send("POST", path+"/x", strings.NewReader(`{}`), auth...), 404)
	want(t, send("PUT", path, strings.NewReader(`{}`), auth...), 405)
	want(t, send("POST", path, strings.NewReader(`{`), auth...), 400)
	want(t, send("POST", path, strings.NewReader(strings.Repeat("1", ingress.MaxBody+1)), auth...), 413)
	type body struct {
		io.Reader
		io.Closer
	}
	after := func(text string) io.Reader { // a body that goes no further than this
		r, _ := io.Pipe()
		return body{io.MultiReader(strings.NewReader(text), r), r}
	}
	want(t, send("POST", path, after("")), 401)
	want(t, send("POST", path, after(strings.Repeat("1", ingress.MaxBody+1)), auth...), 413)
	want(t, send("POST", path, strings.NewReader(`3`), auth...), 202)
	want(t, send("POST", path, after(""), auth...), 429)
	want(t, send("POST", path, strings.NewReader(`4`), "Authorization", "Bearer x"), 401)
	want(t, send("POST", path, strings.NewReader(`5`), auth...), 429)
}

func TestConnectionsOfASenderAreBounded(t *testing.T) {
	w := onSQLite(t, ingress.Config{})
	w.hook(enabled("live"))
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := ingress.NewServer(ingress.ServerConfig{Ingress: w.in})
	defer srv.Close()
	go func() {
		_ = srv.Serve(ingress.Limit(ln, ingress.ServerConfig{Bounds: bounds.New(bounds.Config{SenderConnections: 2})}))
	}()
	w.addr = ln.Addr().String()
	request := w.head("live", "Content-Length: 1") + "1"
	first, r1 := w.raw(request)
	want(t, w.answer(r1), 202)
	_, r2 := w.raw(request)
	want(t, w.answer(r2), 202)
	_, r3 := w.raw("")
	a := w.answer(r3)
	if a.StatusCode != 503 || a.Header.Get("Retry-After") != "1" {
		t.Errorf("%d %v", a.StatusCode, a.Header)
	}
	first.Close()
	statetest.Until(t, "the place of the closed connection is free", func() bool {
		c, err := net.Dial("tcp", w.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(statetest.Patience))
		_, _ = io.WriteString(c, request)
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		return err == nil && resp.StatusCode == 202
	})
}

func TestTLSConnectionIsServed(t *testing.T) { // CloseWrite must reach through the limited listener's connections
	w := onSQLite(t, ingress.Config{})
	w.hook(enabled("live"))
	certs := httptest.NewUnstartedServer(nil)
	certs.StartTLS()
	defer certs.Close()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := ingress.NewServer(ingress.ServerConfig{Ingress: w.in})
	srv.TLSConfig = &tls.Config{Certificates: certs.TLS.Certificates}
	defer srv.Close()
	go func() { _ = srv.ServeTLS(ingress.Limit(ln, ingress.ServerConfig{}), "", "") }()
	c, err := tls.Dial("tcp", ln.Addr().String(), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(statetest.Patience))
	_, _ = io.WriteString(c, w.head("live", "Content-Length: 262145"))
	r := bufio.NewReader(c)
	want(t, w.answer(r), 413)
	if _, err := r.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("%v", err)
	}
}

func TestClosedIngressAnswers503(t *testing.T) {
	each(t, ingress.Config{}, func(t *testing.T, w *world) {
		w.hook(enabled("live"))
		second, err := ingress.New(t.Context(), ingress.Config{Store: w.store})
		if err != nil {
			t.Fatal(err)
		}
		if !second.Ready() {
			t.Error("not ready")
		}
		if err := second.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.serve(second)
		for _, url := range []string{w.url("live"), "http://" + w.addr + "/webhooks/w/" + state.NewID("wh")} {
			r := w.post(url, `{}`, "Authorization", "Bearer "+tokenSecret)
			if r.StatusCode != 503 || r.Header.Get("Retry-After") == "" || second.Ready() {
				t.Errorf("%d %v", r.StatusCode, r.Header)
			}
		}
	})
}

func TestClosedStoreAnswers503(t *testing.T) {
	w := onSQLite(t, ingress.Config{})
	w.hook(enabled("live"))
	want(t, w.deliver("live", `1`), 202)
	if err := w.store.Close(); err != nil {
		t.Fatal(err)
	}
	for _, token := range []string{tokenSecret, "wrong"} {
		r := w.post(w.url("live"), `2`, "Authorization", "Bearer "+token)
		if r.StatusCode != 503 || r.Header.Get("Retry-After") == "" {
			t.Errorf("%d %v", r.StatusCode, r.Header)
		}
	}
}
