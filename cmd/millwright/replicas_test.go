package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"millwright/state/statetest"
)

// TestAcceptanceReplicas has three servers on one PostgreSQL take deliveries. They share budgets and identities;
// one of them is killed, and the database is stopped and started again. Nothing is lost or doubled, every
// run is executed, and the servers heal by themselves.
func TestAcceptanceReplicas(t *testing.T) {
	t.Parallel()
	for name, clustered := range map[string]bool{"one NATS cluster": true, "a NATS each": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := startPostgres(t)
			w := newCrashWorld(t, db.dsn)
			ports, peers := []string{w.port}, []string{}
			for len(ports) < 3 {
				ports = append(ports, mustPort(t))
				w.serveOn(ports[len(ports)-1])
			}
			for range ports {
				peers = append(peers, "127.0.0.1:"+mustPort(t))
			}
			var servers []*process
			for i, port := range ports {
				flags := []string{"--listen", "127.0.0.1:" + port}
				if clustered {
					flags = append(flags, "--nats-cluster", strings.Join(append([]string{peers[i]}, slices.Delete(slices.Clone(peers), i, i+1)...), ","))
				}
				servers = append(servers, w.start(t, flags...))
			}
			for i, port := range ports {
				w.waitFor(t, servers[i], "server "+port+" is ready", func() bool { return status(t, http.MethodGet, "http://127.0.0.1:"+port+"/readyz") == http.StatusOK })
			}
			w.waitFor(t, servers[2], "the definition is applied", func() bool { return status(t, http.MethodPost, w.urls[2]) == http.StatusUnauthorized })

			stopSenders := w.send(6)
			w.port = ports[1]
			w.waitForMore(t, servers[1], 200)
			if err := servers[0].Process.Kill(); err != nil {
				t.Fatal(err)
			}
			w.waitForMore(t, servers[1], 200)

			db.stop()
			for _, port := range ports[1:] {
				base := "http://127.0.0.1:" + port
				w.waitFor(t, servers[1], "server "+port+" misses its database", func() bool { return status(t, http.MethodGet, base+"/readyz") == http.StatusServiceUnavailable })
				for _, r := range []*http.Request{
					authorised(t, http.MethodPost, base+"/webhooks/w/"+w.webhook, crashToken, "{}"),
					authorised(t, http.MethodPost, base+"/api/v1/agent/runs", crashKey, `{"prompt": "x"}`),
					authorised(t, http.MethodGet, base+"/api/v1/agent/runs", crashKey, ""),
				} {
					resp, err := http.DefaultClient.Do(r)
					if err != nil {
						t.Fatal(err)
					}
					resp.Body.Close()
					if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" {
						t.Errorf("%s %s without a database: %d, Retry-After %q", r.Method, r.URL.Path, resp.StatusCode, resp.Header.Get("Retry-After"))
					}
				}
			}
			db.start()
			w.waitForMore(t, servers[1], 200)
			stopSenders()

			w.drain(t, servers[1]) // the killed server's runs too, when their leases have run out
			// The budget of failed authentications: what one server saw used up, the other refuses, within fewer
			// attempts than its own share.
			for n := 0; ; n++ {
				got := status(t, http.MethodPost, w.urls[1])
				if got == http.StatusTooManyRequests {
					break
				}
				if got != http.StatusUnauthorized || n == 20 {
					t.Fatalf("wrong token %d: %d", n+1, got)
				}
			}
			refused := false
			for i := 0; i < 15 && !refused; i++ {
				<-time.After(time.Duration(i+1) * 300 * time.Millisecond) // the replicas tell each other at that pace
				refused = status(t, http.MethodPost, w.urls[2]) == http.StatusTooManyRequests
			}
			if !refused {
				t.Error("the servers grant a budget each")
			}
			for _, p := range servers[1:] {
				if err := p.Process.Signal(syscall.SIGTERM); err != nil {
					t.Fatal(err)
				}
				if err := p.Wait(); err != nil {
					t.Errorf("a server ended with %v", err)
				}
			}
			w.check(t)
		})
	}
}

// status asks without credentials and returns the status, 0 for no answer.
func status(t *testing.T, method, url string) int {
	t.Helper()
	resp, err := http.DefaultClient.Do(authorised(t, method, url, "wrong", ""))
	if err != nil {
		return 0
	}
	resp.Body.Close()
	return resp.StatusCode
}

func authorised(t *testing.T, method, url, token, body string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	return r
}

func mustPort(t *testing.T) string {
	t.Helper()
	port, err := statetest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// ownPostgres is a PostgreSQL server of a test's own, which can be stopped.
type ownPostgres struct {
	t        *testing.T
	bin, dir string
	dsn      string
}

// startPostgres starts a PostgreSQL server that ends with the test. Without its programs the test is
// skipped, or fails where CI=true.
func startPostgres(t *testing.T) *ownPostgres {
	t.Helper()
	var bin string
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if path, err := exec.LookPath("initdb"); err == nil {
		found = append(found, path)
	}
	if len(found) > 0 {
		bin = filepath.Dir(found[len(found)-1])
	} else if os.Getenv("CI") == "true" {
		t.Fatal("initdb is not installed (Debian: postgresql)")
	} else {
		t.Skip("initdb is not installed (Debian: postgresql)")
	}
	dir, err := os.MkdirTemp("", "pg") // a short path: the socket is in it
	if err != nil {
		t.Fatal(err)
	}
	p := &ownPostgres{t: t, bin: bin, dir: dir, dsn: "postgres://millwright@/postgres?host=" + url.QueryEscape(dir)}
	if os.Getuid() == 0 { // PostgreSQL refuses to run as root
		u, err := user.Lookup("postgres")
		if err != nil {
			t.Fatal(err)
		}
		uid, _ := strconv.Atoi(u.Uid)
		if err := os.Chown(dir, uid, -1); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		p.run("pg_ctl", "-D", filepath.Join(dir, "data"), "-m", "immediate", "stop")
		os.RemoveAll(dir)
	})
	if out, err := p.run("initdb", "-D", filepath.Join(dir, "data"), "-U", "millwright", "-A", "trust", "--no-sync"); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	p.start()
	return p
}

func (p *ownPostgres) start() {
	p.t.Helper()
	if out, err := p.run("pg_ctl", "-D", filepath.Join(p.dir, "data"), "-w", "-l", filepath.Join(p.dir, "log"),
		"-o", fmt.Sprintf("-k %s -c listen_addresses='' -c fsync=off -c max_connections=200", p.dir), "start"); err != nil {
		p.t.Fatalf("start PostgreSQL: %v\n%s", err, out)
	}
}

// stop ends the server as its crash would.
func (p *ownPostgres) stop() {
	p.t.Helper()
	if out, err := p.run("pg_ctl", "-D", filepath.Join(p.dir, "data"), "-m", "immediate", "-w", "stop"); err != nil {
		p.t.Fatalf("stop PostgreSQL: %v\n%s", err, out)
	}
}

func (p *ownPostgres) run(program string, args ...string) (string, error) {
	args = append([]string{filepath.Join(p.bin, program)}, args...)
	if os.Getuid() == 0 {
		args = append([]string{"runuser", "-u", "postgres", "--"}, args...)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = p.dir
	var out bytes.Buffer
	if program != "pg_ctl" || !slices.Contains(args, "start") { // the server would keep the pipe open
		cmd.Stdout, cmd.Stderr = &out, &out
	}
	err := cmd.Run()
	return out.String(), err
}
