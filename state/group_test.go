package state_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"millwright/state"
	"millwright/state/statetest"
)

// TestPanicInChange makes changes panic that share a commit with others: each of them fails alone, the
// others are made, and so are those that come later.
func TestPanicInChange(t *testing.T) {
	statetest.EachDSN(t, func(t *testing.T, dsn string) {
		var log bytes.Buffer
		s, err := state.Open(t.Context(), state.Config{DSN: dsn, MasterKey: statetest.MasterKey(), Log: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { s.Close() }()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // ends the waiting of a test that fails
		defer cancel()

		for range 3 {
			inside, goOn := make(chan struct{}), make(chan struct{})
			var all sync.WaitGroup
			all.Go(func() { // holds up the others, so that they are one group
				if err := s.Commit(ctx, func() error { close(inside); <-goOn; return nil }); err != nil {
					t.Errorf("the first of a group: %v", err)
				}
			})
			<-inside
			for i := range 20 {
				all.Go(func() {
					err := s.Commit(ctx, func() error {
						if i%3 == 0 {
							panic("sk-secret")
						}
						return nil
					})
					if (err != nil) != (i%3 == 0) || err != nil && strings.Contains(err.Error(), "sk-secret") {
						t.Errorf("change %d: %v", i, err)
					}
				})
			}
			close(goOn)
			all.Wait()
			create(t, s, newRun("after it"))
		}
		if text := log.String(); !strings.Contains(text, "panicked") || strings.Contains(text, "sk-secret") {
			t.Errorf("the log must tell of it, without its value: %.500s", text)
		}
	})
}

// TestChangeThatExits ends the goroutine of a change, which is no panic.
func TestChangeThatExits(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			s.Commit(t.Context(), func() error { runtime.Goexit(); return errors.New("not reached") })
		}()
		<-gone
		create(t, s, newRun("after it"))
	})
}
