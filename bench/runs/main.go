// Command runs measures the runs API over many runs, beside PocketBase doing the same, and how soon a run
// begins.
//
//	go run ./bench/runs lists        time at the server for each list, with 1,000 runs and with 1,000,000
//	go run ./bench/runs writes       what the database writes for a run
//	go run ./bench/runs compare      creating and listing, beside PocketBase
//	go run ./bench/runs start        from an accepted delivery to the start of the harness, at 200 a second
//	go run ./bench/runs drain        10,000 queued runs, and how long workers wait for one
//	go run ./bench/runs queue        pickup and recovery with servers as processes, beside another program
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"
)

func main() {
	var o options
	flag.IntVar(&o.few, "few", 1000, "runs of a small state")
	flag.IntVar(&o.many, "many", 1_000_000, "runs of a large state")
	flag.IntVar(&o.rounds, "rounds", 21, "how often each page is asked for, or each load is repeated")
	flag.IntVar(&o.connections, "connections", 64, "open connections, each with one request at a time")
	flag.DurationVar(&o.duration, "duration", 3*time.Second, "how long each load takes")
	flag.IntVar(&o.rate, "rate", 200, "deliveries a second")
	flag.IntVar(&o.queued, "queued", 10_000, "runs to drain")
	flag.IntVar(&o.workers, "workers", 8, "worker slots")
	flag.BoolVar(
		&o.backlog,
		"backlog",
		false,
		"let all runs whose lists are measured wait in the queue, as if no worker had ever come",
	)

	flag.StringVar(
		&o.dir,
		"keep",
		"",
		"directory for the states, which are kept and used again; a temporary one if not given",
	)

	flag.StringVar(
		&o.postgres,
		"postgres",
		"",
		"address of a PostgreSQL server, whose lists are measured instead of SQLite's, "+
			"in schemas that are dropped unless -keep is given",
	)

	flag.IntVar(&o.pairs, "pairs", 3, "how often queue measures each program")
	flag.StringVar(&o.before, "before", "", "path of another millwright that queue measures in turns with this one")
	flag.StringVar(&o.restart, "restart", "", "shell command that starts the PostgreSQL server again, for queue")
	flag.StringVar(&o.only, "only", "", "part of the names of what queue measures; all if not given")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()

	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench/runs:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	o.keep = o.dir != ""
	if !o.keep {
		dir, err := os.MkdirTemp(".", "bench-") // on the disk of the checkout, not in memory
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)

		o.dir = dir
	}

	parts := map[string]func(context.Context, options) error{
		"lists":   lists,
		"writes":  writes,
		"compare": compare,
		"start":   start,
		"drain":   drain,
		"queue":   queue,
		"serve":   serve,
	}

	f, ok := parts[flag.Arg(0)]
	if !ok || flag.NArg() != 1 {
		return fmt.Errorf(
			"want one of lists, writes, compare, start, drain and queue, and not %q",
			strings.Join(flag.Args(), " "),
		)
	}

	return f(ctx, o)
}
