package db

import (
	"context"
	"database/sql/driver"
	"fmt"
	"runtime/debug"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// maxTries is how often a transaction is run when the database asks for that: after a deadlock or a
// serialization failure.
const maxTries = 5

// Write runs f in a transaction and returns when it is committed, or when f failed and nothing of it was
// kept. f may run again, so it has no other effects, and it uses the context that it is given: with SQLite
// changes that are made at the same time share one commit, and outlive their callers.
func (d *DB) Write(ctx context.Context, f func(context.Context, *Tx) error) error {
	if err := d.Refused(); err != nil {
		return err
	}

	change := func(ctx context.Context, tx *Tx) error {
		return d.guarded(func() error { return f(ctx, tx) })
	}
	if d.dialect == sqlite {
		return classify(d.share(ctx, change))
	}

	return d.retry(func() error {
		tx, err := d.write.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()

		if err := change(ctx, &Tx{Reader{tx: tx}, d}); err != nil {
			return err
		}

		return tx.Commit()
	})
}

// retry runs a transaction until the database does not ask for another try.
func (d *DB) retry(transaction func() error) error {
	for try := 1; ; try++ {
		err := transaction()
		if err == nil || try == maxTries || !retryable(err) {
			return classify(err)
		}
	}
}

// Exec runs one statement in a transaction of its own.
func (d *DB) Exec(ctx context.Context, query string, args ...any) error {
	_, err := d.exec(ctx, query, args...)
	return err
}

// ExecOne is Exec of a statement that must change a row: [ErrNoRow] when it changed none.
func (d *DB) ExecOne(ctx context.Context, query string, args ...any) error {
	n, err := d.exec(ctx, query, args...)
	if err == nil && n == 0 {
		return ErrNoRow
	}
	return err
}

func (d *DB) exec(ctx context.Context, query string, args ...any) (changed int64, err error) {
	if d.dialect == sqlite {
		err = d.Write(ctx, func(ctx context.Context, tx *Tx) error {
			changed, err = tx.Exec(ctx, query, args...)
			return err
		})
		return changed, err
	}

	if err := d.Refused(); err != nil {
		return 0, err
	}

	changed, err = affected(d.write.ExecContext(ctx, query, args...))
	return changed, classify(err)
}

// ExecBuilt runs a statement whose text is built and not constant.
func (t *Tx) ExecBuilt(ctx context.Context, query string, args ...any) error {
	_, err := t.execContext(ctx, query, args...)
	return err
}

// ExecOne runs a statement that must change a row: [ErrNoRow] when it changed none.
func (t *Tx) ExecOne(ctx context.Context, query string, args ...any) error {
	n, err := t.Exec(ctx, query, args...)
	if err == nil && n == 0 {
		return ErrNoRow
	}
	return err
}

// Pipe is a transaction on a PostgreSQL connection that it begins and commits by its own statements.
type Pipe struct {
	*Tx
}

// Send sends a batch of statements in one round trip.
func (p Pipe) Send(ctx context.Context, batch *pgx.Batch) error {
	var failed error
	err := p.conn.Raw(func(c any) error {
		pg := c.(*stdlib.Conn).Conn()
		failed = pg.SendBatch(ctx, batch).Close()
		return nil
	})
	if failed != nil {
		return failed
	}
	return err
}

// rollBack ends the transaction, or else sees to it that nobody uses its connection again.
func (p Pipe) rollBack(ctx context.Context) {
	p.conn.Raw(func(c any) error {
		pg := c.(*stdlib.Conn).Conn()
		if pg.IsClosed() {
			return driver.ErrBadConn
		}
		if _, err := pg.Exec(ctx, "ROLLBACK"); err != nil {
			return driver.ErrBadConn
		}

		return nil
	})
}

// Pipeline is Write on a PostgreSQL connection, for statements that share round trips: f begins and commits a
// transaction. After an error it is rolled back.
func (d *DB) Pipeline(ctx context.Context, f func(context.Context, Pipe) error) error {
	if err := d.Refused(); err != nil {
		return err
	}

	return d.retry(func() error {
		conn, err := d.write.Conn(ctx)
		if err != nil {
			return err
		}
		defer conn.Close()

		pipe := Pipe{&Tx{Reader{conn: conn}, d}}
		err = d.guarded(func() error { return f(ctx, pipe) })
		if err != nil {
			pipe.rollBack(ctx)
		}

		return err
	})
}

// guarded is f whose panics are errors: they must not end the process, nor the waiting of others. What was
// panicked with may be foreign text, so that only its type is told.
func (d *DB) guarded(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			kind := fmt.Sprintf("%T", p)
			d.log.Error("a change of the state panicked", "panic", kind, "stack", string(debug.Stack()))
			err = fmt.Errorf("%w: %s", errPanicked, kind)
		}
	}()

	return f()
}
