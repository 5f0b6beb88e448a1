package state

import (
	"context"
	"fmt"
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

// maxPageBytes bounds the text of one page, so that long prompts make shorter pages.
const maxPageBytes = 16 << 20

// maxArms is how many values of one field are looked up one by one.
const maxArms = 16

// Runs returns at most limit of the runs that the filter selects, in the given order, beginning after the
// position if there is one. more says that the list goes on after the last of them.
func (s *Store) Runs(ctx context.Context, f RunFilter, o RunOrder, after *RunPosition, limit int) (runs []Run, more bool, err error) {
	q := newRunQuery(f, o, after, limit+1)
	rows, err := s.read.QueryContext(ctx, q.sql(), q.args...)
	if err != nil {
		return nil, false, s.classify(err)
	}
	defer rows.Close()
	size := 0
	for rows.Next() {
		if len(runs) == limit || size > maxPageBytes {
			return runs, true, nil
		}
		r, err := scanRun(rows)
		if err != nil {
			return nil, false, s.classify(err)
		}
		size += len(r.Prompt) + len(r.Config)
		runs = append(runs, r)
	}
	return runs, false, s.classify(rows.Err())
}

// runQuery builds the statement of a list. It selects through one index that is in the list's order, or
// through one such index for each value of a field with several, and merges.
type runQuery struct {
	args   []any
	common []string
	arms   []string // alternatives, each a condition; empty: one arm without
	order  string
	limit  string
}

func (q *runQuery) arg(v any) string {
	q.args = append(q.args, v)
	return fmt.Sprintf("$%d", len(q.args))
}

func (q *runQuery) where(format string, v any) {
	q.common = append(q.common, fmt.Sprintf(format, q.arg(v)))
}

// is adds equality with v unless v is empty. The columns' partial indexes need the second condition.
func (q *runQuery) is(column, v string) {
	if v != "" {
		q.common = append(q.common, column+" = "+q.arg(v), column+" <> ''")
	}
}

// in adds "column is one of values". Few values of the default order become arms of their own.
func in[T ~string](q *runQuery, column string, values []T, arms bool) {
	if len(values) == 0 {
		return
	}
	if len(values) > 1 && len(values) <= maxArms && arms && len(q.arms) == 0 {
		seen := map[T]bool{}
		for _, v := range values {
			if !seen[v] {
				seen[v] = true
				q.arms = append(q.arms, column+" = "+q.arg(string(v)))
			}
		}
		return
	}
	marks := make([]string, len(values))
	for i, v := range values {
		marks[i] = q.arg(string(v))
	}
	q.common = append(q.common, column+" IN ("+strings.Join(marks, ", ")+")")
}

func newRunQuery(f RunFilter, o RunOrder, after *RunPosition, limit int) *runQuery {
	q := &runQuery{}
	arms := o.By == SortUpdated || o.By == ""
	in(q, "state", f.States, arms)
	in(q, "factory_uid", f.Factories, arms)
	in(q, "source", f.Sources, arms)
	q.is("config_name", f.Name)
	q.is("model_id", f.ModelID)
	q.is("environment_id", f.EnvironmentID)
	q.is("skill_spec", f.Skill)
	q.is("creator_uid", f.Creator)
	q.is("worker", f.Executor)
	q.is("automation_uid", f.AutomationUID)
	q.is("webhook_uid", f.WebhookUID)
	q.is("delivery_uid", f.DeliveryUID)
	if f.FactoryOnly {
		q.common = append(q.common, "factory_uid <> ''")
	}
	if f.Ancestor != "" {
		q.where(`id IN (WITH RECURSIVE below (id) AS (SELECT c.id FROM runs c WHERE c.parent_run_id = %s AND c.parent_run_id <> ''
			UNION SELECT c.id FROM runs c JOIN below ON c.parent_run_id = below.id WHERE c.parent_run_id <> '') SELECT id FROM below)`, f.Ancestor)
	}
	keys := make([]string, 0, len(f.Metadata))
	for k := range f.Metadata {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		q.common = append(q.common, "EXISTS (SELECT 1 FROM run_metadata m WHERE m.key = "+q.arg(k)+" AND m.value = "+q.arg(f.Metadata[k])+" AND m.run_id = runs.id)")
	}
	if f.Query != "" {
		pattern := q.arg("%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(f.Query) + "%")
		q.common = append(q.common, fmt.Sprintf(`(id = %s OR lower(title) LIKE lower(%[2]s) ESCAPE '\' OR lower(prompt) LIKE lower(%[2]s) ESCAPE '\')`, q.arg(strings.ToLower(f.Query)), pattern))
	}
	for _, bound := range []struct {
		condition string
		at        *time.Time
	}{{"created_at > %s", f.CreatedAfter}, {"created_at < %s", f.CreatedBefore}, {"updated_at > %s", f.UpdatedAfter}} {
		if bound.at != nil {
			q.where(bound.condition, micros(*bound.at))
		}
	}
	columns, compare, direction := o.columns(), "<", " DESC"
	if o.Ascending {
		compare, direction = ">", ""
	}
	if after != nil {
		var marks []string
		for _, v := range o.values(*after) {
			marks = append(marks, q.arg(v))
		}
		q.common = append(q.common, "("+strings.Join(columns, ", ")+") "+compare+" ("+strings.Join(marks, ", ")+")")
	}
	q.order = " ORDER BY " + strings.Join(columns, direction+", ") + direction
	q.limit = " LIMIT " + q.arg(limit)
	return q
}

func (q *runQuery) sql() string {
	arm := func(extra ...string) string {
		conditions := append(extra, q.common...)
		where := ""
		if len(conditions) > 0 {
			where = " WHERE " + strings.Join(conditions, " AND ")
		}
		return "SELECT " + runColumns + " FROM runs" + where + q.order + q.limit
	}
	if len(q.arms) == 0 {
		return arm()
	}
	parts := make([]string, len(q.arms))
	for i, a := range q.arms {
		parts[i] = "SELECT * FROM (" + arm(a) + ") AS arm" + fmt.Sprint(i)
	}
	return strings.Join(parts, " UNION ALL ") + q.order + q.limit
}
