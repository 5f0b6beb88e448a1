package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"

	"millwright/ingress"
	"millwright/reconcile"
	"millwright/state"
)

// hostRoot makes the program a git host, so that its work is not counted.
const hostRoot = "MILLWRIGHT_BENCH_GIT_ROOT"

// host serves the repositories below root, prints its address, and ends with its standard input.
func host(root string) error {
	git, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		return err
	}

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}

	fmt.Println("http://" + l.Addr().String())
	go func() {
		_ = http.Serve(l, &cgi.Handler{
			Path: filepath.Join(strings.TrimSpace(string(git)), "git-http-backend"), Root: "/",
			Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_GLOBAL=" + os.DevNull},
		})
	}()

	_, err = bufio.NewReader(os.Stdin).ReadString(0)
	if err.Error() == "EOF" {
		return nil
	}

	return err
}

// measureIdle prints what a process with many factories takes: memory after all are applied, and processor
// time while they are polled every 30 seconds and nothing changes.
func measureIdle(ctx context.Context, files, factories int, idle time.Duration) (err error) {
	dir, err := os.MkdirTemp("", "reconcile")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	r := repository{dir: dir}
	each := files / factories
	if err := r.create(ctx, files, func(i int) string {
		return fmt.Sprintf("f%d/automations/a%d/automation.md", i/each, i%each)
	}); err != nil {
		return err
	}

	server := exec.CommandContext(ctx, os.Args[0])
	server.Env = append(os.Environ(), hostRoot+"="+dir)
	stdin, err := server.StdinPipe()
	if err != nil {
		return err
	}

	stdout, err := server.StdoutPipe()
	if err != nil {
		return err
	}
	if err := server.Start(); err != nil {
		return err
	}
	defer func() { stdin.Close(); err = errors.Join(err, server.Wait()) }()

	address, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return err
	}

	s, err := state.Open(ctx, state.Config{DSN: filepath.Join(dir, "state.db"), MasterKey: make([]byte, 32)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()

	serving, err := ingress.New(ctx, ingress.Config{Store: s})
	if err != nil {
		return err
	}
	defer serving.Close(ctx)

	debug.SetGCPercent(200) // as a server has it
	running, end := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer end()

	turns := make(chan struct{}, 2)
	began := time.Now()
	for i := range factories {
		source, err := reconcile.Git(reconcile.GitConfig{
			URL:      strings.TrimSpace(address) + "/bare.git",
			Path:     fmt.Sprintf("f%d", i),
			CloneDir: filepath.Join(dir, fmt.Sprintf("clone%d", i)),
			Turns:    turns,
		})
		if err != nil {
			return err
		}

		f, err := s.EnsureFactory(ctx, fmt.Sprintf("bench-%d", i), source.Describe(), false)
		if err != nil {
			return err
		}

		loop := reconcile.New(reconcile.Config{Store: s, Factory: f, Source: source, Interval: 30 * time.Second})
		all.Go(func() { _ = loop.Run(running); _ = source.Close() })
	}

	for applied := 0; applied < factories; time.Sleep(100 * time.Millisecond) {
		list, err := s.Factories(ctx)
		if err != nil {
			return err
		}

		applied = 0
		for _, f := range list {
			if f.SyncState == state.SyncRefused || f.SyncState == state.SyncFailed {
				return fmt.Errorf("%s: %s", f.SyncState, f.Message)
			}
			if f.Applied.ID == r.head {
				applied++
			}
		}
	}

	fmt.Printf(
		"%d factories of %d files each: applied in %s\n",
		factories,
		each,
		time.Since(began).Round(100*time.Millisecond),
	)

	before, since := processorTime(), time.Now()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(idle):
	}

	share := 100 * float64(processorTime()-before) / float64(time.Since(since))
	fmt.Printf(
		"idle for %s, polled every 30s: %.2f %% of a core; memory %s, at most %s\n",
		idle,
		share,
		memory("VmRSS:"),
		memory("VmHWM:"),
	)

	return nil
}

// processorTime is what this process, without its children, has used so far.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// memory returns a line of what Linux says of this process, in MB.
func memory(line string) string {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return "?"
	}
	_, rest, _ := strings.Cut(string(text), line)
	var kB int
	if _, err := fmt.Sscan(rest, &kB); err != nil {
		return "?"
	}
	return fmt.Sprintf("%d MB", kB/1000)
}
