// Command backtest measures what backtests of plans cost those who send deliveries. It starts the program of
// this tree, sends it deliveries that are stored, and then, in turns, others while nobody plans and while
// somebody plans without pause. It prints how long a plan takes, and the p99 of the deliveries' answers.
//
//	go run ./bench/backtest [-rounds 10] [-turn 5s] [-rate 200] [-deliveries 5000] [-postgres DSN]
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"millwright/bench/hostile/attack"
)

type options struct {
	rounds, deliveries, size, rate, connections int
	turn                                        time.Duration
	postgres, binary                            string
}

func main() {
	var o options
	flag.IntVar(&o.rounds, "rounds", 10, "how often both are measured")
	flag.DurationVar(&o.turn, "turn", 5*time.Second, "how long each measurement takes")
	flag.IntVar(&o.deliveries, "deliveries", 5000, "stored deliveries that a plan looks at")
	flag.IntVar(&o.size, "size", 10<<10, "bytes of their bodies")
	flag.IntVar(&o.rate, "rate", 200, "deliveries a second; 0: as many as are answered")
	flag.IntVar(&o.connections, "connections", 8, "open connections, each with one delivery at a time")
	flag.StringVar(&o.postgres, "postgres", "", "address of an empty PostgreSQL database; SQLite when absent")
	flag.StringVar(&o.binary, "binary", "", "program to measure; that of this tree when absent")
	flag.Parse()

	if err := run(context.Background(), o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	dir, err := os.MkdirTemp(".", "bench-") // on the disk of the checkout, not in memory
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}

	program := o.binary
	if program == "" {
		program = filepath.Join(dir, "millwright")
		build := exec.CommandContext(ctx, "go", "build", "-o", program, "./cmd/millwright")
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("%w\n%s", err, out)
		}
	}

	var environment []string
	if o.postgres != "" {
		environment = append(environment, "MILLWRIGHT_STATE="+o.postgres)
	}
	s, err := attack.Start(ctx, program, dir, environment...)
	if err != nil {
		return err
	}
	defer s.Stop()

	p, err := newPlanner(ctx, s)
	if err != nil {
		return err
	}
	stored := load{
		hook: s.Filtered, addr: s.Addr, connections: o.connections, size: o.size, count: o.deliveries,
	}
	if _, err := stored.send(ctx); err != nil {
		return err
	}

	return compare(ctx, o, s, p)
}

// compare measures in turns, and prints the results of all.
func compare(ctx context.Context, o options, s *attack.Server, p *planner) error {
	l := load{
		hook: s.Token, addr: s.Addr, connections: o.connections, size: 2 << 10, rate: o.rate, during: o.turn,
	}
	if _, err := l.send(ctx); err != nil { // to warm up
		return err
	}

	var alone, beside, plans []time.Duration
	var ratios []float64
	for round := range o.rounds {
		quiet, err := l.send(ctx)
		if err != nil {
			return err
		}

		planning, stop := context.WithCancel(ctx)
		done := make(chan error, 1)
		go func() { done <- p.planUntil(planning) }()
		busy, err := l.send(ctx)
		stop()
		if failed := <-done; failed != nil {
			return failed
		}
		if err != nil {
			return err
		}

		ratio := float64(at(busy, 99)) / float64(at(quiet, 99))
		fmt.Fprintf(os.Stderr, "round %d: p99 alone %s, beside plans %s: %.2fx\n",
			round+1, at(quiet, 99), at(busy, 99), ratio)
		alone, beside, ratios = append(alone, quiet...), append(beside, busy...), append(ratios, ratio)
	}

	plans = p.took
	slices.Sort(ratios)
	fmt.Printf("a plan looks at %d deliveries of %d bytes: median %s, longest %s, of %d plans\n",
		p.looked, o.size, at(plans, 50), at(plans, 100), len(plans))
	fmt.Printf("%d deliveries alone: p50 %s, p99 %s\n", len(alone), at(alone, 50), at(alone, 99))
	fmt.Printf("%d deliveries beside plans: p50 %s, p99 %s: %.2fx; median of the rounds %.2fx\n", len(beside),
		at(beside, 50), at(beside, 99), float64(at(beside, 99))/float64(at(alone, 99)), ratios[len(ratios)/2])
	return nil
}

// at returns a percentile.
func at(all []time.Duration, percent int) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(len(all)-1, len(all)*percent/100)].Round(10 * time.Microsecond)
}

// planner plans an edit of the filter of the server's automation, again and again.
type planner struct {
	server   *attack.Server
	endpoint string
	body     string
	took     []time.Duration
	looked   int
}

func newPlanner(ctx context.Context, s *attack.Server) (*planner, error) {
	var list struct{ Factories []struct{ UID string } }
	if err := s.Call(ctx, "GET", "/factory", "", &list); err != nil {
		return nil, err
	}
	endpoint := "/factory/" + list.Factories[0].UID

	type file struct {
		Path    string `json:"path"`
		Content string `json:"content"`
	}
	var held struct{ Files []file }
	if err := s.Call(ctx, "GET", endpoint+"/files", "", &held); err != nil {
		return nil, err
	}

	for i := range held.Files {
		f := &held.Files[i]
		if err := s.Call(ctx, "GET", endpoint+"/files/"+url.PathEscape(f.Path), "", f); err != nil {
			return nil, err
		}
		if path.Base(f.Path) == "automation.md" {
			f.Content = strings.Replace(f.Content, "status: [failed]", "status: [closed]", 1)
		}
	}

	body, err := json.Marshal(map[string]any{"files": held.Files})
	return &planner{server: s, endpoint: endpoint + "/plan", body: string(body)}, err
}

// planUntil plans until ctx ends.
func (p *planner) planUntil(ctx context.Context) error {
	for ctx.Err() == nil {
		var plan struct {
			Backtests []struct {
				LookedAt int `json:"looked_at"`
				Complete bool
			}
		}
		began := time.Now()
		err := p.server.Call(ctx, "POST", p.endpoint, p.body, &plan)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}

		if len(plan.Backtests) != 1 || !plan.Backtests[0].Complete {
			return fmt.Errorf("an incomplete backtest: %+v", plan.Backtests)
		}
		p.took, p.looked = append(p.took, time.Since(began)), plan.Backtests[0].LookedAt
	}
	return nil
}
