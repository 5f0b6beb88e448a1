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

// ServerConfig says how to serve the ingress over HTTP. Ingress is required.
type ServerConfig struct {
	Ingress *Ingress
	// Fallback serves what is not the ingress's; nil answers 404.
	Fallback http.Handler
	// TrustedProxies are believed when they say who the sender is, and may have any number of connections.
	TrustedProxies []netip.Prefix
	// Bounds are those of the server; nil: it has its own.
	Bounds *bounds.Bounds
	// TLS says that the connections are TLS: those beyond the bounds are closed without a word.
	TLS bool
	// Log receives what the server has to say; nil discards it.
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
				// It may have had a Content-Length too, which net/http hides: then what follows is suspect, and
				// the connection must end (RFC 9112, section 6.3).
				w.Header().Set("Connection", "close")
			}

			if r.ProtoMajor == 2 { // of HTTP/1 a connection has one request at a time
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
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug), // faults of senders, mostly
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: bounds.MaxStreams,
			SendPingTimeout:      30 * time.Second,
			PingTimeout:          15 * time.Second,
			WriteByteTimeout:     15 * time.Second,
		},
	}
}

// Limit returns a listener that bounds the connections of ln, in all and of each sender. A connection
// beyond that is told 503 with Retry-After, unless it is TLS, and closed.
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

const overCapacity = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: 32\r\n\r\n{\"error\":\"service unavailable\"}\n"

// Accept waits for a connection that there is room for.
func (l *limited) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}

		sender, trusted := api.SenderNetwork(c.RemoteAddr().String(), l.cfg.TrustedProxies)
		if trusted {
			sender = "" // it has no share
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

// counted is a connection that gives its place back when it is closed.
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

// CloseWrite ends the sending side, where the connection can, so that the last answer arrives before the
// end. A connection that lingers so is the sender's no more.
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

// Shutdown ends srv in good order: it takes no new connections, waits for requests under way until ctx
// ends, and then closes what is left.
func Shutdown(ctx context.Context, srv *http.Server) error {
	if err := srv.Shutdown(ctx); err != nil {
		_ = srv.Close()
		return err
	}
	return nil
}
