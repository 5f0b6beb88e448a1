package main

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
)

// figures are what one measurement of one program found, by name.
type figures map[string]float64

// queue measures how soon queued runs begin, as a user's servers do it: with programs of this tree and,
// where -before names one, of another. They take turns, so that other work on the machine hits both alike.
func queue(ctx context.Context, o options) error {
	after := filepath.Join(o.dir, "millwright")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", after, "./cmd/millwright").CombinedOutput(); err != nil {
		return fmt.Errorf("build the program: %w\n%s", err, out)
	}

	programs := []string{mustAbs(after)}
	if o.before != "" {
		programs = append(programs, mustAbs(o.before))
	}

	scenarios := []struct {
		name    string
		servers int // on PostgreSQL; 0: one on SQLite
		measure func(context.Context, *fleet, options) error
	}{
		{"one server on SQLite", 0, paced},
		{"one server", 1, paced},
		{"three servers", 3, paced},
		{"backlog on SQLite", 0, backlog},
		{"backlog", 1, backlog},
		{"one of three killed", 3, killed},
		{"database restarted", 3, restarted},
	}

	for _, s := range scenarios {
		if o.postgres == "" && s.servers > 0 || o.restart == "" && s.name == "database restarted" ||
			!strings.Contains(s.name, o.only) {
			continue
		}

		found := make([][]figures, len(programs))
		for round := range o.pairs {
			for i := range programs {
				i = (i + round) % len(programs)
				f, err := o.inFleet(ctx, programs[i], s.servers, s.measure)
				if err != nil {
					return fmt.Errorf("%s: %s: %w", s.name, programs[i], err)
				}

				found[i] = append(found[i], f)
			}
		}

		report(s.name, found)
	}

	return nil
}

// report prints the median of each figure, and its ratio to that of the other program.
func report(name string, found [][]figures) {
	fmt.Println(name)
	for _, figure := range sortedKeys(found[0][0]) {
		line := fmt.Sprintf("  %-40s", figure)
		var medians []float64
		for _, rounds := range found {
			var all []float64
			for _, f := range rounds {
				all = append(all, f[figure])
			}

			slices.Sort(all)
			medians = append(medians, all[len(all)/2])
			line += fmt.Sprintf(" %10.1f (%.1f to %.1f)", all[len(all)/2], all[0], all[len(all)-1])
		}

		if len(medians) == 2 && medians[1] != 0 {
			line += fmt.Sprintf("  ratio %.2f", medians[0]/medians[1])
		}

		fmt.Println(line)
	}
}

func sortedKeys(f figures) []string {
	var keys []string
	for k := range f {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// fleet is servers on one state, each a process.
type fleet struct {
	program, dir, dsn string
	driver            string
	ports, peers      []string
	servers           []*exec.Cmd
	webhook           string
	busy              time.Duration // processor time of the servers that have ended
	found             figures
}

const fleetKey = "mw_benchmark-key-of-thirty-two-characters"

// inFleet measures one program with so many servers, 0 for one on SQLite.
func (o options) inFleet(
	ctx context.Context,
	program string,
	servers int,
	measure func(context.Context, *fleet, options) error,
) (figures, error) {
	dir, err := os.MkdirTemp(o.dir, "fleet-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)

	f := &fleet{program: program, dir: mustAbs(dir), driver: "sqlite", found: figures{}}
	f.dsn = filepath.Join(f.dir, "state.db")
	if servers > 0 {
		dsn, _, drop, err := o.schema(ctx, fmt.Sprintf("bench_%d", time.Now().UnixNano()))
		if err != nil {
			return nil, err
		}
		defer drop()

		f.dsn, f.driver = dsn, "pgx"
	}
	defer f.stop()

	if err := f.define(ctx, max(servers, 1)); err != nil {
		return nil, err
	}

	f.busy = 0
	err = measure(ctx, f, o)
	f.stop()
	f.found["processor time of the servers, s"] = f.busy.Seconds()
	if err != nil {
		log, _ := os.ReadFile(filepath.Join(f.dir, "log"))
		err = fmt.Errorf("%w; the servers said:\n%s", err, log[max(0, len(log)-2000):])
	}

	return f.found, err
}

// define makes the state: a webhook, and an automation whose runs take nothing.
func (f *fleet) define(ctx context.Context, servers int) error {
	for range 2 * servers {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		defer l.Close()

		if len(f.ports) < servers {
			f.ports = append(f.ports, l.Addr().String())
		} else {
			f.peers = append(f.peers, l.Addr().String())
		}

		l.Close()
	}

	automation := "---\ntriggers:\n  - provider: webhook\n    event: received\n    filter:\n      webhook_ids: [%s]\n---\nGo.\n"
	for name, content := range map[string]string{
		"factory/webhooks/hook.yaml": "secretName: TOKEN\n",
		"millwright.yaml":            "limits: {deliveriesPerMinute: -1}\nfactories:\n  - name: bench\n    source: {dir: factory}\n",
	} {
		if err := f.write(name, content); err != nil {
			return err
		}
	}

	if err := f.start(ctx, 0, 0); err != nil {
		return err
	}

	if err := f.call(ctx, http.MethodPut, "/secrets/TOKEN", `{"value": "`+token+`"}`, nil); err != nil {
		return err
	}

	var factories struct{ Factories []struct{ UID string } }
	err := await(ctx, "the factory", func() bool {
		return f.call(ctx, http.MethodGet, "/factory", "", &factories) == nil && len(factories.Factories) == 1
	})
	if err != nil {
		return err
	}

	path := "/factory/" + factories.Factories[0].UID
	err = await(ctx, "the webhook", func() bool {
		var all struct{ Webhooks []struct{ UID string } }
		if f.call(ctx, http.MethodGet, path+"/webhooks", "", &all) == nil && len(all.Webhooks) == 1 {
			f.webhook = all.Webhooks[0].UID
		}

		return f.webhook != ""
	})
	if err != nil {
		return err
	}
	if err = f.write("factory/automations/a/automation.md", fmt.Sprintf(automation, f.webhook)); err != nil {
		return err
	}

	err = await(ctx, "the automation", func() bool {
		var all struct{ Automations []any }
		return f.call(ctx, http.MethodGet, path+"/automations", "", &all) == nil && len(all.Automations) == 1
	})
	f.stop()
	return err
}

func (f *fleet) write(name, content string) error {
	path := filepath.Join(f.dir, name)
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600))
}

// startAll starts every server with so many slots each, and waits until all of them are ready.
func (f *fleet) startAll(ctx context.Context, slots int) error {
	for i := range f.ports {
		if err := f.start(ctx, i, slots); err != nil {
			return err
		}
	}
	return nil
}

func (f *fleet) start(ctx context.Context, i, slots int) error {
	args := []string{
		"serve", "--config", filepath.Join(f.dir, "millwright.yaml"), "--state", f.dsn, "--listen", f.ports[i],
		"--workers", fmt.Sprint(slots), "--log-level", "warn",
	}
	if len(f.peers) > 1 {
		peers := append([]string{f.peers[i]}, slices.Delete(slices.Clone(f.peers), i, i+1)...)
		args = append(args, "--nats-cluster", strings.Join(peers, ","))
	}

	log, err := os.OpenFile(filepath.Join(f.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()

	p := exec.Command(f.program, args...)
	p.Stderr, p.Dir = log, f.dir
	p.Env = append(os.Environ(), "MILLWRIGHT_BOOTSTRAP_KEY="+fleetKey, "TMPDIR="+f.dir,
		"MILLWRIGHT_MASTER_KEY="+base64.StdEncoding.EncodeToString(make([]byte, 32)))
	if err := p.Start(); err != nil {
		return err
	}

	f.servers = append(f.servers, p)
	return await(ctx, "the server", func() bool {
		resp, err := http.Get("http://" + f.ports[i] + "/readyz")
		if err != nil {
			return false
		}

		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

func (f *fleet) stop() {
	for _, p := range f.servers {
		_ = p.Process.Signal(os.Interrupt)
	}
	for _, p := range f.servers {
		_ = p.Wait()
		f.busy += p.ProcessState.SystemTime() + p.ProcessState.UserTime()
	}
	f.servers = nil
}

func (f *fleet) call(ctx context.Context, method, path, body string, into any) error {
	r, err := http.NewRequestWithContext(ctx, method, "http://"+f.ports[0]+"/api/v1"+path, strings.NewReader(body))
	if err != nil {
		return err
	}

	r.Header.Set("Authorization", "Bearer "+fleetKey)
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()

	if resp.StatusCode >= 300 {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
		return fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, text)
	}
	if into == nil {
		return nil
	}

	return json.NewDecoder(resp.Body).Decode(into)
}

// await waits for a minute at most.
func await(ctx context.Context, what string, done func() bool) error {
	for began := time.Now(); !done(); {
		if time.Since(began) > time.Minute {
			return fmt.Errorf("waited a minute for %s", what)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}

	return nil
}

// send posts n deliveries to the servers of these ports in turns, at so many a second or, at 0, as fast as
// they are taken. It returns how many were accepted. at, unless it is nil, is called half-way.
func (f *fleet) send(ctx context.Context, n, rate int, ports func() []string, at func()) int {
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	defer client.CloseIdleConnections()

	var senders sync.WaitGroup
	var accepted atomic.Int64
	free := make(chan struct{}, 64)
	tick := time.NewTicker(time.Second / time.Duration(cmp.Or(rate, 1_000_000)))
	defer tick.Stop()

	for i := range n {
		if i == n/2 && at != nil {
			senders.Go(at)
		}
		if rate > 0 {
			<-tick.C
		}

		free <- struct{}{}
		senders.Go(func() {
			defer func() { <-free }()

			to := ports()
			if _, err := deliver(ctx, client, "http://"+to[i%len(to)]+"/webhooks/w/"+f.webhook, i); err == nil {
				accepted.Add(1)
			}
		})
	}

	senders.Wait()
	return int(accepted.Load())
}

// ran is what the state has of a run.
type ran struct{ queued, started, finished, attempt int64 }

// drained waits until every run has ended, and returns them. It counts what was lost, was executed again,
// or ended twice.
func (f *fleet) drained(ctx context.Context, accepted int) ([]ran, error) {
	db, err := sql.Open(f.driver, f.dsn)
	if err != nil {
		return nil, err
	}
	defer db.Close()

	var left int
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		err := db.QueryRowContext(ctx, `SELECT count(*) FROM runs WHERE finished_at IS NULL`).Scan(&left)
		if err == nil && left == 0 {
			break
		}
		if time.Since(began) > 5*time.Minute {
			return nil, fmt.Errorf("%d runs are left: %w", left, err)
		}
	}

	rows, err := db.QueryContext(
		ctx,
		`SELECT queued_at, coalesce(started_at, 0), finished_at, attempt, state FROM runs`,
	)
	if err != nil {
		return nil, err
	}
	defer rows.Close()

	var all []ran
	f.found["runs lost"] = 0
	for rows.Next() {
		var r ran
		var state string
		if err := rows.Scan(&r.queued, &r.started, &r.finished, &r.attempt, &state); err != nil {
			return nil, err
		}
		if state != "SUCCEEDED" {
			f.found["runs lost"]++
		}

		all = append(all, r)
	}

	f.found["runs lost"] += math.Max(0, float64(accepted-len(all)))
	var twice int
	err = db.QueryRowContext(ctx, `SELECT count(*) FROM (SELECT run_id FROM run_entries
		WHERE kind = 'state' AND content LIKE '%SUCCEEDED%' GROUP BY run_id HAVING count(*) > 1) AS t`).Scan(&twice)
	f.found["runs doubled"] = float64(twice)
	return all, errors.Join(rows.Err(), err)
}

// pickups notes how long the runs waited, in milliseconds, from queued to started.
func (f *fleet) pickups(name string, all []ran) {
	var took []float64
	for _, r := range all {
		took = append(took, float64(r.started-r.queued)/1000)
	}
	slices.Sort(took)
	if n := len(took); n > 0 {
		f.found[name+" p50, ms"] = took[n/2]
		f.found[name+" p99, ms"] = took[n*99/100]
		f.found[name+" slowest, ms"] = took[n-1]
	}
}

// paced measures the pickup of runs at the given rate.
func paced(ctx context.Context, f *fleet, o options) error {
	if err := f.startAll(ctx, o.workers/len(f.ports)+1); err != nil {
		return err
	}

	all := func() []string { return f.ports }
	f.send(ctx, o.rate/2, o.rate, all, nil) // warm
	if _, err := f.drained(ctx, 0); err != nil {
		return err
	}

	began := time.Now().UnixMicro()
	accepted := f.send(ctx, int(o.duration.Seconds()*float64(o.rate)), o.rate, all, nil)
	runs, err := f.drained(ctx, accepted)
	f.pickups("pickup", slices.DeleteFunc(runs, func(r ran) bool { return r.queued < began }))
	return err
}

// backlog measures how fast 16 slots work off what waits.
func backlog(ctx context.Context, f *fleet, o options) error {
	if err := f.startAll(ctx, 0); err != nil {
		return err
	}

	accepted := f.send(ctx, o.queued, 0, func() []string { return f.ports }, nil)
	f.stop()
	if err := f.startAll(ctx, 16); err != nil {
		return err
	}

	runs, err := f.drained(ctx, accepted)
	if err != nil || len(runs) == 0 {
		return fmt.Errorf("%d runs: %w", len(runs), err)
	}

	first := slices.MinFunc(runs, func(a, b ran) int { return cmp.Compare(a.started, b.started) }).started
	last := slices.MaxFunc(runs, func(a, b ran) int { return cmp.Compare(a.finished, b.finished) }).finished
	f.found["drained, s"] = float64(last-first) / 1e6
	return nil
}

// killed measures what becomes of runs when one of the servers is killed with its worker, under load.
func killed(ctx context.Context, f *fleet, o options) error {
	if err := f.startAll(ctx, o.workers/len(f.ports)+1); err != nil {
		return err
	}

	var dead atomic.Int64
	ports := func() []string {
		if dead.Load() > 0 {
			return f.ports[:2]
		}
		return f.ports
	}

	accepted := f.send(ctx, int(2*o.duration.Seconds()*float64(o.rate)), o.rate, ports, func() {
		dead.Store(time.Now().UnixMicro())
		_ = f.servers[2].Process.Kill()
	})
	runs, err := f.drained(ctx, accepted)
	f.pickups(
		"pickup after the kill",
		slices.DeleteFunc(slices.Clone(runs), func(r ran) bool { return r.queued < dead.Load() || r.attempt > 1 }),
	)
	again := 0.0
	for _, r := range runs {
		if r.attempt > 1 {
			again = max(again, float64(r.started-dead.Load())/1e6)
		}
	}

	f.found["held by the killed until begun again, s"] = again
	return err
}

// restarted measures what becomes of runs when the database is started again under load.
func restarted(ctx context.Context, f *fleet, o options) error {
	if err := f.startAll(ctx, o.workers/len(f.ports)+1); err != nil {
		return err
	}

	var back atomic.Int64
	var failed error
	accepted := f.send(
		ctx,
		int(2*o.duration.Seconds()*float64(o.rate)),
		o.rate,
		func() []string { return f.ports },
		func() {
			out, err := exec.CommandContext(ctx, "sh", "-c", o.restart).CombinedOutput()
			if err != nil {
				failed = fmt.Errorf("%s: %w: %s", o.restart, err, out)
			}

			back.Store(time.Now().UnixMicro())
		},
	)
	if failed != nil {
		return failed
	}

	// The load may have ended before the database was back.
	if err := await(ctx, "the servers", func() bool { return f.send(ctx, 3, o.rate, func() []string { return f.ports }, nil) == 3 }); err != nil {
		return err
	}

	runs, err := f.drained(ctx, accepted)
	first := math.Inf(1)
	for _, r := range runs {
		if r.started > back.Load() {
			first = min(first, float64(r.started-back.Load())/1000)
		}
	}

	f.found["first run after the restart, ms"] = first
	f.pickups("pickup", runs)
	return err
}
