// Command events measures how soon events reach their receivers. Runs are cancelled at a steady rate, each of
// which is an event for every notification of its factory. Some receivers are dead: they answer 500, redirect,
// break the connection, or never answer. It prints how long the events took to the others, from what they tell
// of to their arrival.
//
//	go run ./bench/events [-events 10000] [-receivers 50] [-dead 5] [-rate 250] [-postgres DSN]
package main

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"millwright/outbox/events"
	"millwright/schema"
	"millwright/state"
)

// perFactory is how many notifications a factory has at most.
const perFactory = 20

type options struct {
	events, receivers, dead, rate int
	postgres                      string
}

func main() {
	var o options
	flag.IntVar(&o.events, "events", 10_000, "events in all")
	flag.IntVar(&o.receivers, "receivers", 50, "receivers")
	flag.IntVar(&o.dead, "dead", 5, "receivers that never take an event")
	flag.IntVar(&o.rate, "rate", 250, "events a second")
	flag.StringVar(&o.postgres, "postgres", "", "address of an empty PostgreSQL database; SQLite when absent")
	flag.Parse()

	if err := run(context.Background(), o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// hooks is all receivers. The first ones are dead.
type hooks struct {
	dead int

	mu    sync.Mutex
	seen  map[string]bool // webhook-id
	again int
	waits []time.Duration
}

func (h *hooks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var number int
	_, _ = fmt.Sscanf(r.URL.Path, "/%d", &number)
	if number < h.dead {
		die(w, r, number)
		return
	}

	var event struct{ Timestamp time.Time }
	_ = json.NewDecoder(r.Body).Decode(&event)
	wait := time.Since(event.Timestamp)

	h.mu.Lock()
	defer h.mu.Unlock()
	id := r.Header.Get("webhook-id")
	if h.seen[id] {
		h.again++
		return
	}
	h.seen[id] = true
	h.waits = append(h.waits, wait)
}

// die answers an event as a dead receiver does.
func die(w http.ResponseWriter, r *http.Request, number int) {
	switch number % 4 {
	case 0:
		w.WriteHeader(http.StatusInternalServerError)
	case 1:
		<-r.Context().Done()
	case 2:
		http.Redirect(w, r, "/elsewhere", http.StatusFound)
	default:
		panic(http.ErrAbortHandler)
	}
}

func (h *hooks) arrived() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.waits)
}

func run(ctx context.Context, o options) (err error) {
	dir, err := os.MkdirTemp(".", "bench-") // on the disk of the checkout, not in memory
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	dsn := cmp.Or(o.postgres, filepath.Join(dir, "state.db"))
	s, err := state.Open(ctx, state.Config{DSN: dsn, MasterKey: make([]byte, 32)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()

	h := &hooks{dead: o.dead, seen: map[string]bool{}}
	server := httptest.NewServer(h)
	defer server.CloseClientConnections()
	factories, err := furnish(ctx, s, o.receivers, server.URL)
	if err != nil {
		return err
	}

	sender, err := events.New(events.Config{
		Store: s,
		Allow: func(string) []netip.Prefix { return []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} },
	})
	if err != nil {
		return err
	}
	sending, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { sender.Run(sending) })
	defer running.Wait()
	defer stop()

	began, used := time.Now(), processorTime()
	if err := happen(ctx, s, factories, o); err != nil {
		return err
	}
	happened := time.Since(began)

	want := o.events / o.receivers * (o.receivers - o.dead)
	for h.arrived() < want {
		if time.Since(began) > happened+time.Minute {
			return fmt.Errorf("%d of %d events arrived", h.arrived(), want)
		}
		time.Sleep(10 * time.Millisecond)
	}

	used = processorTime() - used
	h.mu.Lock()
	defer h.mu.Unlock()
	slices.Sort(h.waits)
	at := func(part float64) time.Duration {
		return h.waits[int(part*float64(len(h.waits)-1))].Round(time.Millisecond)
	}
	fmt.Printf("%d events in %s for %d receivers, of which %d are dead: %d arrived, %d again\n",
		o.events, happened.Round(time.Second/10), o.receivers, o.dead, len(h.waits), h.again)
	fmt.Printf("half within %s, 99%% within %s, all within %s; %s of processor time an event, receivers and all\n",
		at(0.5), at(0.99), at(1), (used / time.Duration(len(h.waits))).Round(time.Microsecond))
	return nil
}

// furnish makes factories with a notification for each receiver, and returns their UIDs.
func furnish(ctx context.Context, s *state.Store, receivers int, address string) (factories []string, err error) {
	secret := "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 32))
	if _, err := s.SetSecret(ctx, "SIGN", []byte(secret)); err != nil {
		return nil, err
	}

	for first := 0; first < receivers; first += perFactory {
		name := fmt.Sprintf("f%d", first/perFactory)
		f, err := s.EnsureFactory(ctx, name, state.Source{Kind: "managed"}, false)
		if err != nil {
			return nil, err
		}

		change := state.ChangeSet{
			FactoryUID:   f.UID,
			Base:         f.Generation,
			BaseRevision: f.Applied.ID,
			Started:      time.Now(),
			Revision:     state.Revision{ID: state.NewID("rev")},
		}
		for i := first; i < min(first+perFactory, receivers); i++ {
			n := schema.Notification{
				Name:       fmt.Sprintf("n%d", i),
				URL:        fmt.Sprintf("%s/%d", address, i),
				SecretName: "SIGN",
				Events:     []string{schema.EventRunCancelled},
				Enabled:    true,
			}
			change.Resources = append(change.Resources,
				state.ResourceChange{Kind: "notification", Name: n.Name, Spec: n})
		}
		if err := s.Apply(ctx, change); err != nil {
			return nil, err
		}
		factories = append(factories, f.UID)
	}

	return factories, nil
}

// happen cancels runs of all factories in turn, at the rate that is asked for.
func happen(ctx context.Context, s *state.Store, factories []string, o options) error {
	began := time.Now()

	for n := range o.events / o.receivers {
		due := began.Add(time.Duration(n*o.receivers) * time.Second / time.Duration(o.rate))
		time.Sleep(time.Until(due))

		for _, uid := range factories {
			r, err := s.CreateRun(ctx, state.NewRun{
				FactoryUID: uid,
				Title:      "Look at the build",
				Prompt:     "Look at the build",
				Source:     "API",
				Creator:    state.Creator{Type: "user"},
			}, nil, state.Idempotency{})
			if err != nil {
				return err
			}

			if _, err := s.RequestCancel(ctx, r.ID, "bench"); err != nil {
				return err
			}
		}
	}
	return nil
}

// processorTime returns what this process has used.
func processorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
