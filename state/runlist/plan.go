package runlist

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// What a run is.
const (
	isIndexed = "finished_at IS NOT NULL"
	isLive    = "finished_at IS NULL"
	isHeld    = "claim_hash IS NOT NULL" // live, and CLAIMED, INPROGRESS or BLOCKED
)

// maxValues bounds the values of one field that are looked up one by one.
const maxValues = 16

// condition is a part of a WHERE clause, with a question mark for each of its arguments.
type condition struct {
	sql  string
	args []any

	row    bool       // reads the run's row: runs_live lacks its columns
	column string     // has an index in the order of the last update, of the indexed runs; may be empty
	values []where    // of the column, one for each value
	ids    *condition // selects the IDs of the runs that meet the condition, by an index; may be nil
}

// where is a list of conditions, all of which must hold.
type where []condition

// span is the microseconds from low on, before high. Either may be nil.
type span struct{ low, high *int64 }

// arm is a range of an index: the conditions that its runs meet, and the span of a list's first key.
type arm struct {
	where where
	span  span
}

// plan is what a list reads.
type plan struct {
	order   Order
	keys    []string
	span    span  // of the first key
	filters where // that a run of the list meets
	arms    []arm
	sifts   bool // an arm has the live runs that meet the filters: it reads every live run
	exact   bool // all runs of the arms meet the filters
	row     bool // the filters read rows of live runs
	text    bool // and the text of runs
}

// newPlan plans a list. root is the root of the ancestor's tree; empty when it is not known.
func newPlan[S ~string](f Filter[S], o Order, root string) *plan {
	o.By = cmp.Or(o.By, SortUpdated)
	p := &plan{order: o, text: f.Query != ""}
	p.keys, _ = new(Position).keys(o)
	states := make([]string, len(f.States))
	for i, st := range f.States {
		states[i] = string(st)
	}
	if f.Waiting {
		states = []string{"QUEUED"}
		p.add(condition{sql: "waits_for <> ''", row: true})
	}

	// The first condition with an index leads the list: those that are likely to select the fewest come first.
	if f.DeliveryUID != "" { // its index has live runs too
		c := condition{sql: "delivery_uid = ? AND delivery_uid <> ''", args: []any{f.DeliveryUID}, row: true}
		c.ids = &condition{sql: "SELECT id FROM runs WHERE " + c.sql, args: c.args}
		p.add(c)
	}

	p.descends(f.Ancestor, root)
	p.metadata(f.Metadata)
	p.artifacts(f.ArtifactType)
	p.equals("automation_uid", f.AutomationUID)
	p.equals("webhook_uid", f.WebhookUID)
	p.sifted("skill_spec", f.Skill)
	p.sifted("environment_id", f.EnvironmentID)
	p.sifted("worker", f.Executor)
	p.sifted("model_id", f.ModelID)
	p.equals("creator_uid", f.Creator)
	p.equals("config_name", f.Name)
	p.listed("factory_uid", f.Factories)
	p.listed("state", states)
	p.listed("source", f.Sources)
	if f.FactoryOnly {
		p.add(condition{sql: "factory_uid <> ''"})
	}

	p.contains(f.Query)

	p.bound("created_at", f.CreatedAfter, f.CreatedBefore)
	p.bound("updated_at", f.UpdatedAfter, f.UpdatedBefore)
	if o.By == SortUpdated {
		p.bound("updated_at", f.CreatedAfter, nil) // no run was updated before it was made
	}

	p.choose(states, f.CreatedBefore)
	return p
}

// bound adds that a time is after one and before another: to the span of the list's first key, or as filters.
func (p *plan) bound(column string, after, before *time.Time) {
	if p.keys[0] == column {
		p.span = p.span.within(after, before)
		return
	}
	if after != nil {
		p.add(condition{sql: column + " > ?", args: []any{after.UnixMicro()}})
	}
	if before != nil {
		p.add(condition{sql: column + " < ?", args: []any{before.UnixMicro()}})
	}
}

// within returns the part of s that is after a time and before another.
func (s span) within(after, before *time.Time) span {
	if after != nil {
		if low := after.UnixMicro() + 1; s.low == nil || *s.low < low {
			s.low = &low
		}
	}

	if before != nil {
		if high := before.UnixMicro(); s.high == nil || *s.high > high {
			s.high = &high
		}
	}

	return s
}

// choose sets the arms.
func (p *plan) choose(states []string, before *time.Time) {
	if p.order.By == SortCreated || p.order.By == SortTitle { // their indexes have all runs
		p.arms, p.exact = []arm{{span: p.span}}, len(p.filters) == 0
		return
	}

	lead, led := p.lead()
	p.exact = len(p.filters) == 0 || len(p.filters) == 1 && led
	add := func(s span, conditions ...condition) { p.arms = append(p.arms, arm{conditions, s}) }

	held := func(state string) bool { return state == "CLAIMED" || state == "INPROGRESS" || state == "BLOCKED" }
	ended := func(state string) bool { return state != "QUEUED" && state != "CLAIMED" && state != "INPROGRESS" }
	queued := len(states) == 0 || slices.Contains(states, "QUEUED")
	switch {
	case !queued && !slices.ContainsFunc(states, held):
	case p.order.By == SortAgent:
		for _, value := range lead {
			add(p.span, append(where{{sql: isLive}}, value...)...)
		}
	case queued:
		add(p.span, append(where{{sql: isLive}}, p.meets()...)...)
		p.sifts = len(p.filters) > 0
	default:
		add(p.span, append(where{{sql: isHeld}}, p.meets()...)...)
	}

	if len(states) > 0 && !slices.ContainsFunc(states, ended) {
		p.exact = p.exact || p.order.By == SortUpdated
		return
	}

	indexed := p.span
	if before != nil && p.order.By == SortUpdated {
		p.lasted(*before)
		indexed = indexed.within(nil, before)
	}

	for _, value := range lead {
		add(indexed, append(where{{sql: isIndexed}}, value...)...)
	}
}

// lead returns the conditions of each arm by the first filter with an index in the list's order, if any has one.
func (p *plan) lead() (values []where, led bool) {
	for _, c := range p.filters {
		ordered := p.order.By == SortUpdated && c.column != "" || c.column == "config_name"
		if ordered && len(c.values) <= maxValues {
			return c.values, true
		}
	}
	return []where{nil}, false
}

// meets is the condition that a run meets all filters; none when there is no filter. It hides them from the
// databases, which would follow the index of a filter that selects much, and not one in the order of the list.
func (p *plan) meets() where {
	if len(p.filters) == 0 {
		return nil
	}
	var all condition
	for _, c := range p.filters {
		all.sql += " AND " + c.sql
		all.args = append(all.args, c.args...)
	}
	all.sql = "CASE WHEN " + strings.TrimPrefix(all.sql, " AND ") + " THEN 1 ELSE 0 END = 1"
	return where{all}
}

// lasted adds arms that have the runs that were made before t and updated since, by how long they took from
// their creation to their last update. A class has times up to 16 times as long as the one before: many runs of
// its arm were made before t. The index runs_by_duration has this expression, word for word.
func (p *plan) lasted(t time.Time) {
	const class = `(CASE
		WHEN updated_at - created_at < 16000000 THEN 0 WHEN updated_at - created_at < 256000000 THEN 1
		WHEN updated_at - created_at < 4096000000 THEN 2 WHEN updated_at - created_at < 65536000000 THEN 3
		WHEN updated_at - created_at < 1048576000000 THEN 4 ELSE 5 END)`
	const last = 5
	before, longest := t.Add(-time.Microsecond), 16*time.Second
	for k := range last + 1 {
		s, end := p.span.within(&before, nil), t.Add(longest)
		if k < last {
			s = s.within(nil, &end)
		}

		p.arms = append(p.arms, arm{where{{sql: isIndexed}, {sql: fmt.Sprint(class, " = ", k)}}, s})
		longest *= 16
	}
}

func (p *plan) add(c condition) { p.filters, p.row = append(p.filters, c), p.row || c.row }

// equals adds that a column has the value unless that is empty.
func (p *plan) equals(column, value string) {
	if value != "" {
		p.listed(column, []string{value})
	}
}

// sifted adds that a column without an index has the value unless that is empty. A page of a value that few
// runs have may be short.
func (p *plan) sifted(column, value string) {
	if value != "" {
		p.add(condition{sql: column + " = ?", args: []any{value}, row: true})
	}
}

// listed adds that a column has one of the values unless there are none. Its index may lack runs without one.
func (p *plan) listed(column string, values []string) {
	values = slices.Compact(slices.Sorted(slices.Values(values)))
	if len(values) == 0 {
		return
	}

	some := ""
	if values[0] != "" {
		some = " AND " + column + " <> ''"
	}

	c := condition{sql: column + " IN (" + marks(len(values)) + ")" + some, column: column}
	for _, v := range values {
		c.args = append(c.args, v)
		c.values = append(c.values, where{{sql: column + " = ?" + some, args: []any{v}}})
	}

	c.ids = c.anywhere()
	p.add(c)
}

// anywhere selects the IDs of the indexed and of the live runs that meet c.
func (c condition) anywhere() *condition {
	of := "SELECT id FROM runs WHERE " + c.sql + " AND "
	return &condition{sql: of + isIndexed + " UNION ALL " + of + isLive, args: slices.Concat(c.args, c.args)}
}

// descends adds that a run descends from another one, in the tree with this root.
func (p *plan) descends(ancestor, root string) {
	if ancestor == "" {
		return
	}

	if root != "" {
		c := condition{sql: "root_run_id = ? AND parent_run_id <> ''", args: []any{root}, row: true}
		c.column, c.values, c.ids = "root_run_id", []where{{c}}, c.anywhere()
		p.add(c)
	}

	if root != ancestor {
		p.add(condition{
			sql: `EXISTS (
				WITH RECURSIVE above (id) AS (
					SELECT runs.parent_run_id
					UNION SELECT a.parent_run_id FROM runs a JOIN above ON a.id = above.id
				)
				SELECT 1 FROM above WHERE id = ?)`,
			args: []any{ancestor},
			row:  true,
		})
	}
}

// metadata adds that a run has these values.
func (p *plan) metadata(values map[string]string) {
	for _, k := range slices.Sorted(maps.Keys(values)) {
		c := condition{args: []any{k, values[k]}, row: true}
		c.sql = "(SELECT value FROM run_metadata WHERE run_id = runs.id AND key = ?) = ?" // EXISTS would join
		c.ids = &condition{sql: `SELECT run_id AS id FROM run_metadata WHERE key = ? AND value = ?`, args: c.args}
		p.add(c)
	}
}

// artifacts adds that a run has a visible artifact of a type.
func (p *plan) artifacts(of string) {
	if of == "" {
		return
	}

	c := condition{args: []any{of}, row: true}
	c.sql = "(SELECT 1 FROM run_artifacts WHERE run_id = runs.id AND type = ? AND state = 'current' LIMIT 1) = 1"
	c.ids = &condition{sql: `SELECT run_id AS id FROM run_artifacts WHERE type = ? AND state = 'current'`, args: c.args}
	p.add(c)
}

// contains adds that a run's title or prompt has the text in it in any case, or that it is the run's ID.
func (p *plan) contains(text string) {
	if text == "" {
		return
	}
	pattern := "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(text) + "%"
	p.add(condition{
		sql:  `(lower(title) LIKE lower(?) ESCAPE '\' OR lower(prompt) LIKE lower(?) ESCAPE '\' OR id = ?)`,
		args: []any{pattern, pattern, strings.ToLower(text)},
		row:  true,
	})
}

func marks(n int) string { return strings.TrimSuffix(strings.Repeat("?, ", n), ", ") }
