package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// server is a process that serves one kind. It shares nothing with the load generator.
type server struct {
	addr, path, dir string
	process         *exec.Cmd
	stop            func() error // and waits for its end
}

// startServer starts this program as a server.
func startServer(ctx context.Context, args ...string) (*server, error) {
	child := exec.CommandContext(ctx, os.Args[0], args...)
	child.Stderr = os.Stderr
	stdin, err := child.StdinPipe()
	if err != nil {
		return nil, err
	}

	stdout, err := child.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := child.Start(); err != nil {
		return nil, err
	}

	s := &server{process: child, stop: sync.OnceValue(func() error {
		_ = stdin.Close() // ends it
		return child.Wait()
	})}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err == nil {
		_, err = fmt.Sscan(line, &s.addr, &s.path, &s.dir)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the server did not start: %w", err), s.stop())
	}

	return s, nil
}

// kindReplicas is several servers on one PostgreSQL.
const kindReplicas = "replicas"

// startServers starts what serves a kind: one server, or replicas on one PostgreSQL. The function that it returns stops
// them.
func startServers(ctx context.Context, kind string, o options) (all []*server, stop func() error, err error) {
	dropped := func() {}
	stop = func() error {
		var errs []error
		for _, s := range all {
			errs = append(errs, s.stop())
		}
		dropped()
		return errors.Join(errs...)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, stop())
		}
	}()

	count, own := 1, []string{"-serve", kind, "-postgres", o.postgres}
	if kind == kindReplicas {
		dsn, drop, err := schemaOf(o.postgres)
		if err != nil {
			return nil, stop, err
		}

		dropped = drop
		count, own = o.replicas, []string{"-serve", kind, "-postgres", dsn}
	}

	args := append(own,
		"-size", strconv.Itoa(o.size),
		"-automations", strconv.Itoa(o.automations),
		"-events", strconv.Itoa(o.events),
		"-soak", strconv.Itoa(o.soak),
		"-github="+strconv.FormatBool(o.github),
	)
	if o.profile != "" {
		args = append(args, "-profile", o.profile)
	}

	for range count {
		if len(all) > 0 {
			args = append(slices.Clone(args), "-join", all[0].path)
		}

		s, err := startServer(ctx, args...)
		if err != nil {
			return nil, stop, err
		}
		all = append(all, s)
	}

	return all, stop, nil
}

// addresses returns where servers listen.
func addresses(all []*server) []string {
	addrs := make([]string, len(all))
	for i, s := range all {
		addrs[i] = s.addr
	}
	return addrs
}

func resident(pid int) int64 {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0
	}

	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kb << 10
		}
	}

	return 0
}
