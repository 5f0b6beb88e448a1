package state

import "context"

// ReadClock reads the database's clock, as happens again and again.
func (s *Store) ReadClock(ctx context.Context) error { return s.db.ReadClock(ctx) }
