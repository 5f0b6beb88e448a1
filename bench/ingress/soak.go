package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"millwright/state"
)

// What a server under a soak keeps, in place of the days of a real one: so retention has all its work to do within
// minutes. Of ten deliveries one starts a run, and runs end at once.
const (
	soakRows  = 2000             // newest deliveries of a webhook that stay
	soakAge   = 10 * time.Second // younger deliveries and ended runs that stay
	soakTurn  = time.Second      // how often old ones are deleted
	soakLease = time.Minute
)

// soak sends so many deliveries to one server, and prints what it takes after each part.
func soak(ctx context.Context, o options) error {
	servers, stop, err := startServers(ctx, "sqlite", o)
	if err != nil {
		return err
	}

	s := servers[0]

	fmt.Println("| deliveries | a second | p50 | p99 | processor time | memory | database | log |")
	fmt.Println("| --- | --- | --- | --- | --- | --- | --- | --- |")
	for sent := 0; sent < o.soak && ctx.Err() == nil; {
		before := s.processor()
		m, err := load([]string{s.addr}, s.path, o, o.duration)
		if err != nil {
			return errors.Join(err, stop())
		}

		sent += m.answers
		fmt.Printf("| %d | %.0f | %.1f ms | %.1f ms | %d µs | %d MB | %.1f MB | %.1f MB |\n",
			sent,
			m.rate,
			float64(m.p50.Microseconds())/1000,
			float64(m.p99.Microseconds())/1000,
			((s.processor() - before) / time.Duration(m.answers)).Microseconds(),
			resident(s.process.Process.Pid)>>20,
			float64(sizeOf(filepath.Join(s.dir, "state.db")))/(1<<20),
			float64(sizeOf(filepath.Join(s.dir, "state.db-wal")))/(1<<20),
		)
	}

	return errors.Join(ctx.Err(), stop())
}

// processor returns the processor time that the server has used.
func (s *server) processor() time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.process.Process.Pid))
	if err != nil {
		return 0
	}

	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

func sizeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// retain deletes what is old, as the server's housekeeping does, until ctx ends.
func retain(ctx context.Context, s *state.Store) {
	for ctx.Err() == nil {
		_, deliveries := s.ExpireDeliveries(ctx, soakRows, soakAge)
		_, runs := s.ExpireRuns(ctx, soakAge)
		if err := errors.Join(deliveries, runs); err != nil && ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, "retention:", err)
		}

		select {
		case <-ctx.Done():
		case <-time.After(soakTurn):
		}
	}
}

// finish claims queued runs, starts them, and ends them, until ctx ends.
func finish(ctx context.Context, s *state.Store) {
	asks := make([]state.Ask, 32)
	for i := range asks {
		asks[i] = state.Ask{Worker: fmt.Sprint("wrk_", i), WorkerName: fmt.Sprint("worker ", i)}
	}

	for ctx.Err() == nil {
		claimed, err := s.ClaimRuns(ctx, "", asks, soakLease, state.ClaimBounds{})
		for _, c := range claimed {
			if _, started := s.StartRun(ctx, c.Claim, soakLease); started != nil {
				err = errors.Join(err, started)
				continue
			}

			_, ended := s.FinishRun(ctx, c.Claim, state.Result{State: state.RunSucceeded})
			err = errors.Join(err, ended)
		}

		if err != nil && ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, "runs:", err)
		}

		if len(claimed) < len(asks) {
			select {
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
}
