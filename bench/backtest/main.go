// Command backtest measures how long a plan looks at stored deliveries, and what that costs the ingress meanwhile:
// the p99 of deliveries that are accepted one after the other, while no plan runs and while plans run without pause.
//
//	go run ./bench/backtest [-deliveries 5000] [-size 10240] [-seconds 5] [-postgres DSN]
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"millwright/reconcile/plan"
	"millwright/schema"
	"millwright/state"
)

func main() {
	deliveries := flag.Int("deliveries", 5000, "stored deliveries")
	size := flag.Int("size", 10<<10, "bytes of a body")
	seconds := flag.Int("seconds", 5, "how long each load takes")
	postgres := flag.String("postgres", "", "address of an empty PostgreSQL schema; SQLite when absent")
	flag.Parse()

	length := time.Duration(*seconds) * time.Second
	if err := run(context.Background(), *deliveries, *size, length, *postgres); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, deliveries, size int, load time.Duration, dsn string) error {
	dir, err := os.MkdirTemp("", "millwright-bench-backtest")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	if dsn == "" {
		dsn = filepath.Join(dir, "state.db")
	}
	s, err := state.Open(ctx, state.Config{DSN: dsn, MasterKey: bytes.Repeat([]byte{1}, 32)})
	if err != nil {
		return err
	}
	defer s.Close()

	w, err := newWorld(ctx, s)
	if err != nil {
		return err
	}
	for i := range deliveries {
		if err := w.accept(ctx, i, size); err != nil {
			return err
		}
	}

	alone, err := w.load(ctx, load, size)
	if err != nil {
		return err
	}

	testing, stop := context.WithCancel(ctx)
	took := make(chan []time.Duration)
	go func() { took <- w.backtests(testing) }()
	beside, err := w.load(ctx, load, size)
	stop()
	tests := <-took
	if err != nil {
		return err
	}

	fmt.Printf("backtest of %d deliveries of %d bytes: median %s of %d\n", deliveries, size, middle(tests), len(tests))
	fmt.Printf("accept p99 alone %s, beside backtests %s: %.2fx\n", p99(alone), p99(beside),
		float64(p99(beside))/float64(p99(alone)))
	return nil
}

// world is a factory with one webhook, and an automation whose filter changes.
type world struct {
	s       *state.Store
	factory state.RoutedFactory
	hook    state.RoutedWebhook
	cur     state.Current
	n       int
}

func newWorld(ctx context.Context, s *state.Store) (*world, error) {
	if _, err := s.SetSecret(ctx, "KEY", []byte("k3y")); err != nil {
		return nil, err
	}
	f, err := s.EnsureFactory(ctx, "bench", state.Source{Kind: "managed"}, false)
	if err != nil {
		return nil, err
	}
	uid := state.NewID(state.PrefixWebhook)
	change := state.ChangeSet{
		FactoryUID: f.UID, Base: f.Generation, Started: time.Now(), Revision: state.Revision{ID: "one"},
		Webhooks: []state.WebhookChange{{UID: uid, SecretVersion: 1, Spec: schema.Webhook{
			Name: "ci", AuthMode: schema.AuthToken, SecretName: "KEY", Enabled: true,
		}}},
		Resources: []state.ResourceChange{{Kind: "automation", Name: "a", Spec: automation(uid, "opened")}},
	}
	if err := s.Apply(ctx, change); err != nil {
		return nil, err
	}

	routing, err := s.Routing(ctx)
	if err != nil {
		return nil, err
	}
	cur, err := s.Current(ctx, f.UID)
	return &world{s: s, factory: routing.Factories[0], hook: routing.Factories[0].Webhooks[0], cur: cur}, err
}

func automation(webhook, action string) schema.Automation {
	return schema.Automation{Name: "a", Enabled: true, Prompt: "Go.", Triggers: []schema.Trigger{{
		Provider: "webhook", Event: "received", WebhookIDs: []string{webhook},
		Payload: []byte(`{"pull_request":{"action":["` + action + `"]}}`),
	}}}
}

func (w *world) accept(ctx context.Context, i, size int) error {
	w.n++
	action := []string{"opened", "closed", "labeled"}[i%3]
	body := fmt.Sprintf(`{"n":%d,"text":"%s","pull_request":{"action":"%s"}}`, w.n,
		strings.Repeat("lorem ipsum ", size/12), action)
	_, err := w.s.Accept(ctx, state.Acceptance{
		UID: state.NewID(state.PrefixDelivery), FactoryUID: w.factory.UID, Generation: w.factory.Generation,
		WebhookID: w.hook.ID, WebhookUID: w.hook.UID, Sender: "192.0.2.1", Body: []byte(body), Received: time.Now(),
		Identity: state.IdentityOf(state.IdentityServiceHeader, fmt.Sprint(w.n)),
	})
	return err
}

// load accepts deliveries for a while and returns how long each took.
func (w *world) load(ctx context.Context, during time.Duration, size int) (took []time.Duration, err error) {
	for end := time.Now().Add(during); time.Now().Before(end); {
		began := time.Now()
		if err := w.accept(ctx, len(took), size); err != nil {
			return nil, err
		}
		took = append(took, time.Since(began))
	}
	return took, nil
}

// backtests tests a change of the filter until ctx ends, and returns how long each test took.
func (w *world) backtests(ctx context.Context) (took []time.Duration) {
	change := state.ChangeSet{Resources: []state.ResourceChange{
		{Kind: "automation", Name: "a", Spec: automation(w.hook.UID, "closed")},
	}}

	for ctx.Err() == nil {
		began := time.Now()
		b := plan.NewBacktester(w.cur, &change)
		since := began.AddDate(0, 0, -plan.BacktestDays)
		err := w.s.NewestAccepted(ctx, w.factory.UID, b.Sources(w.cur.Webhooks), since, plan.BacktestDeliveries,
			func(d state.StoredDelivery) error {
				payload, err := schema.ParsePayload(d.Body)
				b.Add(plan.Delivered{UID: d.UID, Received: d.Received, Delivered: &schema.Delivered{
					WebhookUID: d.WebhookUID, Body: d.Body, Payload: payload,
				}})
				return err
			})
		if err == nil {
			took = append(took, time.Since(began))
		}
	}

	return took
}

func middle(all []time.Duration) time.Duration {
	if len(all) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(all))[len(all)/2].Round(time.Millisecond)
}

func p99(all []time.Duration) time.Duration {
	return slices.Sorted(slices.Values(all))[len(all)*99/100].Round(time.Microsecond)
}
