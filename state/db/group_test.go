package db_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"millwright/state/db"
	"millwright/state/statetest"
)

// TestPanicInChange makes changes panic that share a commit with others: each of them fails alone, the
// others are made, and so are those that come later.
func TestPanicInChange(t *testing.T) {
	statetest.EachDSN(t, func(t *testing.T, dsn string) {
		var log bytes.Buffer
		d := open(t, dsn, &log)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // ends the waiting of a test that fails
		defer cancel()

		for range 3 {
			inside, goOn := make(chan struct{}), make(chan struct{})
			var all sync.WaitGroup
			all.Go(func() { // holds up the others, so that they are one group
				if err := change(ctx, d, func() error { close(inside); <-goOn; return nil }); err != nil {
					t.Errorf("the first of a group: %v", err)
				}
			})
			<-inside
			for i := range 20 {
				all.Go(func() {
					err := change(ctx, d, func() error {
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
			remember(t, d)
		}
		if text := log.String(); !strings.Contains(text, "panicked") || strings.Contains(text, "sk-secret") {
			t.Errorf("the log must tell of it, without its value: %.500s", text)
		}
	})
}

// TestChangeThatExits ends the goroutine of a change without a panic.
func TestChangeThatExits(t *testing.T) {
	statetest.EachDSN(t, func(t *testing.T, dsn string) {
		d := open(t, dsn, io.Discard)
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			change(t.Context(), d, func() error { runtime.Goexit(); return errors.New("not reached") })
		}()
		<-gone
		remember(t, d)
	})
}

func open(t *testing.T, dsn string, log io.Writer) *db.DB {
	t.Helper()
	d, err := db.Open(t.Context(), dsn, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	if err := d.Migrate(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return d
}

// change runs f in a transaction.
func change(ctx context.Context, d *db.DB, f func() error) error {
	return d.Write(ctx, func(context.Context, *db.Tx) error { return f() })
}

// remember makes a change, and reads it.
func remember(t *testing.T, d *db.DB) {
	t.Helper()
	name := rand.Text()
	if err := d.ExecOne(t.Context(), `INSERT INTO facts (name, value) VALUES ($1, $2)`, name, []byte("x")); err != nil {
		t.Fatal(err)
	}
	names, err := db.Strings(t.Context(), d.Reader, `SELECT name FROM facts WHERE name = $1`, name)
	if err != nil || !slices.Equal(names, []string{name}) {
		t.Errorf("read %q, %v; want %s", names, err, name)
	}
}
