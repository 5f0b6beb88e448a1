package dispatch_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"millwright/runs/dispatch"
	"millwright/runs/wire"
	"millwright/state"
	"millwright/state/statetest"
)

func startDispatch(t *testing.T, cfg dispatch.Config) *dispatch.Dispatcher {
	t.Helper()
	d, err := dispatch.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close(context.Background()) })
	return d
}

func localClient(t *testing.T, d *dispatch.Dispatcher) *wire.Client {
	t.Helper()
	c, err := d.Client()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func create(t *testing.T, s *state.Store, change func(*state.NewRun)) state.Run {
	t.Helper()
	n := state.NewRun{Title: "x", Prompt: "do it", Source: "API", Creator: state.Creator{Type: "service_account", UID: "key_1", DisplayName: "ci"}}
	if change != nil {
		change(&n)
	}
	r, err := s.CreateRun(t.Context(), n, nil, state.Idempotency{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// started returns a client that has begun a new run, the run's ID and its order.
func started(t *testing.T, s *state.Store) (c *wire.Client, id string, o *wire.Order) {
	t.Helper()
	c = localClient(t, startDispatch(t, dispatch.Config{Store: s}))
	id = create(t, s, nil).ID
	o = order(t, c)
	if _, err := c.Start(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	return c, id, o
}

// order waits for the next work order.
func order(t *testing.T, c *wire.Client) *wire.Order {
	t.Helper()
	for range 20 {
		o, err := c.Claim(t.Context(), "tester", time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if o != nil {
			return o
		}
	}
	t.Fatal("no work came")
	return nil
}

func run(t *testing.T, s *state.Store, id string) state.Run {
	t.Helper()
	r, err := s.Run(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRunIsExecuted(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		defer statetest.VerifyNoLeaks(t)()
		ctx := t.Context()
		registry := prometheus.NewRegistry()
		d, err := dispatch.Start(ctx, dispatch.Config{Store: s, Registerer: registry})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close(ctx)
		c, err := d.Client()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		r := create(t, s, func(n *state.NewRun) {
			n.Config = []byte(`{"base_prompt":"Be kind.","model_id":"m","environment_id":"e","skill_spec":"o/r:s","harness":{"type":"h"}}`)
		})
		o := order(t, c)
		if o.RunID != r.ID || o.Harness != "h" || o.ModelID != "m" || o.EnvironmentID != "e" || o.Skill != "o/r:s" || o.Attempt != 1 {
			t.Errorf("order %+v", o)
		}
		files := map[string]string{}
		for _, f := range o.Files {
			body, err := c.File(ctx, o, f)
			if err != nil {
				t.Fatal(err)
			}
			files[f.Name] = string(body)
		}
		for name, want := range map[string]string{
			"prompt.md": "do it", "base-prompt.md": "Be kind.", "mcp.json": `{"mcpServers":{}}`,
			"conversation.json": `{"conversation_id":"` + r.ConversationID + `","steps":[]}`,
		} {
			if files[name] != want {
				t.Errorf("%s: %q, want %q", name, files[name], want)
			}
		}
		if cancel, err := c.Start(ctx, o); err != nil || cancel {
			t.Fatal(cancel, err)
		}
		said := []wire.Message{{Role: wire.Assistant, Content: []wire.Block{wire.Text("done")}}}
		if err := c.Append(ctx, o, 0, said, []byte(`[{"name":"s"}]`), nil); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Heartbeat(ctx, o); err != nil {
			t.Fatal(err)
		}
		if now, err := c.Finish(ctx, o, wire.Result{State: wire.Succeeded, From: 1}); err != nil || now != wire.Succeeded {
			t.Fatal(now, err)
		}
		got := run(t, s, r.ID)
		if got.State != state.RunSucceeded || string(got.Skills) != `[{"name":"s"}]` || got.WorkerName != "tester" {
			t.Errorf("run %+v", got)
		}
		for what, err := range map[string]error{
			"append": c.Append(ctx, o, 1, said, nil, nil), "release": c.Release(ctx, o),
			"file": func() error { _, err := c.File(ctx, o, wire.File{Name: "prompt.md"}); return err }(),
		} {
			if !errors.Is(err, wire.ErrLost) {
				t.Errorf("%s after the end: %v", what, err)
			}
		}
		families, err := registry.Gather()
		if err != nil || len(families) != 6 {
			t.Errorf("%d metrics, %v", len(families), err)
		}
	})
}

func TestWorkersAreRefusedNonsense(t *testing.T) {
	s := statetest.Open(t, statetest.SQLite(t))
	c := localClient(t, startDispatch(t, dispatch.Config{Store: s}))
	ctx := t.Context()
	r := create(t, s, nil)
	o := order(t, c)
	if _, err := c.Start(ctx, o); err != nil {
		t.Fatal(err)
	}
	message := func(role string, blocks ...wire.Block) []wire.Message {
		return []wire.Message{{Role: role, Content: blocks}}
	}
	_, finish := c.Finish(ctx, o, wire.Result{State: "DONE"})
	_, code := c.Finish(ctx, o, wire.Result{State: wire.Error, ErrorCode: "mine"})
	for what, err := range map[string]error{
		"the user's words": c.Append(ctx, o, 0, message("user", wire.Text("x")), nil, nil),
		"no content":       c.Append(ctx, o, 0, message(wire.Assistant), nil, nil),
		"unknown block":    c.Append(ctx, o, 0, message(wire.Assistant, wire.Block{Type: "x"}), nil, nil),
		"too many":         c.Append(ctx, o, 0, make([]wire.Message, 2000), nil, nil),
		"a gap":            c.Append(ctx, o, 7, message(wire.Assistant, wire.Text("x")), nil, nil),
		"skills":           c.Append(ctx, o, 0, nil, []byte(`{}`), nil),
		"too large":        c.Append(ctx, o, 0, message(wire.Assistant, wire.Text(string(make([]byte, 2<<20)))), nil, nil),
		"state":            finish,
		"code":             code,
	} {
		if !errors.Is(err, wire.ErrRefused) || strings.Count(err.Error(), "refused") > 1 {
			t.Errorf("%s: %v", what, err)
		}
	}
	other := *o
	other.RunID = create(t, s, nil).ID
	if err := c.Release(ctx, &other); !errors.Is(err, wire.ErrLost) {
		t.Errorf("another run with this token: %v", err)
	}
	if got := run(t, s, r.ID); got.State != state.RunInProgress {
		t.Errorf("run is %s", got.State)
	}
}

func TestSecretsOfAnOrder(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		ctx := t.Context()
		if _, err := s.SetSecret(ctx, "TOKEN", []byte("s3cret")); err != nil {
			t.Fatal(err)
		}
		c := localClient(t, startDispatch(t, dispatch.Config{Store: s}))
		f := define(t, s, []string{"TOKEN", "GONE"}, `{"url":"https://x","headers":{"Authorization":"Bearer ${secret:TOKEN}"}}`)
		create(t, s, func(n *state.NewRun) {
			n.FactoryUID, n.Secrets = f.UID, []string{"TOKEN"}
			n.Config = []byte(`{"mcp_servers":{"a":{"url":"https://x","headers":{"Authorization":"***"}}}}`)
			n.Sealed = []byte(`{"a":{"url":"https://x","headers":{"Authorization":"Bearer ${secret:TOKEN}"}}}`)
		})
		o := order(t, c)
		if o.Secrets["TOKEN"] != "s3cret" {
			t.Errorf("secrets %v", o.Secrets)
		}
		for _, f := range o.Files {
			body, err := c.File(ctx, o, f)
			if err != nil {
				t.Fatal(err)
			}
			want := f.Name == wire.ServersFile
			if got := strings.Contains(string(body), "Bearer s3cret"); got != want {
				t.Errorf("%s: %s", f.Name, body)
			}
		}
		if !slices.Contains(o.Redact, "Bearer s3cret") || !slices.Contains(o.Redact, "s3cret") {
			t.Errorf("redact %q", o.Redact)
		}

		missing := create(t, s, func(n *state.NewRun) { n.FactoryUID, n.Secrets = f.UID, []string{"GONE"} })
		good := create(t, s, func(n *state.NewRun) { n.FactoryUID = f.UID })
		if o := order(t, c); o.RunID != good.ID {
			t.Errorf("order for %s", o.RunID)
		}
		if r := run(t, s, missing.ID); r.State != state.RunError || r.ErrorCode != "environment_setup_failed" || !strings.Contains(r.StatusMessage, `"GONE"`) {
			t.Errorf("run with a missing secret: %+v", r)
		}
	})
}

func TestLargeFilesAreFetched(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		ctx := t.Context()
		c := localClient(t, startDispatch(t, dispatch.Config{Store: s}))
		big := make([]byte, 1<<20)
		for i := range big {
			big[i] = byte(i * i >> 3)
		}
		n := state.NewRun{Prompt: strings.Repeat("long ", 500_000), Source: "API", Creator: state.Creator{Type: "user"}}
		if _, err := s.CreateRun(ctx, n, []state.Attachment{{Name: "big", MimeType: "x/y", Body: big}}, state.Idempotency{}); err != nil {
			t.Fatal(err)
		}
		o := order(t, c)
		seen := 0
		for _, f := range o.Files {
			body, err := c.File(ctx, o, f)
			if err != nil {
				t.Fatal(err)
			}
			switch f.Name {
			case "big":
				seen++
				if f.Inline || string(body) != string(big) {
					t.Errorf("attachment of %d bytes, inline %t", len(body), f.Inline)
				}
			case "prompt.md":
				seen++
				if f.Inline || string(body) != n.Prompt {
					t.Errorf("prompt of %d bytes, inline %t", len(body), f.Inline)
				}
			}
		}
		if seen != 2 {
			t.Errorf("%d of 2 files", seen)
		}
		if _, err := c.File(ctx, o, wire.File{Name: "../secret"}); !errors.Is(err, wire.ErrNotFound) {
			t.Errorf("another file: %v", err)
		}
	})
}

func TestSilentWorkerLosesItsRun(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		c := localClient(t, startDispatch(t, dispatch.Config{Store: s, Lease: 300 * time.Millisecond}))
		r := create(t, s, nil)
		for attempt := 1; attempt <= state.MaxAttempts; {
			o := order(t, c)
			if o.RunID != r.ID || o.Attempt != attempt {
				t.Fatalf("attempt %d of %s, want %d", o.Attempt, o.RunID, attempt)
			}
			_, err := c.Start(t.Context(), o)
			if err == nil {
				attempt++
			} else if !errors.Is(err, wire.ErrLost) { // lost to a busy machine
				t.Fatal(err)
			}
		}
		for deadline := time.Now().Add(20 * time.Second); ; {
			if got := run(t, s, r.ID); got.State == state.RunError {
				return
			} else if time.Now().After(deadline) {
				t.Fatalf("run is %s", got.State)
			}
		}
	})
}

func TestLeaveCallsOffClaims(t *testing.T) {
	s := statetest.Open(t, statetest.SQLite(t))
	c := localClient(t, startDispatch(t, dispatch.Config{Store: s}))
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if o, err := c.Claim(t.Context(), "", time.Minute); err != nil || o != nil {
				t.Error(o, err)
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
			c.Leave()
		}
	}
}

// The claims of a worker that fill its other slots wait on when one of them is answered.
func TestAnAnsweredClaimLeavesTheOthers(t *testing.T) {
	s := statetest.Open(t, statetest.SQLite(t))
	c := localClient(t, startDispatch(t, dispatch.Config{Store: s}))
	other := make(chan *wire.Order)
	go func() {
		o, err := c.Claim(t.Context(), "", time.Minute)
		if err != nil {
			t.Error(err)
		}
		other <- o
	}()
	for range 20 {
		if o, err := c.Claim(t.Context(), "", 10*time.Millisecond); err != nil || o != nil {
			t.Fatal(o, err)
		}
	}
	create(t, s, nil)
	if o := <-other; o == nil {
		t.Error("the other claim was called off")
	}
}

func TestCancelReachesTheWorker(t *testing.T) {
	s := statetest.Open(t, statetest.SQLite(t))
	c := localClient(t, startDispatch(t, dispatch.Config{Store: s}))
	told := make(chan string, 10)
	end, err := c.OnCancel(func(id string) { told <- id })
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	create(t, s, nil)
	o := order(t, c)
	if _, err := s.RequestCancel(t.Context(), o.RunID, "tester"); err != nil {
		t.Fatal(err)
	}
	if got := <-told; got != o.RunID {
		t.Errorf("told to end %s", got)
	}
	if cancel, err := c.Start(t.Context(), o); err != nil || !cancel {
		t.Errorf("start: %t %v", cancel, err)
	}
}

func TestRestartTakesBackOwnRuns(t *testing.T) {
	s := statetest.Open(t, statetest.SQLite(t))
	d, err := dispatch.Start(t.Context(), dispatch.Config{Store: s})
	if err != nil {
		t.Fatal(err)
	}
	r := create(t, s, nil)
	c := localClient(t, d)
	if _, err := c.Start(t.Context(), order(t, c)); err != nil {
		t.Fatal(err)
	}
	d.Close(t.Context())
	if got := run(t, s, r.ID); got.State != state.RunInProgress {
		t.Fatalf("run is %s", got.State)
	}
	if o := order(t, localClient(t, startDispatch(t, dispatch.Config{Store: s}))); o.RunID != r.ID || o.Attempt != 2 {
		t.Errorf("attempt %d of %s", o.Attempt, o.RunID)
	}
}
