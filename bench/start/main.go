// Command start measures how soon `millwright serve` is ready after its process began, and how much memory and
// processor time it takes while nothing happens. Run it with: go run ./bench/start
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	rounds := flag.Int("rounds", 9, "how often each start is measured; medians are shown")
	idle := flag.Duration("idle", 5*time.Second,
		"how long a server idles before its memory is read; 0 measures starts only")
	binaries := flag.String("binary", "", "comma-separated programs to measure in turns (default: this tree's)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()

	if err := run(ctx, *rounds, *idle, *binaries); err != nil {
		fmt.Fprintln(os.Stderr, "bench/start:", err)
		os.Exit(1)
	}
}

// settling is how long a server has to end its start, after which it returns memory.
const settling = 3 * time.Second

// A start is one way in which a server starts.
type start struct {
	name string
	demo bool // of a demo factory, whose secrets are missing; otherwise of a definition without any resource
	kept bool // on a state from before; otherwise without any state
}

var starts = []start{
	{name: "new state, empty definition"},
	{name: "new state, demo factory", demo: true},
	{name: "kept state, empty definition", kept: true},
	{name: "kept state, demo factory", demo: true, kept: true},
}

// A sample is what one start took.
type sample struct {
	ready    time.Duration // from the start of the process to the first 200 of /readyz
	cpu      time.Duration // processor time until then
	idle     time.Duration // processor time for a second of idling
	memory   int64         // resident bytes after idling
	resident int64         // of these, those that no file backs
}

func run(ctx context.Context, rounds int, idle time.Duration, binaries string) error {
	dir, err := os.MkdirTemp(".", "bench-") // on the disk of the checkout, not in memory
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}

	programs := strings.Split(binaries, ",")
	if binaries == "" {
		programs[0] = filepath.Join(dir, "millwright")
		build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", programs[0],
			"./cmd/millwright")
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("building the program (run this from the module's root): %w\n%s", err, out)
		}
	}

	for i, program := range programs {
		if programs[i], err = install(program, filepath.Join(dir, "program"+strconv.Itoa(i))); err != nil {
			return err
		}
	}

	measured := make([][][]sample, len(starts))
	for i := range starts {
		measured[i] = make([][]sample, len(programs))
	}

	for round := -1; round < rounds; round++ { // the first fills the page cache
		for i, s := range starts {
			for p, program := range programs {
				got, err := measure(ctx, program, filepath.Join(dir, fmt.Sprintf("%d-%d", i, p)), s, idle)
				if err != nil {
					return fmt.Errorf("%s: %w", s.name, err)
				}
				if round >= 0 {
					measured[i][p] = append(measured[i][p], got)
				}
			}
		}
	}

	fmt.Printf("%s, %d processors, medians of %d starts in turns, idle for %s\n\n",
		runtime.Version(), runtime.NumCPU(), rounds, idle)
	fmt.Println("| start | program | ready | fastest | processor time | idle memory | not of files | idle processor |")
	fmt.Println("| --- | --- | --- | --- | --- | --- | --- | --- |")
	for i, s := range starts {
		for p := range programs {
			print(s.name, p+1, measured[i][p])
		}
	}

	return nil
}

func print(name string, program int, all []sample) {
	fmt.Printf("| %s | %d | %.0f ms | %.0f ms | %.0f ms | %.1f MB | %.1f MB | %.1f ms/s |\n",
		name,
		program,
		ms(median(all, func(s sample) time.Duration { return s.ready })),
		ms(slices.MinFunc(all, func(a, b sample) int { return cmp.Compare(a.ready, b.ready) }).ready),
		ms(median(all, func(s sample) time.Duration { return s.cpu })),
		mb(median(all, func(s sample) int64 { return s.memory })),
		mb(median(all, func(s sample) int64 { return s.resident })),
		ms(median(all, func(s sample) time.Duration { return s.idle })),
	)
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
func mb(n int64) float64         { return float64(n) / 1e6 }

func median[T cmp.Ordered](all []sample, of func(sample) T) T {
	values := make([]T, len(all))
	for i, s := range all {
		values[i] = of(s)
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// install copies a program. What the linker has just written is in the page cache in large pieces, and a process
// that touches one counts as using the memory of all of it.
func install(from, to string) (string, error) {
	if err := os.Mkdir(filepath.Dir(to), 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}

	content, err := os.ReadFile(from)
	if err != nil {
		return "", err
	}

	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return "", err
	}
	for part := range slices.Chunk(content, 32<<10) {
		if _, err := f.Write(part); err != nil {
			return "", err
		}
	}

	return to, f.Close()
}

// measure starts a server in dir, waits until it is ready and then idle, and stops it. Its definition and its state
// are kept in dir, for a start on a kept state.
func measure(ctx context.Context, program, dir string, s start, idle time.Duration) (got sample, err error) {
	definition := filepath.Join(dir, "definition")
	if _, err := os.Stat(definition); err != nil {
		if err := define(ctx, program, definition, s.demo); err != nil {
			return got, err
		}
	}

	if !s.kept {
		if err := os.RemoveAll(filepath.Join(dir, "state")); err != nil {
			return got, err
		}
	}

	address, err := freeAddress()
	if err != nil {
		return got, err
	}

	server := exec.CommandContext(ctx, program, "serve", "--dir", definition, "--listen", address,
		"--state", filepath.Join(dir, "state", "state.db"), "--log-level", "error")
	server.Stderr = os.Stderr
	server.Cancel = func() error { return server.Process.Signal(syscall.SIGTERM) }

	began := time.Now()
	if err := server.Start(); err != nil {
		return got, err
	}
	defer func() {
		_ = server.Process.Signal(syscall.SIGTERM)
		if waited := server.Wait(); err == nil {
			err = waited
		}
	}()

	if err := untilReady(ctx, "http://"+address+"/readyz"); err != nil {
		return got, err
	}
	got.ready = time.Since(began)
	if got.cpu, err = processor(server.Process.Pid); err != nil {
		return got, err
	}

	if idle <= 0 {
		return got, nil
	}

	time.Sleep(settling)
	before, err := processor(server.Process.Pid)
	if err != nil {
		return got, err
	}

	time.Sleep(idle)
	after, err := processor(server.Process.Pid)
	if err != nil {
		return got, err
	}

	got.idle = time.Duration(float64(after-before) / idle.Seconds())
	got.memory, got.resident, err = memory(server.Process.Pid)
	return got, err
}

// define writes a definition: a demo factory's, or one without any resource.
func define(ctx context.Context, program, dir string, demo bool) error {
	if !demo {
		return os.MkdirAll(filepath.Join(dir, "webhooks"), 0o755)
	}

	out, err := exec.CommandContext(ctx, program, "init", "--demo", dir).CombinedOutput()
	if err != nil {
		return fmt.Errorf("init: %w\n%s", err, out)
	}
	return nil
}

// freeAddress returns a port of loopback that nothing uses.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// untilReady asks until the answer is 200.
func untilReady(ctx context.Context, url string) error {
	ctx, stop := context.WithTimeout(ctx, 20*time.Second)
	defer stop()

	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}

		answer, err := http.DefaultClient.Do(request)
		if err == nil {
			answer.Body.Close()
		}
		if err == nil && answer.StatusCode == http.StatusOK {
			return nil
		}

		select {
		case <-ctx.Done():
			return fmt.Errorf("not ready: %w", cmp.Or(err, ctx.Err()))
		case <-time.After(500 * time.Microsecond):
		}
	}
}

// processor returns the processor time that all threads of a process used.
func processor(pid int) (all time.Duration, err error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(threads) == 0 {
		return 0, cmp.Or(err, errors.New("this system does not say how much processor time a process used"))
	}

	for _, thread := range threads {
		content, err := os.ReadFile(thread)
		if err != nil {
			continue // it has ended
		}

		onProcessor, _, _ := strings.Cut(string(content), " ")
		nanoseconds, err := strconv.ParseInt(onProcessor, 10, 64)
		if err != nil {
			return 0, err
		}
		all += time.Duration(nanoseconds)
	}

	return all, nil
}

// memory returns the resident bytes of a process, and those of them that no file backs.
func memory(pid int) (all, anonymous int64, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, err
	}

	for line := range strings.Lines(string(status)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}

		kilobytes, _ := strconv.ParseInt(fields[1], 10, 64)
		switch fields[0] {
		case "VmRSS:":
			all = kilobytes << 10
		case "RssAnon:":
			anonymous = kilobytes << 10
		}
	}

	return all, anonymous, nil
}
