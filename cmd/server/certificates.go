package server

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// certificates serves a certificate from files and reads it again when they change.
type certificates struct {
	certFile, keyFile string
	log               *slog.Logger

	mu     sync.Mutex
	cert   *tls.Certificate
	seen   stamp // of the files when they were read last
	looked time.Time
}

// stamp tells one state of the files from another.
type stamp [2]struct {
	modified time.Time
	size     int64
}

func newCertificates(certFile, keyFile string, log *slog.Logger) (*certificates, error) {
	c := &certificates{certFile: certFile, keyFile: keyFile, log: log}
	c.seen = c.stamp()
	return c, c.load()
}

func (c *certificates) load() error {
	cert, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return fmt.Errorf("certificate: %w", err)
	}
	c.cert = &cert
	return nil
}

func (c *certificates) stamp() (s stamp) {
	for i, file := range []string{c.certFile, c.keyFile} {
		if info, err := os.Stat(file); err == nil {
			s[i].modified, s[i].size = info.ModTime(), info.Size()
		}
	}
	return s
}

// get returns the certificate. It checks the files at most once a second. If certificate and key do not
// match, as in the middle of a change, it keeps the old pair.
func (c *certificates) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if now := time.Now(); now.Sub(c.looked) > time.Second {
		c.looked = now
		if s := c.stamp(); s != c.seen { // taken before the files are read, so that a later change is seen
			c.seen = s
			if err := c.load(); err != nil {
				c.log.Warn("the new certificate cannot be used; the old one stays", "error", err)
			} else {
				c.log.Info("certificate reloaded")
			}
		}
	}

	return c.cert, nil
}
