// Command dashboard measures how long the server takes for each page of the dashboard over a large state.
// Run it with: go run ./bench/dashboard
package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/admin"
	"millwright/api"
	"millwright/dashboard"
	"millwright/runs"
	"millwright/schema"
	"millwright/state"
)

func main() {
	n := flag.Int("n", 100_000, "how many deliveries, each with a run")
	rounds := flag.Int("rounds", 15, "how often each page is asked for")
	dsn := flag.String("state", "", "the state, which must be empty; a SQLite file that is thrown away if not given")
	flag.Parse()
	if err := run(context.Background(), *n, *rounds, *dsn); err != nil {
		fmt.Fprintln(os.Stderr, "bench/dashboard:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, n, rounds int, dsn string) error {
	if dsn == "" {
		dir, err := os.MkdirTemp("", "bench-dashboard")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)

		dsn = filepath.Join(dir, "state.db")
	}

	store, err := state.Open(ctx, state.Config{DSN: dsn, MasterKey: make([]byte, 32)})
	if err != nil {
		return err
	}
	defer store.Close()

	w := &world{store: store}
	began := time.Now()
	if err := w.fill(ctx, n); err != nil {
		return err
	}

	fmt.Printf("%d deliveries and as many runs, made in %s\n\n", n, time.Since(began).Round(time.Second))
	if strings.HasPrefix(dsn, "postgres") {
		if err := analyze(ctx, dsn); err != nil {
			return err
		}
	}

	pages, err := w.pages()
	if err != nil {
		return err
	}

	key, _, err := store.CreateKey(ctx, "bench", state.RoleAdmin, nil)
	if err != nil {
		return err
	}

	session, err := store.CreateSession(ctx, key.UID, time.Hour)
	if err != nil {
		return err
	}

	out := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(out, "page\tfirst\tmedian\tslowest\tbytes\t")
	for _, p := range w.addresses() {
		var times []time.Duration
		var size int
		for range rounds {
			r := httptest.NewRequestWithContext(ctx, http.MethodGet, p.path, nil)
			r.AddCookie(&http.Cookie{Name: "millwright", Value: session})
			answer := httptest.NewRecorder()
			began := time.Now()
			pages.ServeHTTP(answer, r)
			times = append(times, time.Since(began))
			if answer.Code != http.StatusOK {
				return fmt.Errorf("%s: %d", p.path, answer.Code)
			}

			size = answer.Body.Len()
			time.Sleep(100 * time.Millisecond) // as between the clicks of a few people
		}

		first := times[0]
		slices.Sort(times)
		fmt.Fprintf(
			out,
			"%s\t%s\t%s\t%s\t%d\t\n",
			p.name,
			ms(first),
			ms(times[len(times)/2]),
			ms(times[len(times)-1]),
			size,
		)
	}

	return out.Flush()
}

// analyze does what PostgreSQL does by itself within a minute: it counts what the tables hold.
func analyze(ctx context.Context, dsn string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, `ANALYZE`)
	return err
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000) }

type world struct {
	store    *state.Store
	factory  string
	webhooks []state.Webhook
	delivery string // an accepted one of the first webhook
	other    string // another one
	run      string
}

func (w *world) pages() (http.Handler, error) {
	a := api.New(api.Config{Store: w.store})
	admin.Register(a, admin.Config{Store: w.store})
	runs.Register(a, runs.Config{Store: w.store})
	return dashboard.New(dashboard.Config{Store: w.store, API: a, PublicURL: "http://127.0.0.1:8080"})
}

type page struct{ name, path string }

func (w *world) addresses() []page {
	f := "/factories/" + w.factory
	hook := f + "/webhooks/" + w.webhooks[0].UID

	return []page{
		{"overview", "/"},
		{"factories", "/factories"},
		{"factory", f},
		{"history", f + "/history"},
		{"webhooks", f + "/webhooks"},
		{"webhook", hook},
		{"deliveries", f + "/deliveries"},
		{"deliveries, accepted", f + "/deliveries?outcome=accepted"},
		{"deliveries, rejected", f + "/deliveries?outcome=rejected_auth"},
		{"deliveries, none", f + "/deliveries?outcome=rejected_too_large"},
		{"deliveries, a time", f + "/deliveries?from=2020-01-01T00:00&to=2020-01-02T00:00"},
		{"delivery", hook + "/deliveries/" + w.delivery},
		{"automations", f + "/automations"},
		{"automation", f + "/automations/a0"},
		{"filter tester", f + "/filter?automation=a0"},
		{"runs", "/runs"},
		{"runs, a state", "/runs?state=FAILED"},
		{"runs, a text", "/runs?q=nowhere"},
		{"runs, a factory", "/runs?factory=" + w.factory},
		{"run", "/runs/" + w.run},
		{"search, a name", "/search?q=a0"},
		{"search, a text", "/search?q=nowhere"},
		{"search, a field", "/search?q=n%3Dnowhere"},
		{"search, an ID", "/search?q=" + w.delivery},
		{"compare", f + "/compare?delivery=" + w.delivery + "&delivery=" + w.other},
		{"secrets", "/secrets"},
		{"API keys", "/keys"},
	}
}

const hooks = 4

// fill makes a factory with webhooks and automations, and n deliveries, of which each starts a run.
func (w *world) fill(ctx context.Context, n int) error {
	if _, err := w.store.SetSecret(ctx, "KEY", []byte("k3y")); err != nil {
		return err
	}

	f, err := w.store.EnsureFactory(ctx, "bench", state.Source{Kind: "dir", Path: "/srv/factory"}, false)
	if err != nil {
		return err
	}

	w.factory = f.UID
	if err := w.apply(ctx, f.UID); err != nil {
		return err
	}
	if w.webhooks, err = w.store.Webhooks(ctx, f.UID, false); err != nil {
		return err
	}

	routing, err := w.store.Routing(ctx)
	if err != nil {
		return err
	}

	generation := routing.Factories[0].Generation
	numbers, failed := make(chan int), make(chan error, 1)
	var group sync.WaitGroup
	for range 256 {
		group.Go(func() {
			for i := range numbers {
				if err := w.deliver(ctx, i, generation); err != nil {
					select {
					case failed <- err:
					default:
					}
				}
			}
		})
	}

	for i := range n {
		numbers <- i
	}

	close(numbers)
	group.Wait()
	select {
	case err := <-failed:
		return err
	default:
	}

	return w.finish(ctx)
}

func (w *world) apply(ctx context.Context, factory string) error {
	cur, err := w.store.Current(ctx, factory)
	if err != nil {
		return err
	}

	app := state.ChangeSet{
		FactoryUID:   factory,
		Base:         cur.Factory.Generation,
		BaseRevision: cur.Factory.Applied.ID,
		Started:      time.Now(),
		Revision:     state.Revision{ID: "bench"},
	}

	for i := range hooks {
		name := fmt.Sprintf("w%d", i)
		hook := state.WebhookUID(cur.Key, name, 0)
		app.Webhooks = append(app.Webhooks, state.WebhookChange{
			UID: hook, SecretVersion: 1,
			Spec: schema.Webhook{
				Name:       name,
				Path:       "webhooks/" + name + ".yaml",
				AuthMode:   schema.AuthToken,
				SecretName: "KEY",
				Enabled:    true,
			},
		})

		name = fmt.Sprintf("a%d", i)
		app.Resources = append(
			app.Resources,
			state.ResourceChange{Kind: "automation", Name: name, Spec: schema.Automation{
				Name: name, Path: "automations/" + name + "/automation.md", Enabled: true, Prompt: "Look.",
				Triggers: []schema.Trigger{
					{
						Provider:   "webhook",
						Event:      "received",
						WebhookIDs: []string{hook},
						Payload:    []byte(`{"status":["failed"]}`),
					},
				},
			}},
		)
	}

	return w.store.Apply(ctx, app)
}

func (w *world) deliver(ctx context.Context, i int, generation int64) error {
	hook := w.webhooks[i%hooks]
	d := state.Acceptance{
		UID: state.NewID(
			state.PrefixDelivery,
		), FactoryUID: w.factory, Generation: generation, WebhookID: hook.ID, WebhookUID: hook.UID,
		Identity: state.IdentityOf(
			state.IdentityBodyHash,
			fmt.Sprint(i),
		), Sender: "192.0.2.1", Body: fmt.Appendf(nil, `{"status":"failed","n":%d}`, i), Received: time.Now(),
	}

	id := state.NewRunID()
	d.Runs = []state.NewRun{{
		ID: id, FactoryUID: w.factory, Title: fmt.Sprintf("run %d", i), Prompt: "Look.", Source: "CUSTOM_WEBHOOK",
		Creator:        state.Creator{Type: "service_account", UID: "auto_1", DisplayName: "a"},
		ConversationID: state.NewRunID(), RootRunID: id, WebhookUID: hook.UID, DeliveryUID: d.UID, At: d.Received,
	}}
	if i%50 == 0 {
		return w.store.RecordRejected(
			ctx,
			state.Rejection{
				FactoryUID: w.factory,
				WebhookID:  hook.ID,
				WebhookUID: hook.UID,
				Outcome:    state.DeliveryRejectedAuth,
				Reason:     "the bearer token is not this webhook's secret",
				Sender:     "192.0.2.2",
				Received:   time.Now(),
			},
		)
	}

	_, err := w.store.Accept(ctx, d)
	return err
}

// finish ends a few runs, so that their pages have something to show.
func (w *world) finish(ctx context.Context) error {
	all, err := w.store.Deliveries(
		ctx,
		w.factory,
		w.webhooks[0].UID,
		state.DeliveryFilter{Outcome: state.DeliveryAccepted},
		"",
		2,
	)
	if err != nil {
		return err
	}

	started, err := w.store.RunsOfDeliveries(ctx, all[0].UID)
	if err != nil {
		return err
	}

	w.delivery, w.run = all[0].UID, started[all[0].UID][0].ID
	w.other = all[1].UID
	c, _, err := w.store.ClaimRun(ctx, w.run, "w1", "bench", time.Minute)
	if err != nil {
		return err
	}
	if _, err := w.store.StartRun(ctx, c, time.Minute); err != nil {
		return err
	}

	var said []state.Message
	for i := range 200 {
		said = append(
			said,
			state.Message{
				Role:    state.RoleAssistant,
				Content: []state.Block{state.Text(fmt.Sprintf("line %d", i))},
				At:      time.Now(),
			},
		)
	}

	_, err = w.store.FinishRun(ctx, c, state.Result{State: state.RunFailed, Message: "exit 2", Messages: said})
	return err
}
