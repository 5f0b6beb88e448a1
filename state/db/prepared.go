package db

import (
	"context"
	"database/sql"
	"regexp"
	"strconv"
	"sync"
)

// maxPrepared bounds how many statements are kept prepared on a pool.
const maxPrepared = 200

// prepared keeps statements of a SQLite pool prepared. The zero value is ready.
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
func (p *prepared) prepare(ctx context.Context, pool *sql.DB) {
	p.mu.RLock()
	n := len(p.wanted)
	p.mu.RUnlock()
	if n == 0 {
		return
	}

	p.mu.Lock()
	defer p.mu.Unlock()

	for query := range p.wanted {
		if st, err := pool.PrepareContext(ctx, unnamed(query)); err == nil {
			if p.all == nil {
				p.all = map[string]*sql.Stmt{}
			}
			p.all[query] = st
		}

		delete(p.wanted, query)
	}
}

var parameter = regexp.MustCompile(`\$[0-9]+`)

// unnamed writes the parameters $1, $2, … of a query as ?, and those that come again by their number. To
// SQLite $1 is a name, and the driver asks for names at every execution. A query in which they do not come in
// this order is returned as it is.
func unnamed(query string) string {
	next, ordered := 1, true
	text := parameter.ReplaceAllStringFunc(query, func(p string) string {
		n, err := strconv.Atoi(p[1:])
		switch {
		case err != nil || n > next:
			ordered = false
		case n == next:
			next++
			return "?"
		}

		return "?" + p[1:]
	})
	if !ordered {
		return query
	}

	return text
}

// Reader reads, in a transaction or outside of one. The texts of its statements are constants: SQLite's are
// kept prepared, since to prepare one costs more than to run it. The PostgreSQL driver does so by itself.
type Reader struct {
	pool  *sql.DB
	tx    *sql.Tx              // nil outside of a transaction
	conn  *sql.Conn            // of a pipeline, whose transaction the driver does not know; else nil
	cache *prepared            // nil with PostgreSQL
	bound map[string]*sql.Stmt // statements of cache in tx
}
