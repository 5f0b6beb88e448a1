package state

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/state/audit"
	"millwright/state/batch"
	"millwright/state/db"
	"millwright/state/notice"
	"millwright/state/seal"
)

// Config describes the state to open. MasterKey is required: see [seal.LoadKey].
type Config struct {
	// DSN is a path, sqlite:PATH, or postgres://…
	DSN string
	// MasterKey seals secrets at rest: 32 bytes, or the 64 of two keys, of which the state is sealed under one.
	MasterKey []byte
	// Log receives notices of background work; nil discards them.
	Log *slog.Logger
}

// Open opens the state that cfg names, creating and migrating it as needed. It refuses, and changes
// nothing, when the state is of a newer version, is sealed under another master key, or is a SQLite
// file that another process holds.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}

	sealer, err := seal.New(cfg.MasterKey)
	if err != nil {
		return nil, err
	}

	d, err := db.Open(ctx, cfg.DSN, cfg.Log)
	if err != nil {
		return nil, err
	}

	s := &Store{
		Bus:    notice.New(d, cfg.Log),
		db:     d,
		seal:   sealer,
		log:    cfg.Log,
		audit:  audit.New(d, cfg.Log),
		accept: batch.New(),
	}
	session, err := s.prepare(ctx)
	if err != nil {
		d.Close()
		return nil, err
	}

	background, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.background.Go(func() { s.writeAccepted(background) })
	if session != nil {
		s.background.Go(func() { s.Send(background) })
		s.background.Go(func() { s.Receive(background, session, s.resumed) })
	}

	return s, nil
}

// Examine looks for what is wrong with the database that dsn names, also while a server uses it. It changes
// nothing.
func Examine(ctx context.Context, dsn string) (db.Examination, error) {
	d, err := db.OpenReading(ctx, dsn)
	if err != nil {
		return db.Examination{}, err
	}
	defer d.Close()

	return d.Examine(ctx)
}

// OpenReading opens the state that cfg names for reading, also while a server uses it. Nothing is created or
// migrated, and writing fails. [seal.ErrWrongKey] if it is sealed under another master key.
func OpenReading(ctx context.Context, cfg Config) (*Store, error) {
	sealer, err := seal.New(cfg.MasterKey)
	if err != nil {
		return nil, err
	}

	d, err := db.OpenReading(ctx, cfg.DSN)
	if err != nil {
		return nil, err
	}
	if err := sealer.Check(ctx, d); err != nil {
		d.Close()
		return nil, err
	}

	log := slog.New(slog.DiscardHandler)
	return &Store{Bus: notice.New(d, log), db: d, seal: sealer, log: log, stop: func() {}}, nil
}

// prepare shows that we use a PostgreSQL state by a session, then checks the state and migrates it.
func (s *Store) prepare(ctx context.Context) (session *pgx.Conn, err error) {
	if s.db.Postgres() {
		if session, err = s.db.Use(ctx); err != nil {
			return nil, err
		}
	}

	err = s.db.Migrate(ctx, s.checkKey)
	if err == nil {
		err = s.seal.Bind(ctx, s.db)
	}
	if err != nil && session != nil {
		session.Close(context.WithoutCancel(ctx))
	}

	return session, err
}

func (s *Store) checkKey(ctx context.Context) error { return s.seal.Check(ctx, s.db) }

// resumed reports whether this process may go on after it was without a session: meanwhile the master key may
// have been rotated, and then it must change nothing any more.
func (s *Store) resumed(ctx context.Context) error {
	err := s.checkKey(ctx)
	if errors.Is(err, seal.ErrWrongKey) {
		s.db.Refuse(fmt.Errorf("%w: the master key was rotated: start this server again, with the new one",
			ErrUnavailable))
		s.log.Error("the master key was rotated while this server had no connection to the database: " +
			"start it again, with the new key")
	}

	return err
}

// Close ends the background work and closes the database. Accepts in flight are answered first.
func (s *Store) Close() error {
	s.stop()
	s.background.Wait()
	return s.db.Close()
}

// writeAccepted serves the group commit until ctx ends, and then what still waits. Each second it writes the
// shared rows of rejections.
func (s *Store) writeAccepted(ctx context.Context) {
	writers := 1 // SQLite has one
	if s.db.Postgres() {
		writers = 3
	}

	var flushing sync.WaitGroup
	flushing.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()

		for ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case <-tick.C:
				s.flushRejects(ctx)
			}
		}
	})

	s.accept.Run(ctx, writers, func(ctx context.Context, waiting []batch.Job) {
		jobs := make([]*job, len(waiting))
		for i, j := range waiting {
			jobs[i] = j.(*job)
		}
		s.commit(ctx, jobs)
	})

	flushing.Wait()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), acceptDeadline)
	defer cancel()

	s.flushRejects(last)
}
