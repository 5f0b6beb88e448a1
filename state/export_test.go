package state

import (
	"context"
	"time"

	"millwright/state/db"
)

// DropContents deletes as much of the contents of an ended run as one transaction may.
func (s *Store) DropContents(ctx context.Context, id string) (int64, error) {
	return s.dropContents(ctx, id, db.Micros(time.Now().Add(time.Hour)))
}

// ReadClock reads the database's clock, as happens again and again.
func (s *Store) ReadClock(ctx context.Context) error { return s.db.ReadClock(ctx) }
