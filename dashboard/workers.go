package dashboard

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"millwright/admin"
	"millwright/state"
)

type workersView struct {
	Workers []admin.Worker
	More    bool // than are shown
	Queue   state.QueueStats
}

// workers lists the workers.
func (q *request) workers() error {
	var list admin.ListWorkersResponse
	if err := q.call("GET", "/workers?limit=500", nil, &list); err != nil {
		return err
	}

	slices.SortStableFunc(list.Workers, func(a, b admin.Worker) int { return strings.Compare(a.Name, b.Name) })
	v := workersView{Workers: list.Workers, More: list.PageInfo.HasNextPage, Queue: q.queue()}
	return q.render("workers", page{Title: "Workers", Section: "workers", Live: []string{"run"}, Data: v})
}

// workerFindings tells of runs that nobody takes, and of harnesses that no worker has.
func (q *request) workerFindings(queue state.QueueStats) ([]finding, error) {
	workers, err := q.Store.Workers().All(q.Context())
	if err != nil {
		return nil, err
	}

	now := time.Now()
	has := map[string]bool{}
	live := 0
	for _, w := range workers {
		if !w.Live(now) {
			continue
		}

		live++
		for _, name := range w.Harnesses {
			has[name] = true
		}
	}

	if live == 0 {
		if queue.Queued == 0 {
			return nil, nil
		}
		return []finding{{
			"bad",
			"No worker takes runs",
			count(queue.Queued, "run waits", "runs wait") + "; start one with millwright worker, or set workers",
			"/workers",
			"See workers",
		}}, nil
	}

	return q.harnessFindings(has)
}

// harnessFindings tells of the harnesses that definitions name and no live worker has.
func (q *request) harnessFindings(has map[string]bool) (all []finding, err error) {
	used, err := q.Store.HarnessesUsed(q.Context())
	if err != nil {
		return nil, err
	}

	for name, factories := range used {
		if has[name] || name == defaultHarness {
			continue
		}
		all = append(all, finding{
			"bad",
			fmt.Sprintf("No worker takes runs of harness %s", line(name)),
			"automations of " + line(strings.Join(factories, ", ")) + " use it, and their runs end as ERROR",
			"/workers",
			"See workers",
		})
	}

	slices.SortFunc(all, func(a, b finding) int { return strings.Compare(a.Text, b.Text) })
	return all, nil
}

// defaultHarness is the name under which every worker has its default one.
const defaultHarness = "oz"
