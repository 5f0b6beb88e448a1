package state

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// listByCreation lists the newest runs that meet a condition with an index in the order of the last update.
// No run is updated before it is made: whoever went through that index down to some moment has seen every
// run that was made since. Beside them are those that move, and those that were made before the page's
// beginning and last updated after it. ok is false when it is not known soon that nothing is missing.
func (s *Store) listByCreation(ctx context.Context, q *runQuery, after *RunPosition, limit int) (runs []Run, next *RunPosition, ok bool, err error) {
	begun := time.Now()
	u := newRunQuery(q.filter, RunOrder{}, q.root)
	u.tx = q.tx
	if after != nil {
		u.filters = append(u.filters, condition{sql: "(created_at, id) < (?, ?)", args: q.order.values(*after)})
		if u.cut == 0 || u.cut > after.Time+1 {
			u.cut = after.Time + 1
		}
	}
	lead, err := s.rarest(ctx, u, nil)
	if err != nil || lead == nil {
		return nil, nil, false, err
	}
	var found []RunPosition
	add := func(r Run) { found = append(found, q.order.Position(r)) }
	sort := func() {
		q.order.sort(found)
		found = slices.Compact(found) // one may be across the cut too
	}
	for _, part := range u.parts {
		enough := false
		if part == isMoving {
			enough, err = s.moving(ctx, u, add)
		} else {
			if u.cut != 0 {
				if enough, err = s.across(ctx, u, add); err != nil || !enough {
					return nil, nil, false, err
				}
			}
			enough, err = s.newest(ctx, u, lead, begun, add, func(since int64) bool {
				sort()
				return len(found) > limit && found[limit].Time > since
			})
		}
		if err != nil || !enough {
			return nil, nil, false, err
		}
	}
	sort()
	if len(found) > limit {
		found = found[:limit]
		next = &found[limit-1]
	}
	runs, next, err = s.runsAt(ctx, q, found, next)
	return runs, next, true, err
}

// moving hands the moving runs that meet the filter to add. all says that not too many had to be looked at.
func (s *Store) moving(ctx context.Context, q *runQuery, add func(Run)) (all bool, err error) {
	var st statement
	columns := q.looked()
	st.add("SELECT "+columns.sql+" FROM (SELECT id AS moving_id FROM runs WHERE "+isMoving, columns.args...)
	fmt.Fprintf(&st, " LIMIT %d) AS moving CROSS JOIN runs WHERE runs.id = moving_id", fewMoving)
	n, err := s.look(ctx, q, &st, func(r Run, meets bool) bool {
		if meets {
			add(r)
		}
		return true
	})
	return n < fewMoving, err
}

// newest hands settled runs that meet the filter to add, the last updated first, until enough says
// that those updated before a moment are not needed. all is false when it takes too long.
func (s *Store) newest(ctx context.Context, q *runQuery, lead *condition, begun time.Time, add func(Run), enough func(since int64) bool) (all bool, err error) {
	var next *RunPosition
	for chunk, seen := firstChunk, 0; ; {
		var st statement
		st.rows(q, q.looked(), q.settledArms(lead), next, chunk)
		n, err := s.look(ctx, q, &st, func(r Run, meets bool) bool {
			if meets {
				add(r)
			}
			p := q.order.Position(r)
			next = &p
			return true
		})
		if err != nil || n < chunk || enough(next.Time) {
			return err == nil, err
		}
		took := time.Since(begun)
		if seen += n; took > walkTime && seen >= leastWalk {
			return false, nil
		}
		chunk = nextChunk(chunk, took)
	}
}
