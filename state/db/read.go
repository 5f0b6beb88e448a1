package db

import (
	"context"
	"database/sql"
)

// Row is a row that was read.
type Row interface {
	Scan(dest ...any) error
}

// statement returns a prepared statement; nil if there is none. In a transaction, which holds a connection
// of the pool, none is prepared anew.
func (r Reader) statement(ctx context.Context, query string) *sql.Stmt {
	if r.cache == nil {
		return nil
	}

	if r.tx == nil {
		st := r.cache.find(query)
		if st == nil {
			r.cache.prepare(ctx, r.pool)
			st = r.cache.find(query)
		}

		return st
	}

	st := r.bound[query]
	if st == nil {
		if st = r.cache.find(query); st != nil {
			st = r.tx.StmtContext(ctx, st)
			r.bound[query] = st
		}
	}

	return st
}

// Query runs a statement that returns rows.
func (r Reader) Query(ctx context.Context, query string, args ...any) (rows *sql.Rows, err error) {
	st := r.statement(ctx, query)
	switch {
	case st != nil:
		rows, err = st.QueryContext(ctx, args...)
	case r.tx != nil:
		rows, err = r.tx.QueryContext(ctx, query, args...)
	case r.conn != nil:
		rows, err = r.conn.QueryContext(ctx, query, args...)
	default:
		rows, err = r.pool.QueryContext(ctx, query, args...)
	}

	return rows, classify(err)
}

// QueryRow runs a statement that returns one row. Scan returns [sql.ErrNoRows] when there is none.
func (r Reader) QueryRow(ctx context.Context, query string, args ...any) Row {
	st := r.statement(ctx, query)
	switch {
	case st != nil:
		return row{st.QueryRowContext(ctx, args...)}
	case r.tx != nil:
		return row{r.tx.QueryRowContext(ctx, query, args...)}
	case r.conn != nil:
		return row{r.conn.QueryRowContext(ctx, query, args...)}
	}

	return row{r.pool.QueryRowContext(ctx, query, args...)}
}

// row is a row whose errors are classified.
type row struct{ *sql.Row }

func (r row) Scan(dest ...any) error { return classify(r.Row.Scan(dest...)) }

// All returns what scan makes of each row that the statement returns.
func All[T any](ctx context.Context, r Reader, scan func(Row) (T, error), query string, args ...any) ([]T, error) {
	var all []T
	err := Each(ctx, r, func(row Row) error {
		v, err := scan(row)
		all = append(all, v)
		return err
	}, query, args...)
	if err != nil {
		return nil, err
	}

	return all, nil
}

// Each calls scan for each row that the statement returns, until it fails.
func Each(ctx context.Context, r Reader, scan func(Row) error, query string, args ...any) error {
	rows, err := r.Query(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()

	for rows.Next() {
		if err := scan(rows); err != nil {
			return classify(err)
		}
	}

	return classify(rows.Err())
}

// Strings returns the one column of text that the statement returns.
func Strings(ctx context.Context, r Reader, query string, args ...any) ([]string, error) {
	scan := func(row Row) (text string, err error) { return text, row.Scan(&text) }
	return All(ctx, r, scan, query, args...)
}

// View runs f with a reader that sees one moment of the database.
func (d *DB) View(ctx context.Context, f func(View) error) error {
	opts := &sql.TxOptions{ReadOnly: true}
	if d.dialect == postgres {
		opts.Isolation = sql.LevelRepeatableRead
	} else {
		d.cache.prepare(ctx, d.pool)
		d.built.prepare(ctx, d.pool)
	}

	tx, err := d.pool.BeginTx(ctx, opts)
	if err != nil {
		return classify(err)
	}
	defer tx.Rollback()

	return classify(f(View{Reader: d.within(tx, d.cache), db: d}))
}

// View reads the state at one moment.
type View struct {
	Reader
	db *DB
}

// Built is a reader of the same moment whose texts are built: see [DB.Built].
func (v View) Built() Reader { return v.db.within(v.tx, v.db.built) }

// Built is a reader for statements whose texts are built and not constant. They have a cache of their own, so
// that the constant ones do not lose their place.
func (d *DB) Built() Reader { return Reader{pool: d.pool, cache: d.built} }

func (d *DB) within(tx *sql.Tx, cache *prepared) Reader {
	return Reader{tx: tx, cache: cache, bound: map[string]*sql.Stmt{}}
}

// Exec runs a statement and returns how many rows it changed.
func (t *Tx) Exec(ctx context.Context, query string, args ...any) (changed int64, err error) {
	if st := t.statement(ctx, query); st != nil {
		return affected(st.ExecContext(ctx, args...))
	}
	return affected(t.execContext(ctx, query, args...))
}
