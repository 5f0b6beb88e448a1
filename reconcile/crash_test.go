package reconcile_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"

	"millwright/reconcile"
	"millwright/state"
	"millwright/state/statetest"
)

// These variables make the test binary a process that applies a directory and is killed meanwhile.
const (
	crashDSN  = "MILLWRIGHT_TEST_CRASH_DSN"
	crashDir  = "MILLWRIGHT_TEST_CRASH_DIR"
	crashRow  = "MILLWRIGHT_TEST_CRASH_ROW"  // kill before this row of the database is written, from 1
	crashLast = "MILLWRIGHT_TEST_CRASH_LAST" // kill when the apply has returned
	crashRun  = "MILLWRIGHT_TEST_CRASH_RUN"  // reconcile until someone else kills the process
)

// points is how many points of an apply the process must at least be killed at on each database. With
// MILLWRIGHT_TEST_CRASH_POINTS=all it is killed at every one there is.
const points = 50

func everyPoint() bool { return os.Getenv("MILLWRIGHT_TEST_CRASH_POINTS") == "all" }

func TestMain(m *testing.M) {
	if dsn := os.Getenv(powerDSN); dsn != "" {
		if err := applyCommit(dsn); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if dsn := os.Getenv(crashDSN); dsn != "" {
		if err := applyAndDie(dsn, os.Getenv(crashDir)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

func applyAndDie(dsn, dir string) error {
	ctx := context.Background()
	var armed atomic.Bool
	row, _ := strconv.ParseInt(os.Getenv(crashRow), 10, 64)
	var written atomic.Int64
	sqlite.RegisterConnectionHook(func(conn sqlite.ExecQuerierContext, _ string) error {
		conn.(sqlite.HookRegisterer).RegisterPreUpdateHook(func(sqlite.SQLitePreUpdateData) {
			if armed.Load() && written.Add(1) == row {
				die()
			}
		})
		return nil
	})
	s, err := state.Open(ctx, state.Config{DSN: dsn, MasterKey: statetest.MasterKey()})
	if err != nil {
		return err
	}
	source, err := reconcile.Dir(reconcile.DirConfig{Dir: dir})
	if err != nil {
		return err
	}
	all, err := s.Factories(ctx)
	if err != nil || len(all) != 1 {
		return fmt.Errorf("%d factories: %w", len(all), err)
	}
	loop := reconcile.New(reconcile.Config{Store: s, Factory: all[0], Source: source, AllowPrune: true, AllowRename: true})
	if os.Getenv(crashRun) != "" {
		return loop.Run(ctx)
	}
	armed.Store(true)
	if r := loop.Once(ctx, reconcile.Request{}); r.Outcome != state.OutcomeApplied {
		return fmt.Errorf("%s: %s", r.Outcome, r.Message)
	}
	if os.Getenv(crashLast) != "" {
		die()
	}
	return s.Close()
}

// crashTrees differ in every way that an apply can change a state: what is created, changed,
// deleted, brought back under its old name, and left alone, of all kinds.
func crashTrees() [2]tree {
	var trees [2]tree
	for side := range trees {
		t := tree{
			"factory.yaml":         fmt.Sprintf("schemaVersion: v1alpha1\nname: side-%d\nrepositories: [{owner: acme, name: x}]\nagentDefaults: {model: auto}\n", side),
			"agents/lead/agent.md": "---\nagentType: FOREMAN\n---\nLead.\n",
		}
		for i := range 10 {
			t[fmt.Sprintf("agents/kept%d/agent.md", i)] = fmt.Sprintf("---\ndescription: Of side %d.\n---\nWork.\n", side)
			t[fmt.Sprintf("agents/side%d-%d/agent.md", side, i)] = "---\ndescription: Of one side.\n---\nWork.\n"
		}
		for i := range 6 { // of at most 20
			t[fmt.Sprintf("webhooks/kept%d.yaml", i)] = hook("A", fmt.Sprintf("deliveryIdHeader: X-Side-%d", side))
			t[fmt.Sprintf("webhooks/still%d.yaml", i)] = hook("A")
			t[fmt.Sprintf("webhooks/side%d-%d.yaml", side, i)] = hook("B")
		}
		trees[side] = t
	}
	return trees
}

// record is everything that an apply may change.
type record struct {
	Revision  string
	Side      string            // the factory file's name
	Live      map[string]string // webhook: UID and spec
	Deleted   []string          // UIDs of webhooks
	Resources map[string]string // UID by kind and name
	Described map[string]string // agents
	Applied   int               // attempts in the history
}

func (r record) equal(o record) bool { return fmt.Sprintf("%+v", r) == fmt.Sprintf("%+v", o) }

// crashed is a state on which applies are killed.
type crashed struct {
	testing.TB
	dsn, dir string
	trees    [2]tree
	revision [2]string
	side     int               // that is applied
	seen     map[string]string // what each UID ever stood for
	kills    map[string]int    // by what the state was afterwards
}

func newCrashed(tb testing.TB, dsn string) *crashed {
	tb.Helper()
	c := &crashed{TB: tb, dsn: dsn, dir: tb.TempDir(), trees: crashTrees(), seen: map[string]string{}, kills: map[string]int{}}
	for side, t := range c.trees {
		root := tb.TempDir()
		t.write(tb, root)
		c.revision[side] = fetch(tb, dir(tb, root)).Revision.ID
	}
	c.trees[0].write(tb, c.dir)
	c.open(dsn, func(s *state.Store) {
		b := newBench(tb, s, dir(tb, c.dir), nil)
		b.once(state.OutcomeApplied, true)
	})
	return c
}

func (c *crashed) open(dsn string, f func(*state.Store)) {
	c.Helper()
	s, err := state.Open(context.Background(), state.Config{DSN: dsn, MasterKey: statetest.MasterKey()})
	must(c, err)
	f(s)
	must(c, s.Close())
}

// look reads the state, and with it how many webhooks of each name there have been and the key of UIDs.
func (c *crashed) look(dsn string) (r record, cur state.Current) {
	c.Helper()
	c.open(dsn, func(s *state.Store) {
		ctx := context.Background()
		all, err := s.Factories(ctx)
		must(c, err)
		cur, err = s.Current(ctx, all[0].UID)
		must(c, err)
		webhooks, err := s.Webhooks(ctx, all[0].UID, true)
		must(c, err)
		attempts, err := s.Attempts(ctx, all[0].UID, 0, 1000)
		must(c, err)
		r = record{Revision: all[0].Applied.ID, Live: map[string]string{}, Resources: cur.UIDs, Described: map[string]string{}}
		if cur.Factory.Spec != nil {
			r.Side = cur.Factory.Spec.Name
		}
		for _, a := range cur.Tree.Agents {
			r.Described[a.Name] = a.Description
		}
		live := map[string]bool{}
		for _, w := range cur.Webhooks {
			live[w.UID] = true
			r.Live[w.Spec.Name] = w.UID + " " + w.Spec.DeliveryIDHeader
		}
		for _, w := range webhooks {
			c.meets(w.UID, fmt.Sprintf("webhook %s, number %d", w.Spec.Name, w.Ordinal))
			if !live[w.UID] {
				r.Deleted = append(r.Deleted, w.UID)
			}
		}
		slices.Sort(r.Deleted)
		for name, uid := range cur.UIDs {
			c.meets(uid, name)
		}
		for _, a := range attempts {
			if a.Outcome != state.OutcomeApplied || a.Revision.ID == "" {
				c.Fatalf("attempt %+v", a)
			}
			r.Applied++
		}
	})
	return r, cur
}

// meets notes what a UID stands for: the same thing for ever.
func (c *crashed) meets(uid, what string) {
	c.Helper()
	if was, known := c.seen[uid]; known && was != what {
		c.Fatalf("UID %s was %s and is %s", uid, was, what)
	}
	c.seen[uid] = what
}

// child runs a process that applies the other side, and reports whether it was killed.
func (c *crashed) child(dsn string, env ...string) bool {
	c.Helper()
	cmd := c.command(dsn, env...)
	out, err := cmd.CombinedOutput()
	return c.killed(err, string(out))
}

func (c *crashed) command(dsn string, env ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), crashDSN+"="+dsn, crashDir+"="+c.dir), env...)
	return cmd
}

func (c *crashed) killed(err error, out string) bool {
	c.Helper()
	if err == nil {
		return false
	}
	var exited *exec.ExitError
	if !errors.As(err, &exited) || exited.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		c.Fatalf("the process that applies: %v: %s", err, out)
	}
	return true
}

// judge compares the state after a kill with the one before it: it must be that, or all of the other side.
func (c *crashed) judge(point string, was record, cur state.Current, now record) (moved bool) {
	c.Helper()
	to := 1 - c.side
	if now.Revision == was.Revision {
		if !now.equal(was) {
			c.Fatalf("%s: the old revision, and yet\n%+v\nis not\n%+v", point, now, was)
		}
		c.kills["old"]++
		return false
	}
	want := record{
		Revision: c.revision[to], Side: fmt.Sprintf("side-%d", to), Live: map[string]string{}, Deleted: slices.Clone(was.Deleted),
		Resources: map[string]string{"agent/lead": was.Resources["agent/lead"]}, Described: map[string]string{"lead": ""}, Applied: was.Applied + 1,
	}
	uid := func(name string) string {
		for _, w := range cur.Webhooks {
			if w.Spec.Name == name {
				return w.UID
			}
		}
		if w, returns := cur.Restorable[name]; returns {
			return w.UID
		}
		return state.WebhookUID(cur.Key, name, cur.Ordinals[name])
	}
	for i := range 6 {
		kept, still, added, gone := fmt.Sprintf("kept%d", i), fmt.Sprintf("still%d", i), fmt.Sprintf("side%d-%d", to, i), fmt.Sprintf("side%d-%d", c.side, i)
		want.Live[kept] = fmt.Sprintf("%s X-Side-%d", uid(kept), to)
		want.Live[still] = uid(still) + " "
		want.Live[added] = uid(added) + " "
		want.Deleted = slices.DeleteFunc(want.Deleted, func(was string) bool { return was == uid(added) })
		want.Deleted = append(want.Deleted, uid(gone))
	}
	for i := range 10 {
		kept, added := fmt.Sprintf("kept%d", i), fmt.Sprintf("side%d-%d", to, i)
		want.Described[kept], want.Described[added] = fmt.Sprintf("Of side %d.", to), "Of one side."
		want.Resources["agent/"+kept] = was.Resources["agent/"+kept]
		fresh := now.Resources["agent/"+added]
		if fresh == "" {
			c.Fatalf("%s: agent %s is missing", point, added)
		}
		want.Resources["agent/"+added] = fresh // chance; look saw that nothing else ever had it
	}
	slices.Sort(want.Deleted)
	if !now.equal(want) {
		c.Fatalf("%s: the new revision, and yet\n%+v\nis not\n%+v", point, now, want)
	}
	c.kills["new"]++
	return true
}

// turn makes the other side the next to apply.
func (c *crashed) turn() { c.trees[1-c.side].write(c, c.dir) }

// enough holds the harness against itself: there were kills before the commit and after it.
func (c *crashed) enough() {
	c.Helper()
	c.Logf("killed at %d points: %v", c.kills["old"]+c.kills["new"], c.kills)
	if c.kills["old"]+c.kills["new"] < points || c.kills["old"] == 0 || c.kills["new"] == 0 {
		c.Errorf("want at least %d kills, some before and some after the commit: %v", points, c.kills)
	}
}

// TestAcceptanceKillDuringApplySQLite kills an apply before every other row that it writes, and then leaves
// off its log after every page and in the middle of every page: what a kill during the commit leaves behind.
// The state is exactly the old or the new revision, and no UID is used again or changes.
func TestAcceptanceKillDuringApplySQLite(t *testing.T) {
	if testing.Short() {
		t.Skip("many processes are not short")
	}
	t.Parallel()
	c := newCrashed(t, statetest.SQLite(t))
	c.turn()
	was, cur := c.look(c.dsn)
	step := 2
	if everyPoint() {
		step = 1
	}
	for row := 1; ; row += step {
		if !c.child(c.dsn, fmt.Sprintf("%s=%d", crashRow, row), crashLast+"=1") {
			t.Fatal("the process was not killed")
		}
		kept := filepath.Join(t.TempDir(), "state.db")
		for _, suffix := range []string{"", "-wal"} {
			data, err := os.ReadFile(c.dsn + suffix)
			must(t, err)
			must(t, os.WriteFile(kept+suffix, data, 0o600))
		}
		now, _ := c.look(c.dsn)
		if c.judge(fmt.Sprintf("row %d", row), was, cur, now) {
			c.cut(kept, was, cur)
			break
		}
	}
	c.enough()
	// Back and forth once more: what was deleted comes back under UIDs that were never there.
	for range 2 {
		c.side = 1 - c.side
		c.turn()
		was, cur = c.look(c.dsn)
		if c.child(c.dsn) {
			t.Fatal("killed by someone else")
		}
		now, _ := c.look(c.dsn)
		if !c.judge("afterwards", was, cur, now) {
			t.Fatal("an apply after the kills changed nothing")
		}
	}
}

// cut opens the state with each beginning of its write-ahead log.
func (c *crashed) cut(db string, was record, cur state.Current) {
	c.Helper()
	log, err := os.ReadFile(db + "-wal")
	must(c, err)
	frame := 24 + int(binary.BigEndian.Uint32(log[8:]))
	main, err := os.ReadFile(db)
	must(c, err)
	moved := false
	for at := 32; at <= len(log); at += frame / 2 {
		part := filepath.Join(c.TempDir(), "state.db")
		must(c, os.WriteFile(part, main, 0o600))
		must(c, os.WriteFile(part+"-wal", log[:at], 0o600))
		now, _ := c.look(part)
		if new := c.judge(fmt.Sprintf("%d of %d bytes of the log", at, len(log)), was, cur, now); moved && !new {
			c.Fatalf("%d of %d bytes of the log: the new revision is gone again", at, len(log))
		} else {
			moved = new
		}
	}
	if !moved {
		c.Error("the whole log does not have the new revision")
	}
}

// TestAcceptanceKillDuringApplyPostgres kills an apply at messages that it sends to the server, before or
// just after the message has arrived there. The state is exactly the old or the new revision, and no UID is
// used again or changes.
func TestAcceptanceKillDuringApplyPostgres(t *testing.T) {
	if testing.Short() {
		t.Skip("many processes are not short")
	}
	t.Parallel()
	c := newCrashed(t, statetest.Postgres(t))
	wire := newWire(t, c.dsn)
	total, back := 0, 0
	for back < 2 {
		c.turn()
		was, cur := c.look(c.dsn)
		cmd := c.command(wire.dsn)
		if total > 0 {
			// The first process lives, and shows how many messages there are. From then on each is
			// killed a few messages later; those around the commit are all tried.
			wire.next(total)
		}
		out, err := wire.run(cmd)
		killed := c.killed(err, out)
		now, _ := c.look(c.dsn)
		moved := c.judge(fmt.Sprintf("message %d", wire.point), was, cur, now)
		if !killed {
			c.kills["new"]-- // it was none
			if !moved {
				t.Fatal("an apply that nobody killed changed nothing")
			}
			if total == 0 {
				total = wire.sent()
			} else {
				back++
			}
		}
		if moved {
			c.side = 1 - c.side
		}
	}
	c.enough()
}

// wire stands between a process and PostgreSQL and kills the process at a message.
type wire struct {
	testing.TB
	dsn             string
	network, server string
	point           int // the message to kill at, from 1; 0: none

	mu   sync.Mutex
	cmd  *exec.Cmd
	seen int
	open int       // connections
	idle sync.Cond // open has become less
}

func newWire(tb testing.TB, dsn string) *wire {
	tb.Helper()
	cfg, err := pgconn.ParseConfig(dsn)
	must(tb, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(tb, err)
	tb.Cleanup(func() { l.Close() })
	w := &wire{TB: tb}
	w.idle.L = &w.mu
	w.network, w.server = pgconn.NetworkAddress(cfg.Host, cfg.Port)
	u, err := url.Parse(dsn)
	must(tb, err)
	q := u.Query()
	q.Del("port")
	q.Set("sslmode", "disable")
	q.Del("host")
	u.Host, u.RawQuery = l.Addr().String(), q.Encode()
	w.dsn = u.String()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			w.mu.Lock()
			w.open++
			w.mu.Unlock()
			go w.serve(conn)
		}
	}()
	return w
}

// next chooses the next message to kill at: all of those around the commit, and enough of the others.
func (w *wire) next(total int) {
	const around = 16
	step := max(1, (total-around)/(points+4-around))
	if w.point >= total-around-step || everyPoint() {
		step = 1
	}
	w.point += step
}

func (w *wire) sent() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen
}

// run runs the process, and returns when the server has handled all of its requests.
func (w *wire) run(cmd *exec.Cmd) (string, error) {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	w.mu.Lock()
	w.cmd, w.seen = cmd, 0
	err := cmd.Start()
	w.mu.Unlock()
	must(w, err)
	err = cmd.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.open > 0 {
		w.idle.Wait()
	}
	return out.String(), err
}

func (w *wire) serve(client net.Conn) {
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.open--
		w.idle.Broadcast()
	}()
	defer client.Close()
	server, err := net.Dial(w.network, w.server)
	if err != nil {
		return
	}
	defer server.Close()
	var answers sync.WaitGroup
	answers.Go(func() {
		_, _ = io.Copy(client, server)
		_, _ = io.Copy(io.Discard, server)
	})
	defer answers.Wait()
	defer server.(interface{ CloseWrite() error }).CloseWrite()
	for first := true; ; first = false {
		message, err := readMessage(client, first)
		if err != nil || !w.pass(server, message) {
			return
		}
	}
}

// readMessage reads one message of the PostgreSQL protocol; the first has no type.
func readMessage(r io.Reader, first bool) ([]byte, error) {
	head := make([]byte, 5)
	if first {
		head = head[:4]
	}
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	body := make([]byte, binary.BigEndian.Uint32(head[len(head)-4:])-4)
	_, err := io.ReadFull(r, body)
	return append(head, body...), err
}

// pass hands a message on, and kills the process when it is its turn: before that when the number of the
// message is even, and after it when it is odd.
func (w *wire) pass(server net.Conn, message []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen++
	if w.seen == w.point && w.point%2 == 0 {
		_ = w.cmd.Process.Kill()
		return false
	}
	if _, err := server.Write(message); err != nil {
		return false
	}
	if w.seen == w.point {
		_ = w.cmd.Process.Kill()
		return false
	}
	return true
}
