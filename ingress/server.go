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
)

// ServerConfig says how to serve the ingress over HTTP. Ingress is required.
type ServerConfig struct {
	Ingress *Ingress
	// Fallback serves what is not the ingress's; nil answers 404.
	Fallback http.Handler
	// TrustedProxies may have any number of connections.
	TrustedProxies []netip.Prefix
	// MaxConnections and MaxConnectionsPerSender bound the open connections. 0 means 10,000 and 256.
	MaxConnections, MaxConnectionsPerSender int
	// TLS says that the connections are TLS: those beyond the bounds are closed without a word.
	TLS bool
	// Log receives what the server has to say; nil discards it.
	Log *slog.Logger
}

// Deadlines and sizes of the server. They bound what a sender can hold before its request is judged.
const (
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 75 * time.Second
	maxHeaderBytes    = 32 << 10
	maxStreams        = 100 // of one HTTP/2 connection at a time
)

// NewServer returns a server for HTTP/1.1 and, over TLS, HTTP/2. It has no write timeout, since streams of
// the API may be long. Serve it on a listener from Limit.
func NewServer(cfg ServerConfig) *http.Server {
	fallback := cfg.Fallback
	if fallback == nil {
		fallback = http.NotFoundHandler()
	}
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
			if cfg.Ingress.Handles(r) {
				cfg.Ingress.ServeHTTP(w, r)
				return
			}
			fallback.ServeHTTP(w, r)
		}),
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug), // faults of senders, mostly
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: maxStreams,
			SendPingTimeout:      30 * time.Second,
			PingTimeout:          15 * time.Second,
			WriteByteTimeout:     15 * time.Second,
		},
	}
}

// Limit returns a listener that bounds the connections of ln, in all and of each sender. A connection
// beyond that is told 503 with Retry-After, unless it is TLS, and closed.
func Limit(ln net.Listener, cfg ServerConfig) net.Listener {
	l := &limited{Listener: ln, cfg: cfg, senders: map[string]int{}}
	if l.cfg.MaxConnections == 0 {
		l.cfg.MaxConnections = 10_000
	}
	if l.cfg.MaxConnectionsPerSender == 0 {
		l.cfg.MaxConnectionsPerSender = 256
	}
	return l
}

type limited struct {
	net.Listener
	cfg     ServerConfig
	mu      sync.Mutex
	open    int
	senders map[string]int
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
		if l.enter(sender, trusted) {
			return &counted{Conn: c, end: sync.OnceFunc(func() { l.end(sender) }), gone: sync.OnceFunc(l.gone)}, nil
		}
		if !l.cfg.TLS {
			_ = c.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
			_, _ = c.Write([]byte(overCapacity))
		}
		_ = c.Close()
	}
}

func (l *limited) enter(sender string, trusted bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open >= l.cfg.MaxConnections || !trusted && l.senders[sender] >= l.cfg.MaxConnectionsPerSender {
		return false
	}
	l.open++
	l.senders[sender]++
	return true
}

// end gives back the sender's place.
func (l *limited) end(sender string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.senders[sender]--; l.senders[sender] == 0 {
		delete(l.senders, sender)
	}
}

// gone gives back the place among all.
func (l *limited) gone() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
}

// counted is a connection that gives its places back when it is closed.
type counted struct {
	net.Conn
	end, gone func()
}

// Close closes the connection.
func (c *counted) Close() error {
	defer c.gone()
	defer c.end()
	return c.Conn.Close()
}

// CloseWrite ends the sending side, where the connection can, so that the last answer arrives before the
// end. A connection that lingers so is the sender's no more.
func (c *counted) CloseWrite() error {
	c.end()
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
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
