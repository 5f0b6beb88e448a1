package state

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"millwright/schema"
)

// The loops over the runs of all factories, by the names that Skipped has for them.
const (
	loopReap    = "lease recovery"
	loopRetain  = "retention"
	loopRejects = "rejected deliveries"
)

// storable returns text that both databases take: valid UTF-8 without NUL.
func storable(text string) string {
	if !strings.Contains(text, "\x00") && utf8.ValidString(text) {
		return text
	}
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

// bounded is storable of at most so many characters, for columns that an index has: PostgreSQL refuses a row
// whose part of an index is larger than 2,704 bytes.
func bounded(text string, characters int) string {
	text = storable(text)
	if len(text) <= characters {
		return text
	}

	for i := range text {
		if characters == 0 {
			return text[:i]
		}
		characters--
	}

	return text
}

// mendRunSQL bounds the columns of a run that indexes have.
var mendRunSQL = fmt.Sprintf(`UPDATE runs
	SET title = substr(title, 1, %d), config_name = substr(config_name, 1, %d), model_id = substr(model_id, 1, %d),
	environment_id = substr(environment_id, 1, %d), skill_spec = substr(skill_spec, 1, %d)
	WHERE id = $1`, schema.MaxTitle, schema.MaxLabel, schema.MaxModel, schema.MaxEnvironment, schema.MaxSkillSpec)

// commitRun is commit for a change of one run, as mending makes it.
func (s *Store) commitRun(ctx context.Context, id string, f func(context.Context, write) error) error {
	return s.mending(ctx, id, func() error { return s.commit(ctx, f) })
}

// mending makes a change of a run and, when the run's row is why it fails, bounds what the row holds and tries
// once more.
func (s *Store) mending(ctx context.Context, id string, change func() error) error {
	err := change()
	if !ofRow(err) || errors.Is(err, sql.ErrNoRows) {
		return err
	}

	mend := s.commit(ctx, func(ctx context.Context, tx write) error {
		_, err := tx.ExecContext(ctx, mendRunSQL, id)
		return err
	})
	if mend != nil {
		return errors.Join(err, mend)
	}

	return change()
}

// endUnfit ends a run that its row keeps from going on: no part of it but its number of entries is read. The
// condition is what must still hold of it, for parameters from $4 on.
func (s *Store) endUnfit(ctx context.Context, id string, cause error, condition string, args ...any) (Run, error) {
	message := bounded("the run cannot go on as it is stored: "+cause.Error(), 1000)
	r := Run{ID: id, State: RunError, ErrorCode: "internal_error", StatusMessage: message, Execution: 1, Attempt: 1}
	err := s.commit(ctx, func(ctx context.Context, tx write) error {
		if _, err := tx.ExecContext(ctx, mendRunSQL, id); err != nil {
			return err
		}

		now := time.Now()
		err := tx.Tx.QueryRowContext(ctx, `UPDATE runs
			SET state = 'ERROR', error_code = 'internal_error', status_message = $2, finished_at = $3, updated_at = $3,
			claim_hash = NULL, lease_until = NULL, next_seq = next_seq + 1
			WHERE id = $1 AND `+condition+`
			RETURNING factory_uid, worker, execution, attempt, next_seq`, append([]any{id, message, micros(now)}, args...)...).
			Scan(&r.FactoryUID, &r.Worker, &r.Execution, &r.Attempt, &r.nextSeq)
		if err != nil {
			return err
		}

		r.Updated, r.Finished = now, &now
		return r.entered(ctx, tx, now)
	})

	if err == nil {
		s.log.Error(
			"a run ended because it cannot go on as it is stored",
			"run_id",
			id,
			"factory_uid",
			r.FactoryUID,
			"error",
			cause,
		)
		s.moved(ctx, r)
	}

	return r, err
}
