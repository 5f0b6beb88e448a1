// Package runlist plans pages of runs.
//
// A run is live until it has ended, and indexed from then on. Indexes leave live runs out, since each change of
// one would write them all; runs_live has those. A list is a union of arms: ranges of indexes in its order. The
// work for a page is bounded in rows, not in time: the same request on the same data gives the same page.
package runlist

import (
	"context"
	"database/sql"
	"time"
)

// Filter selects the runs of a list; the zero value selects all. Conditions on different fields must all hold,
// values of one field are alternatives. S is the type of a run's state.
type Filter[S ~string] struct {
	States        []S
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
	ArtifactType  string // that a run has an artifact of
	Query         string // substring of title or prompt in any case, or a run ID
	FactoryOnly   bool
	Waiting       bool // queued runs that no worker may claim yet
	CreatedAfter  *time.Time
	CreatedBefore *time.Time
	UpdatedAfter  *time.Time
	UpdatedBefore *time.Time
}

// Sort names what a list is ordered by.
type Sort string

// The orders; the run ID breaks ties.
const (
	SortUpdated Sort = "updated_at"
	SortCreated Sort = "created_at"
	SortTitle   Sort = "title"
	SortAgent   Sort = "agent" // the config name, then the time of the last update
)

// Order is an order and its direction. The zero value lists the last updated run first.
type Order struct {
	By        Sort
	Ascending bool
}

// Position is a place in a list: right behind one run. Rows that are added before it do not invalidate it.
type Position struct {
	ID   string `json:"i"`
	Time int64  `json:"t,omitempty"` // microseconds
	Text string `json:"x,omitempty"`
}

// keys returns the columns that the order compares, and pointers to their values at p.
func (p *Position) keys(o Order) (columns []string, values []any) {
	switch o.By {
	case SortCreated:
		return []string{"created_at", "id"}, []any{&p.Time, &p.ID}
	case SortTitle:
		return []string{"title", "id"}, []any{&p.Text, &p.ID}
	case SortAgent:
		return []string{"config_name", "updated_at", "id"}, []any{&p.Text, &p.Time, &p.ID}
	}
	return []string{"updated_at", "id"}, []any{&p.Time, &p.ID}
}

// Read runs one statement. All statements of a page must read the same snapshot.
type Read func(ctx context.Context, query string, args ...any) (*sql.Rows, error)
