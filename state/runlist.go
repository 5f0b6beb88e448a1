package state

import (
	"context"
	"database/sql"
	"errors"
	"sort"
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
	maxLive      = 12_000   // runs that have not ended and are looked at because no index has their fields
	fewLive      = 4000     // of them, that are looked at more than once
	fewRuns      = 1000     // that are sorted in memory
	walkChunk    = 1000     // runs that are looked at in one statement
	walkTime     = 8 * time.Millisecond
)

// A run costs as little as it can while it moves: the indexes on its fields have it only once it has ended.
// A list is therefore merged from two parts, the runs that are live, by the index runs_live, and those that
// have ended. Both are in the order of the last update.
const (
	isLive   = "finished_at IS NULL"
	hasEnded = "finished_at IS NOT NULL"
)

// Runs returns at most limit of the runs that the filter selects, in the given order, beginning after the
// position if there is one. next is where the list goes on; nil at its end. A page may have fewer runs
// than asked for, or none, and the list go on: where no index serves the filter, only so many runs are
// looked at for one page that its cost does not grow with their number.
func (s *Store) Runs(ctx context.Context, f RunFilter, o RunOrder, after *RunPosition, limit int) (runs []Run, next *RunPosition, err error) {
	q := newRunQuery(f, o)
	switch {
	case q.direct():
		runs, next, err = s.listDirect(ctx, q, after, limit)
	default:
		var few *condition
		if few, err = s.selective(ctx, q); err != nil {
			break
		}
		if few != nil {
			runs, next, err = s.listFew(ctx, q, few, after, limit)
		} else {
			runs, next, err = s.listWalk(ctx, q, after, limit)
		}
	}
	return runs, next, s.classify(err)
}

// listDirect lists what one index has in order. Of a field with several values it merges their parts.
func (s *Store) listDirect(ctx context.Context, q *runQuery, after *RunPosition, limit int) ([]Run, *RunPosition, error) {
	var led *condition
	var horizon *RunPosition
	if len(q.filters) > 0 {
		led = &q.filters[0]
		if !led.whole {
			var err error
			if horizon, err = s.horizon(ctx, q, after); err != nil {
				return nil, nil, err
			}
		}
	}
	if horizon != nil { // further on there is more for another page
		compare := " >= "
		if q.order.Ascending {
			compare = " <= "
		}
		q.ranges = append(q.ranges, condition{sql: "(updated_at, id)" + compare + "(?, ?)", args: q.order.values(*horizon)})
	}
	var st statement
	if arms := q.arms(led, q.filters); len(arms) == 1 {
		st.merged(q, condition{sql: runColumns}, arms, after, limit+1)
	} else { // merged by their keys alone
		named := *q
		named.keys = strings.Split(qualified(strings.Join(q.keys, ", "), "runs."), ", ")
		st.WriteString("SELECT " + qualified(runColumns, "runs.") + " FROM (SELECT id AS top_id FROM (")
		st.merged(q, condition{sql: strings.Join(q.keys, ", ")}, arms, after, limit+1)
		st.WriteString(") AS all_arms) AS top CROSS JOIN runs WHERE runs.id = top.top_id")
		st.tail(&named, limit+1)
	}
	runs, next, err := s.page(ctx, q, &st, limit)
	if next == nil {
		next = horizon
	}
	return runs, next, err
}

// horizon returns the position of the last live run that may be looked at for one page; nil when so many
// are not left.
func (s *Store) horizon(ctx context.Context, q *runQuery, after *RunPosition) (*RunPosition, error) {
	if q.parts[0].sql != isLive {
		return nil, nil
	}
	var st statement
	st.WriteString("SELECT updated_at, id FROM runs")
	st.where(q, after, append([]condition{{sql: isLive}}, q.ranges...)...)
	st.tail(q, 1)
	st.add(" OFFSET ?", maxLive)
	var p RunPosition
	err := s.read.QueryRowContext(ctx, st.String(), st.args...).Scan(&p.Time, &p.ID)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return &p, err
}

// page reads a page from a statement that selects one run more.
func (s *Store) page(ctx context.Context, q *runQuery, st *statement, limit int) (runs []Run, next *RunPosition, err error) {
	rows, err := s.listRows(ctx, st.String(), st.args...)
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

// selective returns a condition that few runs meet, by an index; nil when there is none.
func (s *Store) selective(ctx context.Context, q *runQuery) (*condition, error) {
	count := func(probe string, args []any, limit int) (n int, err error) {
		var st statement
		st.WriteString("SELECT count(*) FROM (")
		st.add(probe, args...)
		st.add(" LIMIT ?) AS probe", limit)
		return n, s.read.QueryRowContext(ctx, st.String(), st.args...).Scan(&n)
	}
	live := -1 // not counted yet
	for i := range q.filters {
		c := &q.filters[i]
		if c.probe == "" {
			continue
		}
		if !c.whole && live < 0 {
			var err error
			if live, err = count("SELECT 1 FROM runs WHERE "+isLive, nil, fewLive); err != nil {
				return nil, err
			}
		}
		if !c.whole && live == fewLive {
			continue
		}
		n, err := count(c.probe, c.probeArgs(), fewRuns+1)
		if err != nil {
			return nil, err
		}
		if n <= fewRuns {
			return c, nil
		}
	}
	return nil, nil
}

// listFew lists the runs that meet a condition that few meet. They are sorted by their keys alone, and read
// when it is known which ones make the page.
func (s *Store) listFew(ctx context.Context, q *runQuery, few *condition, after *RunPosition, limit int) ([]Run, *RunPosition, error) {
	var st statement
	st.WriteString("SELECT " + qualified(runColumns, "runs.") + " FROM (SELECT runs.id AS top_id FROM (")
	st.add(few.probe, few.probeArgs()...)
	st.WriteString(") AS few CROSS JOIN runs")
	conditions := []condition{{sql: "runs.id = few.id"}}
	for i := range q.filters {
		if &q.filters[i] != few {
			conditions = append(conditions, q.filters[i].of("runs."))
		}
	}
	for _, c := range q.ranges {
		conditions = append(conditions, c.of("runs."))
	}
	named := *q
	named.keys = strings.Split(qualified(strings.Join(q.keys, ", "), "runs."), ", ")
	st.where(&named, after, conditions...)
	st.tail(&named, limit+1)
	st.WriteString(") AS top CROSS JOIN runs WHERE runs.id = top.top_id")
	st.tail(&named, limit+1)
	return s.page(ctx, q, &st, limit)
}

// of returns the condition with the one column name that is ambiguous in a join made plain.
func (c condition) of(table string) condition {
	c.sql = strings.ReplaceAll(strings.ReplaceAll(c.sql, " OR id = ?", " OR "+table+"id = ?"), "id IN (WITH", table+"id IN (WITH")
	return c
}

// qualified prefixes every name of a list.
func qualified(columns, table string) string {
	names := strings.Split(columns, ",")
	for i, n := range names {
		names[i] = table + strings.TrimSpace(n)
	}
	return strings.Join(names, ", ")
}

// listWalk goes through the order's index, or through that of one condition, and looks at each run, until
// it has enough of them, or has looked for long enough.
func (s *Store) listWalk(ctx context.Context, q *runQuery, after *RunPosition, limit int) ([]Run, *RunPosition, error) {
	var lead *condition
	for i, c := range q.filters {
		if c.leads && len(c.arms) < 2 && q.order.By == SortUpdated {
			lead = &q.filters[i]
			break
		}
	}
	begun := time.Now()
	var found []RunPosition
	next := after
	for {
		part, last, err := s.walk(ctx, q, lead, next, limit+1-len(found))
		if err != nil {
			return nil, nil, err
		}
		found, next = append(found, part...), last
		if len(found) > limit {
			found = found[:limit]
			next = &found[limit-1]
			break
		}
		if next == nil || time.Since(begun) > walkTime {
			break
		}
	}
	ids := make([]string, len(found))
	for i, p := range found {
		ids[i] = p.ID
	}
	runs, err := s.runsOf(ctx, ids)
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

// walk looks at the next runs after the position and returns the positions of at most limit of those that
// meet all filters. next is that of the last run that was looked at; nil when there is no other.
func (s *Store) walk(ctx context.Context, q *runQuery, lead *condition, after *RunPosition, limit int) (found []RunPosition, next *RunPosition, err error) {
	columns := condition{sql: "id, title, config_name, created_at, updated_at, CASE WHEN "}
	for i, c := range q.filters {
		if i > 0 {
			columns.sql += " AND "
		}
		columns.sql += c.sql
		columns.args = append(columns.args, c.args...)
	}
	columns.sql += " THEN 1 ELSE 0 END"
	var st statement
	st.merged(q, columns, q.arms(lead, nil), after, walkChunk)
	rows, err := s.listRows(ctx, st.String(), st.args...)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	for seen := 1; rows.Next(); seen++ {
		var r Run
		var created, updated int64
		var meets bool
		if err := rows.Scan(&r.ID, &r.Title, &r.configName, &created, &updated, &meets); err != nil {
			return nil, nil, err
		}
		r.Created, r.Updated = timeOf(created), timeOf(updated)
		p := q.order.Position(r)
		if meets {
			found = append(found, p)
		}
		if len(found) == limit || seen == walkChunk {
			return found, &p, nil
		}
	}
	return found, nil, rows.Err()
}

// runsOf returns the runs with these IDs, in their order. One that is gone is left out.
func (s *Store) runsOf(ctx context.Context, ids []string) ([]Run, error) {
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
	rows, err := s.listRows(ctx, st.String(), st.args...)
	if err != nil {
		return nil, err
	}
	runs, err := scanAll(rows, scanRun)
	sort.Slice(runs, func(i, j int) bool { return place[runs[i].ID] < place[runs[j].ID] })
	return runs, err
}
