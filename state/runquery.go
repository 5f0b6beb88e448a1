package state

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"
)

// How a filter and an order of runs become SQL.

// condition is a part of a WHERE clause, with a question mark for each of its arguments.
type condition struct {
	sql   string
	args  []any
	probe string   // selects the IDs of the runs that meet it, by an index; empty: there is none
	leads bool     // there is an index on it in the default order
	whole bool     // its index has live runs too
	arms  []string // the values of the field, when there are several
	field string   // that the arms are of
}

// runQuery is a list's filter and order, taken apart.
type runQuery struct {
	order   RunOrder
	parts   []condition // in the default order: live runs, runs that have ended, or both; one of them may be ruled out by the filter
	keys    []string
	ranges  []condition // on the first key: they bound the walk through the order's index
	filters []condition
}

// is adds equality with v unless v is empty. The columns' partial indexes need the second condition.
func (q *runQuery) is(column, v string) {
	if v == "" {
		return
	}
	sql := column + " = ? AND " + column + " <> ''"
	c := condition{sql: sql, args: []any{v}, leads: column != "delivery_uid", whole: column == "delivery_uid" || column == "config_name"}
	c.probe = c.probed()
	q.filters = append(q.filters, c)
}

// probed is the probe of a condition on the fields of a run.
func (c condition) probed() string {
	probe := "SELECT id FROM runs WHERE " + c.sql
	if c.whole {
		return probe
	}
	return probe + " AND " + hasEnded + " UNION ALL " + probe + " AND " + isLive
}

// probeArgs are the arguments of the probe.
func (c condition) probeArgs() []any {
	if c.whole {
		return c.args
	}
	return slices.Concat(c.args, c.args)
}

// in adds "column is one of values" unless there are none.
func in[T ~string](q *runQuery, column string, values []T) {
	set := map[string]bool{}
	for _, v := range values {
		set[string(v)] = true
	}
	if len(set) == 0 {
		return
	}
	c := condition{field: column}
	for v := range set {
		c.arms = append(c.arms, v)
	}
	sort.Strings(c.arms)
	for _, v := range c.arms {
		c.args = append(c.args, v)
	}
	c.sql = column + " IN (" + strings.TrimSuffix(strings.Repeat("?, ", len(c.arms)), ", ") + ")"
	c.leads = len(c.arms) <= maxArms
	c.probe = c.probed()
	q.filters = append(q.filters, c)
}

// states adds the condition on the state, and leaves out the part of the list in which no such run is.
func (q *runQuery) states(all []RunState) {
	in(q, "state", all)
	if len(all) == 0 {
		return
	}
	live, ended, queued := false, false, false
	for _, st := range all {
		ended = ended || st.Ended()
		live = live || !st.Ended()
		queued = queued || st == RunQueued
	}
	c := &q.filters[len(q.filters)-1]
	switch {
	case !live:
		q.parts = []condition{{sql: hasEnded}}
	case !ended && !queued: // the few that workers hold
		c.sql += " AND lease_until IS NOT NULL"
		c.whole, c.leads = true, false
		c.probe = c.probed()
		fallthrough
	case !ended:
		q.parts = []condition{{sql: isLive}}
	}
}

func newRunQuery(f RunFilter, o RunOrder) *runQuery {
	if o.By == "" {
		o.By = SortUpdated
	}
	q := &runQuery{order: o, keys: o.columns(), parts: []condition{{sql: isLive}, {sql: hasEnded}}}
	q.is("delivery_uid", f.DeliveryUID)
	q.is("config_name", f.Name)
	q.is("automation_uid", f.AutomationUID)
	q.is("webhook_uid", f.WebhookUID)
	q.is("skill_spec", f.Skill)
	q.is("environment_id", f.EnvironmentID)
	q.is("worker", f.Executor)
	q.is("creator_uid", f.Creator)
	q.is("model_id", f.ModelID)
	in(q, "factory_uid", f.Factories)
	q.states(f.States)
	in(q, "source", f.Sources)
	if f.FactoryOnly {
		c := condition{sql: "factory_uid > ''"}
		c.probe = c.probed()
		q.filters = append(q.filters, c)
	}
	if f.Ancestor != "" {
		probe := `WITH RECURSIVE below (id) AS (SELECT c.id FROM runs c WHERE c.parent_run_id = ? AND c.parent_run_id <> ''
			UNION SELECT c.id FROM runs c JOIN below ON c.parent_run_id = below.id WHERE c.parent_run_id <> '') SELECT id FROM below`
		q.filters = append(q.filters, condition{sql: "id IN (" + probe + ")", args: []any{f.Ancestor}, probe: probe, whole: true})
	}
	for k, v := range f.Metadata {
		q.filters = append(q.filters, condition{
			sql:  "EXISTS (SELECT 1 FROM run_metadata m WHERE m.key = ? AND m.value = ? AND m.run_id = runs.id)",
			args: []any{k, v}, probe: "SELECT run_id AS id FROM run_metadata WHERE key = ? AND value = ?", whole: true,
		})
	}
	if f.Query != "" {
		pattern := "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(f.Query) + "%"
		q.filters = append(q.filters, condition{
			sql:  `(lower(title) LIKE lower(?) ESCAPE '\' OR lower(prompt) LIKE lower(?) ESCAPE '\' OR id = ?)`,
			args: []any{pattern, pattern, strings.ToLower(f.Query)},
		})
	}
	q.after("created_at", f.CreatedAfter)
	q.after("updated_at", f.UpdatedAfter)
	if f.CreatedBefore != nil {
		q.bound("created_at", "created_at < ?", *f.CreatedBefore)
	}
	if f.CreatedAfter != nil && o.By == SortUpdated { // no run changed before it was made
		q.bound("updated_at", "updated_at > ?", *f.CreatedAfter)
	}
	return q
}

func (q *runQuery) after(column string, t *time.Time) {
	if t != nil {
		q.bound(column, column+" > ?", *t)
	}
}

// bound adds a condition on a time: a range of the order's index, or a filter.
func (q *runQuery) bound(column, sql string, t time.Time) {
	c := condition{sql: sql, args: []any{micros(t)}}
	if q.keys[0] == column {
		q.ranges = append(q.ranges, c)
	} else {
		q.filters = append(q.filters, c)
	}
}

// direct reports whether one index serves the filter and the order.
func (q *runQuery) direct() bool {
	return len(q.filters) == 0 || len(q.filters) == 1 && q.filters[0].leads && q.order.By == SortUpdated
}

// statement renders conditions and their arguments.
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

// where writes the conditions, and that the rows come after the position.
func (st *statement) where(q *runQuery, after *RunPosition, conditions ...condition) {
	word := " WHERE "
	for _, c := range conditions {
		st.WriteString(word)
		st.add(c.sql, c.args...)
		word = " AND "
	}
	if after != nil {
		compare := " < "
		if q.order.Ascending {
			compare = " > "
		}
		st.WriteString(word)
		values := q.order.values(*after)
		st.add("("+strings.Join(q.keys, ", ")+")"+compare+"("+strings.TrimSuffix(strings.Repeat("?, ", len(values)), ", ")+")", values...)
	}
}

// tail writes the order and the limit.
func (st *statement) tail(q *runQuery, limit int) {
	direction := ""
	if !q.order.Ascending {
		direction = " DESC"
	}
	st.WriteString(" ORDER BY " + strings.Join(q.keys, direction+", ") + direction)
	fmt.Fprintf(st, " LIMIT %d", limit) // SQLite would plan anew for each value of a parameter
}

// merged writes a statement whose rows are those of each arm, in order. columns are what an arm selects,
// and each is read to the limit.
func (st *statement) merged(q *runQuery, columns condition, arms [][]condition, after *RunPosition, limit int) {
	for i, conditions := range arms {
		switch {
		case i > 0:
			st.WriteString(" UNION ALL SELECT * FROM (")
		case len(arms) > 1:
			st.WriteString("SELECT * FROM (")
		}
		st.add("SELECT "+columns.sql+" FROM runs", columns.args...)
		st.where(q, after, slices.Concat(conditions, q.ranges)...)
		st.tail(q, limit)
		if len(arms) > 1 {
			fmt.Fprintf(st, ") AS arm%d", i)
		}
	}
	if len(arms) > 1 {
		st.tail(q, limit)
	}
}

// arms are the parts of the list, each of which one index has in order. led is the condition whose index
// serves the ended part, filters are the conditions on the live one.
func (q *runQuery) arms(led *condition, filters []condition) (arms [][]condition) {
	if q.order.By != SortUpdated {
		return [][]condition{filters}
	}
	if led != nil && led.whole {
		return [][]condition{{*led}}
	}
	for _, part := range q.parts {
		switch {
		case part.sql == isLive:
			arms = append(arms, append([]condition{part}, filters...))
		case led == nil:
			arms = append(arms, []condition{part})
		case len(led.arms) > 1:
			for _, v := range led.arms {
				arms = append(arms, []condition{part, {sql: led.field + " = ?", args: []any{v}}})
			}
		default:
			arms = append(arms, []condition{part, *led})
		}
	}
	return arms
}
