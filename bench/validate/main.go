// Command validate measures millwright validate: loading and checking many definition files, beside
// kubeconform on files of the same size and schema, the start of the program on a tree of usual size, and
// how soon a save is checked again. Run it with: go run ./bench/validate
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// kubeconform is the checker to compare with. It gives no positions.
const kubeconform = "github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0"

func main() {
	rounds := flag.Int("rounds", 7, "how often each measurement is made")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *rounds); err != nil {
		fmt.Fprintln(os.Stderr, "bench/validate:", err)
		os.Exit(1)
	}
}

type bench struct {
	ctx       context.Context
	dir       string
	program   string
	other     string // kubeconform; empty when it could not be had
	processes int
	rounds    int
}

func run(ctx context.Context, rounds int) error {
	dir, err := os.MkdirTemp("", "bench-validate")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	b := &bench{
		ctx:       ctx,
		dir:       dir,
		program:   filepath.Join(dir, "millwright"),
		processes: runtime.GOMAXPROCS(0),
		rounds:    rounds,
	}
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", b.program, "./cmd/millwright")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the program (run this from the module's root): %w\n%s", err, out)
	}

	install := exec.CommandContext(ctx, "go", "install", kubeconform)
	install.Dir, install.Env = dir, append(os.Environ(), "GOBIN="+dir, "GOFLAGS=-mod=mod")
	if out, err := install.CombinedOutput(); err != nil {
		fmt.Printf(
			"%s: not compared, since it could not be had here: %s\n",
			kubeconform,
			strings.TrimSpace(lastLine(out)),
		)
	} else {
		b.other = filepath.Join(dir, "kubeconform")
	}

	for _, program := range []string{b.program, b.other} {
		if err := settle(program); err != nil {
			return err
		}
	}

	fmt.Printf(
		"%s, %d processors, %s, files in the page cache, medians of %d runs in turns, process start included\n\n",
		runtime.Version(),
		b.processes,
		runtime.GOARCH,
		rounds,
	)

	for _, part := range []func() error{b.throughput, b.linear, b.coldStart, b.watch} {
		if err := part(); err != nil {
			return err
		}
	}

	return nil
}

// settle copies a program onto itself, as installing it does. What the linker has just written is in the page
// cache in large pieces, and a process that touches one counts as using the memory of all of it.
func settle(program string) error {
	if program == "" {
		return nil
	}

	from, err := os.Open(program)
	if err != nil {
		return err
	}
	defer from.Close()

	to, err := os.OpenFile(program+".new", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(to, from); err != nil {
		return err
	}
	if err := to.Close(); err != nil {
		return err
	}

	return os.Rename(to.Name(), program)
}

func lastLine(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}

// sample is what one run of a command took.
type sample struct {
	took   time.Duration
	cpu    time.Duration // of all processors, user and system
	memory int64         // peak, in bytes
}

// time runs a command, which must end with status 0.
func (b *bench) time(args ...string) (sample, error) {
	cmd := exec.CommandContext(b.ctx, args[0], args[1:]...)
	began := time.Now()
	out, err := cmd.CombinedOutput()
	took := time.Since(began)
	if err != nil {
		return sample{}, fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, out[:min(len(out), 2000)])
	}

	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return sample{}, errors.New("this system does not say how much memory a process took")
	}

	unit := int64(1024)
	if runtime.GOOS == "darwin" {
		unit = 1
	}

	return sample{took, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), int64(usage.Maxrss) * unit}, nil
}

// inTurns measures commands in turns, so that what else the machine does falls on all of them, and
// returns the median of each.
func (b *bench) inTurns(commands ...[]string) ([]sample, error) {
	all := make([][]sample, len(commands))
	for round := -1; round < b.rounds; round++ { // the first warms the cache
		for i, args := range commands {
			s, err := b.time(args...)
			if err != nil {
				return nil, err
			}
			if round >= 0 {
				all[i] = append(all[i], s)
			}
		}
	}

	out := make([]sample, len(commands))
	for i, samples := range all {
		slices.SortFunc(samples, func(x, y sample) int { return cmp.Compare(x.cpu, y.cpu) })
		out[i].cpu = samples[len(samples)/2].cpu
		slices.SortFunc(samples, func(x, y sample) int { return cmp.Compare(x.took, y.took) })
		out[i].took = samples[len(samples)/2].took
		for _, s := range samples {
			out[i].memory = max(out[i].memory, s.memory)
		}
	}

	return out, nil
}

func (b *bench) validate(tree string) []string {
	return []string{b.program, "validate", tree, "--format", "json=" + os.DevNull}
}

func (b *bench) throughput() error {
	const n = 10_000
	tree, size, err := writeTree(filepath.Join(b.dir, "tree"), 20, n-21)
	if err != nil {
		return err
	}

	commands := [][]string{b.validate(tree)}
	if b.other != "" {
		manifests, schemas, err := writeManifests(filepath.Join(b.dir, "manifests"), n)
		if err != nil {
			return err
		}

		commands = append(commands, []string{
			b.other, "-n", fmt.Sprint(b.processes), "-strict",
			"-schema-location", filepath.Join(schemas, "{{ .ResourceKind }}.json"), manifests,
		})
	}

	got, err := b.inTurns(commands...)
	if err != nil {
		return err
	}

	rate := func(s sample) float64 { return n / s.took.Seconds() }
	fmt.Printf("%d definition files of %d bytes\n", n, size/n)
	line := func(name string, s sample) {
		fmt.Printf(
			"  %-36s %6.0f files/s  %5.0f ms  %5.0f ms of CPU  %3.0f MB\n",
			name,
			rate(s),
			ms(s.took),
			ms(s.cpu),
			mb(s),
		)
	}

	line("millwright validate, with positions", got[0])
	if b.other != "" {
		line("kubeconform -strict, without", got[1])
		fmt.Printf(
			"  %-36s %6.2f by time, %.2f by CPU\n",
			"ratio",
			rate(got[0])/rate(got[1]),
			got[1].cpu.Seconds()/got[0].cpu.Seconds(),
		)
	}

	fmt.Println()
	return nil
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
func mb(s sample) float64        { return float64(s.memory) / 1e6 }

// linear measures trees of growing size.
func (b *bench) linear() error {
	fmt.Println("cost by size, microseconds a file")
	for _, n := range []int{1_250, 2_500, 5_000, 10_000, 20_000} {
		tree, _, err := writeTree(filepath.Join(b.dir, fmt.Sprintf("linear-%d", n)), 20, n-21)
		if err != nil {
			return err
		}

		got, err := b.inTurns(b.validate(tree))
		if err != nil {
			return err
		}

		fmt.Printf(
			"  %6d files  %5.1f  %5.1f of CPU  %3.0f MB\n",
			n,
			1000*ms(got[0].took)/float64(n),
			1000*ms(got[0].cpu)/float64(n),
			mb(got[0]),
		)
		if err := os.RemoveAll(tree); err != nil {
			return err
		}
	}

	fmt.Println()
	return nil
}

func (b *bench) coldStart() error {
	tree, _, err := writeTree(filepath.Join(b.dir, "usual"), 20, 500)
	if err != nil {
		return err
	}

	got, err := b.inTurns(b.validate(tree), []string{b.program, "version"})
	if err != nil {
		return err
	}

	fmt.Printf(
		"20 webhooks and 500 automations, from process start to exit\n"+
			"  millwright validate  %5.1f ms  %5.1f ms of CPU  %3.0f MB\n"+
			"  millwright version   %5.1f ms  %5.1f ms of CPU, part of that\n\n",
		ms(got[0].took),
		ms(got[0].cpu),
		mb(got[0]),
		ms(got[1].took),
		ms(got[1].cpu),
	)

	return nil
}

// watch measures from a save to the report of the check that follows it.
func (b *bench) watch() error {
	tree := filepath.Join(b.dir, "usual")
	report := filepath.Join(b.dir, "watch.json")
	ctx, stop := context.WithCancel(b.ctx)
	defer stop()

	cmd := exec.CommandContext(ctx, b.program, "validate", tree, "--watch", "--format", "json="+report)
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() { stop(); _ = cmd.Wait() }()

	if err := b.says(report, `"outcome": "good"`); err != nil {
		return err
	}

	file := filepath.Join(tree, "webhooks", "w0.yaml")
	good, err := os.ReadFile(file)
	if err != nil {
		return err
	}

	var took []time.Duration
	for i := range 4 * b.rounds {
		text, want := append(slices.Clone(good), "unknown: 1\n"...), `"outcome": "problems"`
		if i%2 == 1 {
			text, want = good, `"outcome": "good"`
		}

		began := time.Now()
		if err := os.WriteFile(file, text, 0o644); err != nil {
			return err
		}
		if err := b.says(report, want); err != nil {
			return err
		}

		took = append(took, time.Since(began))
	}

	slices.Sort(took)
	fmt.Printf("--watch on the same tree, from a save to the new report: median %.0f ms, slowest of %d %.0f ms\n",
		ms(took[len(took)/2]), len(took), ms(took[len(took)-1]))
	return nil
}

// says waits until a file holds a text.
func (b *bench) says(file, text string) error {
	deadline := time.Now().Add(20 * time.Second)
	for time.Now().Before(deadline) && b.ctx.Err() == nil {
		if got, err := os.ReadFile(file); err == nil && strings.Contains(string(got), text) {
			return nil
		}
		time.Sleep(500 * time.Microsecond)
	}
	return fmt.Errorf("%s never said %s", file, text)
}
