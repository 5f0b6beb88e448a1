//go:build linux

package egress_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"millwright/bounds/address/addresstest"
	"millwright/runs/worker/confine"
	"millwright/runs/worker/egress"
	"millwright/runs/worker/sandbox"
	"millwright/state/statetest"
)

// world is a proxy, the servers around it, and what the proxy refused.
type world struct {
	*testing.T
	address   string
	socket    string
	roots     *x509.CertPool
	authority []byte // the certificate that the clients trust

	mu      sync.Mutex
	refused []egress.Refusal
}

// newWorld starts a proxy for api.example.com, and a server of that name and others at a public and a private
// address.
func newWorld(t *testing.T) *world {
	t.Helper()
	wantNetwork(t)
	w := &world{T: t, roots: x509.NewCertPool()}
	cert := w.certificate("api.example.com", "other.example.com")
	for _, at := range []string{publicAddress, privateAddress, "127.0.0.1"} {
		ln, err := tls.Listen("tcp", at+":443", &tls.Config{Certificates: []tls.Certificate{cert}})
		if err != nil {
			t.Fatal(err)
		}
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			n, _ := io.Copy(io.Discard, r.Body)
			fmt.Fprintf(w, "%s took %d bytes at %s\n", r.Host, n, at)
			io.WriteString(w, strings.Repeat("x", 300_000))
		}), ErrorLog: log.New(io.Discard, "", 0)}
		go server.Serve(ln)
		t.Cleanup(func() { server.Close() })
	}

	w.fresh()
	return w
}

// fresh starts another proxy, which has refused nothing.
func (w *world) fresh() {
	w.Helper()
	dns := &addresstest.Names{Answers: map[string][]string{
		"api.example.com":       {publicAddress},
		"private.example.com":   {privateAddress},
		"loopback.example.com":  {"127.0.0.1"},
		"metadata.example.com":  {"169.254.169.254"},
		"rebinding.example.com": {publicAddress, "127.0.0.1"},
	}}
	proxy := egress.New(egress.Config{
		Names: []string{
			"api.example.com", "private.example.com", "loopback.example.com", "metadata.example.com",
			"rebinding.example.com", "unknown.example.com",
		},
		Resolver: dns.Resolver(w.T),
		Refused: func(r egress.Refusal) {
			w.mu.Lock()
			defer w.mu.Unlock()

			w.refused = append(w.refused, r)
		},
	})

	w.mu.Lock()
	w.refused = nil
	w.mu.Unlock()
	w.address = w.serve(proxy, "tcp", "127.0.0.1:0")
	w.socket = w.serve(proxy, "unix", filepath.Join(w.TempDir(), "socket"))
}

// serve serves the proxy until the test ends, and returns where.
func (w *world) serve(proxy *egress.Proxy, network, address string) string {
	w.Helper()
	ln, err := net.Listen(network, address)
	if err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); proxy.Serve(ctx, ln) }()
	w.Cleanup(func() { cancel(); statetest.Receive(w.T, "the proxy to end", done) })
	return ln.Addr().String()
}

// certificate returns a certificate that the clients of the test trust.
func (w *world) certificate(names ...string) tls.Certificate {
	w.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		w.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: names, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		w.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		w.Fatal(err)
	}
	w.roots.AddCert(parsed)
	w.authority = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// request sends text to the proxy, and returns the first line of the answer.
func (w *world) request(text string) string {
	w.Helper()
	conn, err := net.Dial("tcp", w.address)
	if err != nil {
		w.Fatal(err)
	}
	defer conn.Close()

	conn.SetDeadline(time.Now().Add(time.Minute))
	io.WriteString(conn, text)
	status, _ := bufio.NewReader(conn).ReadString('\n')
	return strings.TrimSpace(status)
}

// tunnel opens a way to a host, and reads the whole answer of the proxy.
func (w *world) tunnel(host string) net.Conn {
	w.Helper()
	conn, err := net.Dial("tcp", w.address)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(time.Minute))
	fmt.Fprintf(conn, "CONNECT %s:443 HTTP/1.1\r\nHost: %[1]s:443\r\n\r\n", host)
	const want = "HTTP/1.1 200 Connection established\r\n\r\n"
	got := make([]byte, len(want))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != want {
		w.Fatalf("%q %v", got, err)
	}
	return conn
}

// slowly is a connection that sends each byte by itself.
type slowly struct{ net.Conn }

func (s slowly) Write(b []byte) (int, error) {
	for i := range b {
		if _, err := s.Conn.Write(b[i : i+1]); err != nil {
			return i, err
		}
	}
	return len(b), nil
}

// TestAllowed reaches a host of the list, also with a hello that comes in pieces.
func TestAllowed(t *testing.T) {
	w := newWorld(t)
	for _, piecemeal := range []bool{false, true} {
		client := &http.Client{Transport: &http.Transport{
			DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				conn := w.tunnel("api.example.com")
				if piecemeal {
					conn = slowly{conn}
				}
				c := tls.Client(conn, &tls.Config{ServerName: "api.example.com", RootCAs: w.roots})
				return c, c.HandshakeContext(ctx)
			},
		}}
		size := 200_000
		if piecemeal {
			size = 2_000
		}
		r, err := client.Post("https://api.example.com/", "text/plain", strings.NewReader(strings.Repeat("y", size)))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r.Body)
		r.Body.Close()
		want := fmt.Sprintf("api.example.com took %d bytes at %s\n", size, publicAddress)
		if err != nil || !strings.HasPrefix(string(text), want) || len(text) != len(want)+300_000 {
			t.Errorf("%v: %d bytes, %.60s", err, len(text), text)
		}
	}
	if len(w.refused) > 0 {
		t.Errorf("refused: %v", w.refused)
	}
}

// TestRefused tries requests that do not lead out.
func TestRefused(t *testing.T) {
	const end = " HTTP/1.1\r\n\r\n"
	w := newWorld(t)
	for _, c := range []struct{ name, request, status, host, reason string }{
		{"another host", "CONNECT evil.example.com:443" + end, "403", "evil.example.com", "the host is not on the list of the sandbox"},
		{"capitals", "CONNECT EVIL.example.com:443" + end, "403", "evil.example.com", "the host is not on the list of the sandbox"},
		{"a part of the name", "CONNECT example.com:443" + end, "403", "example.com", "the host is not on the list of the sandbox"},
		{"a longer name", "CONNECT api.example.com.evil.org:443" + end, "403", "api.example.com.evil.org", "the host is not on the list of the sandbox"},
		{"a dot behind the name", "CONNECT api.example.com.:443" + end, "403", "", "CONNECT needs NAME:443"},
		{"another port", "CONNECT api.example.com:22" + end, "403", "api.example.com", "only port 443 is reached"},
		{"a port with zeros", "CONNECT api.example.com:0443" + end, "403", "api.example.com", "only port 443 is reached"},
		{"no port", "CONNECT api.example.com" + end, "400", "", "CONNECT needs NAME:443"},
		{"a public address", "CONNECT " + publicAddress + ":443" + end, "403", "", "an IP address in place of a name"},
		{"loopback", "CONNECT 127.0.0.1:443" + end, "403", "", "an IP address in place of a name"},
		{"loopback of IPv6", "CONNECT [::1]:443" + end, "403", "", "an IP address in place of a name"},
		{"an address in IPv6", "CONNECT [::ffff:127.0.0.1]:443" + end, "403", "", "an IP address in place of a name"},
		{"a number", "CONNECT 2130706433:443" + end, "403", "", "an IP address in place of a name"},
		{"a hexadecimal number", "CONNECT 0x7f.1:443" + end, "403", "", "an IP address in place of a name"},
		{"metadata of a cloud", "CONNECT 169.254.169.254:443" + end, "403", "", "an IP address in place of a name"},
		{"localhost", "CONNECT localhost:443" + end, "403", "", "CONNECT needs NAME:443"},
		{"a name of a private address", "CONNECT private.example.com:443" + end, "403", "private.example.com", "its address is not public"},
		{"a name of loopback", "CONNECT loopback.example.com:443" + end, "403", "loopback.example.com", "its address is not public"},
		{"a name of metadata", "CONNECT metadata.example.com:443" + end, "403", "metadata.example.com", "its address is not public"},
		{"an unknown name", "CONNECT unknown.example.com:443" + end, "502", "unknown.example.com", "its name cannot be resolved"},
		{"plain HTTP", "GET http://api.example.com/ HTTP/1.1\r\nHost: api.example.com\r\n\r\n", "403", "api.example.com", "plain HTTP does not leave the sandbox: use https"},
		{"plain HTTP to an address", "GET http://169.254.169.254/latest HTTP/1.1\r\nHost: x\r\n\r\n", "403", "", "plain HTTP does not leave the sandbox: use https"},
		{"HTTP to the proxy", "GET / HTTP/1.1\r\nHost: evil.example.com\r\n\r\n", "403", "", "plain HTTP does not leave the sandbox: use https"},
		{"a body", "CONNECT api.example.com:443 HTTP/1.1\r\nContent-Length: 5\r\n\r\nGET /", "400", "", "CONNECT has no body"},
		{"a body in chunks", "CONNECT api.example.com:443 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400", "", "CONNECT has no body"},
		{"two lengths", "CONNECT api.example.com:443 HTTP/1.1\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\n", "400", "", "the request to the proxy is not HTTP"},
		{"a space in the target", "CONNECT api.example.com:443 evil.example.com:443 HTTP/1.1\r\n\r\n", "400", "", "the request to the proxy is not HTTP"},
		{"a user", "CONNECT evil@api.example.com:443" + end, "403", "", "CONNECT needs NAME:443"},
		{"a NUL", "CONNECT api.example.com\x00:443" + end, "", "", ""},
		{"a URL as target", "CONNECT https://api.example.com:443/" + end, "", "", ""},
		{"no HTTP", "SSH-2.0-evil\r\n\r\n", "400", "", "the request to the proxy is not HTTP"},
		{"a long request", "CONNECT api.example.com:443 HTTP/1.1\r\nX: " + strings.Repeat("x", 9000) + "\r\n\r\n", "431", "", "the request to the proxy is too long"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w.fresh()
			status := w.request(c.request)
			if !strings.HasPrefix(status, "HTTP/1.1 "+c.status) || strings.HasPrefix(status, "HTTP/1.1 2") {
				t.Errorf("answer %q, want %s", status, c.status)
			}
			if c.reason != "" {
				w.wantRefused(egress.Refusal{Host: c.host, Reason: c.reason})
			}
		})
	}
}

func (w *world) wantRefused(want ...egress.Refusal) {
	w.Helper()
	statetest.Until(w.T, fmt.Sprintf("%v to be refused", want), func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return slices.Equal(w.refused, want)
	})
}

// TestHello tries what a client may send behind the answer of the proxy.
func TestHello(t *testing.T) {
	w := newWorld(t)
	const hidden = "the TLS hello may hide another host: encrypted client hello is not passed on"
	for name, c := range map[string]struct {
		say    func(net.Conn) error
		reason string
	}{
		"the name of another host":  {hello(&tls.Config{ServerName: "evil.example.com"}), "the TLS connection names another host, evil.example.com"},
		"a name in capitals":        {hello(&tls.Config{ServerName: "evil.EXAMPLE.com"}), "the TLS connection names another host, which is no host name"},
		"no name":                   {hello(&tls.Config{ServerName: "127.0.0.1"}), "the TLS hello names no host"},
		"an encrypted hello":        {hello(&tls.Config{ServerName: "evil.example.com", EncryptedClientHelloConfigList: encrypted(t, "api.example.com")}), hidden},
		"the other name, piecemeal": {func(c net.Conn) error { return hello(&tls.Config{ServerName: "evil.example.com"})(slowly{c}) }, "the TLS connection names another host, evil.example.com"},
		"plain HTTP":                {say("GET / HTTP/1.1\r\nHost: evil.example.com\r\n\r\n"), "no TLS hello came, or not all of it in time"},
		"another request":           {say("CONNECT evil.example.com:443 HTTP/1.1\r\n\r\n"), "no TLS hello came, or not all of it in time"},
		"half a hello":              {say("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"), "no TLS hello came, or not all of it in time"},
		"a hello without end":       {say(strings.Repeat("\x16\x03\x01\x40\x00"+"\x01\xff\xff\xff"+strings.Repeat("\x00", 0x4000-4), 6)), "no TLS hello came, or not all of it in time"},
		"nothing":                   {say(""), "no TLS hello came, or not all of it in time"},
	} {
		t.Run(name, func(t *testing.T) {
			w.fresh()
			conn := w.tunnel("api.example.com")
			c.say(conn)
			conn.(*net.TCPConn).CloseWrite()
			if got, _ := io.ReadAll(conn); len(got) > 0 {
				t.Errorf("the server said %q", got)
			}
			w.wantRefused(egress.Refusal{Host: "api.example.com", Reason: c.reason})
		})
	}
}

func say(text string) func(net.Conn) error {
	return func(c net.Conn) error {
		_, err := io.WriteString(c, text)
		return err
	}
}

// hello begins TLS.
func hello(cfg *tls.Config) func(net.Conn) error {
	return func(c net.Conn) error { return tls.Client(c, cfg).Handshake() }
}

// encrypted returns a configuration by which a client encrypts its hello, and shows another name.
func encrypted(t *testing.T, name string) []byte {
	t.Helper()
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public := key.PublicKey().Bytes()
	const x25519, sha256, aes128 = 0x20, 1, 1
	content := []byte{1, 0, x25519, 0, byte(len(public))}
	content = append(content, public...)
	content = append(content, 0, 4, 0, sha256, 0, aes128, 32, byte(len(name)))
	content = append(append(content, name...), 0, 0)
	config := binary.BigEndian.AppendUint16([]byte{0xfe, 0x0d}, uint16(len(content)))
	config = append(config, content...)
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(config))), config...)
}

// TestThroughSandbox has a program in a sandbox reach a host of the list, and no other.
func TestThroughSandbox(t *testing.T) {
	w := newWorld(t)
	s, err := sandbox.Open()
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}

	dir := t.TempDir()
	spec := sandbox.Spec{
		Enter: []string{enter}, Root: dir, UID: -1, GID: -1, Network: sandbox.Proxied, Socket: w.socket,
	}
	for _, name := range []string{confine.Work, confine.Home, confine.Tmp} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, confine.Work, "authority.pem"), w.authority, 0o644); err != nil {
		t.Fatal(err)
	}

	host := confine.Open(confine.Config{NoCgroup: true, Keeper: []string{"keeper"}})
	defer host.Close()
	wanted := []struct{ url, said string }{
		{"https://api.example.com/", "api.example.com took 0 bytes at " + publicAddress},
		{"https://evil.example.com/", "Forbidden"},
		{"http://api.example.com/", "millwright: api.example.com: plain HTTP does not leave the sandbox: use https"},
		{"https://" + publicAddress + "/", "Forbidden"},
		{"https://private.example.com/", "Forbidden"},
		{"https://loopback.example.com/", "Forbidden"},
		{"http://169.254.169.254/latest", "millwright: plain HTTP does not leave the sandbox: use https"},
		{"direct:" + publicAddress + ":443", "dial tcp " + publicAddress + ":443: connect: network is unreachable"},
	}
	var out bytes.Buffer
	path := "/run/millwright/millwright"
	cmd := &exec.Cmd{
		Path: path, Args: []string{path, "fetch"}, Dir: sandbox.Dir + "/work", Stdout: &out, Stderr: &out,
	}
	for _, c := range wanted {
		cmd.Args = append(cmd.Args, c.url)
	}
	p, err := s.Start(host, cmd, confine.Run{Name: "run", Dir: dir, Sandboxed: true}, spec)
	if err != nil {
		t.Fatal(err, out.String())
	}
	err = p.Wait()
	if alive := p.Kill(); alive != nil || err != nil {
		t.Fatal(err, alive, out.String())
	}

	said := strings.Split(out.String(), "\x00")
	for i, c := range wanted {
		if !strings.Contains(said[i], c.said) {
			t.Errorf("%s: said %q, want %s", c.url, said[i], c.said)
		}
	}
}

// fetch fetches URLs as programs do, through the proxy of the environment, and prints what comes.
func fetch(urls []string) int {
	authority, err := os.ReadFile("authority.pem")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	client := &http.Client{Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{RootCAs: roots},
	}}
	for _, url := range urls {
		if address, direct := strings.CutPrefix(url, "direct:"); direct {
			_, err := net.Dial("tcp", address)
			fmt.Print(err, "\x00")
			continue
		}

		r, err := client.Get(url)
		if err != nil {
			fmt.Print(err, "\x00")
			continue
		}
		io.CopyN(os.Stdout, r.Body, 100)
		r.Body.Close()
		fmt.Print("\x00")
	}
	return 0
}

// TestRebinding has the address of a name change between two connections: the second one is refused.
func TestRebinding(t *testing.T) {
	w := newWorld(t)
	w.tunnel("rebinding.example.com")
	status := w.request("CONNECT rebinding.example.com:443 HTTP/1.1\r\n\r\n")
	if !strings.HasPrefix(status, "HTTP/1.1 403") {
		t.Errorf("answer %q", status)
	}
}

// TestBounds has more refused than is told.
func TestBounds(t *testing.T) {
	w := newWorld(t)
	for i := range 40 {
		w.request(fmt.Sprintf("CONNECT host-%d.example.org:443 HTTP/1.1\r\n\r\n", i))
		w.request("CONNECT host-0.example.org:443 HTTP/1.1\r\n\r\n")
	}
	w.mu.Lock()
	if len(w.refused) != 20 {
		t.Errorf("%d refusals were told", len(w.refused))
	}
	w.mu.Unlock()
}

// TestConnections opens more connections than a run may have at once.
func TestConnections(t *testing.T) {
	w := newWorld(t)
	for range 64 {
		w.tunnel("api.example.com")
	}
	if status := w.request("CONNECT api.example.com:443 HTTP/1.1\r\n\r\n"); !strings.HasPrefix(status, "HTTP/1.1 503") {
		t.Errorf("answer %q", status)
	}
}

// TestNames checks the hosts of a list.
func TestNames(t *testing.T) {
	for name, want := range map[string]string{
		"api.example.com":               "",
		"a.b-c.example.org":             "",
		"xn--bcher-kva.example":         "",
		"":                              `"" is no host name: want one like api.example.com`,
		"localhost":                     `"localhost" is no host name: want one like api.example.com`,
		"api.example.com:443":           `"api.example.com:443" has the port 443: want the name alone, since only port 443 is reached`,
		"https://api.example.com":       `"https://api.example.com" is a URL: want a host name like api.example.com`,
		"api.example.com/v1":            `"api.example.com/v1" is a URL: want a host name like api.example.com`,
		"*.example.com":                 `"*.example.com" is a pattern: want each host by its own name`,
		"10.0.0.1":                      `"10.0.0.1" is an IP address: want a host name like api.example.com`,
		"::1":                           `"::1" is an IP address: want a host name like api.example.com`,
		"[::1]":                         `"[::1]" is an IP address: want a host name like api.example.com`,
		"0x7f.1":                        `"0x7f.1" is an IP address: want a host name like api.example.com`,
		"API.example.com":               `"API.example.com" has capitals: want api.example.com`,
		"bücher.example":                `"bücher.example" is no host name: want one like api.example.com`,
		"api..example.com":              `"api..example.com" is no host name: want one like api.example.com`,
		"api.example.com.":              `"api.example.com." is no host name: want one like api.example.com`,
		"-a.example.com":                `"-a.example.com" is no host name: want one like api.example.com`,
		"a b.example.com":               `"a b.example.com" is no host name: want one like api.example.com`,
		strings.Repeat("a.", 130) + "b": `is no host name`,
	} {
		err := egress.CheckName(name)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", name, err, want)
		}
	}
}
