package main

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

	mu      sync.Mutex
	cert    *tls.Certificate
	changed time.Time
	looked  time.Time
}

func newCertificates(certFile, keyFile string, log *slog.Logger) (*certificates, error) {
	c := &certificates{certFile: certFile, keyFile: keyFile, log: log}
	return c, c.load()
}

func (c *certificates) load() error {
	cert, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return fmt.Errorf("certificate: %w", err)
	}
	c.cert, c.changed = &cert, c.modified()
	return nil
}

func (c *certificates) modified() time.Time {
	var latest time.Time
	for _, file := range []string{c.certFile, c.keyFile} {
		if info, err := os.Stat(file); err == nil && info.ModTime().After(latest) {
			latest = info.ModTime()
		}
	}
	return latest
}

// get returns the certificate, looking at the files at most once a second. A pair that does not fit
// together, as in the middle of a change, leaves the old one in use.
func (c *certificates) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.looked) > time.Second {
		c.looked = now
		if c.modified().After(c.changed) {
			if err := c.load(); err != nil {
				c.log.Warn("the new certificate cannot be used; the old one stays", "error", err)
			}
		}
	}
	return c.cert, nil
}
