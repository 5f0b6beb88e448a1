package main

import (
	"bufio"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"millwright/api"
	"millwright/runs"
	"millwright/state"
)

// compare creates and lists runs over HTTP, with few runs and with many, here and in PocketBase. Each
// server is a process of its own, and they take turns.
func compare(ctx context.Context, o options) error {
	program := filepath.Join(o.dir, "pocketbase")
	build := exec.CommandContext(ctx, "go", "build", "-C", "bench/pocketbase", "-o", mustAbs(program), ".")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build PocketBase: %w\n%s", err, out)
	}

	fmt.Printf(
		"%d connections, medians of %d rounds of %s, answers a second\n\n",
		o.connections,
		o.rounds,
		o.duration,
	)

	for _, n := range []int{o.few, o.many} {
		path, _, err := o.filled(ctx, "compare", n)
		if err != nil {
			return err
		}

		base := filepath.Join(o.dir, fmt.Sprintf("pocketbase-%d", n))
		if err := fillPocketBase(ctx, program, base, n); err != nil {
			return err
		}

		ours := load{kind: "millwright", method: http.MethodGet, path: api.Base + "/agent/runs", key: apiKey}
		theirs := load{
			kind:   "pocketbase",
			method: http.MethodGet,
			path:   "/api/collections/runs/records?perPage=20&sort=-updated",
		}
		create := ours
		create.method, create.body = http.MethodPost, `{
			"prompt": "Look into the event and report what it means.", "title": "Look into the event",
			"config": {"name": "agent-1", "model_id": "model-1"}, "metadata": {"team": "team-1"}
		}`
		insert := theirs
		insert.method, insert.path = http.MethodPost, "/api/collections/runs/records"
		insert.body = `{
			"prompt": "Look into the event and report what it means.", "title": "Look into the event",
			"state": "QUEUED", "source": "API", "name": "agent-1", "model_id": "model-1", "creator": "key_1",
			"config": {"name": "agent-1", "model_id": "model-1"}, "metadata": {"team": "team-1"}
		}`
		untold := theirs
		untold.path += "&skipTotal=true"
		rates := map[load][]float64{}
		for range o.rounds {
			for _, l := range []load{ours, theirs, untold, create, insert} {
				state := path
				if l.kind == "pocketbase" {
					state = base
				}

				rate, err := o.under(ctx, program, state, l)
				if err != nil {
					return fmt.Errorf("%s %s: %w", l.kind, l.method, err)
				}

				rates[l] = append(rates[l], rate)
			}
		}

		of := func(l load) float64 { slices.SortFunc(rates[l], cmp.Compare); return rates[l][len(rates[l])/2] }
		fmt.Printf(
			"%d runs\n"+
				"  first page: %6.0f, PocketBase %6.0f, ratio %.1f (without its total %6.0f, ratio %.1f)\n"+
				"  create:     %6.0f, PocketBase %6.0f, ratio %.1f\n",
			n,
			of(ours),
			of(theirs),
			of(ours)/of(theirs),
			of(untold),
			of(ours)/of(untold),
			of(create),
			of(insert),
			of(create)/of(insert),
		)
	}

	return nil
}

// load is a request that is repeated.
type load struct{ kind, method, path, key, body string }

// under starts a server, warms it up, loads it, ends it, and returns the answers a second.
func (o options) under(ctx context.Context, program, dir string, l load) (float64, error) {
	address, end, err := serveKind(ctx, program, dir, l.kind)
	if err != nil {
		return 0, err
	}
	defer end()
	if _, err := o.repeat(ctx, address, l, o.duration/6); err != nil {
		return 0, err
	}
	return o.repeat(ctx, address, l, o.duration)
}

// serveKind starts a server in a process of its own and waits for it.
func serveKind(ctx context.Context, program, dir, kind string) (address string, end func(), err error) {
	var cmd *exec.Cmd
	if kind == "pocketbase" {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", nil, err
		}

		address = ln.Addr().String()
		ln.Close()
		cmd = exec.CommandContext(ctx, mustAbs(program), dir, address)
	} else {
		self, err := os.Executable()
		if err != nil {
			return "", nil, err
		}

		cmd = exec.CommandContext(ctx, self, "serve")
		cmd.Env = append(os.Environ(), "BENCH_STATE="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			return "", nil, err
		}
		defer func() {
			if err == nil {
				address, err = bufio.NewReader(out).ReadString('\n')
				address = strings.TrimSpace(address)
			}
		}()
	}

	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}

	end = func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }
	if kind == "pocketbase" {
		for range 500 {
			if c, err := net.Dial("tcp", address); err == nil {
				c.Close()
				return address, end, nil
			}
			time.Sleep(20 * time.Millisecond)
		}

		end()
		return "", nil, errors.New("PocketBase does not come up")
	}

	return address, end, nil
}

// serve serves the runs API over the state that the environment names, on a free port.
func serve(ctx context.Context, _ options) error {
	store, err := state.Open(ctx, state.Config{DSN: os.Getenv("BENCH_STATE"), MasterKey: make([]byte, 32)})
	if err != nil {
		return err
	}
	defer store.Close()

	a := api.New(api.Config{Store: store})
	runs.Register(a, runs.Config{Store: store})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}

	fmt.Println(ln.Addr())
	return http.Serve(ln, a)
}

// repeat sends a request over all connections for a time, and returns the answers a second.
func (o options) repeat(ctx context.Context, address string, l load, d time.Duration) (float64, error) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: o.connections, DisableCompression: true}}
	defer client.CloseIdleConnections()

	var wg sync.WaitGroup
	var mu sync.Mutex
	var answers int
	var failed error
	began := time.Now()
	for range o.connections {
		wg.Go(func() {
			n := 0
			var err error
			for err == nil && time.Since(began) < d {
				var r *http.Request
				to := "http://" + address + l.path
				if r, err = http.NewRequestWithContext(ctx, l.method, to, strings.NewReader(l.body)); err != nil {
					break
				}

				r.Header.Set("Content-Type", "application/json")
				if l.key != "" {
					r.Header.Set("Authorization", "Bearer "+l.key)
				}

				var resp *http.Response
				if resp, err = client.Do(r); err != nil {
					break
				}

				var text []byte
				text, err = io.ReadAll(resp.Body)
				resp.Body.Close()
				if err == nil && resp.StatusCode != http.StatusOK {
					err = fmt.Errorf("%d %s", resp.StatusCode, text)
				}

				n++
			}

			mu.Lock()
			defer mu.Unlock()

			answers += n
			failed = errors.Join(failed, err)
		})
	}

	wg.Wait()
	return float64(answers) / time.Since(began).Seconds(), failed
}

// fillPocketBase makes a PocketBase with n runs.
func fillPocketBase(ctx context.Context, program, dir string, n int) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}

	_, end, err := serveKind(ctx, program, dir, "pocketbase") // makes the collection
	if err != nil {
		return err
	}

	end()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "data.db")+"?_pragma=synchronous(OFF)")
	if err != nil {
		return err
	}
	defer db.Close()

	db.SetMaxOpenConns(1)
	_, err = db.ExecContext(ctx, `WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < $1)
		INSERT INTO runs (id, title, prompt, state, source, name, model_id, creator, config, metadata, created, updated)
		SELECT
			lower(substr(hex(randomblob(8)), 1, 15)),
			'Look into event ' || (i % 5000),
			'Look into event ' || i || ' and report what it means. ' || hex(zeroblob(100)),
			CASE WHEN i % 20 = 7 THEN 'FAILED' ELSE 'SUCCEEDED' END,
			'API',
			'agent-' || (i % 30),
			'model-' || (i % 4),
			'key_' || (i % 3),
			'{"name":"agent"}',
			'{"team":"team-1"}',
			strftime('%Y-%m-%d %H:%M:%S.000Z', 1750000000 + i, 'unixepoch'),
			strftime('%Y-%m-%d %H:%M:%S.000Z', 1750000000 + i, 'unixepoch')
		FROM n`, n)
	return err
}
