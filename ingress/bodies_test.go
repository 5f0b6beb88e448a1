package ingress_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"millwright/bounds"
	"millwright/ingress"
	"millwright/state"
	"millwright/state/statetest"
)

// Announcing a large body holds nothing: honest senders of other webhooks are answered.
func TestAnnouncedBodiesHoldNoRoom(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		reg := prometheus.NewRegistry()
		w := newWorld(t, s, ingress.Config{InFlightBytes: 8 << 20, BodyTimeout: time.Hour, Registerer: reg})
		w.secret("GH", "gh")
		w.hook(signed("gh", "github", "GH"))
		w.hook(enabled("live"))
		for i := range 200 {
			body := []string{"", "x", strings.Repeat("x", 5000)}[i%3]
			w.raw("POST /webhooks/w/" + w.uids["gh"] + " HTTP/1.1\r\nHost: x\r\nContent-Length: 262144\r\n\r\n" + body)
		}
		for i := range 20 {
			want(t, w.deliver("live", fmt.Sprintf(`{"n":%d,"text":%q}`, i, strings.Repeat("y", 1000*i))), 202)
		}
		if held := gauge(t, reg, "millwright_ingress_in_flight_bytes"); held > 200*(16<<10) {
			t.Errorf("%v bytes are held", held)
		}
	})
}

// Large deliveries wait for each other. Small ones do not wait for them.
func TestLargeDeliveriesTakeTurns(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		b := bounds.New(bounds.Config{})
		w := newWorld(t, s, ingress.Config{Bounds: b})
		w.hook(enabled("live"))

		leave, ok := b.Large.EnterWith(t.Context(), "192.0.2.1", bounds.LargeInProgress)
		if !ok {
			t.Fatal("no slot")
		}

		answer := make(chan reply, 1)
		go func() {
			answer <- w.deliver("live", `{"text":"`+strings.Repeat("y", bounds.LargeDelivery)+`"}`)
		}()
		statetest.Until(t, "the large delivery waits", func() bool { return b.Large.Held() == 2 })
		want(t, w.deliver("live", `{"text":"small"}`), 202)

		select {
		case resp := <-answer:
			t.Errorf("a large delivery did not wait: %d", resp.StatusCode)
		default:
		}
		leave()
		large, _ := statetest.Receive(t, "the answer to the large delivery", answer)
		want(t, large, 202)
		if held := b.Large.Held(); held != 0 {
			t.Errorf("%d slots are held in the end", held)
		}
	})
}

// A body that breaks off counts as a failed authentication where nothing proved who sent it.
func TestBrokenBodiesAreCharged(t *testing.T) {
	w := onSQLite(t, ingress.Config{FailedAuthPerMinute: 3})
	w.secret("GH", "gh")
	w.hook(signed("gh", "github", "GH"))
	w.hook(enabled("live"))
	for _, c := range []struct {
		hook, authorization string
		last                int
	}{{"gh", "X-Nothing: here", 429}, {"live", "Authorization: Bearer " + tokenSecret, 400}} {
		status := 0
		for i := range 5 {
			c, r := w.raw("POST /webhooks/w/" + w.uids[c.hook] + " HTTP/1.1\r\nHost: x\r\n" + c.authorization + "\r\nContent-Length: 1000\r\n\r\n" + strings.Repeat("x", 100*i))
			if err := c.(*net.TCPConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
			status = w.answer(r).StatusCode
		}
		if status != c.last {
			t.Errorf("%s: the last of five broken bodies: %d, want %d", c.hook, status, c.last)
		}
	}
}

// pipes is a listener whose connections are in memory, so that they can be in a bubble.
type pipes struct {
	accept chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipes() *pipes { return &pipes{accept: make(chan net.Conn), closed: make(chan struct{})} }

func (l *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-l.accept:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipes) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (l *pipes) dial() net.Conn {
	mine, theirs := net.Pipe()
	l.accept <- theirs
	return mine
}

// Whatever does with the body of a request, and whatever it is of, the connection ends soon after the body
// stopped coming.
func TestEveryBodyHasADeadline(t *testing.T) {
	pages := http.NewServeMux()
	pages.HandleFunc("/unread", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") })
	pages.HandleFunc("/read", func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			w.WriteHeader(http.StatusBadRequest)
		}
	})
	pages.HandleFunc("/form", func(w http.ResponseWriter, r *http.Request) { _ = r.ParseForm() })
	pages.HandleFunc("/panic", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	framings := []string{
		"Content-Length: 1\r\n\r\n",
		"Content-Length: 100000\r\n\r\nx",
		"Transfer-Encoding: chunked\r\n\r\n5\r\nab",
	}

	inBubble(t, ingress.Config{}, func(w *world) {
		ln := newPipes()
		srv := ingress.NewServer(ingress.ServerConfig{Ingress: w.in, Fallback: pages})
		go func() { _ = srv.Serve(ln) }()
		defer srv.Close()

		for _, path := range []string{"/unread", "/read", "/form", "/panic", "/nothing/there", "/webhooks/w/wh_none"} {
			for _, method := range []string{"GET", "POST", "PUT"} {
				for _, framing := range framings {
					c := ln.dial()
					began := time.Now()
					fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: x\r\n%s", method, path, framing)
					_, _ = io.Copy(io.Discard, c)
					if took := time.Since(began); took > bounds.BodyTime+5*time.Second {
						w.t.Errorf("%s %s, %q: the connection ended after %v", method, path, framing, took)
					}
				}
			}
		}
	})
}

// An answer that nobody takes ends with the connection, and does not end a stream that waits.
func TestAnswersHaveADeadline(t *testing.T) {
	pages := http.NewServeMux()
	pages.HandleFunc("/large", func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, 1<<20)) })
	pages.HandleFunc("/late", func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(10 * time.Minute) // of the bubble
		io.WriteString(w, "at last")
	})
	inBubble(t, ingress.Config{}, func(w *world) {
		ln := newPipes()
		srv := ingress.NewServer(ingress.ServerConfig{Ingress: w.in, Fallback: pages})
		ended := make(chan time.Time, 1)
		srv.ConnState = func(_ net.Conn, s http.ConnState) {
			if s == http.StateClosed {
				ended <- time.Now()
			}
		}
		go func() { _ = srv.Serve(ln) }()
		defer srv.Close()
		began := time.Now()
		fmt.Fprintf(ln.dial(), "GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
		if took := (<-ended).Sub(began); took > bounds.WriteTime+2*time.Minute {
			w.t.Errorf("ended after %v", took)
		}

		c := ln.dial()
		fmt.Fprintf(c, "GET /late HTTP/1.1\r\nHost: x\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || resp.StatusCode != http.StatusOK {
			w.t.Errorf("a late answer: %v %v", resp, err)
		}
		synctest.Wait()
	})
}

// Requests over one connection to all kinds of handlers leave no deadline behind.
func TestDeadlinesEndWithTheRequest(t *testing.T) {
	pages := http.NewServeMux()
	pages.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		time.Sleep(20 * time.Second) // of the bubble
		if r.Context().Err() != nil {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	inBubble(t, ingress.Config{}, func(w *world) {
		w.hook(enabled("live"))
		ln := newPipes()
		srv := ingress.NewServer(ingress.ServerConfig{Ingress: w.in, Fallback: pages})
		go func() { _ = srv.Serve(ln) }()
		defer srv.Close()
		c := ln.dial()
		r := bufio.NewReader(c)
		for i := range 12 {
			path, want := "/page", 200
			if i%3 == 2 {
				path, want = "/webhooks/w/"+w.uids["live"], 202
			}
			go fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: 2\r\n\r\n%02d", path, tokenSecret, 10+i)
			resp, err := http.ReadResponse(r, nil)
			if err != nil || resp.StatusCode != want {
				w.t.Fatalf("request %d: %v %v", i, resp, err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
		}
	})
}

// Forty senders that take every connection they may leave some to others.
func TestConnectionsAreShared(t *testing.T) {
	w := onSQLite(t, ingress.Config{})
	w.hook(enabled("live"))
	ln, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	b := bounds.New(bounds.Config{Connections: 200})
	srv := ingress.NewServer(ingress.ServerConfig{Ingress: w.in, Bounds: b})
	defer srv.Close()
	go func() { _ = srv.Serve(ingress.Limit(ln, ingress.ServerConfig{Bounds: b})) }()
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	dial := func(from string) net.Conn {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: statetest.Patience}
		c, err := d.Dial("tcp", "127.0.0.1:"+port)
		if err != nil {
			t.Skipf("this system has no address %s: %v", from, err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	for i := range 400 {
		dial(fmt.Sprintf("127.0.2.%d", 1+i%40))
	}
	c := dial("127.0.9.9")
	fmt.Fprint(c, w.head("live", "Content-Length: 1")+"1")
	want(t, w.answer(bufio.NewReader(c)), 202)
}
