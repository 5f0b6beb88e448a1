package state_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"millwright/schema"
)

// flowChange is something that a sender, a worker or a server did at a place.
type flowChange struct {
	kind, run, worker, delivery, result string
	at                                  time.Time
	says                                string // what it was answered; empty when nobody knows
	unsure                              bool   // nobody knows whether it was made
}

// do makes a change and returns what it is answered.
func (p *flowPlace) do(c flowChange) string {
	if c.kind == "deliver" {
		return p.deliver(c.at, c.delivery, c.run)
	}
	i := slices.IndexFunc(p.runs, func(r flowRun) bool { return r.id == c.run })
	if i < 0 {
		return "refused"
	}

	r := &p.runs[i]
	switch mine := r.state == "held" && r.worker == c.worker; {
	case c.kind == "claim" && p.state(i) == "ready":
		r.state, r.worker = "held", c.worker
	case c.kind == "finish" && mine:
		p.finish(i, c.result)
	case c.kind == "lose" && r.state == "held" && c.result == "":
		r.state, r.messages = "ready", 0
	case c.kind == "lose" && r.state == "held":
		p.finish(i, c.result)
	case c.kind == "cancel" && !r.ended():
		p.cancel([]int{i})
	case c.kind == "release" && (r.state == "window" || r.state == "retry"):
		p.release(i)
	default:
		return "refused"
	}
	return "done"
}

func (r flowRun) ended() bool {
	return !slices.Contains([]string{"window", "ready", "held", "retry"}, r.state)
}

// state returns a run's state; "waiting" for one that others of its key keep waiting.
func (p *flowPlace) state(i int) string {
	if p.runs[i].state == "ready" && slices.Index(p.line, i) >= p.limit {
		return "waiting"
	}
	return p.runs[i].state
}

// meanings returns what the change may be. A run that was lost returns to the queue, or begins its next
// execution.
func (c flowChange) meanings() []flowChange {
	all := []flowChange{c}
	if c.kind == "lose" && c.result == "" {
		c.result = "ERROR"
		all = append(all, c)
	}
	return all
}

// clone returns a copy that shares nothing.
func (p *flowPlace) clone() *flowPlace {
	return &flowPlace{p.flowRules, slices.Clone(p.runs), slices.Clone(p.line)}
}

// look returns what is seen of the runs, by ID.
func (p *flowPlace) look() map[string]string {
	seen := map[string]string{}
	for i, r := range p.runs {
		starts := time.Time{}
		if r.state == "window" {
			starts = r.starts
		}
		seen[r.id] = lookOf(p.state(i), r.delivery, r.execution, starts)
	}
	return seen
}

func lookOf(state, delivery string, execution int, starts time.Time) string {
	return fmt.Sprintf("%s %s execution %d %d", state, delivery, execution, starts.UnixMicro())
}

// orders finds the states that places may be in after changes that were made at once, by every order of these
// in which each would have been answered as it was, and after which the runs look as they do.
type orders struct {
	changes []flowChange
	fits    func(*flowPlace) bool
	tried   map[string]bool
	found   []*flowPlace
}

// from tries all orders of the changes that are left.
func (o *orders) from(p *flowPlace, left []int) {
	state := fmt.Sprint(left, p.line)
	for _, r := range p.runs {
		state += fmt.Sprint(" ", r.id, r.state, r.delivery, " ", r.execution)
		if !r.ended() {
			state += fmt.Sprint(" ", r.worker, r.starts.UnixMicro(), r.cancel, r.tried, " ", r.messages)
		}
	}
	if o.tried[state] {
		return
	}
	o.tried[state] = true

	sure := slices.ContainsFunc(left, func(i int) bool { return !o.changes[i].unsure })
	if !sure && o.fits(p) {
		o.found = append(o.found, p)
	}

	for at, i := range left {
		rest := slices.Delete(slices.Clone(left), at, at+1)
		for _, c := range o.changes[i].meanings() {
			q := p.clone()
			says := q.do(c)
			if (c.says == "" || c.says == says) && (says != "refused" || !c.unsure) {
				o.from(q, rest)
			}
		}
	}
}

// TestOrdersOfEndedRuns has two deliveries to the window of a run that then ends. Their orders differ in the
// delivery that the run ends with alone, and both are found.
func TestOrdersOfEndedRuns(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	changes := []flowChange{
		{kind: "deliver", run: "x", delivery: "first", at: at.Add(time.Second), says: "debounced w"},
		{kind: "deliver", run: "y", delivery: "second", at: at.Add(2 * time.Second), says: "debounced w"},
		{kind: "release", run: "w"},
	}
	for _, last := range []string{"first", "second"} {
		p := &flowPlace{
			flowRules: flowRules{limit: 1, busy: schema.BusySkip, wait: 5 * time.Second, most: time.Minute},
			runs: []flowRun{
				{id: "h", state: "held", worker: "a", execution: 1},
				{id: "w", state: "window", made: at, starts: at.Add(5 * time.Second), execution: 1},
			},
			line: []int{0},
		}
		o := &orders{changes: changes, tried: map[string]bool{}, fits: func(p *flowPlace) bool {
			return p.runs[1].state == "CANCELLED" && p.runs[1].delivery == last
		}}
		o.from(p, []int{0, 1, 2})

		if len(o.found) != 1 {
			t.Errorf("%d orders end with the %s delivery", len(o.found), last)
		}
	}
}
