// Command ingress measures how many deliveries a second the ingress takes, every 202 on disk, beside what
// the machine could do at most: a bare net/http handler that verifies the signature and drops the body
// (the ceiling), and one that appends it to a file by group commit (the limit with durability). All take
// the same signed requests from the same load generator, one after the other, in rounds.
//
//	go run ./bench/ingress [-rounds 5] [-duration 3s] [-connections 64] [-size 2048] [-postgres DSN]
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	var o options
	flag.IntVar(&o.rounds, "rounds", 5, "how often each is measured; medians are shown")
	flag.DurationVar(&o.duration, "duration", 3*time.Second, "how long each measurement takes")
	flag.IntVar(&o.connections, "connections", 64, "open connections, each with one request at a time")
	flag.IntVar(&o.size, "size", 2048, "bytes of a body")
	flag.IntVar(&o.automations, "automations", 1, "automations on the webhook; all but the first filter it out")
	flag.BoolVar(&o.github, "github", false,
		"send what GitHub sends when a pull request is opened, signed as GitHub does")
	flag.IntVar(&o.events, "events", 0,
		"with -github: measure triggers of its events too, beside one custom trigger; one of them matches")
	flag.IntVar(&o.slow, "slow", 0, "connections beside those, on which a request comes at a byte a second")
	flag.StringVar(
		&o.postgres,
		"postgres",
		os.Getenv("MILLWRIGHT_TEST_POSTGRES"),
		"address of a PostgreSQL server to measure too",
	)

	flag.StringVar(&o.only, "only", "", "comma-separated kinds: bare,append,sqlite,postgres")
	flag.StringVar(&o.profile, "profile", "", "file for a CPU profile of the server")
	flag.IntVar(&o.soak, "soak", 0, "send this many deliveries to SQLite, of which old ones are deleted")
	flag.IntVar(&o.replicas, "replicas", 0, "measure this many servers on one PostgreSQL too")
	flag.StringVar(&o.join, "join", "", "path of the webhook that another server made (used by the program itself)")
	kind := flag.String("serve", "", "serve this kind (used by the program itself)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()

	var err error
	switch {
	case *kind != "":
		err = serve(ctx, *kind, o)
	case o.soak > 0:
		err = soak(ctx, o)
	default:
		err = compare(ctx, o)
	}

	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// compare measures every kind in every round and prints medians and ratios.
func compare(ctx context.Context, o options) error {
	kinds := []string{"bare", "append", "sqlite"}
	if o.postgres != "" {
		kinds = append(kinds, "postgres")
	}
	if o.postgres != "" && o.replicas > 0 {
		kinds = append(kinds, kindReplicas)
	}
	if o.only != "" {
		kinds = strings.Split(o.only, ",")
	}
	if o.events > 0 {
		kinds = withEvents(kinds)
	}

	measured := map[string][]measurement{}
	for round := range o.rounds {
		for _, kind := range kinds {
			m, err := measure(ctx, kind, o)
			if err != nil {
				return fmt.Errorf("%s: %w", kind, err)
			}

			measured[kind] = append(measured[kind], m)
			fmt.Fprintf(
				os.Stderr,
				"round %d %-15s %7.0f/s  p50 %v  p99 %v  %d MB  %v\n",
				round+1,
				kind,
				m.rate,
				m.p50.Round(10*time.Microsecond),
				m.p99.Round(10*time.Microsecond),
				m.memory>>20,
				m.cpu,
			)
		}
	}

	fmt.Printf(
		"%d connections, %d slow ones, %d-byte bodies, %d automations, medians of %d rounds of %s\n\n",
		o.connections,
		o.slow,
		o.size,
		o.automations,
		o.rounds,
		o.duration,
	)

	fmt.Printf(
		"%-15s %10s %10s %10s %10s %10s %8s %8s\n",
		"",
		"per second",
		"to bare",
		"to append",
		"p50",
		"p99",
		"memory",
		"cpu",
	)

	rate := func(kind string) float64 {
		return median(measured[kind], func(m measurement) float64 { return m.rate })
	}
	for _, kind := range kinds {
		all := measured[kind]
		fmt.Printf(
			"%-15s %10.0f %10s %10s %10v %10v %6.0fMB %8v\n",
			kind,
			rate(kind),
			ratio(rate(kind), rate("bare")),
			ratio(rate(kind), rate("append")),
			time.Duration(median(all, func(m measurement) float64 { return float64(m.p50) })).
				Round(10*time.Microsecond),
			time.Duration(median(all, func(m measurement) float64 { return float64(m.p99) })).
				Round(10*time.Microsecond),
			median(all, func(m measurement) float64 { return float64(m.memory) })/(1<<20),
			time.Duration(median(all, func(m measurement) float64 { return float64(m.cpu) })).Round(time.Microsecond),
		)
	}

	for _, kind := range kinds {
		if all := measured[kind+eventsSuffix]; all != nil {
			printPairs(kind, measured[kind], all)
		}
	}

	return nil
}

// eventsSuffix marks the kinds whose automations have triggers of events.
const eventsSuffix = "+events"

// withEvents adds to each database the same with triggers of events, right behind it.
func withEvents(kinds []string) (all []string) {
	for _, kind := range kinds {
		all = append(all, kind)
		if kind == "sqlite" || kind == "postgres" {
			all = append(all, kind+eventsSuffix)
		}
	}
	return all
}

// printPairs prints what triggers of events take and give, to one custom trigger in the same round.
func printPairs(kind string, custom, events []measurement) {
	pairs := make([]int, len(custom))
	for i := range pairs {
		pairs[i] = i
	}

	fmt.Printf("\n%s, triggers of events to one custom trigger, medians of the rounds: %.3f per second, %.3f cpu\n",
		kind,
		median(pairs, func(i int) float64 { return events[i].rate / custom[i].rate }),
		median(pairs, func(i int) float64 { return float64(events[i].cpu) / float64(custom[i].cpu) }),
	)
}

func ratio(a, b float64) string {
	if b == 0 {
		return "-"
	}
	return strconv.FormatFloat(a/b, 'f', 2, 64)
}

func median[T any](all []T, of func(T) float64) float64 {
	if len(all) == 0 {
		return 0
	}
	values := make([]float64, len(all))
	for i, v := range all {
		values[i] = of(v)
	}
	slices.SortFunc(values, cmp.Compare)
	return values[len(values)/2]
}

// measure measures a kind once.
func measure(ctx context.Context, kind string, o options) (m measurement, err error) {
	kind, events := strings.CutSuffix(kind, eventsSuffix)
	if !events {
		o.events = 0
	}

	servers, stop, err := startServers(ctx, kind, o)
	if err != nil {
		return m, err
	}
	defer func() { _ = stop() }()

	addrs, path := addresses(servers), servers[0].path
	slow, err := dribble(addrs[0], o.slow)
	if err != nil {
		return m, err
	}
	defer slow()

	warm, err := load(addrs, path, o, 500*time.Millisecond)
	if err != nil {
		return m, err
	}

	m, err = load(addrs, path, o, o.duration)
	for _, s := range servers {
		m.memory += resident(s.process.Process.Pid)
	}

	err = errors.Join(err, stop())
	for _, s := range servers {
		m.cpu += s.process.ProcessState.UserTime() + s.process.ProcessState.SystemTime()
	}
	if answers := m.answers + warm.answers; answers > 0 {
		m.cpu /= time.Duration(answers)
	}

	return m, err
}
