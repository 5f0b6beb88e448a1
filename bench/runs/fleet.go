package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
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
	"time"
)

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

	automation := "---\ntriggers: [{provider: webhook, event: received, filter: {webhook_ids: [%s]}}]\n---\nGo.\n"
	for name, content := range map[string]string{
		"factory/webhooks/hook.yaml": "secretName: TOKEN\n",
		"millwright.yaml": "limits: {deliveriesPerMinute: -1}\n" +
			"factories: [{name: bench, source: {dir: factory}}]\n",
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

// figures are what one measurement of one program found, by name.
type figures map[string]float64
