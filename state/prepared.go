package state

import (
	"context"
	"database/sql"
	"sync"
)

// maxPrepared bounds how many statements are kept prepared on a pool.
const maxPrepared = 100

// prepared keeps the statements of a SQLite pool prepared: to prepare one costs more than to run it. The
// PostgreSQL driver does the like by itself. Only constant texts may be asked for. The zero value is ready.
type prepared struct {
	mu     sync.RWMutex
	all    map[string]*sql.Stmt
	wanted map[string]bool
}

// find returns a statement that is prepared, or nil and notes that it is wanted.
func (p *prepared) find(query string) *sql.Stmt {
	p.mu.RLock()
	st := p.all[query]
	p.mu.RUnlock()
	if st != nil {
		return st
	}

	p.mu.Lock()
	defer p.mu.Unlock()

	if p.wanted == nil {
		p.wanted = map[string]bool{}
	}
	if len(p.all)+len(p.wanted) < maxPrepared {
		p.wanted[query] = true
	}

	return p.all[query]
}

// prepare prepares what was wanted. The caller holds no connection of the pool.
func (p *prepared) prepare(ctx context.Context, db *sql.DB) {
	p.mu.RLock()
	n := len(p.wanted)
	p.mu.RUnlock()
	if n == 0 {
		return
	}

	p.mu.Lock()
	defer p.mu.Unlock()

	for query := range p.wanted {
		if st, err := db.PrepareContext(ctx, query); err == nil {
			if p.all == nil {
				p.all = map[string]*sql.Stmt{}
			}
			p.all[query] = st
		}

		delete(p.wanted, query)
	}
}

// write is a transaction that changes runs. Its statements are kept prepared.
type write struct {
	*sql.Tx
	store *Store
}

func (w write) statement(ctx context.Context, query string) *sql.Stmt {
	if w.store.dialect == postgres {
		return nil
	}
	if st := w.store.group.prepared.find(query); st != nil {
		return w.Tx.StmtContext(ctx, st)
	}
	return nil
}

// ExecContext is that of sql.Tx.
func (w write) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if st := w.statement(ctx, query); st != nil {
		return st.ExecContext(ctx, args...)
	}
	return w.Tx.ExecContext(ctx, query, args...)
}

// QueryContext is that of sql.Tx.
func (w write) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if st := w.statement(ctx, query); st != nil {
		return st.QueryContext(ctx, args...)
	}
	return w.Tx.QueryContext(ctx, query, args...)
}

// QueryRowContext is that of sql.Tx.
func (w write) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	if st := w.statement(ctx, query); st != nil {
		return st.QueryRowContext(ctx, args...)
	}
	return w.Tx.QueryRowContext(ctx, query, args...)
}

// reader reads outside a transaction; constant statements are kept prepared.
type reader struct{ store *Store }

func (r reader) statement(ctx context.Context, query string) *sql.Stmt {
	return r.store.prepared(ctx, &r.store.reads, query)
}

// prepared returns a statement of the reading pool, kept by p; nil when it is not kept.
func (s *Store) prepared(ctx context.Context, p *prepared, query string) *sql.Stmt {
	if s.dialect == postgres {
		return nil
	}
	st := p.find(query)
	if st == nil {
		p.prepare(ctx, s.read)
		st = p.find(query)
	}
	return st
}

// listRows runs a statement of a list. Their texts are made, so that they have a cache of their own, which
// the constant ones cannot lose their place to. tx may be nil; a statement is not prepared while it holds a connection.
func (s *Store) listRows(ctx context.Context, tx *sql.Tx, query string, args ...any) (*sql.Rows, error) {
	if tx != nil {
		if s.dialect == sqlite {
			if st := s.lists.find(query); st != nil {
				return tx.StmtContext(ctx, st).QueryContext(ctx, args...)
			}
		}

		return tx.QueryContext(ctx, query, args...)
	}

	if st := s.prepared(ctx, &s.lists, query); st != nil {
		return st.QueryContext(ctx, args...)
	}

	return s.read.QueryContext(ctx, query, args...)
}

// QueryContext is that of sql.DB. The query is a constant.
func (r reader) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if st := r.statement(ctx, query); st != nil {
		return st.QueryContext(ctx, args...)
	}
	return r.store.read.QueryContext(ctx, query, args...)
}

// QueryRowContext is that of sql.DB. The query is a constant.
func (r reader) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	if st := r.statement(ctx, query); st != nil {
		return st.QueryRowContext(ctx, args...)
	}
	return r.store.read.QueryRowContext(ctx, query, args...)
}
