package reconcile_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"millwright/reconcile"
)

// sshHost serves a repository over ssh with git's own program.
type sshHost struct {
	address string
	key     ssh.PublicKey
}

func sshKey(tb testing.TB) (ssh.Signer, []byte) {
	tb.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	must(tb, err)
	signer, err := ssh.NewSignerFromKey(private)
	must(tb, err)
	block, err := ssh.MarshalPrivateKey(private, "")
	must(tb, err)
	return signer, pem.EncodeToMemory(block)
}

func (r *repository) serveSSH(client ssh.PublicKey) *sshHost {
	host, _ := sshKey(r)
	cfg := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if string(key.Marshal()) != string(client.Marshal()) {
			return nil, fmt.Errorf("unknown key")
		}
		return nil, nil
	}}
	cfg.AddHostKey(host)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(r, err)
	r.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go serveSSHConn(conn, cfg)
		}
	}()
	return &sshHost{listener.Addr().String(), host.PublicKey()}
}

func serveSSHConn(conn net.Conn, cfg *ssh.ServerConfig) {
	server, channels, requests, err := ssh.NewServerConn(conn, cfg)
	if err != nil {
		return
	}
	defer server.Close()
	go ssh.DiscardRequests(requests)
	for offer := range channels {
		channel, requests, err := offer.Accept()
		if err != nil {
			return
		}
		for req := range requests {
			var command struct{ Line string }
			if req.Type != "exec" || ssh.Unmarshal(req.Payload, &command) != nil {
				_ = req.Reply(false, nil)
				continue
			}
			_ = req.Reply(true, nil)
			path := strings.Trim(strings.TrimPrefix(command.Line, "git-upload-pack "), "'")
			cmd := exec.Command("git-upload-pack", path)
			cmd.Stdout, cmd.Stderr = channel, channel.Stderr()
			stdin, err := cmd.StdinPipe()
			if err != nil || cmd.Start() != nil {
				return
			}
			go func() {
				_, _ = io.Copy(stdin, channel)
				_ = stdin.Close()
			}()
			_ = cmd.Wait()
			_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{}))
			_ = channel.Close()
		}
	}
}

func TestGitOverSSH(t *testing.T) {
	r := newRepository(t)
	first := r.push(two, "one")
	signer, key := sshKey(t)
	host := r.serveSSH(signer.PublicKey())
	_, otherKey := sshKey(t)
	otherSigner, _ := sshKey(t)
	line := knownhosts.Line([]string{knownhosts.Normalize(host.address)}, host.key)
	file := filepath.Join(t.TempDir(), "known_hosts")
	must(t, os.WriteFile(file, []byte("# hosts\n"+line+"\n"), 0o600))

	config := func() reconcile.GitConfig {
		return reconcile.GitConfig{URL: "ssh://git@" + host.address + r.bare, SSHKey: token(string(key)), KnownHosts: file, Timeout: 20 * time.Second}
	}
	source := gitSource(t, config())
	if snap := fetch(t, source); snap.Revision.ID != first || read(t, snap.FS, "webhooks/a.yaml") != hook("A") {
		t.Errorf("revision %s", snap.Revision.ID)
	}
	fetch(t, source)
	second := r.push(tree{"webhooks/a.yaml": hook("C")}, "two")
	if snap := fetch(t, source); snap.Revision.ID != second || read(t, snap.FS, "webhooks/a.yaml") != hook("C") {
		t.Errorf("revision %s", snap.Revision.ID)
	}

	inline := config()
	inline.KnownHosts = line
	fetch(t, gitSource(t, inline))

	tests := []struct {
		name   string
		change func(*reconcile.GitConfig)
		want   string
	}{
		{"host not known", func(c *reconcile.GitConfig) {
			c.KnownHosts = knownhosts.Line([]string{"elsewhere.example.com"}, host.key)
		}, "is in knownHosts"},
		{"host has another key", func(c *reconcile.GitConfig) {
			c.KnownHosts = knownhosts.Line([]string{knownhosts.Normalize(host.address)}, otherSigner.PublicKey())
		}, "not the one in knownHosts"},
		{"no known hosts file", func(c *reconcile.GitConfig) { c.KnownHosts = filepath.Join(t.TempDir(), "none") }, "known hosts"},
		{"wrong key", func(c *reconcile.GitConfig) { c.SSHKey = token(string(otherKey)) }, "did not accept the ssh key"},
		{"no key at all", func(c *reconcile.GitConfig) { c.SSHKey = token("hunter2") }, "cannot be read"},
		{"no such repository", func(c *reconcile.GitConfig) { c.URL += "x" }, "no such repository"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			cfg := config()
			test.change(&cfg)
			_, err := gitSource(t, cfg).Fetch(t.Context())
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}
