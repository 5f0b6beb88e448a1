package dispatch_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"millwright/runs/dispatch"
	"millwright/runs/wire"
	"millwright/state"
	"millwright/state/statetest"
)

// workerKey makes a key of the role and a credentials file of it.
func workerKey(t *testing.T, s *state.Store, role state.Role) (state.Key, string, string) {
	t.Helper()
	key, secret, err := s.CreateKey(t.Context(), "remote", role, nil)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "worker.key")
	if err := os.WriteFile(file, []byte(key.UID+"\n"+secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return key, secret, file
}

func TestRemoteWorker(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		ctx := t.Context()
		d := startDispatch(t, dispatch.Config{Store: s, Listen: "127.0.0.1:0"})
		key, _, file := workerKey(t, s, state.RoleWorker)
		c, err := wire.Connect(ctx, "nats://"+d.Addr(), file, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if c.UID() != key.UID {
			t.Errorf("UID %s", c.UID())
		}
		told := make(chan string, 1)
		end, err := c.OnCancel(func(id string) { told <- id })
		if err != nil {
			t.Fatal(err)
		}
		defer end()
		r := create(t, s, func(n *state.NewRun) { n.Prompt = strings.Repeat("long ", 200_000) })
		o := order(t, c)
		if _, err := c.Start(ctx, o); err != nil {
			t.Fatal(err)
		}
		for _, f := range o.Files {
			if body, err := c.File(ctx, o, f); err != nil || len(body) != f.Size {
				t.Errorf("%s: %d bytes, %v", f.Name, len(body), err)
			}
		}
		held := run(t, s, r.ID)
		if held.Worker != key.UID {
			t.Errorf("worker %s", held.Worker)
		}
		if _, err := s.RequestCancel(ctx, r.ID, "tester"); err != nil {
			t.Fatal(err)
		}
		if got := <-told; got != r.ID {
			t.Errorf("told to end %s", got)
		}
		if now, err := c.Finish(ctx, o, wire.Result{State: wire.Cancelled}); err != nil || now != wire.Cancelled {
			t.Errorf("finish: %v %v", now, err)
		}

		// A revoked key gets no more work, even by a claim that waits, and may not go on with what it has.
		create(t, s, nil)
		o = order(t, c)
		waiting := make(chan error)
		go func() {
			_, err := c.Claim(ctx, "", time.Minute)
			waiting <- err
		}()
		if err := s.RevokeKey(ctx, key.UID); err != nil {
			t.Fatal(err)
		}
		r = create(t, s, nil)
		_, start := c.Start(ctx, o)
		_, heartbeat := c.Heartbeat(ctx, o)
		_, finish := c.Finish(ctx, o, wire.Result{State: wire.Succeeded})
		for what, err := range map[string]error{"a waiting claim": <-waiting, "start": start, "heartbeat": heartbeat, "finish": finish} {
			if !errors.Is(err, wire.ErrRefused) {
				t.Errorf("%s with a revoked key: %v", what, err)
			}
		}
		if got := run(t, s, r.ID).State; got != state.RunQueued {
			t.Errorf("the run that a revoked key was not given is %s", got)
		}
	})
}

func TestWrongCredentials(t *testing.T) {
	s := statetest.Open(t, statetest.SQLite(t))
	d := startDispatch(t, dispatch.Config{Store: s, Listen: "127.0.0.1:0"})
	address := "nats://" + d.Addr()
	_, secret, _ := workerKey(t, s, state.RoleWorker)
	other, _, _ := workerKey(t, s, state.RoleWorker)
	admin, adminSecret, _ := workerKey(t, s, state.RoleAdmin)
	revoked, revokedSecret, _ := workerKey(t, s, state.RoleWorker)
	if err := s.RevokeKey(t.Context(), revoked.UID); err != nil {
		t.Fatal(err)
	}
	for what, opt := range map[string][]nats.Option{
		"nothing":                nil,
		"wrong secret":           {nats.UserInfo(other.UID, "mw_wrong")},
		"another's UID":          {nats.UserInfo(other.UID, secret)},
		"a key of another role":  {nats.UserInfo(admin.UID, adminSecret)},
		"a revoked key":          {nats.UserInfo(revoked.UID, revokedSecret)},
		"the server's name":      {nats.UserInfo("millwright-server", "")},
		"the secret as a token":  {nats.Token(secret)},
		"the name of the system": {nats.UserInfo("$SYS", secret)},
	} {
		nc, err := nats.Connect(address, opt...)
		if err == nil {
			nc.Close()
		}
		if !errors.Is(err, nats.ErrAuthorization) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for name, text := range map[string]string{"empty": "", "one word": secret, "three": "a b c", "no key": "a b"} {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if c, err := wire.Connect(t.Context(), address, file, "", nil); err == nil {
			c.Close()
			t.Errorf("credentials with %s are accepted", name)
		} else if strings.Contains(err.Error(), secret) {
			t.Errorf("the error tells the secret: %v", err)
		}
	}
}

// TestWorkersReachNothingElse connects as a worker and tries what is not its own.
func TestWorkersReachNothingElse(t *testing.T) {
	s := statetest.Open(t, statetest.SQLite(t))
	d := startDispatch(t, dispatch.Config{Store: s, Listen: "127.0.0.1:0"})
	key, secret, _ := workerKey(t, s, state.RoleWorker)
	victim, _, victimFile := workerKey(t, s, state.RoleWorker)
	var violations atomic.Int64
	nc, err := nats.Connect("nats://"+d.Addr(), nats.UserInfo(key.UID, secret), nats.CustomInboxPrefix("_INBOX_"+key.UID),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			if errors.Is(err, nats.ErrPermissionViolation) {
				violations.Add(1)
			}
		}))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	subjects := []string{
		"worker." + victim.UID + ".cancel", "worker.*.cancel", "worker.>", ">", "_INBOX.>", "_INBOX_" + victim.UID + ".>", "runs.queued.*",
		"$JS.API.>", "$SYS.>", "worker." + key.UID + ".claim",
	}
	for _, subject := range subjects {
		if _, err := nc.Subscribe(subject, func(m *nats.Msg) { t.Errorf("heard %s", m.Subject) }); err != nil {
			t.Errorf("%s: %v", subject, err)
		}
	}
	var published int
	for _, subject := range []string{"worker." + victim.UID + ".finish", "runs.queued.x", "$JS.API.STREAM.DELETE.RUNS", "$JS.API.INFO", "_INBOX_" + victim.UID + ".x", "worker"} {
		if err := nc.Publish(subject, []byte("{}")); err != nil {
			t.Errorf("%s: %v", subject, err)
		}
		published++
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(statetest.Patience); violations.Load() < int64(len(subjects)+published); {
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d tries were refused", violations.Load(), len(subjects)+published)
		}
	}

	// With the subjects of its own, it cannot act on a run that another holds.
	c, err := wire.Connect(t.Context(), "nats://"+d.Addr(), victimFile, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r := create(t, s, nil)
	o := order(t, c)
	for _, verb := range []string{"start", "heartbeat", "append", "finish", "release", "file"} {
		m, err := nc.Request("worker."+key.UID+"."+verb, fmt.Appendf(nil, `{"run":%q,"token":%q,"name":"prompt.md","state":"FAILED"}`, o.RunID, o.Token), 5*time.Second)
		if err != nil || !strings.Contains(string(m.Data), "lost") {
			t.Errorf("%s with another's token: %v %v", verb, m, err)
		}
	}
	for _, text := range []string{"", "{", "[]", `{"run":7}`, `{"run":"\u0000","token":"x"}`, strings.Repeat("[", 100_000)} {
		if m, err := nc.Request("worker."+key.UID+".finish", []byte(text), 5*time.Second); err != nil || !strings.Contains(string(m.Data), "error") {
			t.Errorf("%.20q: %v %v", text, m, err)
		}
	}
	if got := run(t, s, r.ID); got.State != state.RunClaimed {
		t.Errorf("run is %s", got.State)
	}
}

// certificate makes a certificate for 127.0.0.1 and returns its files.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

func TestListeners(t *testing.T) {
	s := statetest.Open(t, statetest.SQLite(t))
	cert, key := certificate(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for want, cfg := range map[string]dispatch.Config{
		"needs TLS":      {Listen: "0.0.0.0:0"},
		"want host:port": {Listen: "127.0.0.1"},
		"in use":         {Listen: taken.Addr().String()},
		"not both":       {Listen: "127.0.0.1:0", URL: "nats://127.0.0.1:1"},
		"connect":        {URL: "nats://user:hunter2@127.0.0.1:1"},
		"server's own":   {Cluster: []string{taken.Addr().String(), "127.0.0.1:1"}},
		"peer":           {Cluster: []string{"127.0.0.1:0", "a b"}},
	} {
		cfg.Store = s
		d, err := dispatch.Start(t.Context(), cfg)
		if err == nil {
			d.Close(t.Context())
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%+v: %v, want %q", cfg, err, want)
		}
	}
	d := startDispatch(t, dispatch.Config{Store: s, Listen: "127.0.0.1:0", Certificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(cert, key)
		return &pair, err
	}})
	worker, secret, _ := workerKey(t, s, state.RoleWorker)
	nc, err := nats.Connect("tls://"+d.Addr(), nats.UserInfo(worker.UID, secret), nats.RootCAs(cert))
	if err != nil {
		t.Fatal(err)
	}
	nc.Close()
	if nc, err := nats.Connect("tls://"+d.Addr(), nats.UserInfo(worker.UID, secret)); err == nil {
		nc.Close()
		t.Error("an unknown certificate is trusted")
	}
}

// TestRevokedKeyAfterARestart has a worker find its server again after its key was revoked.
func TestRevokedKeyAfterARestart(t *testing.T) {
	s := statetest.Open(t, statetest.SQLite(t))
	address := freeAddresses(t, 1)[0]
	d, err := dispatch.Start(t.Context(), dispatch.Config{Store: s, Listen: address})
	if err != nil {
		t.Fatal(err)
	}
	key, _, file := workerKey(t, s, state.RoleWorker)
	c, err := wire.Connect(t.Context(), "nats://"+address, file, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()

	d.Close(t.Context())
	if _, err := c.Claim(t.Context(), "", time.Second); !errors.Is(err, wire.ErrUnavailable) {
		t.Errorf("without a server: %v", err)
	}
	if err := s.RevokeKey(t.Context(), key.UID); err != nil {
		t.Fatal(err)
	}
	startDispatch(t, dispatch.Config{Store: s, Listen: address})
	deadline := time.Now().Add(statetest.Patience)
	for err = nil; !errors.Is(err, wire.ErrRefused); _, err = c.Claim(t.Context(), "", 50*time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("a request with a revoked key: %v, want ErrRefused", err)
		}
	}
}
