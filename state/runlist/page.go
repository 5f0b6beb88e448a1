package runlist

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Bounds of the work for one page, in runs.
const (
	maxFew        = 500  // sorted in memory
	firstLook     = 100  // looked at by the first statement of a walk; by each later one four times as many
	maxLooked     = 3000 // looked at in a walk
	maxTextLooked = 1000 // the same, where the filter reads their text
	maxLive       = 5000 // looked at in runs_live
)

// Page is a part of a list.
type Page struct {
	Runs []Position
	Next *Position // where the list continues; nil at its end
}

// stretch is a part of a list: behind one run, up to and with another one. Either may be nil.
type stretch struct{ after, until *Position }

// Find returns at most limit runs that the filter selects, after the position if there is one. A page may have
// fewer and the list go on: where no index lists the runs, Find looks at a bounded number of them.
func Find[S ~string](ctx context.Context, read Read, f Filter[S], o Order, after *Position, limit int) (Page, error) {
	root, err := rootOf(ctx, read, f.Ancestor)
	if err != nil {
		return Page{}, err
	}

	p, s := newPlan(f, o, root), stretch{after: after}
	mostLive, most := maxLive, maxLooked
	if p.row {
		mostLive = maxLooked
	}
	if p.text {
		mostLive, most = maxTextLooked, maxTextLooked
	}

	if p.sifts {
		live := plan{order: p.order, keys: p.keys, arms: []arm{{where{{sql: isLive}}, p.span}}}
		last, err := read.scan(ctx, p.order, live.last(s, mostLive))
		if err != nil {
			return Page{}, err
		}
		if len(last) > 0 {
			s.until = &last[0]
		}
	}

	if p.exact {
		return p.walk(ctx, read, s, limit, most)
	}

	crowd, err := read.text(ctx, more(condition{sql: "SELECT id FROM runs WHERE " + isLive}, mostLive))
	if err != nil {
		return Page{}, err
	}

	for _, c := range p.filters {
		// In a crowd, nobody knows how many live runs meet a condition that only indexed ones are found by.
		if c.ids == nil || crowd != "" && c.column != "" {
			continue
		}

		many, err := read.text(ctx, more(*c.ids, maxFew))
		if err != nil {
			return Page{}, err
		}
		if many == "" {
			found, err := read.scan(ctx, p.order, p.among(*c.ids, maxFew, stretch{after: after}, limit+1))
			return cut(found, limit, nil), err
		}
	}

	return p.walk(ctx, read, s, limit, most)
}

// walk looks at runs of the arms until it has enough that meet the filters, or has looked at most.
func (p *plan) walk(ctx context.Context, read Read, s stretch, limit, most int) (page Page, err error) {
	n := max(firstLook, limit+1)
	for looked := 0; ; {
		part, err := read.scan(ctx, p.order, p.matches(s, n, limit+1))
		if err != nil {
			return Page{}, err
		}

		page = cut(append(page.Runs, part...), limit, s.until)
		if p.exact || page.Next != s.until {
			return page, nil
		}

		last, err := read.scan(ctx, p.order, p.last(s, n))
		if err != nil || len(last) == 0 {
			return page, err
		}

		s.after = &last[0]
		if looked += n; looked >= most {
			page.Next = s.after
			return page, nil
		}

		n = min(4*n, most-looked)
	}
}

// cut makes a page of at most limit runs. The list continues after it if there are more, or from rest.
func cut(found []Position, limit int, rest *Position) Page {
	if len(found) <= limit {
		return Page{found, rest}
	}
	return Page{found[:limit], &found[limit-1]}
}

// rootOf returns the root of a run's tree; empty when the run is gone and was not itself the root of any left.
func rootOf(ctx context.Context, read Read, id string) (string, error) {
	if id == "" {
		return "", nil
	}
	var st statement
	st.add(`SELECT root_run_id FROM runs WHERE id = ?
		UNION ALL
		SELECT root_run_id FROM runs WHERE root_run_id = ? AND parent_run_id <> '' LIMIT 1`, id, id)
	return read.text(ctx, &st)
}

// statement is a text that grows, and its arguments.
type statement struct {
	strings.Builder
	args []any
}

// add writes sql with numbered parameters for its question marks.
func (st *statement) add(sql string, args ...any) {
	for _, v := range args {
		before, rest, _ := strings.Cut(sql, "?")
		st.args = append(st.args, v)
		fmt.Fprintf(st, "%s$%d", before, len(st.args))
		sql = rest
	}
	st.WriteString(sql)
}

func (p *plan) columns() string { return strings.Join(p.keys, ", ") }

// within is the condition that a run is in a stretch of the list, and its first key in a span. Of two limits
// in one direction only the nearer is written: SQLite may follow the index from either.
func (p *plan) within(s stretch, t span) (all where) {
	limit := func(compare string, at *Position) {
		if at != nil {
			_, values := at.keys(p.order)
			sql := "(" + p.columns() + ")" + compare + "(" + marks(len(values)) + ")"
			all = append(all, condition{sql: sql, args: values})
		}
	}

	upper, lower, below, above := s.after, s.until, " < ", " >= "
	if p.order.Ascending {
		upper, lower, below, above = s.until, s.after, " <= ", " > "
	}
	if t.high != nil && (upper == nil || *t.high <= upper.Time) {
		upper, below = &Position{Time: *t.high}, " < "
	}
	if t.low != nil && (lower == nil || *t.low > lower.Time) {
		lower, above = &Position{Time: *t.low}, " >= "
	}

	limit(below, upper)
	limit(above, lower)
	return all
}

// where writes the conditions.
func (st *statement) where(conditions ...condition) {
	word := " WHERE "
	for _, c := range conditions {
		st.WriteString(word)
		st.add(c.sql, c.args...)
		word = " AND "
	}
}

// tail writes the order and the limit. The limit is literal: SQLite plans anew for each value of a parameter.
func (st *statement) tail(p *plan, limit int) {
	direction := ""
	if !p.order.Ascending {
		direction = " DESC"
	}
	st.WriteString(" ORDER BY " + strings.Join(p.keys, direction+", ") + direction)
	fmt.Fprintf(st, " LIMIT %d", limit)
}

// merged writes a statement that selects the keys of the first runs of all arms in a stretch, in order. each
// bounds how many of one arm are read.
func (st *statement) merged(p *plan, s stretch, each, limit int) {
	if len(p.arms) == 1 {
		st.WriteString("SELECT " + p.columns() + " FROM runs")
		st.where(append(p.within(s, p.arms[0].span), p.arms[0].where...)...)
		st.tail(p, limit)
		return
	}

	st.WriteString("SELECT " + p.columns() + " FROM (")
	for i, a := range p.arms {
		if i > 0 {
			st.WriteString(" UNION ALL ")
		}

		st.WriteString("SELECT * FROM (SELECT " + p.columns() + " FROM runs")
		st.where(append(p.within(s, a.span), a.where...)...)
		st.tail(p, each)
		fmt.Fprintf(st, ") AS arm%d", i)
	}

	st.WriteString(") AS merged")
	st.tail(p, limit)
}

// matches returns a statement that selects the keys of at most limit runs of the list, among the first n of
// its arms in a stretch.
func (p *plan) matches(s stretch, n, limit int) *statement {
	var st statement
	if p.exact {
		st.merged(p, s, limit, limit)
		return &st
	}

	st.WriteString("SELECT " + p.columns() + " FROM (SELECT id AS looked_id FROM (")
	st.merged(p, s, n, n)
	st.WriteString(") AS looked_keys) AS looked CROSS JOIN runs")
	st.where(append(where{{sql: "runs.id = looked_id"}}, p.meets()...)...)
	st.tail(p, limit)
	return &st
}

// last returns a statement that selects the keys of run n of the arms in a stretch.
func (p *plan) last(s stretch, n int) *statement {
	var st statement
	st.merged(p, s, n, 1)
	fmt.Fprintf(&st, " OFFSET %d", n-1)
	return &st
}

// more returns a statement that selects something when ids selects more than n IDs.
func more(ids condition, n int) *statement {
	var st statement
	st.add("SELECT id FROM ("+ids.sql+") AS counted", ids.args...)
	fmt.Fprintf(&st, " LIMIT 1 OFFSET %d", n)
	return &st
}

// among returns a statement that selects the keys of at most limit runs of the list in a stretch, of the n at
// most whose IDs are selected. An ID may be selected more than once.
func (p *plan) among(ids condition, n int, s stretch, limit int) *statement {
	var st statement
	st.add("SELECT "+p.columns()+" FROM (SELECT DISTINCT id AS few_id FROM ("+ids.sql+") AS counted", ids.args...)
	fmt.Fprintf(&st, " LIMIT %d) AS few CROSS JOIN runs", n)
	st.where(slices.Concat(where{{sql: "runs.id = few_id"}}, p.within(s, p.span), p.meets())...)
	st.tail(p, limit)
	return &st
}

// scan reads positions in the order o.
func (read Read) scan(ctx context.Context, o Order, st *statement) (all []Position, err error) {
	rows, err := read(ctx, st.String(), st.args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()

	for rows.Next() {
		var p Position
		_, values := p.keys(o)
		if err := rows.Scan(values...); err != nil {
			return nil, err
		}

		all = append(all, p)
	}

	return all, rows.Err()
}

// text returns the first column of the first row; empty if there is none.
func (read Read) text(ctx context.Context, st *statement) (text string, err error) {
	rows, err := read(ctx, st.String(), st.args...)
	if err != nil {
		return "", err
	}
	defer rows.Close()

	if rows.Next() {
		err = rows.Scan(&text)
	}
	return text, errors.Join(err, rows.Err())
}
