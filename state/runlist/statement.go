package runlist

import (
	"fmt"
	"slices"
	"strings"
)

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

// within is the condition that a run is in a stretch of the list, and its first key in a span. Of two limits in
// one direction only the nearer is written: SQLite may follow the index from either.
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

// matches returns a statement that selects the keys of at most limit runs of the list, among the first n of its
// arms in a stretch.
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
