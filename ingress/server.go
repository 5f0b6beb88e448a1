package ingress

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"millwright/api"
	"millwright/bounds"
)

// ServerConfig configures the HTTP server of an ingress. Ingress is required.
type ServerConfig struct {
	Ingress *Ingress
	// Fallback answers requests to other paths; nil answers 404.
	Fallback http.Handler
	// TrustedProxies are the networks whose X-Forwarded-For is trusted. Their connections are not bounded.
	TrustedProxies []netip.Prefix
	// Bounds are the bounds of the server; nil: it has its own.
	Bounds *bounds.Bounds
	// TLS marks TLS connections: beyond the bounds they are closed without an answer.
	TLS bool
	// Log receives messages of the server; nil discards them.
	Log *slog.Logger
}

// NewServer returns a server for HTTP/1.1 and, over TLS, HTTP/2. Serve it on a listener from Limit.
func NewServer(cfg ServerConfig) *http.Server {
	limits := cfg.Bounds
	if limits == nil {
		limits = bounds.New(bounds.Config{})
	}

	senderOf := func(r *http.Request) string { return api.SenderOf(r, cfg.TrustedProxies).Key }
	fallback := cfg.Fallback
	if fallback == nil {
		fallback = http.NotFoundHandler()
	}

	fallback = limits.Guard(fallback, senderOf)
	log := cfg.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}

	return &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.ProtoMajor == 1 && len(r.TransferEncoding) > 0 {
				// The request may also have had a Content-Length, which net/http hides. Then the following
				// bytes are suspect, and the connection must be closed (RFC 9112, section 6.3).
				w.Header().Set("Connection", "close")
			}

			if r.ProtoMajor == 2 { // an HTTP/1 connection has one request at a time
				stream := limits.Streams.Hold(senderOf(r))
				defer stream.Release()

				if !stream.Grow(1) {
					bounds.Refuse(w)
					return
				}
			}

			if cfg.Ingress.Handles(r) {
				cfg.Ingress.ServeHTTP(w, r)
				return
			}

			fallback.ServeHTTP(w, r)
		}),
		ReadHeaderTimeout: bounds.HeaderTime,
		WriteTimeout:      bounds.AnswerTime,
		IdleTimeout:       bounds.IdleTime,
		MaxHeaderBytes:    bounds.MaxHeader,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug), // mostly faults of senders
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: bounds.MaxStreams,
			SendPingTimeout:      30 * time.Second,
			PingTimeout:          15 * time.Second,
			WriteByteTimeout:     15 * time.Second,
		},
	}
}

// Limit returns a listener that bounds the connections of ln, in all and for each sender. A connection
// beyond the bound gets a 503 with Retry-After, unless it uses TLS, and is closed.
func Limit(ln net.Listener, cfg ServerConfig) net.Listener {
	if cfg.Bounds == nil {
		cfg.Bounds = bounds.New(bounds.Config{})
	}
	return &limited{Listener: ln, cfg: cfg, room: cfg.Bounds.Connections}
}

type limited struct {
	net.Listener
	cfg  ServerConfig
	room *bounds.Pool
}

const overCapacity = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: " +
	"close\r\nContent-Type: application/json\r\nContent-Length: 32\r\n\r\n{\"error\":\"service " +
	"unavailable\"}\n"

// Accept returns the next connection within the bounds.
func (l *limited) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}

		sender, trusted := api.SenderNetwork(c.RemoteAddr().String(), l.cfg.TrustedProxies)
		if trusted {
			sender = "" // outside of the bounds
		}
		if l.room.Take(sender, 1) {
			return &counted{Conn: c, room: l.room, sender: sender}, nil
		}
		if !l.cfg.TLS {
			_ = c.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
			_, _ = c.Write([]byte(overCapacity))
		}

		_ = c.Close()
	}
}

// counted is a connection that frees its slot when closed.
type counted struct {
	net.Conn
	room *bounds.Pool

	mu     sync.Mutex
	sender string
	closed bool
}

// Close closes the connection.
func (c *counted) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.closed = true
		defer c.room.Give(c.sender, 1)
	}
	return c.Conn.Close()
}

// CloseWrite closes the sending side, if possible, so that the last answer arrives before the end. A
// lingering connection no longer counts for its sender.
func (c *counted) CloseWrite() error {
	c.disown()
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

func (c *counted) disown() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.room.Disown(c.sender, 1)
		c.sender = ""
	}
}

// Shutdown stops srv gracefully: it accepts no new connections, waits for requests in progress until ctx
// ends, and then closes the remaining connections.
func Shutdown(ctx context.Context, srv *http.Server) error {
	if err := srv.Shutdown(ctx); err != nil {
		_ = srv.Close()
		return err
	}
	return nil
}
