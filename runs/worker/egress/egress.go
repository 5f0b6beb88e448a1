// Package egress is the way from a run's sandbox to the network: a proxy that passes TLS to named hosts, and
// nothing else.
//
// A client sends CONNECT NAME:443 and begins TLS. The proxy passes the connection on if the name is on the
// list, the server name in the client's TLS hello is the same, and the address that it dials is public.
package egress

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Bounds of a proxy.
const (
	maxConnections = 64               // at once
	maxRequest     = 8 << 10          // bytes of a request with its header
	requestTime    = 10 * time.Second // from the connection to the request, and from the answer to the whole hello
	dialTime       = 15 * time.Second
	idleTime       = 15 * time.Minute // without a byte in either direction
	maxTold        = 20               // refusals that are reported
)

// Port is the only port that the proxy connects to.
const Port = "443"

// Refusal is a connection that the proxy refused.
type Refusal struct {
	Host   string // a host name, or empty when the client gave none
	Reason string
}

// Config is the settings of a Proxy. Its zero value refuses every connection.
type Config struct {
	// Names are the hosts that clients may reach, as CheckName accepts them.
	Names []string
	// Refused is called for the first refusals, each once.
	Refused func(Refusal)
	// Resolver finds the addresses of hosts; nil: the system's.
	Resolver *net.Resolver
}

// Proxy passes connections of one run to the hosts of its list.
type Proxy struct {
	cfg   Config
	slots chan struct{}

	mu   sync.Mutex
	told map[Refusal]bool
}

// New returns a proxy that takes connections once Serve is called.
func New(cfg Config) *Proxy {
	return &Proxy{cfg: cfg, slots: make(chan struct{}, maxConnections), told: map[Refusal]bool{}}
}

// Serve takes connections from ln until ctx ends. It then closes ln and all connections, and returns.
func (p *Proxy) Serve(ctx context.Context, ln net.Listener) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	stop := context.AfterFunc(ctx, func() { ln.Close() })
	defer stop()

	var clients sync.WaitGroup
	defer clients.Wait()

	for {
		client, err := ln.Accept()
		if ctx.Err() != nil {
			if err == nil {
				client.Close()
			}
			return
		}
		if err != nil { // as when the process has no more descriptors
			select {
			case <-ctx.Done():
				return
			case <-time.After(100 * time.Millisecond):
			}
			if errors.Is(err, net.ErrClosed) {
				return
			}
			continue
		}

		select {
		case p.slots <- struct{}{}:
			clients.Go(func() {
				defer func() { <-p.slots }()
				p.serve(ctx, client)
			})
		default:
			why := fmt.Sprintf("more than %d connections at once", maxConnections)
			answer(client, http.StatusServiceUnavailable, why)
			client.Close()
		}
	}
}

// refused is the reason why a connection is not passed on, for the client and the conversation.
type refused struct {
	status int
	host   string
	reason string
}

func (r *refused) Error() string { return r.reason }

// serve serves one client.
func (p *Proxy) serve(ctx context.Context, client net.Conn) {
	defer client.Close()

	stop := context.AfterFunc(ctx, func() { client.Close() })
	defer stop()

	host, in, err := p.request(client)
	if err != nil {
		p.refuse(client, err)
		return
	}

	server, err := p.dial(ctx, host)
	if err != nil {
		p.refuse(client, err)
		return
	}
	defer server.Close()

	stopServer := context.AfterFunc(ctx, func() { server.Close() })
	defer stopServer()

	client.SetDeadline(time.Now().Add(requestTime))
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}

	name, hello, err := readHello(in.Reader, client)
	switch {
	case err != nil:
		p.tell(Refusal{host, err.Error()})
		return
	case name != host:
		p.tell(Refusal{host, fmt.Sprintf("the TLS connection names another host, %s", shown(name))})
		return
	}

	if _, err := server.Write(hello); err == nil {
		client.SetDeadline(time.Time{})
		in.limit.N = math.MaxInt64
		join(client, in.Reader, server)
	}
}

// input is what a client sends, up to a limit.
type input struct {
	*bufio.Reader
	limit *io.LimitedReader
}

// request reads the request of a client, and returns the host that it may connect to, and what follows.
func (p *Proxy) request(client net.Conn) (host string, in input, err error) {
	client.SetDeadline(time.Now().Add(requestTime))
	in.limit = &io.LimitedReader{R: client, N: maxRequest}
	in.Reader = bufio.NewReaderSize(in.limit, maxRequest)
	r, err := http.ReadRequest(in.Reader)
	switch {
	case err != nil && in.limit.N <= 0:
		return "", in, &refused{http.StatusRequestHeaderFieldsTooLarge, "", "the request to the proxy is too long"}
	case err != nil:
		return "", in, &refused{http.StatusBadRequest, "", "the request to the proxy is not HTTP"}
	case r.Method != http.MethodConnect:
		return "", in, &refused{
			http.StatusForbidden, hostOf(r.URL.Host),
			"plain HTTP does not leave the sandbox: use https",
		}
	case r.ContentLength > 0, len(r.TransferEncoding) > 0, len(r.Header["Content-Length"]) > 0:
		return "", in, &refused{http.StatusBadRequest, "", "CONNECT has no body"}
	}

	in.limit.N = maxHello
	host, err = p.target(r.RequestURI)
	return host, in, err
}

// target returns the host of a CONNECT request.
func (p *Proxy) target(target string) (string, error) {
	name, port, err := net.SplitHostPort(target)
	if err != nil {
		return "", &refused{http.StatusBadRequest, "", "CONNECT needs NAME:443"}
	}

	host := strings.ToLower(name)
	switch err := CheckName(host); {
	case isAddress(host):
		return "", &refused{http.StatusForbidden, "", "an IP address in place of a name"}
	case err != nil:
		return "", &refused{http.StatusForbidden, "", "CONNECT needs NAME:443"}
	case port != Port:
		return "", &refused{http.StatusForbidden, host, "only port 443 is reached"}
	case !slices.Contains(p.cfg.Names, host):
		return "", &refused{http.StatusForbidden, host, "the host is not on the list of the sandbox"}
	}
	return host, nil
}

// errPrivate is the error of a dial to an address that is not public.
var errPrivate = errors.New("its address is not public")

// dial connects to a host. The address is checked by the dial itself, after the name is resolved.
func (p *Proxy) dial(ctx context.Context, host string) (net.Conn, error) {
	dialer := &net.Dialer{
		Timeout:  dialTime,
		Resolver: p.cfg.Resolver,
		Control: func(_, dialled string, _ syscall.RawConn) error {
			if !public(dialled) {
				return errPrivate
			}
			return nil
		},
	}

	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(host, Port))
	var unknown *net.DNSError
	switch {
	case err == nil:
		return conn, nil
	case errors.Is(err, errPrivate):
		return nil, &refused{http.StatusForbidden, host, errPrivate.Error()}
	case errors.As(err, &unknown):
		return nil, &refused{http.StatusBadGateway, host, "its name cannot be resolved"}
	}
	return nil, &refused{http.StatusBadGateway, host, "it cannot be reached"}
}

// refuse answers a client whose connection is not passed on, and reports it.
func (p *Proxy) refuse(client net.Conn, err error) {
	var r *refused
	if !errors.As(err, &r) {
		return
	}
	p.tell(Refusal{r.host, r.reason})

	text := r.reason
	if r.host != "" {
		text = r.host + ": " + text
	}
	answer(client, r.status, text)
}

// answer answers a client with an error, and lets it read the answer.
func answer(client net.Conn, status int, text string) {
	text = "millwright: " + text + "\n"
	client.SetDeadline(time.Now().Add(time.Second))
	fmt.Fprintf(client, "HTTP/1.1 %d %s\r\n"+
		"Content-Type: text/plain\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		status, http.StatusText(status), len(text), text)
	if half, ok := client.(interface{ CloseWrite() error }); ok {
		half.CloseWrite()
		io.CopyN(io.Discard, client, maxRequest)
	}
}

// tell reports a refusal that was not reported before, unless there were many.
func (p *Proxy) tell(r Refusal) {
	p.mu.Lock()
	known := p.told[r] || len(p.told) >= maxTold
	if !known {
		p.told[r] = true
	}
	p.mu.Unlock()

	if !known && p.cfg.Refused != nil {
		p.cfg.Refused(r)
	}
}

// join passes bytes between a client and a server until both have said all, or nothing came for long.
func join(client net.Conn, in io.Reader, server net.Conn) {
	quiet := time.AfterFunc(idleTime, func() { client.Close(); server.Close() })
	defer quiet.Stop()

	var wg sync.WaitGroup
	pass := func(to net.Conn, from io.Reader) {
		if _, err := io.Copy(watched{to, quiet}, from); err != nil {
			client.Close()
			server.Close()
			return
		}
		if half, ok := to.(interface{ CloseWrite() error }); ok {
			half.CloseWrite()
		}
	}
	wg.Go(func() { pass(server, in) })
	wg.Go(func() { pass(client, server) })
	wg.Wait()
}

// watched is a writer that delays a timer with each byte.
type watched struct {
	io.Writer
	quiet *time.Timer
}

func (w watched) Write(b []byte) (int, error) {
	w.quiet.Reset(idleTime)
	return w.Writer.Write(b)
}
