package worker_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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

// TestAcceptanceAgentBehindProxy has a real agent work in a sandbox with the network of its preset. The agent
// reaches the host of its model through the proxy. The host is a scripted model at a public address, in a
// network namespace.
func TestAcceptanceAgentBehindProxy(t *testing.T) {
	wantSandbox(t)
	if os.Getuid() != 0 {
		t.Skip("the test makes a network namespace with accounts in it, which needs root")
	}
	if os.Getenv(inNamespace) == "" {
		againInNamespace(t)
		return
	}

	m, authority := publicModel(t, "claude")
	agents := realAgents(t, m)
	i := slices.IndexFunc(agents, func(a realAgent) bool { return a.preset == "claude" })
	a := agents[i]
	delete(a.env, "ANTHROPIC_BASE_URL")
	a.env["NODE_EXTRA_CA_CERTS"] = authority

	testAgent(t, m, a, a.boxed(t, worker.Network{}, filepath.Dir(authority)))
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
}

// publicModel serves a model as the host of a preset does, at a public address of this network namespace.
// authority is the file of the certificate that clients have to trust.
func publicModel(t *testing.T, presetName string) (m *model, authority string) {
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

	p, _ := preset.Find(presetName)
	hosts, text := filepath.Join(t.TempDir(), "hosts"), "127.0.0.1 localhost\n"+address+" "+p.Hosts[0]+"\n"
	if err := os.WriteFile(hosts, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(hosts, "/etc/hosts", "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}

	certificate := selfSigned(t, p.Hosts[0])
	authority = filepath.Join(t.TempDir(), "authority.pem")
	block := &pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]}
	if err := os.WriteFile(authority, pem.EncodeToMemory(block), 0o644); err != nil {
		t.Fatal(err)
	}

	ln, err := net.Listen("tcp", address+":443")
	if err != nil {
		t.Fatal(err)
	}
	m = &model{tool: "measure_depth", args: `{"text":"hello"}`, URL: "https://" + p.Hosts[0]}
	server := httptest.NewUnstartedServer(m)
	server.Listener.Close()
	server.Listener = ln
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	server.StartTLS()
	t.Cleanup(server.Close)
	return m, authority
}

// selfSigned returns a certificate of a host that is its own authority.
func selfSigned(t *testing.T, host string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}

	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{host}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
