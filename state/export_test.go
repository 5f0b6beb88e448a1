package state

import "context"

// Commit makes a change that does nothing to the database itself.
func (s *Store) Commit(ctx context.Context, f func() error) error {
	return s.commit(ctx, func(context.Context, write) error { return f() })
}

// ReadClock reads the database's clock, as happens again and again.
func (s *Store) ReadClock(ctx context.Context) error { return s.readClock(ctx) }
