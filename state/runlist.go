package state

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// RunFilter says which runs to list; the zero value means all (contract.md, section 4). Conditions of
// different fields must all hold, values within one field are alternatives.
type RunFilter struct {
	States        []RunState
	Sources       []string
	Factories     []string // factory UIDs
	Name          string   // config name, exactly
	ModelID       string
	EnvironmentID string
	Skill         string
	Creator       string // UID
	Executor      string // UID
	AutomationUID string
	WebhookUID    string
	DeliveryUID   string
	Ancestor      string // run ID: its descendants at any depth
	Metadata      map[string]string
	Query         string // substring of title or prompt in any case, or a run ID
	FactoryOnly   bool
	CreatedAfter  *time.Time
	CreatedBefore *time.Time
	UpdatedAfter  *time.Time
}

// RunSort names what a list is ordered by.
type RunSort string

// The orders; each is made total by the run ID.
const (
	SortUpdated RunSort = "updated_at"
	SortCreated RunSort = "created_at"
	SortTitle   RunSort = "title"
	SortAgent   RunSort = "agent" // the config name, then the time of the last update
)

// RunOrder is an order and its direction.
type RunOrder struct {
	By        RunSort
	Ascending bool
}

// columns are the keys of the order. Each order is that of an index.
func (o RunOrder) columns() []string {
	switch o.By {
	case SortCreated:
		return []string{"created_at", "id"}
	case SortTitle:
		return []string{"title", "id"}
	case SortAgent:
		return []string{"config_name", "updated_at", "id"}
	}
	return []string{"updated_at", "id"}
}

// RunPosition is a place in a list: right behind one run. It stays valid whatever is added before it.
type RunPosition struct {
	ID   string `json:"i"`
	Time int64  `json:"t,omitempty"` // microseconds
	Text string `json:"x,omitempty"`
}

// Position returns the place right behind r.
func (o RunOrder) Position(r Run) RunPosition {
	switch o.By {
	case SortCreated:
		return RunPosition{ID: r.ID, Time: micros(r.Created)}
	case SortTitle:
		return RunPosition{ID: r.ID, Text: r.Title}
	case SortAgent:
		return RunPosition{ID: r.ID, Time: micros(r.Updated), Text: r.configName}
	}
	return RunPosition{ID: r.ID, Time: micros(r.Updated)}
}

// before reports whether a comes before b.
func (o RunOrder) before(a, b RunPosition) bool {
	if o.Ascending {
		a, b = b, a
	}
	return cmp.Or(cmp.Compare(a.Text, b.Text), cmp.Compare(a.Time, b.Time), cmp.Compare(a.ID, b.ID)) > 0
}

// sort sorts positions.
func (o RunOrder) sort(all []RunPosition) {
	slices.SortFunc(all, func(a, b RunPosition) int {
		if o.before(a, b) {
			return -1
		}
		return 1
	})
}

// scan reads the keys of a run.
func (o RunOrder) scan(row scanner) (p RunPosition, err error) {
	switch o.By {
	case SortTitle:
		err = row.Scan(&p.Text, &p.ID)
	case SortAgent:
		err = row.Scan(&p.Text, &p.Time, &p.ID)
	default:
		err = row.Scan(&p.Time, &p.ID)
	}
	return p, err
}

func (o RunOrder) values(p RunPosition) []any {
	switch o.By {
	case SortTitle:
		return []any{p.Text, p.ID}
	case SortAgent:
		return []any{p.Text, p.Time, p.ID}
	}
	return []any{p.Time, p.ID}
}

// Bounds of the work for one page.
const (
	maxPageBytes = 16 << 20 // of text: long prompts make shorter pages
	maxArms      = 16       // values of one field that are looked up one by one
	maxMoving    = 12_000   // runs that move and are looked at because no index has their fields
	fewMoving    = 4000     // of them, that are looked at more than once
	fewRuns      = 1000     // that are sorted in memory
	sample       = 100      // that tell how rare the runs are that meet a condition
	firstChunk   = 100      // runs that are looked at in the first statement of a walk
	walkChunk    = 800      // and in a later one
	scanned      = 128      // runs that are passed over in an index, for each that would be looked at
	leastWalk    = 700      // that are looked at for one page, however long it takes
	walkTime     = 8 * time.Millisecond
	noneTime     = 12 * time.Millisecond  // before a page is left without any run
	queueTime    = 100 * time.Millisecond // the same, where one index serves the filter, but moving runs are in front
)

// A run costs as little as it can while it moves: the indexes on its fields have it only once it is settled,
// which it is when it has ended, and while it waits behind many others. A list is therefore merged from two
// parts, the runs that move, by the index runs_moving, and those that are settled. Both are in the order of
// the last update.
const (
	isMoving  = "finished_at IS NULL AND in_backlog = 0"
	isSettled = "(finished_at IS NOT NULL OR in_backlog = 1)"
)

// Runs returns at most limit of the runs that the filter selects, in the given order, beginning after the
// position if there is one. next is where the list goes on; nil at its end. A page may have fewer runs
// than asked for, or none, and the list go on: where no index serves the filter, only so many runs are
// looked at for one page that its cost does not grow with their number.
func (s *Store) Runs(ctx context.Context, f RunFilter, o RunOrder, after *RunPosition, limit int) (runs []Run, next *RunPosition, err error) {
	root := ""
	if f.Ancestor != "" {
		if root, err = s.rootOf(ctx, f.Ancestor); err != nil {
			return nil, nil, s.classify(err)
		}
	}
	for begun := time.Now(); ; after = next {
		q := newRunQuery(f, o, root)
		runs, next, err = s.list(ctx, q, after, limit)
		if err != nil || len(runs) > 0 || next == nil || !q.direct() || time.Since(begun) > queueTime {
			return runs, next, s.classify(err)
		}
	}
}

// list lists what it finds with a bounded effort.
func (s *Store) list(ctx context.Context, q *runQuery, after *RunPosition, limit int) (runs []Run, next *RunPosition, err error) {
	if q.direct() {
		return s.listDirect(ctx, q, after, limit)
	}
	s.lists.prepare(ctx, s.read)
	err = s.view(ctx, func(tx *sql.Tx) (err error) { // a run that settles meanwhile is in one part of the list, not in both or none
		q.tx = tx
		runs, next, err = s.listSearched(ctx, q, after, limit)
		return err
	})
	return runs, next, err
}

// listSearched lists what no index has in order.
func (s *Store) listSearched(ctx context.Context, q *runQuery, after *RunPosition, limit int) ([]Run, *RunPosition, error) {
	if q.order.By == SortCreated && !q.order.Ascending {
		if runs, next, ok, err := s.listByCreation(ctx, q, after, limit); err != nil || ok {
			return runs, next, err
		}
	}
	lead, err := s.rarest(ctx, q, after)
	if err != nil {
		return nil, nil, err
	}
	if lead == nil {
		few, err := s.selective(ctx, q)
		if err != nil {
			return nil, nil, err
		}
		if few != nil {
			return s.listFew(ctx, q, few, after, limit)
		}
	}
	if err := s.cut(ctx, q, after); err != nil {
		return nil, nil, err
	}
	return s.listWalk(ctx, q, lead, after, limit)
}

// rootOf returns the root of a run's tree; empty when that is not known, since the run is gone and was not
// itself the root of any that are left.
func (s *Store) rootOf(ctx context.Context, id string) (root string, err error) {
	err = reader{s}.QueryRowContext(ctx, `SELECT root_run_id FROM runs WHERE id = $1`, id).Scan(&root)
	if errors.Is(err, sql.ErrNoRows) {
		err = reader{s}.QueryRowContext(ctx, `SELECT root_run_id FROM runs WHERE root_run_id = $1 AND parent_run_id <> '' LIMIT 1`, id).Scan(&root)
	}
	return root, noRows(err)
}

// listDirect lists what one index has in order. Of a field with several values it merges their parts.
func (s *Store) listDirect(ctx context.Context, q *runQuery, after *RunPosition, limit int) ([]Run, *RunPosition, error) {
	var led *condition
	if len(q.filters) > 0 {
		led = &q.filters[0]
		if !led.whole || led.settled != nil {
			var err error
			if q.until, err = s.horizon(ctx, q, after); err != nil {
				return nil, nil, err
			}
			if q.until != nil && led.whole {
				few, err := s.selective(ctx, q)
				if err != nil {
					return nil, nil, err
				}
				if few != nil {
					q.until = nil
					return s.listFew(ctx, q, few, after, limit)
				}
			}
		}
	}
	var st statement
	st.rows(q, condition{sql: runColumns}, q.arms(led, q.filters), after, limit+1)
	runs, next, err := s.page(ctx, q, &st, limit)
	if next == nil {
		next = q.until
	}
	return runs, next, err
}

// horizon returns the position of the last moving run that may be looked at for one page; nil when so many
// are not left.
func (s *Store) horizon(ctx context.Context, q *runQuery, after *RunPosition) (*RunPosition, error) {
	if q.parts[0] != isMoving {
		return nil, nil
	}
	return s.reach(ctx, q, []arm{{where: []condition{{sql: isMoving}}}}, after, maxMoving)
}

// reach returns the position of run n of those after the position, counted from 0; nil when there are not so many.
func (s *Store) reach(ctx context.Context, q *runQuery, arms []arm, after *RunPosition, n int) (*RunPosition, error) {
	var st statement
	keys := strings.Join(q.keys, ", ")
	if len(arms) == 1 {
		st.merged(q, condition{sql: keys}, arms, after, 1)
	} else {
		st.WriteString("SELECT " + keys + " FROM (")
		st.merged(q, condition{sql: keys}, arms, after, n+1)
		st.WriteString(") AS reached")
		st.tail(q, 1)
	}
	fmt.Fprintf(&st, " OFFSET %d", n)
	rows, err := s.listRows(ctx, q.tx, st.String(), st.args...)
	if err != nil {
		return nil, err
	}
	found, err := scanAll(rows, q.order.scan)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// rarest returns the condition with an index in the default order which the fewest runs meet from the
// position on: the one of which a few reach furthest. nil when no condition has such an index.
func (s *Store) rarest(ctx context.Context, q *runQuery, after *RunPosition) (lead *condition, err error) {
	if q.order.By != SortUpdated {
		return nil, nil
	}
	var leads []*condition
	for i := range q.filters {
		if q.filters[i].leads {
			leads = append(leads, &q.filters[i])
		}
	}
	if len(leads) == 1 {
		return leads[0], nil
	}
	var furthest *RunPosition
	for _, c := range leads {
		p, err := s.reach(ctx, q, q.settledArms(c), after, sample)
		if err != nil {
			return nil, err
		}
		if p == nil {
			return c, nil
		}
		if furthest == nil || (p.Time < furthest.Time) != q.order.Ascending {
			lead, furthest = c, p
		}
	}
	return lead, nil
}

// page reads a page from a statement that selects one run more.
func (s *Store) page(ctx context.Context, q *runQuery, st *statement, limit int) (runs []Run, next *RunPosition, err error) {
	rows, err := s.listRows(ctx, q.tx, st.String(), st.args...)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	for size := 0; rows.Next(); {
		if len(runs) == limit || size > maxPageBytes {
			p := q.order.Position(runs[len(runs)-1])
			return runs, &p, nil
		}
		r, err := scanRun(rows)
		if err != nil {
			return nil, nil, err
		}
		size += len(r.Prompt) + len(r.Config)
		runs = append(runs, r)
	}
	return runs, nil, rows.Err()
}

// more reports whether c selects more than n rows.
func (s *Store) more(ctx context.Context, q *runQuery, c condition, n int) (bool, error) {
	var st statement
	st.add(c.sql, c.args...)
	fmt.Fprintf(&st, " LIMIT 1 OFFSET %d", n)
	rows, err := s.listRows(ctx, q.tx, st.String(), st.args...)
	if err != nil {
		return false, err
	}
	found, err := scanAll(rows, func(row scanner) (id string, err error) { return id, row.Scan(&id) })
	return len(found) > 0, err
}

// selective returns a condition that few runs meet, by an index; nil when there is none.
func (s *Store) selective(ctx context.Context, q *runQuery) (*condition, error) {
	var whole, settled []*condition
	for i := range q.filters {
		switch c := &q.filters[i]; {
		case c.probe == "":
		case c.whole:
			whole = append(whole, c)
		default:
			settled = append(settled, c)
		}
	}
	if len(settled) > 0 {
		many, err := s.more(ctx, q, condition{sql: "SELECT id FROM runs WHERE " + isMoving}, fewMoving)
		if err != nil {
			return nil, err
		}
		if many {
			settled = nil
		}
	}
	for _, c := range append(whole, settled...) {
		many, err := s.more(ctx, q, condition{sql: c.probe, args: c.probeArgs()}, fewRuns)
		if err != nil || !many {
			return c, err
		}
	}
	return nil, nil
}

// listFew lists the runs that meet a condition that few meet. They are sorted by their keys alone, and read
// when it is known which ones make the page.
func (s *Store) listFew(ctx context.Context, q *runQuery, few *condition, after *RunPosition, limit int) ([]Run, *RunPosition, error) {
	var st statement
	st.WriteString("SELECT " + runColumns + " FROM (SELECT runs.id AS top_id FROM (SELECT id AS few_id FROM (")
	st.add(few.probe, few.probeArgs()...)
	st.WriteString(") AS probed) AS few CROSS JOIN runs")
	conditions := []condition{{sql: "runs.id = few_id"}}
	for i := range q.filters {
		if &q.filters[i] != few {
			conditions = append(conditions, q.filters[i])
		}
	}
	st.where(q, after, conditions...)
	st.tail(q, limit+1)
	st.WriteString(") AS top CROSS JOIN runs WHERE runs.id = top_id")
	st.tail(q, limit+1)
	return s.page(ctx, q, &st, limit)
}
