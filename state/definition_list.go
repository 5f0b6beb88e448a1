package state

import (
	"context"
	"errors"
	"time"

	"millwright/state/db"
)

// Stamps tells when a resource of a definition was first applied, and when it last changed.
type Stamps struct {
	Created, Updated time.Time
}

// ResourceStamps returns the stamps of a factory's applied agents, automations, runners and skills, by UID.
func (s *Store) ResourceStamps(ctx context.Context, factoryUID string) (map[string]Stamps, error) {
	all := map[string]Stamps{}
	err := db.Each(ctx, s.db.Reader, func(row db.Row) error {
		var uid string
		var created, updated int64
		err := row.Scan(&uid, &created, &updated)
		all[uid] = Stamps{db.Time(created), db.Time(updated)}
		return err
	}, `
		SELECT uid, created_at, updated_at
		FROM resources
		WHERE factory_uid = $1 AND deleted_at IS NULL`, factoryUID)

	return all, err
}

// Definitions returns the applied definitions of the attached factories, by name. One that cannot be read as it
// is stored is skipped.
func (s *Store) Definitions(ctx context.Context) ([]Current, error) {
	factories, err := s.Factories(ctx)
	if err != nil {
		return nil, err
	}

	var all []Current
	for _, f := range factories {
		if f.Detached {
			continue
		}

		current, err := s.Current(ctx, f.UID)
		switch {
		case errors.Is(err, ErrUnreadable), errors.Is(err, ErrNotFound):
		case err != nil:
			return nil, err
		default:
			all = append(all, current)
		}
	}

	return all, nil
}
