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
	limit        int
	busy         schema.WhenBusy
	wait, most   time.Duration // of debounce; 0: none
	conversation bool
	attempts     int // of retry
}

type flowRun struct {
	id, delivery, worker, state string // state: window, ready, held, retry, or how it ended
	made, starts                time.Time
	cancel                      bool
	execution, tried, messages  int
}

// deliver returns what flow decides, and of which run.
func (p *flowPlace) deliver(at time.Time, delivery, id string) string {
	window, talk, n := -1, -1, len(p.runs)
	for i, r := range p.runs {
		if r.state == "window" && r.starts.After(at) {
			window = i
		} else if r.state == "window" {
			p.release(i)
		}
	}
	for i, r := range p.runs {
		if p.conversation && !r.cancel && r.state != "CANCELLED" {
			talk = i
		}
	}

	made := flowRun{id: id, delivery: delivery, state: "window", made: at, starts: at.Add(p.wait), execution: 1}
	switch {
	case talk >= 0 && talk != window:
		if r := &p.runs[talk]; r.state == "held" {
			r.messages++
		} else if r.ended() {
			p.next(talk, "ready", 0)
			p.enter(talk, schema.BusyQueue)
		}
		return "follow-up " + p.runs[talk].id
	case window >= 0:
		r := &p.runs[window]
		starts := []time.Time{made.starts, r.made.Add(p.most)}
		r.delivery, r.starts = delivery, slices.MinFunc(starts, time.Time.Compare)
		return "debounced " + r.id
	}

	if p.runs = append(p.runs, made); p.wait > 0 {
		return "debounced " + id
	} else if p.enter(n, p.busy) {
		return "started " + id
	}
	p.runs = p.runs[:n]
	return "skipped: concurrency "
}

// enter puts a run in line, and reports whether it may.
func (p *flowPlace) enter(i int, busy schema.WhenBusy) bool {
	var others []int
	switch full := len(p.line) >= p.limit; {
	case full && busy == schema.BusySkip:
		return false
	case full && busy == schema.BusyLatest:
		others = slices.Clone(p.line[p.limit:])
	case full && busy == schema.BusyCancel:
		others = slices.DeleteFunc(slices.Clone(p.line), func(i int) bool { return p.runs[i].cancel })
		others = others[:max(0, len(others)+1-p.limit)]
	}
	for _, other := range others {
		p.cancel(other)
	}

	p.runs[i].state, p.line = "ready", append(p.line, i)
	return true
}

// release ends the wait of a run for a time.
func (p *flowPlace) release(i int) {
	if p.runs[i].state == "retry" {
		p.runs[i].state = "ready"
	} else if !p.enter(i, p.busy) {
		p.end(i, "CANCELLED")
	}
}

func (p *flowPlace) cancel(i int) {
	if p.runs[i].cancel = true; p.runs[i].state != "held" {
		p.end(i, "CANCELLED")
	}
}

// finish ends an execution that a worker held.
func (p *flowPlace) finish(i int, result string) {
	switch r := p.runs[i]; {
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
	p.runs[i].state, p.runs[i].messages = result, 0
	p.line = slices.DeleteFunc(p.line, func(other int) bool { return other == i })
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
