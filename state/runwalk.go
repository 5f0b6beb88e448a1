package state

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"
)

// listWalk goes through the order's index, or through that of one condition, and looks at each run, until
// it has enough of them, or has looked for long enough.
func (s *Store) listWalk(ctx context.Context, q *runQuery, lead *condition, after *RunPosition, limit int) ([]Run, *RunPosition, error) {
	begun := time.Now()
	var found []RunPosition
	next := after
	for chunk, looked := firstChunk, 0; ; {
		part, last, err := s.walk(ctx, q, lead, next, limit+1-len(found), chunk)
		if err != nil {
			return nil, nil, err
		}
		found, next = append(found, part...), last
		if len(found) > limit {
			found = found[:limit]
			next = &found[limit-1]
			break
		}
		took := time.Since(begun)
		bound := walkTime
		if len(found) == 0 && q.filter.Query == "" {
			bound = noneTime
		}
		if looked += chunk; next == nil || took > bound && (looked >= leastWalk || q.scans()) {
			break
		}
		chunk = nextChunk(chunk, took)
		if n := len(found); n > 0 { // so many are likely to be enough; few sizes, whose statements can be kept prepared
			for likely := (limit + 1 - n) * looked / n * 5 / 4; chunk/2 > likely && chunk > firstChunk/4; {
				chunk /= 2
			}
		}
	}
	return s.runsAt(ctx, q, found, next)
}

// nextChunk is how many runs are looked at next by what took so long until now.
func nextChunk(chunk int, took time.Duration) int {
	if took > walkTime/8 {
		return chunk
	}
	return min(2*chunk, walkChunk)
}

// runsAt reads the runs at these positions. next is where the list goes on, unless their text is too long for one page.
func (s *Store) runsAt(ctx context.Context, q *runQuery, found []RunPosition, next *RunPosition) ([]Run, *RunPosition, error) {
	ids := make([]string, len(found))
	for i, p := range found {
		ids[i] = p.ID
	}
	runs, err := s.runsOf(ctx, q, ids)
	if err != nil {
		return nil, nil, err
	}
	for i, size := 0, 0; i < len(runs); i++ {
		if size += len(runs[i].Prompt) + len(runs[i].Config); size > maxPageBytes && i > 0 {
			p := q.order.Position(runs[i-1])
			return runs[:i], &p, nil
		}
	}
	return runs, next, nil
}

// walk looks at the next chunk of runs after the position and returns the positions of those that meet all
// filters, hardly more than limit. next is that of the last run that was looked at; nil when there is no other.
func (s *Store) walk(ctx context.Context, q *runQuery, lead *condition, after *RunPosition, limit, chunk int) (found []RunPosition, next *RunPosition, err error) {
	if q.scans() {
		return s.scan(ctx, q, after, limit, chunk)
	}
	var st statement
	st.rows(q, q.looked(), q.arms(lead, nil), after, chunk)
	seen := 0
	_, err = s.look(ctx, q, &st, func(r Run, meets bool) bool {
		p := q.order.Position(r)
		if meets {
			found = append(found, p)
		}
		if seen++; len(found) == limit || seen == chunk {
			next = &p
		}
		return next == nil
	})
	n := len(found)
	for _, p := range q.across {
		if (after == nil || q.order.before(*after, p)) && (next == nil || q.order.before(p, *next)) {
			found = append(found, p)
		}
	}
	if len(found) > n {
		q.order.sort(found)
	}
	return found, next, err
}

// scan is walk where an index on the order has all that the filter asks for: no row is read, and many more
// runs are passed over.
func (s *Store) scan(ctx context.Context, q *runQuery, after *RunPosition, limit, chunk int) (found []RunPosition, next *RunPosition, err error) {
	for _, part := range q.parts {
		n := chunk * scanned
		all := arm{where: []condition{{sql: part}}}
		part, err := s.pass(ctx, q, all, after, limit, n)
		if err != nil {
			return nil, nil, err
		}
		if found = append(found, part...); len(part) == limit {
			continue
		}
		last, err := s.reach(ctx, q, []arm{all}, after, n-1)
		if err != nil {
			return nil, nil, err
		}
		if last != nil && (next == nil || q.order.before(*last, *next)) {
			next = last
		}
	}
	q.order.sort(found)
	if next != nil {
		found = slices.DeleteFunc(found, func(p RunPosition) bool { return q.order.before(*next, p) })
	}
	if len(found) >= limit {
		found = found[:limit]
		next = &found[limit-1]
	}
	return found, next, nil
}

// pass returns at most limit positions of those that meet the filter among the first n runs of an arm.
func (s *Store) pass(ctx context.Context, q *runQuery, a arm, after *RunPosition, limit, n int) ([]RunPosition, error) {
	var st statement
	columns := q.meets()
	keys := strings.Join(q.keys, ", ")
	columns.sql = keys + ", " + columns.sql + " AS meets"
	st.WriteString("SELECT " + keys + " FROM (")
	st.merged(q, columns, []arm{a}, after, n)
	st.WriteString(") AS passed WHERE meets = 1")
	st.tail(q, limit)
	rows, err := s.listRows(ctx, q.tx, st.String(), st.args...)
	if err != nil {
		return nil, err
	}
	return scanAll(rows, q.order.scan)
}

// cut decides how runs that were made before some moment are found in the order of the last update: those
// that settled before it are all of them, and those that were at work then are few, as a rule.
func (s *Store) cut(ctx context.Context, q *runQuery, after *RunPosition) error {
	switch {
	case q.cut == 0:
		return nil
	case !slices.Contains(q.parts, isSettled):
		q.cut = 0
		return nil
	case after != nil && after.Time < q.cut && !q.order.Ascending: // those that settled later are behind us
		return nil
	}
	all, err := s.across(ctx, q, func(r Run) { q.across = append(q.across, q.order.Position(r)) })
	if !all {
		q.cut, q.across = 0, nil
	}
	return err
}

// across hands to add the runs that were made before the cut, settled after it, and meet the filter. all says
// that not too many had to be looked at.
func (s *Store) across(ctx context.Context, q *runQuery, add func(Run)) (all bool, err error) {
	var st statement
	if q.beside() {
		columns := q.meets()
		columns.sql = "id, '', '', created_at, updated_at, " + columns.sql
		c := acrossCut(q.cut, columns)
		st.add("SELECT * FROM ("+c.sql, c.args...)
		fmt.Fprintf(&st, ") AS long LIMIT %d", fewRuns+1)
	} else {
		columns, c := q.looked(), acrossCut(q.cut, condition{sql: "id"})
		st.add("SELECT "+columns.sql+" FROM (SELECT id AS long_id FROM (", columns.args...)
		st.add(c.sql, c.args...)
		fmt.Fprintf(&st, ") AS classes LIMIT %d) AS long CROSS JOIN runs WHERE runs.id = long_id", fewRuns+1)
	}
	n, err := s.look(ctx, q, &st, func(r Run, meets bool) bool {
		if meets {
			add(r)
		}
		return true
	})
	return n <= fewRuns, err
}

// look hands the runs of a statement that selects looked to f, until that returns false, and returns how many
// they were.
func (s *Store) look(ctx context.Context, q *runQuery, st *statement, f func(r Run, meets bool) bool) (n int, err error) {
	rows, err := s.listRows(ctx, q.tx, st.String(), st.args...)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		var r Run
		var created, updated int64
		var meets bool
		if err := rows.Scan(&r.ID, &r.Title, &r.configName, &created, &updated, &meets); err != nil {
			return n, err
		}
		r.Created, r.Updated = timeOf(created), timeOf(updated)
		if n++; !f(r, meets) {
			return n, nil
		}
	}
	return n, rows.Err()
}

// runsOf returns the runs with these IDs, in their order. One that is gone is left out.
func (s *Store) runsOf(ctx context.Context, q *runQuery, ids []string) ([]Run, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	var st statement
	st.WriteString("SELECT " + runColumns + " FROM runs WHERE id IN (")
	place := map[string]int{}
	for i, id := range ids {
		place[id] = i
		if i > 0 {
			st.WriteString(", ")
		}
		st.add("?", id)
	}
	st.WriteString(")")
	rows, err := s.listRows(ctx, q.tx, st.String(), st.args...)
	if err != nil {
		return nil, err
	}
	runs, err := scanAll(rows, scanRun)
	sort.Slice(runs, func(i, j int) bool { return place[runs[i].ID] < place[runs[j].ID] })
	return runs, err
}
