package dispatch

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"millwright/runs/wire"
	"millwright/state"
)

// serverUser is the name by which servers sign in to their embedded NATS.
const serverUser = "millwright-server"

// embed starts the embedded NATS server.
func (d *Dispatcher) embed() error {
	var secret [16]byte
	rand.Read(secret[:])
	d.password = hex.EncodeToString(secret[:])
	opts := &server.Options{
		ServerName:   "millwright-" + hex.EncodeToString(secret[:4]),
		DontListen:   true,
		NoSigs:       true,
		MaxPayload:   wire.MaxPayload,
		AuthTimeout:  5,
		PingInterval: wire.PingInterval,
		MaxPingsOut:  wire.MaxPings,
		CustomClientAuthentication: &gate{
			store: d.cfg.Store, password: d.password, log: d.cfg.Log,
		},
	}

	if d.cfg.Listen != "" {
		if err := d.listen(opts); err != nil {
			return err
		}
	}

	if len(d.cfg.Cluster) > 0 {
		if err := d.cluster(opts); err != nil {
			return err
		}
	}

	ns, err := server.NewServer(opts)
	if err != nil {
		return fmt.Errorf("nats: %w", err)
	}

	ns.SetLogger(&natsLog{log: d.cfg.Log}, false, false)
	d.embedded = ns
	ns.Start()
	if !ns.ReadyForConnections(10 * time.Second) {
		return fmt.Errorf("nats: the embedded server does not come up; is %q in use?", d.cfg.Listen)
	}

	return nil
}

// cluster adds the embedded server to a cluster. The servers need no certificates: each derives the same
// key from the shared master key, and all of them present and trust it.
func (d *Dispatcher) cluster(opts *server.Options) error {
	host, port, err := splitAddress(d.cfg.Cluster[0])
	if err != nil {
		return fmt.Errorf("nats: cluster address %q: %w", d.cfg.Cluster[0], err)
	}

	if err := probe(host, port); err != nil {
		return fmt.Errorf(
			"nats: cluster: %w: the first address is this server's own, the others are those of its peers",
			err,
		)
	}

	password := hex.EncodeToString(d.cfg.Store.DeriveKey("nats cluster password"))
	mutual, err := peerTLS(d.cfg.Store.DeriveKey("nats cluster key"))
	if err != nil {
		return fmt.Errorf("nats: cluster: %w", err)
	}

	opts.Cluster = server.ClusterOpts{
		Name: "millwright", Host: host, Port: port, Username: serverUser, Password: password, AuthTimeout: 5,
		TLSConfig: mutual, TLSTimeout: 5, NoAdvertise: true, PoolSize: 3,
	}
	for _, peer := range d.cfg.Cluster[1:] {
		if !strings.Contains(peer, "://") {
			peer = "nats://" + peer
		}

		u, err := url.Parse(peer)
		if err != nil || u.Port() == "" || u.Hostname() == "" {
			return fmt.Errorf("nats: cluster peer %q is not an address: want host:port", peer)
		}

		u.User = url.UserPassword(serverUser, password)
		opts.Routes = append(opts.Routes, u)
	}

	return nil
}

func (d *Dispatcher) listen(opts *server.Options) error {
	host, port, err := splitAddress(d.cfg.Listen)
	if err != nil {
		return fmt.Errorf("nats: listen address %q: %w", d.cfg.Listen, err)
	}
	if err := probe(host, port); err != nil {
		return fmt.Errorf("nats: %w", err)
	}

	opts.DontListen, opts.Host, opts.Port = false, host, port
	if d.cfg.Certificate == nil {
		if ip, err := netip.ParseAddr(host); err != nil && host != "localhost" || err == nil && !ip.IsLoopback() {
			return fmt.Errorf(
				"nats: a listener off loopback needs TLS, because workers' keys pass it: give a " +
					"certificate, or listen on 127.0.0.1",
			)
		}

		return nil
	}

	opts.TLS, opts.TLSTimeout = true, 5
	opts.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: d.cfg.Certificate}
	return nil
}

// probe returns the error of listening on an address: the embedded server only logs it, and gives up later.
func probe(host string, port int) error {
	l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(max(port, 0))))
	if err != nil {
		return err
	}
	return l.Close()
}

func splitAddress(address string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(strings.TrimPrefix(address, "nats://"))
	if err != nil {
		return "", 0, errors.New("want host:port")
	}

	port, err = strconv.Atoi(text)
	if err != nil || port < 0 || port > 65535 {
		return "", 0, errors.New("want host:port")
	}
	if port == 0 {
		port = server.RANDOM_PORT
	}
	if host == "" {
		host = "0.0.0.0"
	}

	return host, port, nil
}

// Addr returns the address of the embedded server for workers, or "" if it has none.
func (d *Dispatcher) Addr() string {
	if d.embedded == nil || d.cfg.Listen == "" {
		return ""
	}
	if a := d.embedded.Addr(); a != nil {
		return a.String()
	}
	return ""
}

// gate allows the server's own connections everything, and workers their own subjects (docs/contract.md,
// section 10).
type gate struct {
	store    *state.Store
	password string
	log      *slog.Logger
}

// Check reports whether a client may connect, and sets its permissions. The user name is the UID of an API
// key of role worker, the password its secret.
func (g *gate) Check(c server.ClientAuthentication) bool {
	opts := c.GetOpts()
	if opts.Username == serverUser {
		if subtle.ConstantTimeCompare([]byte(opts.Password), []byte(g.password)) == 0 {
			return false
		}

		c.RegisterUser(&server.User{Username: serverUser})
		return true
	}

	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Second)
	defer cancel()

	key, err := g.store.KeyBySecret(ctx, opts.Password)
	if err != nil || key.Role != state.RoleWorker || key.UID != opts.Username {
		if !errors.Is(err, state.ErrNotFound) && err != nil {
			g.log.Error("nats: API key look-up", "error", err)
		}
		return false
	}

	c.RegisterUser(&server.User{Username: key.UID, Permissions: Permissions(key.UID)})
	return true
}

// Permissions returns the permissions of the worker with this UID. An external NATS needs the same.
func Permissions(uid string) *server.Permissions {
	return &server.Permissions{
		Publish: &server.SubjectPermission{Allow: []string{wire.Subject(uid, ">")}},
		Subscribe: &server.SubjectPermission{
			Allow: []string{
				wire.Subject(uid, wire.VerbCancel),
				wire.Subject(uid, wire.VerbWake),
				wire.Inbox(uid) + ".>",
			},
		},
	}
}

// natsLog passes the warnings of the embedded server to our log, and drops its other messages.
type natsLog struct{ log *slog.Logger }

func (l *natsLog) Noticef(string, ...any) {}
func (l *natsLog) Debugf(string, ...any)  {}
func (l *natsLog) Tracef(string, ...any)  {}
func (l *natsLog) Warnf(format string, args ...any) {
	l.log.Debug("nats: " + fmt.Sprintf(format, args...))
}

func (l *natsLog) Errorf(format string, args ...any) {
	l.log.Warn("nats: " + fmt.Sprintf(format, args...))
}

func (l *natsLog) Fatalf(format string, args ...any) {
	l.log.Error("nats: " + fmt.Sprintf(format, args...))
}
