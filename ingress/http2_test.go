package ingress_test

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"millwright/ingress"
	"millwright/state/statetest"
)

// h2 is a connection on which frames of HTTP/2 (RFC 9113) are written by hand.
type h2 struct {
	net.Conn
	in *bufio.Reader
}

const (
	frameData         = 0
	frameHeaders      = 1
	frameReset        = 3
	frameSettings     = 4
	frameContinuation = 9
	endStream         = 1
	endHeaders        = 4
)

func frame(kind, flags byte, stream uint32, payload []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(payload)<<8)|uint32(kind))
	b = append(b, flags)
	return append(binary.BigEndian.AppendUint32(b, stream), payload...)
}

// headers is a header block for a POST, without Huffman codes or a dynamic table.
func headers(path, token string) []byte {
	b := []byte{0x83, 0x87, 0x04, byte(len(path))} // :method POST, :scheme https, :path literal
	b = append(b, path...)
	b = append(append(b, 0x01, 1), 'x') // :authority
	if token != "" {
		b = append(b, 0x0f, 0x08, byte(len("Bearer "+token))) // authorization, static index 23
		b = append(b, "Bearer "+token...)
	}
	return b
}

// serveTLS serves w's ingress over TLS and returns a dialer for HTTP/2.
func (w *world) serveTLS() func(settings ...byte) h2 {
	w.t.Helper()
	certs := httptest.NewUnstartedServer(nil)
	certs.StartTLS()
	w.t.Cleanup(certs.Close)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	cfg := ingress.ServerConfig{Ingress: w.in, TLS: true}
	srv := ingress.NewServer(cfg)
	srv.TLSConfig = &tls.Config{Certificates: certs.TLS.Certificates}
	w.t.Cleanup(func() { srv.Close() })
	go func() { _ = srv.ServeTLS(ingress.Limit(ln, cfg), "", "") }()
	return func(settings ...byte) h2 {
		w.t.Helper()
		c, err := tls.Dial("tcp", ln.Addr().String(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
		if err != nil {
			w.t.Fatal(err)
		}
		w.t.Cleanup(func() { c.Close() })
		_ = c.SetDeadline(time.Now().Add(2 * time.Minute))
		if p := c.ConnectionState().NegotiatedProtocol; p != "h2" {
			w.t.Fatalf("protocol %q", p)
		}
		_, _ = io.WriteString(c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
		_, _ = c.Write(frame(frameSettings, 0, 0, settings))
		return h2{c, bufio.NewReader(c)}
	}
}

// status reads frames until the answer on a stream begins, and returns its status.
func (c h2) status(t *testing.T, stream uint32) string {
	t.Helper()
	for {
		var head [9]byte
		if _, err := io.ReadFull(c.in, head[:]); err != nil {
			t.Fatalf("no answer: %v", err)
		}
		payload := make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
		if _, err := io.ReadFull(c.in, payload); err != nil {
			t.Fatal(err)
		}
		if head[3] == frameHeaders && binary.BigEndian.Uint32(head[5:]) == stream && len(payload) > 0 {
			switch payload[0] {
			case 0x8d:
				return "404"
			case 0x8c:
				return "400"
			case 0x48: // :status, literal
				if payload[1] == 3 {
					return string(payload[2:5])
				}
				return "other" // Huffman
			}
			return "other"
		}
	}
}

// ends reports whether the server ends the connection, after any answer.
func (c h2) ends() bool {
	_, err := io.Copy(io.Discard, c.in)
	ne, ok := err.(net.Error)
	return !ok || !ne.Timeout()
}

// endsOrAnswers reports whether the server ends the connection or answers on a stream.
func (c h2) endsOrAnswers(stream uint32) bool {
	for {
		var head [9]byte
		_, err := io.ReadFull(c.in, head[:])
		if err == nil {
			_, err = io.CopyN(io.Discard, c.in, int64(head[0])<<16|int64(head[1])<<8|int64(head[2]))
		}
		if err != nil {
			ne, ok := err.(net.Error)
			return !ok || !ne.Timeout()
		}

		if head[3] == frameHeaders && binary.BigEndian.Uint32(head[5:]) == stream {
			return true
		}
	}
}

// Go: opening and resetting streams as fast as possible (CVE-2023-39325).
func TestCVE_2023_39325(t *testing.T) {
	w := onSQLite(t, ingress.Config{DeliveriesPerMinute: -1, FailedAuthPerMinute: -1})
	w.hook(enabled("live"))
	dial := w.serveTLS()
	c := dial()
	block := headers("/webhooks/w/"+w.uids["live"], "")
	var burst []byte
	for i := range uint32(50_000) {
		burst = append(burst, frame(frameHeaders, endHeaders, 2*i+1, block)...)
		burst = append(burst, frame(frameReset, 0, 2*i+1, []byte{0, 0, 0, 8})...)
		if len(burst) > 64<<10 {
			if _, err := c.Write(burst); err != nil {
				break
			}
			burst = burst[:0]
		}
	}
	// The server ends the connection, or has kept up with a slow sender and answers.
	const next = 100_001
	_, _ = c.Write(frame(frameHeaders, endHeaders|endStream, next, headers("/webhooks/w/x", "")))
	if !c.endsOrAnswers(next) {
		t.Error("the connection neither ends nor answers")
	}
	after := dial()
	_, _ = after.Write(frame(frameHeaders, endHeaders|endStream, 1, headers("/webhooks/w/x", "")))
	if s := after.status(t, 1); s != "404" {
		t.Errorf("afterwards: %s", s)
	}
}

// Go: headers that never end (CVE-2023-45288).
func TestCVE_2023_45288(t *testing.T) {
	w := onSQLite(t, ingress.Config{})
	w.hook(enabled("live"))
	c := w.serveTLS()()
	_, _ = c.Write(frame(frameHeaders, 0, 1, headers("/webhooks/w/"+w.uids["live"], "")))
	literal := append([]byte{0x00, 1, 'a', 0x7f, 0x81, 0x7e}, []byte(strings.Repeat("b", 127+16129))...) // a: bbb…
	for range 10_000 {
		if _, err := c.Write(frame(frameContinuation, 0, 1, literal[:min(len(literal), 16384)])); err != nil {
			break
		}
	}
	if !c.ends() {
		t.Error("the connection goes on")
	}
}

// Streams that never open their window for the answer hold none of the room for bodies.
func TestClosedWindowsHoldNoRoom(t *testing.T) {
	reg := prometheus.NewRegistry()
	w := onSQLite(t, ingress.Config{InFlightBytes: 1 << 20, DeliveriesPerMinute: -1, Registerer: reg})
	w.hook(enabled("live"))
	c := w.serveTLS()(0, 4, 0, 0, 0, 0) // SETTINGS_INITIAL_WINDOW_SIZE 0
	body := []byte(`"` + strings.Repeat("x", 16000) + `"`)
	for i := range uint32(40) {
		body[1], body[2] = 'a'+byte(i%26), 'a'+byte(i/26)
		_, _ = c.Write(frame(frameHeaders, endHeaders, 2*i+1, headers("/webhooks/w/"+w.uids["live"], tokenSecret)))
		_, _ = c.Write(frame(frameData, endStream, 2*i+1, body))
		if s := c.status(t, 2*i+1); s != "202" && s != "other" {
			t.Fatalf("stream %d: %s", i, s)
		}
	}
	statetest.Until(t, "the room of all bodies is free", func() bool {
		return gauge(t, reg, "millwright_ingress_in_flight_bytes") == 0
	})
	if n := len(w.rows("live")); n != 40 {
		t.Errorf("%d deliveries", n)
	}
	want(t, w.deliver("live", `1`), 202) // others are served
}
