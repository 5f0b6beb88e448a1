package worker_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"maps"
	"math/big"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"millwright/runs/worker"
	"millwright/runs/worker/preset"
	"millwright/state/statetest"
)

// boxed returns the harness of an agent in a sandbox that also shows the directories.
func (a realAgent) boxed(t *testing.T, network worker.Network, shown ...string) worker.Harness {
	t.Helper()
	probes, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}

	h := a.harness(t)
	h.SameUser, h.UIDRange = false, boxed("").UIDRange
	h.Sandbox = &worker.Sandbox{
		Network:  network,
		ReadOnly: append([]string{os.Getenv("MILLWRIGHT_TEST_AGENTS"), probes}, shown...),
	}
	return h
}

// TestAcceptanceAgentsInSandbox has the real program of each preset work in a sandbox, with a model that it
// reaches over the network of the machine.
func TestAcceptanceAgentsInSandbox(t *testing.T) {
	wantSandbox(t)
	m := serveModel(t, "measure_depth")
	for _, a := range realAgents(t, m) {
		t.Run(a.preset, func(t *testing.T) { testAgent(t, m, a, a.boxed(t, worker.Network{Mode: "open"})) })
	}
}

// inNamespace marks a process of the tests that has a network namespace of its own.
const inNamespace = "MILLWRIGHT_TEST_IN_NAMESPACE"

// TestAcceptanceAgentsBehindProxy has the real program of each preset work in a sandbox with the network of its
// preset, without an endpoint of its own. It reaches the host of its model through the proxy. The hosts are a
// scripted model at a public address, in a network namespace.
func TestAcceptanceAgentsBehindProxy(t *testing.T) {
	wantSandbox(t)
	if os.Getuid() != 0 {
		t.Skip("the test makes a network namespace with accounts in it, which needs root")
	}
	if os.Getenv(inNamespace) == "" {
		againInNamespace(t)
		return
	}

	const hostOfOpencode = "api.anthropic.com" // its preset has none: the test's model is of this provider
	hosts := map[string]string{}
	for _, name := range preset.Names() {
		p, _ := preset.Find(name)
		hosts[name] = append(slices.Clone(p.Hosts), hostOfOpencode)[0]
	}

	m, authority := publicModel(t, slices.Compact(slices.Sorted(maps.Values(hosts))))
	for _, a := range realAgents(t, m) {
		t.Run(a.preset, func(t *testing.T) {
			for _, own := range []string{"ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL", "OPENCODE_CONFIG_CONTENT"} {
				delete(a.env, own)
			}
			a.args = nil
			a.env["NODE_EXTRA_CA_CERTS"], a.env["SSL_CERT_FILE"] = authority, authority

			var network worker.Network
			if a.preset == "opencode" {
				network.Allow = []string{hostOfOpencode}
			}
			testAgent(t, m, a, a.boxed(t, network, filepath.Dir(authority)))
		})
	}
}

// againInNamespace runs the test in a process with network and mount namespaces of its own.
func againInNamespace(t *testing.T) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run", "^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), inNamespace+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS}
	out, err := cmd.CombinedOutput()
	switch {
	case err != nil:
		t.Fatalf("%v\n%s", err, out)
	case bytes.Contains(out, []byte("--- SKIP")):
		t.Skipf("%s", out)
	}
	t.Logf("%s", out)
}

// publicModel serves a model as the hosts do, at a public address of this network namespace. authority is the
// file of the certificate that clients have to trust.
func publicModel(t *testing.T, hosts []string) (m *model, authority string) {
	t.Helper()
	const address = "93.184.215.14"
	ip := statetest.Program(t, "ip")
	for _, args := range [][]string{
		{"link", "set", "lo", "up"},
		{"address", "add", address + "/32", "dev", "lo"},
	} {
		if out, err := exec.Command(ip, args...).CombinedOutput(); err != nil {
			t.Fatalf("ip %v: %v: %s", args, err, out)
		}
	}

	names := filepath.Join(t.TempDir(), "hosts")
	text := "127.0.0.1 localhost\n" + address + " " + strings.Join(hosts, " ") + "\n"
	if err := os.WriteFile(names, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(names, "/etc/hosts", "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}

	certificate, issuer := issue(t, hosts)
	authority = filepath.Join(t.TempDir(), "authority.pem")
	block := &pem.Block{Type: "CERTIFICATE", Bytes: issuer}
	if err := os.WriteFile(authority, pem.EncodeToMemory(block), 0o644); err != nil {
		t.Fatal(err)
	}

	ln, err := net.Listen("tcp", address+":443")
	if err != nil {
		t.Fatal(err)
	}
	m = &model{tool: "measure_depth", args: `{"text":"hello"}`}
	server := httptest.NewUnstartedServer(m)
	server.Listener.Close()
	server.Listener = ln
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	server.StartTLS()
	t.Cleanup(server.Close)
	return m, authority
}

// issue returns a certificate of hosts, and that of the authority which issued it.
func issue(t *testing.T, hosts []string) (certificate tls.Certificate, authority []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}

	begin, end := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	issuer := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority of the tests"},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		NotBefore: begin, NotAfter: end,
	}
	authority, err = x509.CreateCertificate(rand.Reader, issuer, issuer, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}

	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), DNSNames: hosts,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		NotBefore: begin, NotAfter: end,
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, issuer, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, authority
}
