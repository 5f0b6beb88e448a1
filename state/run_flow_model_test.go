package state_test

import (
	"slices"
	"time"

	"millwright/schema"
)

// flowPlace specifies flow for one key of an automation: what becomes of its deliveries and of their runs,
// one change after the other, nothing lost, nothing twice.
type flowPlace struct {
	flowRules
	runs []flowRun
	line []int // the runs that go on, then those that wait for them, in order
}

type flowRules struct {
	limit, attempts int // of concurrency, and of retry
	busy            schema.WhenBusy
	wait, most      time.Duration // of debounce; 0: none
	conversation    bool
}

type flowRun struct {
	id, delivery, worker, state string // state: window, ready, held, retry, or how it ended
	made, starts                time.Time
	cancel                      bool
	execution, tried, messages  int
}

// deliver returns what flow decides, and of which run.
func (p *flowPlace) deliver(at time.Time, delivery, id string) string {
	n := len(p.runs)
	for i := range p.runs {
		r := &p.runs[i]
		if r.state == "window" && r.starts.After(at) {
			r.delivery, r.starts = delivery, at.Add(min(p.wait, p.most-at.Sub(r.made)))
			return "debounced " + r.id
		} else if r.state == "window" {
			p.release(i)
		}

		if p.conversation && !r.cancel {
			if r.state == "held" {
				r.messages++
			} else if r.ended() {
				p.next(i, "ready", 0)
				p.line = append(p.line, i)
			}
			return "follow-up " + r.id
		}
	}

	made := flowRun{id: id, delivery: delivery, state: "window", made: at, starts: at.Add(p.wait), execution: 1}
	if p.runs = append(p.runs, made); p.wait > 0 {
		return "debounced " + id
	} else if p.enter(n) {
		return "started " + id
	}
	p.runs = p.runs[:n]
	return "skipped: concurrency "
}

// enter puts a run in line, and reports whether it may.
func (p *flowPlace) enter(i int) bool {
	full := len(p.line) >= p.limit
	if full && p.busy == schema.BusySkip {
		return false
	} else if full && p.busy == schema.BusyLatest {
		p.cancel(p.line[p.limit:])
	} else if full && p.busy == schema.BusyCancel {
		going := slices.DeleteFunc(slices.Clone(p.line), func(i int) bool { return p.runs[i].cancel })
		p.cancel(going[:max(0, len(going)+1-p.limit)])
	}

	p.runs[i].state, p.line = "ready", append(p.line, i)
	return true
}

// release ends the wait of a run for a time.
func (p *flowPlace) release(i int) {
	if p.runs[i].state == "retry" {
		p.runs[i].state = "ready"
	} else if !p.enter(i) {
		p.end(i, "CANCELLED")
	}
}

func (p *flowPlace) cancel(runs []int) {
	for _, i := range slices.Clone(runs) {
		if p.runs[i].cancel = true; p.runs[i].state != "held" {
			p.end(i, "CANCELLED")
		}
	}
}

// finish ends an execution that a worker held.
func (p *flowPlace) finish(i int, result string) {
	switch r := &p.runs[i]; {
	case !r.cancel && result != "CANCELLED" && r.messages > 0:
		p.next(i, "ready", 0)
	case !r.cancel && result == "ERROR" && r.tried+1 < p.attempts:
		p.next(i, "retry", r.tried+1)
	default:
		p.end(i, result)
	}
}

// next begins the next execution of a run.
func (p *flowPlace) next(i int, state string, tried int) {
	r := &p.runs[i]
	r.state, r.execution, r.tried, r.messages = state, r.execution+1, tried, 0
}

func (p *flowPlace) end(i int, result string) {
	r := &p.runs[i]
	r.state, r.cancel, r.messages = result, r.cancel || result == "CANCELLED", 0
	p.line = slices.DeleteFunc(p.line, func(other int) bool { return other == i })
}
