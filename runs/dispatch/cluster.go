package dispatch

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"fmt"
	"math/big"
	"net/url"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// peerName is the name in the certificate that the servers of a cluster show each other.
const peerName = "millwright-peer"

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

// peerTLS is mutual TLS between holders of the same seed.
func peerTLS(seed []byte) (*tls.Config, error) {
	key := ed25519.NewKeyFromSeed(seed)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: peerName}, DNSNames: []string{peerName},
		NotBefore: time.Unix(0, 0), NotAfter: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}

	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}

	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}

	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return &tls.Config{
		MinVersion: tls.VersionTLS13, ServerName: peerName, RootCAs: pool,
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool,
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
	}, nil
}
