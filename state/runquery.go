package state

import (
	"database/sql"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"
)

// How a filter and an order of runs become SQL.

// condition is a part of a WHERE clause, with a question mark for each of its arguments.
type condition struct {
	sql     string
	args    []any
	probe   string     // selects the IDs of the runs that meet it, by an index; empty: there is none
	leads   bool       // there is an index on it in the default order
	whole   bool       // its index has the moving runs too
	beside  bool       // the indexes on the orders of texts, and on durations, have its columns beside their keys
	arms    []string   // the values of the field, when there are several
	field   string     // that the arms are of
	settled *condition // has the keys of the settled runs, where that is not an index on runs
}

// arm is a part of a list that one index has in order.
type arm struct {
	from  *condition // has the keys of the runs, where it is not the table
	where []condition
}

// runQuery is a list's filter and order, taken apart.
type runQuery struct {
	tx      *sql.Tx // whose view of the state each statement has; nil: its own
	filter  RunFilter
	root    string // of the tree of the filter's ancestor, where it is known
	order   RunOrder
	parts   []string // isMoving and isSettled, in the default order; one of them may be ruled out by the filter
	keys    []string
	ranges  []bound      // on the first key: they bound the walk through the order's index
	until   *RunPosition // the last run that may be looked at for this page, if not all may be
	filters []condition
	cut     int64         // created_before in the default order, where it bounds the settled runs; else 0
	across  []RunPosition // then those that were made before it and settled after it, and meet the filter
}

// bound is a limit of a time: how it compares, and with which.
type bound struct {
	compare string
	at      int64 // microseconds
}

// lasted is the class of how long a run took. Those of a class that were at work at some moment are found
// by their creation, among at most four times as many. The index settled_by_duration has this expression, word for word.
const lasted = `(CASE WHEN updated_at - created_at < 16000000 THEN 0 WHEN updated_at - created_at < 64000000 THEN 1
	WHEN updated_at - created_at < 256000000 THEN 2 WHEN updated_at - created_at < 1024000000 THEN 3
	WHEN updated_at - created_at < 4096000000 THEN 4 WHEN updated_at - created_at < 16384000000 THEN 5
	WHEN updated_at - created_at < 65536000000 THEN 6 WHEN updated_at - created_at < 262144000000 THEN 7
	WHEN updated_at - created_at < 1048576000000 THEN 8 WHEN updated_at - created_at < 4194304000000 THEN 9 ELSE 10 END)`

const lastedClasses = 11

// acrossCut selects columns of the settled runs that were made before the cut and last updated after it.
func acrossCut(cut int64, columns condition) (c condition) {
	for k, most := 0, int64(16_000_000); k < lastedClasses; k, most = k+1, most*4 {
		if k > 0 {
			c.sql += " UNION ALL "
		}
		since := cut - most
		if k == lastedClasses-1 {
			since = 0
		}
		c.sql += fmt.Sprintf("SELECT * FROM (SELECT "+columns.sql+" FROM runs WHERE "+isSettled+" AND "+lasted+
			" = %d AND created_at < ? AND created_at >= ? AND updated_at >= ? ORDER BY created_at DESC LIMIT %d) AS lasted%d", k, fewRuns+1, k)
		c.args = append(append(c.args, columns.args...), cut, since, cut)
	}
	return c
}

// is adds equality with v unless v is empty. The columns' partial indexes need the second condition.
func (q *runQuery) is(column, v string) {
	if v == "" {
		return
	}
	sql := column + " = ? AND " + column + " <> ''"
	c := condition{sql: sql, args: []any{v}, leads: column != "delivery_uid", whole: column == "delivery_uid", beside: beside(column)}
	c.probe = c.probed()
	q.filters = append(q.filters, c)
}

// beside reports whether the indexes on the orders of texts, and on durations, have the column. Those whose
// values may be longest are left out, since PostgreSQL takes no more than 2704 bytes of a row.
func beside(column string) bool {
	return column != "delivery_uid" && column != "environment_id" && column != "skill_spec"
}

// probed is the probe of a condition on the fields of a run.
func (c condition) probed() string {
	probe := "SELECT id FROM runs WHERE " + c.sql
	if c.whole {
		return probe
	}
	return probe + " AND " + isSettled + " UNION ALL " + probe + " AND " + isMoving
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
	c := condition{field: column, beside: true}
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
	held := func(st RunState) bool { return !st.Ended() && st != RunQueued }
	switch c := &q.filters[len(q.filters)-1]; {
	case !slices.ContainsFunc(all, func(st RunState) bool { return !st.Ended() }):
		q.parts = []string{isSettled}
	case !slices.ContainsFunc(all, func(st RunState) bool { return !held(st) }): // the few that workers hold
		c.sql += " AND lease_until IS NOT NULL"
		c.whole, c.leads, c.beside = true, false, false
		c.probe = c.probed()
		q.parts = []string{isMoving}
	}
}

// descendants adds the condition that the run is a descendant of another, whose tree has this root.
func (q *runQuery) descendants(ancestor, root string) {
	if root != "" {
		tree := condition{sql: "root_run_id = ? AND parent_run_id <> ''", args: []any{root}, leads: true, whole: true}
		tree.probe = tree.probed()
		q.filters = append(q.filters, tree)
	}
	if root != ancestor {
		q.filters = append(q.filters, condition{
			sql: `EXISTS (WITH RECURSIVE above (id) AS (SELECT runs.parent_run_id
				UNION SELECT a.parent_run_id FROM runs a JOIN above ON a.id = above.id) SELECT 1 FROM above WHERE id = ?)`,
			args: []any{ancestor}, whole: true,
			probe: `WITH RECURSIVE below (id) AS (SELECT c.id FROM runs c WHERE c.parent_run_id = ? AND c.parent_run_id <> ''
				UNION SELECT c.id FROM runs c JOIN below ON c.parent_run_id = below.id WHERE c.parent_run_id <> '') SELECT id FROM below`,
		})
	}
}

// newRunQuery takes a filter and an order apart. root is that of the ancestor's tree, where it is known.
func newRunQuery(f RunFilter, o RunOrder, root string) *runQuery {
	if o.By == "" {
		o.By = SortUpdated
	}
	q := &runQuery{filter: f, root: root, order: o, keys: o.columns(), parts: []string{isMoving, isSettled}}
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
		c := condition{sql: "factory_uid > ''", beside: true}
		c.probe = c.probed()
		q.filters = append(q.filters, c)
	}
	if f.Ancestor != "" {
		q.descendants(f.Ancestor, root)
	}
	for k, v := range f.Metadata {
		args := []any{k, v}
		q.filters = append(q.filters, condition{
			sql:  "(SELECT value FROM run_metadata WHERE run_id = runs.id AND key = ?) = ?", // EXISTS is made a join, which reads all that have the value
			args: args, probe: "SELECT run_id AS id FROM run_metadata WHERE key = ? AND value = ?", whole: true, leads: true,
			settled: &condition{sql: "SELECT settled_at AS updated_at, run_id AS id FROM run_metadata WHERE key = ? AND value = ? AND settled_at IS NOT NULL", args: args},
		})
	}
	if f.Query != "" {
		pattern := "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(f.Query) + "%"
		q.filters = append(q.filters, condition{
			sql:  `(lower(title) LIKE lower(?) ESCAPE '\' OR lower(prompt) LIKE lower(?) ESCAPE '\' OR id = ?)`,
			args: []any{pattern, pattern, strings.ToLower(f.Query)},
		})
	}
	q.bound("created_at", " > ", f.CreatedAfter)
	q.bound("updated_at", " > ", f.UpdatedAfter)
	q.bound("created_at", " < ", f.CreatedBefore)
	if o.By == SortUpdated {
		q.bound("updated_at", " > ", f.CreatedAfter) // no run changed before it was made
		if f.CreatedBefore != nil {
			q.cut = micros(*f.CreatedBefore)
		}
	}
	return q
}

// bound adds a condition on a time: a range of the order's index, or a filter.
func (q *runQuery) bound(column, compare string, t *time.Time) {
	switch {
	case t == nil:
	case q.keys[0] == column:
		q.ranges = append(q.ranges, bound{compare, micros(*t)})
	default:
		q.filters = append(q.filters, condition{sql: column + compare + "?", args: []any{micros(*t)}, beside: true})
	}
}

// direct reports whether indexes serve the filter and the order.
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

// where writes the conditions, and that the rows come after the position and in the bounds.
func (st *statement) where(q *runQuery, after *RunPosition, conditions ...condition) {
	conditions = append(conditions, q.limits()...)
	less, more := " < ", " >= "
	if q.order.Ascending {
		less, more = " > ", " <= "
	}
	position := func(p *RunPosition, compare string) {
		if p != nil {
			values := q.order.values(*p)
			marks := strings.TrimSuffix(strings.Repeat("?, ", len(values)), ", ")
			conditions = append(conditions, condition{sql: "(" + strings.Join(q.keys, ", ") + ")" + compare + "(" + marks + ")", args: values})
		}
	}
	position(after, less)
	position(q.until, more)
	word := " WHERE "
	for _, c := range conditions {
		st.WriteString(word)
		st.add(c.sql, c.args...)
		word = " AND "
	}
}

// looked are the columns of runs that are looked at: what is in the keys of any order, and whether the
// filter is met, as 1 or 0.
func (q *runQuery) looked() condition {
	meets := q.meets()
	return condition{sql: "id, title, config_name, created_at, updated_at, " + meets.sql, args: meets.args}
}

// meets is whether the filter is met, as 1 or 0: no index serves it.
func (q *runQuery) meets() condition {
	all := condition{sql: "CASE WHEN "}
	for i, c := range slices.Concat(q.filters, q.limits()) {
		if i > 0 {
			all.sql += " AND "
		}
		all.sql += c.sql
		all.args = append(all.args, c.args...)
	}
	all.sql += " THEN 1 ELSE 0 END"
	return all
}

// scans reports whether an index on the order has all that the filter asks for.
func (q *runQuery) scans() bool {
	return (q.order.By == SortTitle || q.order.By == SortAgent) && q.beside()
}

// beside reports whether some indexes have, beside their keys, all that the filter asks for.
func (q *runQuery) beside() bool {
	return !slices.ContainsFunc(q.filters, func(c condition) bool { return !c.beside })
}

// limits are the ranges as conditions.
func (q *runQuery) limits() (all []condition) {
	for _, b := range q.ranges {
		all = append(all, condition{sql: q.keys[0] + b.compare + "?", args: []any{b.at}})
	}
	return all
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
func (st *statement) merged(q *runQuery, columns condition, arms []arm, after *RunPosition, limit int) {
	for i, a := range arms {
		switch {
		case i > 0:
			st.WriteString(" UNION ALL SELECT * FROM (")
		case len(arms) > 1:
			st.WriteString("SELECT * FROM (")
		}
		st.add("SELECT "+columns.sql+" FROM ", columns.args...)
		if a.from != nil {
			st.add("("+a.from.sql+") AS ", a.from.args...)
		}
		st.WriteString("runs")
		st.where(q, after, slices.Clone(a.where)...)
		st.tail(q, limit)
		if len(arms) > 1 {
			fmt.Fprintf(st, ") AS arm%d", i)
		}
	}
	if len(arms) > 1 {
		st.tail(q, limit)
	}
}

// rows writes a statement that selects columns of the first runs of the arms after the position, in order.
// Where there are several, they are merged by their keys alone.
func (st *statement) rows(q *runQuery, columns condition, arms []arm, after *RunPosition, limit int) {
	if len(arms) == 1 && arms[0].from == nil {
		st.merged(q, columns, arms, after, limit)
		return
	}
	st.add("SELECT "+columns.sql+" FROM (SELECT id AS top_id FROM (", columns.args...)
	st.merged(q, condition{sql: strings.Join(q.keys, ", ")}, arms, after, limit)
	st.WriteString(") AS all_arms) AS top CROSS JOIN runs WHERE runs.id = top_id")
	st.tail(q, limit)
}

// arms are the parts of the list, each of which one index has in order. led is the condition whose index
// serves the settled ones, filters are the conditions on those that move.
func (q *runQuery) arms(led *condition, filters []condition) (arms []arm) {
	if q.order.By == SortCreated {
		return []arm{{where: filters}}
	}
	if led != nil && led.whole && led.settled == nil && q.cut == 0 {
		return []arm{{where: []condition{*led}}}
	}
	for _, p := range q.parts {
		if p == isMoving {
			arms = append(arms, arm{where: append([]condition{{sql: isMoving}}, filters...)})
		} else {
			arms = append(arms, q.settledArms(led)...)
		}
	}
	return arms
}

// settledArms are the parts of the settled ones.
func (q *runQuery) settledArms(led *condition) []arm {
	all := []arm{{where: []condition{{sql: isSettled}}}}
	switch {
	case led == nil:
	case led.settled != nil:
		all = []arm{{from: led.settled}}
	case len(led.arms) > 1:
		all = nil
		for _, v := range led.arms {
			all = append(all, arm{where: []condition{{sql: isSettled}, {sql: led.field + " = ?", args: []any{v}}}})
		}
	default:
		all[0].where = append(all[0].where, *led)
	}
	if q.cut != 0 {
		for i := range all {
			all[i].where = append(all[i].where, condition{sql: "updated_at < ?", args: []any{q.cut}})
		}
	}
	return all
}
