// Command hostile measures what an honest sender notices of hostile ones: how long its deliveries take when
// nobody else sends, and during each attack, how they are answered, and how much memory the server takes.
//
//	go run ./bench/hostile                      # the program of this tree
//	go run ./bench/hostile -binary PATH,PATH    # these programs, one after the other
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"millwright/bench/hostile/attack"
)

func main() {
	binaries := flag.String("binary", "", "comma-separated programs to measure; that of this tree when absent")
	deliveries := flag.Int("deliveries", 300, "deliveries of the honest sender in each measurement")
	longest := flag.Duration("longest", time.Minute, "how long a measurement goes on at most")
	only := flag.String("only", "", "measure only attacks whose name holds this text")
	name := flag.String("attack", "",
		"attack the server that a line of standard input describes (used by the program itself)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()

	var err error
	if *name != "" {
		err = attackUntilEOF(ctx, *name, os.Stdin, os.Stdout)
	} else {
		err = compare(ctx, *binaries, *only, *deliveries, *longest)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// compare measures every attack on every program, each on a server of its own, and prints a table.
func compare(ctx context.Context, binaries, only string, deliveries int, longest time.Duration) error {
	dir, err := os.MkdirTemp("", "bench-hostile-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	programs := strings.Split(binaries, ",")
	if binaries == "" {
		programs[0] = filepath.Join(dir, "millwright")
		build := exec.CommandContext(ctx, "go", "build", "-o", programs[0], "./cmd/millwright")
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("%w\n%s", err, out)
		}
	}

	fmt.Printf(
		"| attack | program | p50 | p99 | answered 202 | most memory |\n| --- | --- | --- | --- | --- | --- |\n",
	)
	for _, name := range rows(only) {
		for _, program := range programs {
			m, err := measure(ctx, program, name, deliveries, longest)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", program, name, err)
			}

			fmt.Printf(
				"| %s | %s | %v | %v | %d of %d | %d MB |\n",
				name,
				filepath.Base(program),
				at(m.took, 50),
				at(m.took, 99),
				m.accepted,
				m.sent,
				m.peak>>20,
			)
		}
	}

	return nil
}

const (
	noAttack   = "none"
	everything = "all at once"
)

// rows names what is measured: no attack, each, and all at once.
func rows(only string) []string {
	names := []string{noAttack}
	for _, a := range attack.All() {
		names = append(names, a.Name)
	}

	names = append(names, everything)
	return slices.DeleteFunc(names, func(name string) bool { return !strings.Contains(name, only) })
}

// settling is how long the server has to take in what the attacks began with.
const settling = 2 * time.Second

type measurement struct {
	took           []time.Duration // of the deliveries that were answered 202
	sent, accepted int
	peak           int64
}

// measure sends honest deliveries while the attack of this name goes on.
func measure(
	ctx context.Context,
	program, name string,
	deliveries int,
	longest time.Duration,
) (m measurement, err error) {
	dir, err := os.MkdirTemp("", "bench-hostile-")
	if err != nil {
		return m, err
	}
	defer os.RemoveAll(dir)

	s, err := attack.Start(ctx, program, dir)
	if err != nil {
		return m, err
	}
	defer s.Stop()

	if name != noAttack {
		a, err := startAttackers(s.Target, name)
		if err != nil {
			return m, err
		}
		defer a.stop()

		select {
		case <-a.started:
		case <-time.After(longest):
		case <-ctx.Done():
			return m, ctx.Err()
		}
	}

	time.Sleep(settling)
	pace := time.NewTicker(20 * time.Millisecond)
	defer pace.Stop()

	for end := time.Now().Add(longest); m.sent < deliveries && time.Now().Before(end); <-pace.C {
		sent := time.Now()
		status := s.Deliver(ctx, m.sent)
		if m.sent++; status == 202 {
			m.accepted++
			m.took = append(m.took, time.Since(sent))
		}
	}

	m.peak, err = s.Peak()
	return m, err
}

// at returns the time that so many percent of the deliveries took at most.
func at(took []time.Duration, percent int) time.Duration {
	if len(took) == 0 {
		return 0
	}
	slices.Sort(took)
	return took[min(len(took)*percent/100, len(took)-1)].Round(100 * time.Microsecond)
}
