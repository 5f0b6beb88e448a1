package ingress_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"millwright/ingress"
	"millwright/state"
	"millwright/state/statetest"
)

// gate is a way to the database that can be blocked, as when its process is stopped, and cut, as when it
// is restarted.
type gate struct {
	t    *testing.T
	mu   sync.Mutex
	open *sync.Cond
	shut bool
	all  map[net.Conn]bool
}

// throughGate returns dsn as it leads through a gate on a socket of its own.
func throughGate(t *testing.T, dsn string) (string, *gate) {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	network, server := "tcp", u.Host
	if dir := q.Get("host"); strings.HasPrefix(dir, "/") {
		network, server = "unix", filepath.Join(dir, ".s.PGSQL.5432")
	} else if u.Port() == "" {
		server = net.JoinHostPort(u.Hostname(), "5432")
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	q.Del("host")
	q.Set("sslmode", "disable")
	u.Host, u.RawQuery = ln.Addr().String(), q.Encode()
	g := &gate{t: t, all: map[net.Conn]bool{}}
	g.open = sync.NewCond(&g.mu)
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			s, err := net.Dial(network, server)
			if err != nil {
				c.Close()
				continue
			}
			g.mu.Lock()
			g.all[c], g.all[s] = true, true
			g.mu.Unlock()
			go g.pass(c, s)
			go g.pass(s, c)
		}
	}()
	return u.String(), g
}

func (g *gate) pass(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		g.mu.Lock()
		for g.shut {
			g.open.Wait()
		}
		g.mu.Unlock()
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (g *gate) set(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = shut
	g.open.Broadcast()
}

func (g *gate) cut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for c := range g.all {
		c.Close()
	}
	clear(g.all)
}

// A database that hangs, and one that is restarted: 503 and never 202, and recovery without help.
func TestDatabaseStoppedAndRestarted(t *testing.T) {
	dsn, g := throughGate(t, statetest.Postgres(t))
	w := newWorld(t, statetest.Open(t, dsn), ingress.Config{DeliveriesPerMinute: -1})
	t.Cleanup(func() { g.set(false) }) // or nothing could be closed
	w.hook(enabled("live"))
	want(t, w.deliver("live", `1`), 202)
	g.set(true)
	r := w.deliver("live", `2`)
	if r.StatusCode != 503 || r.Header.Get("Retry-After") == "" {
		t.Errorf("while the database hangs: %d %v", r.StatusCode, r.Header)
	}
	if w.in.Ready() {
		t.Error("ready without a lease")
	}
	g.cut()
	g.set(false)
	statetest.Until(t, "a delivery is accepted again", func() bool { return w.deliver("live", `3`).StatusCode == 202 })
	for _, row := range w.rows("live") { // what was answered 503 may be stored; it may be sent again
		if row.Outcome != state.DeliveryAccepted && row.Outcome != state.DeliveryDuplicate {
			t.Errorf("%+v", row)
		}
	}
	want(t, w.deliver("live", `2`), 202)
}

// A full disk: 503 and never 202; recovery without help, with everything that was acknowledged. The
// receiver runs in a process of its own, whose files may not grow for a while.
func TestDiskFull(t *testing.T) {
	if dsn := os.Getenv("DISK_FULL_STATE"); dsn != "" {
		diskFullServer(t, dsn)
		return
	}
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestDiskFull$", "-test.v")
	cmd.Env = append(os.Environ(), "DISK_FULL_STATE="+filepath.Join(dir, "state.db"))
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }()
	seen := make(chan string, 100)
	go func() {
		defer close(seen)
		buf := make([]byte, 4096)
		rest := ""
		for {
			n, err := stdout.Read(buf)
			rest += string(buf[:n])
			for line := ""; strings.Contains(rest, "\n"); {
				line, rest, _ = strings.Cut(rest, "\n")
				seen <- line
			}
			if err != nil {
				return
			}
		}
	}()
	line := func(prefix string) string {
		t.Helper()
		for {
			l, ok := statetest.Receive(t, "the child to print "+prefix, seen)
			if !ok {
				t.Fatalf("the child ended before %q", prefix)
			}
			if _, rest, ok := strings.Cut(l, prefix+" "); ok {
				return rest
			}
		}
	}
	url := line("SERVING")
	n := 0
	acknowledged := map[string]bool{}
	send := func() int {
		n++
		req, err := http.NewRequest("POST", url, strings.NewReader(`{"n":`+strconv.Itoa(n)+`,"x":"`+strings.Repeat("x", 50_000)+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+tokenSecret)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		if resp.StatusCode == 202 {
			acknowledged[reply{resp, string(body)}.deliveryID()] = true
		} else if resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" {
			t.Errorf("%d %v", resp.StatusCode, resp.Header)
		}
		return resp.StatusCode
	}
	if send() != 202 {
		t.Fatal("not before the disk is full")
	}
	fmt.Fprintln(stdin, "full")
	line("FULL")
	failed := 0
	for range 300 { // the log has some room left in its file
		if send() == 503 {
			failed++
		}
	}
	if failed == 0 {
		t.Error("nothing failed on a full disk")
	}
	fmt.Fprintln(stdin, "free")
	line("FREE")
	statetest.Until(t, "the disk with room again takes a delivery", func() bool { return send() == 202 })
	fmt.Fprintln(stdin, "end")
	line("ENDED")
	stdin.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	s := statetest.Open(t, filepath.Join(dir, "state.db"))
	f, err := s.Factory(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	hooks, err := s.Webhooks(t.Context(), f.UID, false)
	if err != nil {
		t.Fatal(err)
	}
	for uid := range acknowledged {
		if _, err := s.Delivery(t.Context(), f.UID, hooks[0].UID, uid); err != nil {
			t.Errorf("an acknowledged delivery is lost: %v", err)
		}
		if runs, err := s.RunsOfDeliveries(t.Context(), uid); err != nil || len(runs[uid]) != 1 {
			t.Errorf("%s has %d runs, %v", uid, len(runs[uid]), err)
		}
	}
}

// A state whose files cannot be written, as when their file system has become read-only: 503 and never 202,
// and recovery without help.
func TestUnwritableState(t *testing.T) {
	dsn := statetest.SQLite(t)
	w := newWorld(t, statetest.Open(t, dsn), ingress.Config{DeliveriesPerMinute: -1})
	w.hook(enabled("live"))
	want(t, w.deliver("live", `1`), 202)
	files, err := filepath.Glob(dsn + "*")
	if err != nil || len(files) < 3 { // the database, its log, the log's index
		t.Fatal(files, err)
	}
	// Not even root can write to such a file, nor through a descriptor that is open. It is done by another
	// process, since one that closes a file gives up its locks on it.
	chattr := func(flag string) error {
		out, err := exec.Command("chattr", append([]string{flag}, files...)...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("chattr %s: %w: %s", flag, err, out)
		}
		return nil
	}
	t.Cleanup(func() { _ = chattr("-i") })
	if err := chattr("+i"); err != nil {
		if os.Getenv("CI") == "true" && os.Geteuid() == 0 {
			t.Fatal(err)
		}
		t.Skipf("it takes root, and a file system that knows immutable files: %v", err)
	}
	for i := range 3 {
		r := w.deliver("live", strconv.Itoa(10+i))
		if r.StatusCode != 503 || r.Header.Get("Retry-After") == "" {
			t.Errorf("while nothing can be written: %d %v", r.StatusCode, r.Header)
		}
	}
	if err := chattr("-i"); err != nil {
		t.Fatal(err)
	}
	statetest.Until(t, "the writable state takes a delivery", func() bool { return w.deliver("live", `10`).StatusCode == 202 })
	want(t, w.deliver("live", `2`), 202)
	for _, row := range w.rows("live") {
		if row.Outcome != state.DeliveryAccepted {
			t.Errorf("%+v", row)
		}
	}
}

// diskFullServer is the child of TestDiskFull.
func diskFullServer(t *testing.T, dsn string) {
	signal.Ignore(syscall.SIGXFSZ)
	s, err := state.Open(context.Background(), state.Config{DSN: dsn, MasterKey: statetest.MasterKey()})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, s, ingress.Config{DeliveriesPerMinute: -1})
	w.hook(enabled("live"))
	w.automation("a", "live", "")
	fmt.Println("SERVING", w.url("live"))
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
	for {
		var order string
		if _, err := fmt.Scanln(&order); err != nil {
			return
		}
		limit := was
		switch order {
		case "full":
			limit.Cur = 1 << 20
			fallthrough
		case "free":
			if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
				t.Fatal(err)
			}
			fmt.Println(strings.ToUpper(order), "")
		case "end":
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			fmt.Println("ENDED", "")
		}
	}
}
