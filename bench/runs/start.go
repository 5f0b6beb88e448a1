package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"millwright/ingress"
	"millwright/runs/dispatch"
	"millwright/runs/worker"
	"millwright/schema"
	"millwright/state"
)

// at is a server with a worker, in this process.
type at struct {
	store  *state.Store
	ingest *ingress.Ingress
	uid    string
	closes []func()
}

func (a *at) close() {
	for _, f := range slices.Backward(a.closes) {
		f()
	}
}

const token = "benchmark-token"

// open makes a new state with a webhook and an automation, whose runs take no worker yet.
func open(ctx context.Context, o options) (*at, error) {
	a := &at{uid: state.NewID(state.PrefixWebhook)}
	var err error
	file := filepath.Join(o.dir, fmt.Sprintf("new-%d.db", time.Now().UnixNano()))
	if a.store, err = state.Open(ctx, state.Config{DSN: file, MasterKey: make([]byte, 32)}); err != nil {
		return nil, err
	}

	a.closes = append(a.closes, func() { _ = a.store.Close() })
	if err := a.define(ctx); err != nil {
		return a, err
	}
	if a.ingest, err = ingress.New(ctx, ingress.Config{Store: a.store, DeliveriesPerMinute: -1}); err != nil {
		return a, err
	}

	a.closes = append(a.closes, func() { _ = a.ingest.Close(context.WithoutCancel(ctx)) })
	return a, nil
}

func (a *at) define(ctx context.Context) error {
	if _, err := a.store.SetSecret(ctx, "TOKEN", []byte(token)); err != nil {
		return err
	}

	f, err := a.store.EnsureFactory(ctx, "bench", state.Source{Kind: "managed"}, false)
	if err != nil {
		return err
	}

	current, err := a.store.Current(ctx, f.UID)
	if err != nil {
		return err
	}

	return a.store.Apply(ctx, state.ChangeSet{
		FactoryUID: f.UID, Base: current.Factory.Generation, BaseRevision: current.Factory.Applied.ID,
		Started: time.Now(), Revision: state.Revision{ID: "bench"},
		Webhooks: []state.WebhookChange{
			{UID: a.uid, SecretVersion: current.Secrets["TOKEN"].Version, Spec: schema.Webhook{
				Name: "bench", Path: "webhooks/bench.yaml",
				AuthMode: schema.AuthToken, SecretName: "TOKEN", Enabled: true,
			}},
		},
		Resources: []state.ResourceChange{{Kind: "automation", Name: "a", Spec: schema.Automation{
			Name: "a", Path: "automations/a/automation.md", Enabled: true,
			Prompt:   "Look into the event and report what it means.",
			Triggers: []schema.Trigger{{Provider: "webhook", Event: "received", WebhookIDs: []string{a.uid}}},
		}}},
	})
}

// work starts to dispatch, with a worker whose harness is the given command.
func (a *at) work(ctx context.Context, o options, command ...string) error {
	d, err := dispatch.Start(ctx, dispatch.Config{Store: a.store})
	if err != nil {
		return err
	}

	a.closes = append(a.closes, func() { d.Close(context.WithoutCancel(ctx)) })
	client, err := d.Client()
	if err != nil {
		return err
	}

	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		if err := worker.Run(ctx, worker.Config{
			Client: client, Slots: o.workers, Default: "bench", Dir: filepath.Join(o.dir, "work"), Grace: time.Second,
			Harnesses: map[string]worker.Harness{"bench": {Command: command, SameUser: true}},
		}); err != nil {
			fmt.Fprintln(os.Stderr, "worker:", err)
		}
	})

	a.closes = append(a.closes, func() { stop(); running.Wait(); client.Close() })
	return nil
}

// start measures the time from the answer to a delivery until its harness runs. The harness prints the
// time at which it runs.
func start(ctx context.Context, o options) error {
	a, err := open(ctx, o)
	if a != nil {
		defer a.close()
	}
	if err != nil {
		return err
	}
	if err := a.work(ctx, o, "date", "+%s%N"); err != nil {
		return err
	}

	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}

	srv := ingress.NewServer(ingress.ServerConfig{Ingress: a.ingest})
	go srv.Serve(ln)
	defer srv.Close()

	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	var mu sync.Mutex
	answered := map[string]time.Time{}
	var failed error
	var wg sync.WaitGroup
	tick := time.NewTicker(time.Second / time.Duration(o.rate))
	defer tick.Stop()

	n := int(o.duration.Seconds() * float64(o.rate))
	for i := range n {
		<-tick.C
		wg.Go(func() {
			delivery, err := deliver(ctx, client, "http://"+ln.Addr().String()+"/webhooks/w/"+a.uid, i)
			at := time.Now()
			mu.Lock()
			defer mu.Unlock()

			answered[delivery], failed = at, errors.Join(failed, err)
		})
	}

	wg.Wait()
	if failed != nil {
		return failed
	}

	var took []time.Duration
	for len(took) < n {
		if q, err := a.store.Queue(ctx); err != nil || q.Queued+q.Held > 0 {
			time.Sleep(100 * time.Millisecond)
			continue
		}
		for delivery, accepted := range answered {
			began, err := a.began(ctx, delivery)
			if err != nil {
				return err
			}

			took = append(took, began.Sub(accepted))
		}
	}

	slices.Sort(took)
	fmt.Printf(
		"%d deliveries at %d a second, %d worker slots: "+
			"from the 202 to the running harness p50 %s, p99 %s, slowest %s\n",
		n,
		o.rate,
		o.workers,
		ms(took[n/2]),
		ms(took[n*99/100]),
		ms(took[n-1]),
	)

	return nil
}

func deliver(ctx context.Context, client *http.Client, url string, i int) (string, error) {
	r, err := http.NewRequestWithContext(
		ctx,
		http.MethodPost,
		url,
		strings.NewReader(fmt.Sprintf(`{"event": %d}`, i)),
	)
	if err != nil {
		return "", err
	}

	r.Header.Set("Authorization", "Bearer "+token)
	resp, err := client.Do(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()

	var body struct {
		DeliveryID string `json:"delivery_id"`
	}
	if resp.StatusCode != http.StatusAccepted {
		return "", errors.New(resp.Status)
	}

	err = json.NewDecoder(resp.Body).Decode(&body)
	return body.DeliveryID, err
}

// began is the time that the harness of a delivery's run printed.
func (a *at) began(ctx context.Context, delivery string) (time.Time, error) {
	found, _, err := a.store.Runs(ctx, state.RunFilter{DeliveryUID: delivery}, state.RunOrder{}, nil, 2)
	if err != nil || len(found) != 1 || found[0].State != state.RunSucceeded {
		return time.Time{}, fmt.Errorf("the run of delivery %s: %v %v", delivery, found, err)
	}
	steps, err := a.store.Steps(ctx, found[0], 0)
	if err != nil || len(steps) != 1 || len(steps[0].Messages) < 2 {
		return time.Time{}, fmt.Errorf("the conversation of run %s: %v", found[0].ID, err)
	}
	ns, err := strconv.ParseInt(strings.TrimSpace(steps[0].Messages[1].Content[0].Text), 10, 64)
	return time.Unix(0, ns), err
}

// drain measures how well workers are used while a long queue is worked off: the time that the harnesses
// take in all, over the time that the slots had.
func drain(ctx context.Context, o options) error {
	a, err := open(ctx, o)
	if a != nil {
		defer a.close()
	}
	if err != nil {
		return err
	}

	var wg sync.WaitGroup
	slots := make(chan struct{}, 64)
	for i := range o.queued {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			_, _ = a.store.CreateRun(
				ctx,
				state.NewRun{
					Title:   fmt.Sprint(i),
					Prompt:  "x",
					Source:  "API",
					Creator: state.Creator{Type: "service_account", UID: "key_1"},
				},
				nil,
				state.Idempotency{},
			)
		})
	}

	wg.Wait()
	q, err := a.store.Queue(ctx)
	if err != nil || q.Queued != o.queued {
		return fmt.Errorf("%d runs are queued: %w", q.Queued, err)
	}

	const each = 100 * time.Millisecond
	if err := a.work(ctx, o, "sleep", "0.1"); err != nil {
		return err
	}

	began := time.Now()
	idle, looks := 0, 0
	for {
		q, err := a.store.Queue(ctx)
		if err != nil {
			return err
		}
		if q.Queued+q.Held == 0 {
			break
		}
		if q.Queued > o.workers {
			idle, looks = idle+max(o.workers-q.Held, 0), looks+1
		}

		time.Sleep(20 * time.Millisecond)
	}

	took := time.Since(began)
	least := time.Duration(o.queued) * each / time.Duration(o.workers)
	fmt.Printf(
		"%d queued runs of %s, %d worker slots: drained in %s; the least possible is %s, ratio %.2f; "+
			"of %d looks, slots without a run %.1f%%\n",
		o.queued,
		each,
		o.workers,
		took.Round(100*time.Millisecond),
		least,
		float64(took)/float64(least),
		looks,
		100*float64(idle)/float64(max(looks, 1)*o.workers),
	)

	return nil
}
