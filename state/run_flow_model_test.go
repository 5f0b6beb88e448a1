package state_test

import (
	"slices"
	"time"

	"millwright/schema"
)

// flowModel decides what becomes of deliveries and runs whose automations have a flow, as a specification that fits on
// a page: one run after the other, nothing lost, nothing twice.
type flowModel struct {
	rules  map[string]flowRules // by automation
	runs   []*flowRun
	active map[string][]*flowRun // by automation and key: runs that go on, in the order in which they began to
	queue  map[string][]*flowRun // and those that wait for them, in the order in which they came
}

type flowRules struct {
	limit        int
	busy         schema.WhenBusy
	wait, most   time.Duration // of debounce; 0: none
	conversation bool
	attempts     int // of retry
}

type flowRun struct {
	id, automation, key string
	state               string // window, waiting, ready, retry, held or ended
	made, starts        time.Time
	cancel, cancelled   bool
	deliveries          []string
	execution, attempt  int
	tried, messages     int
}

func (r *flowRun) place() string { return r.automation + " " + r.key }

// deliver returns what flow decides, and the run that the delivery goes to; nil when it starts nothing.
func (m *flowModel) deliver(at time.Time, automation, key, delivery, run string) (string, *flowRun) {
	rules := m.rules[automation]
	r := &flowRun{
		id: run, automation: automation, key: key, made: at, starts: at.Add(rules.wait), execution: 1, attempt: 1,
		deliveries: []string{delivery},
	}
	if key == "" { // without a key it waits for no others
		r.state = "ready"
		m.runs = append(m.runs, r)
		return "", r
	}

	var window, talk *flowRun
	for _, other := range m.runs {
		if other.place() != r.place() {
			continue
		}
		if other.state == "window" && other.starts.After(at) {
			window = other
		} else if other.state == "window" {
			m.release(other)
		}
		if rules.conversation && !other.cancelled && !other.cancel {
			talk = other
		}
	}

	switch {
	case talk != nil && talk != window:
		m.follow(talk)
		return "follow-up", talk
	case window != nil:
		window.starts = window.made.Add(rules.most)
		if at.Add(rules.wait).Before(window.starts) {
			window.starts = at.Add(rules.wait)
		}
		window.deliveries = append(window.deliveries, delivery)
		return "debounced", window
	case rules.wait > 0:
		r.state = "window"
	case !m.enter(r, rules.busy):
		return "skipped: concurrency", nil
	}

	m.runs = append(m.runs, r)
	if rules.wait > 0 {
		return "debounced", r
	}
	return "", r
}

// follow sends a message to a run.
func (m *flowModel) follow(r *flowRun) {
	switch r.state {
	case "ended":
		r.execution, r.attempt, r.tried, r.messages = r.execution+1, 1, 0, 0
		m.enter(r, schema.BusyQueue)
	case "held":
		r.messages++
	}
}

// enter lets a run go on, or wait, and reports whether it does either.
func (m *flowModel) enter(r *flowRun, busy schema.WhenBusy) bool {
	limit, at := m.rules[r.automation].limit, r.place()
	var others []*flowRun
	switch {
	case len(m.active[at]) < limit:
	case busy == schema.BusySkip:
		return false
	case busy == schema.BusyLatest:
		others = slices.Clone(m.queue[at])
	case busy == schema.BusyCancel:
		for _, other := range slices.Concat(m.active[at], m.queue[at]) {
			if !other.cancel {
				others = append(others, other)
			}
		}
		others = others[:max(0, len(others)+1-limit)]
	}
	slices.Reverse(others)
	for _, other := range others {
		m.cancel(other)
	}

	if len(m.active[at]) < limit {
		r.state, m.active[at] = "ready", append(m.active[at], r)
	} else {
		r.state, m.queue[at] = "waiting", append(m.queue[at], r)
	}
	return true
}

// release ends the wait of a run for a time.
func (m *flowModel) release(r *flowRun) {
	if r.state == "retry" {
		r.state = "ready"
	} else if !m.enter(r, m.rules[r.automation].busy) {
		r.cancelled = true
		m.end(r)
	}
}

func (m *flowModel) cancel(r *flowRun) {
	r.cancel = true
	if r.state != "held" {
		r.cancelled = true
		m.end(r)
	}
}

// finish ends an execution.
func (m *flowModel) finish(r *flowRun, failed bool) {
	switch {
	case r.cancel:
		r.cancelled = true
		m.end(r)
	case r.messages > 0:
		r.state, r.execution, r.attempt, r.tried, r.messages = "ready", r.execution+1, 1, 0, 0
	case failed && r.tried+1 < m.rules[r.automation].attempts:
		r.state, r.execution, r.attempt, r.tried = "retry", r.execution+1, 1, r.tried+1
	default:
		m.end(r)
	}
}

// lose takes a run away from its worker.
func (m *flowModel) lose(r *flowRun) {
	if r.cancel || r.attempt == 3 {
		m.finish(r, true)
		return
	}
	r.state, r.attempt, r.messages = "ready", r.attempt+1, 0
}

func (m *flowModel) end(r *flowRun) {
	at, rules := r.place(), m.rules[r.automation]
	without := func(list []*flowRun) []*flowRun {
		return slices.DeleteFunc(list, func(other *flowRun) bool { return other == r })
	}
	r.state, r.messages = "ended", 0
	m.active[at], m.queue[at] = without(m.active[at]), without(m.queue[at])
	for len(m.active[at]) < rules.limit && len(m.queue[at]) > 0 {
		next := m.queue[at][0]
		next.state, m.queue[at], m.active[at] = "ready", m.queue[at][1:], append(m.active[at], next)
	}
}
