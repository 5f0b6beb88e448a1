// Package state holds what millwright remembers, and which changes to it are legal.
//
// One [Store] serves SQLite (embedded, the default) and PostgreSQL (many replicas), through package db. Illegal
// states are refused by the tables themselves. Every method is safe for concurrent use. A method that changes
// something either changes all of it, durably, or nothing.
package state

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/state/db"
	"millwright/state/notice"
	"millwright/state/outputs"
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

// Store is an open state.
type Store struct {
	*notice.Bus

	db          *db.DB
	seal        *seal.Sealer
	log         *slog.Logger
	accept      *acceptor
	local       localReplicas
	definitions definitions
	skips       skips
	stop        context.CancelFunc
	background  sync.WaitGroup
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

	s := &Store{Bus: notice.New(d, cfg.Log), db: d, seal: sealer, log: cfg.Log}
	session, err := s.prepare(ctx)
	if err != nil {
		d.Close()
		return nil, err
	}

	background, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.accept = newAcceptor(s)
	s.background.Go(func() { s.accept.run(background) })
	if session != nil {
		s.background.Go(func() { s.Send(background) })
		s.background.Go(func() { s.Receive(background, session, s.resumed) })
	}

	return s, nil
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

// Outputs returns the outputs of runs.
func (s *Store) Outputs() outputs.Table { return outputs.New(s.db) }

// Ping reports whether the database answers.
func (s *Store) Ping(ctx context.Context) error { return s.db.Ping(ctx) }

// Shared reports whether several processes may serve this state at once (PostgreSQL).
func (s *Store) Shared() bool { return s.db.Postgres() }

// ClockSkew returns by how much this machine's clock is ahead of the clock that leases go by, at the last
// reading of that; 0 with SQLite.
func (s *Store) ClockSkew() time.Duration { return s.db.ClockSkew() }

// DeriveKey returns 32 bytes that every server of this state derives from the master key, and nobody else
// can, for one purpose: a secret that servers share.
func (s *Store) DeriveKey(purpose string) []byte { return s.seal.Derive(purpose) }

// SQLitePath returns the database file that dsn names, and false when dsn names a PostgreSQL state.
func SQLitePath(dsn string) (string, bool) { return db.SQLitePath(dsn) }
