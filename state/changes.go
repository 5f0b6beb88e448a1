package state

import (
	"context"
	"encoding/json"
)

// Changes returns the changes of a run's state, oldest first: the latest limit of them. The run's creation
// is not among them.
func (s *Store) Changes(ctx context.Context, runID string, limit int) ([]Entry, error) {
	rows, err := s.read.QueryContext(
		ctx,
		`SELECT seq, execution, content, at FROM (SELECT seq, execution, content, at FROM run_entries
		WHERE run_id = $1 AND kind = '`+kindState+`' ORDER BY seq DESC LIMIT $2) AS latest ORDER BY seq`,
		runID,
		limit,
	)
	if err != nil {
		return nil, s.classify(err)
	}

	all, err := scanAll(rows, func(row scanner) (e Entry, err error) {
		var content string
		var at int64
		if err := row.Scan(&e.Seq, &e.Execution, &content, &at); err != nil {
			return e, err
		}

		e.At = timeOf(at)
		return e, json.Unmarshal([]byte(content), &e.Change)
	})

	return all, s.classify(err)
}
