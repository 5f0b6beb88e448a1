package server

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// pair writes a certificate of that name and its key, as changed at that time.
func pair(t *testing.T, certFile, keyFile, name string, changed time.Time) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, &template, &template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: cert}, keyFile: {Type: "PRIVATE KEY", Bytes: secret}} {
		if file == "" {
			continue
		}
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, changed, changed); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCertificatesAreReloaded changes the files as a renewal does: both, one after the other, back to an
// older date, and to nonsense.
func TestCertificatesAreReloaded(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		pair(t, certFile, keyFile, "first", start)
		var log bytes.Buffer
		c, err := newCertificates(certFile, keyFile, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		serves := func(want string) {
			t.Helper()
			time.Sleep(2 * time.Second)
			got, err := c.get(&tls.ClientHelloInfo{})
			if err != nil {
				t.Fatal(err)
			}
			if leaf, err := x509.ParseCertificate(got.Certificate[0]); err != nil || leaf.Subject.CommonName != want {
				t.Errorf("it serves %v, want %s", leaf.Subject, want)
			}
		}
		serves("first")
		pair(t, certFile, keyFile, "second", start.Add(time.Minute))
		serves("second")
		pair(t, certFile, "", "third", start.Add(2*time.Minute)) // its key has yet to come
		serves("second")
		if !strings.Contains(log.String(), "the old one stays") {
			t.Errorf("log: %s", log.String())
		}
		pair(t, certFile, keyFile, "fourth", start.Add(2*time.Minute)) // with the date of the attempt that failed
		serves("fourth")
		pair(t, certFile, keyFile, "fifth", start) // a copy that kept its date
		serves("fifth")
		if err := os.Remove(keyFile); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(certFile, []byte("nonsense"), 0o600); err != nil {
			t.Fatal(err)
		}
		serves("fifth")
		said := log.Len()
		serves("fifth")
		if log.Len() != said {
			t.Error("it says the same again and again")
		}
	})
}
