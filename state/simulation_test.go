package state_test

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"millwright/state"
	"millwright/state/statetest"
)

var seed = flag.Uint64("seed", 1, "seed of the simulation of runs")

// next has the states that may follow each state (docs/contract.md, section 4). A run is made QUEUED.
var next = map[string]string{
	"QUEUED":     "CLAIMED CANCELLED",
	"CLAIMED":    "INPROGRESS QUEUED CANCELLED ERROR", // ERROR: lost by its worker three times
	"INPROGRESS": "SUCCEEDED FAILED ERROR BLOCKED CANCELLED QUEUED",
	"SUCCEEDED":  "QUEUED", "FAILED": "QUEUED", "ERROR": "QUEUED", "BLOCKED": "QUEUED", "CANCELLED": "QUEUED",
}

// TestSimulation lets workers, clients and crashes act on a few runs at random, and after each act checks
// that every run went through legal states only, that a claim holds exactly while it should, that no
// message is lost or doubled, and that an execution never has more than three attempts.
func TestSimulation(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		t.Logf("-seed %d", *seed)
		sim := &simulation{t: t, s: s, rand: rand.New(rand.NewPCG(*seed, 0)), runs: map[string]*simulated{}}
		for range 400 {
			sim.act()
			if t.Failed() {
				return
			}
		}
		for id := range sim.runs {
			sim.checkAll(id)
		}
	})
}

type simulation struct {
	t     *testing.T
	s     *state.Store
	rand  *rand.Rand
	runs  map[string]*simulated
	order []string
}

// simulated is what the simulation knows of a run: all claims there ever were, and the one that holds.
type simulated struct {
	claims   []state.Claim
	holds    int // index in claims; -1: none
	started  bool
	appended int
	said     []string // by the agent
	asked    []string // by the user, after the first prompt
	waiting  int      // how many of them wait for the end of the execution
	cancel   bool
	ended    bool
}

func (m *simulation) act() {
	ctx := m.t.Context()
	if len(m.order) < 4 && m.rand.IntN(4) == 0 || len(m.order) == 0 {
		id := create(m.t, m.s, newRun("prompt")).ID
		m.order = append(m.order, id)
		m.runs[id] = &simulated{holds: -1}
		return
	}
	id := m.order[m.rand.IntN(len(m.order))]
	r := m.runs[id]
	switch m.rand.IntN(9) {
	case 0, 1:
		c, _, err := m.s.ClaimRun(ctx, id, fmt.Sprint("w", m.rand.IntN(3)), "", lease)
		m.expect("claim", err, r.holds < 0 && !r.ended, state.ErrConflict)
		if err == nil {
			r.claims = append(r.claims, c)
			r.holds, r.started, r.appended = len(r.claims)-1, false, 0
		}
	case 2:
		r.withClaim(m, func(c state.Claim, holds bool) {
			_, err := m.s.StartRun(ctx, c, lease)
			m.expect("start", err, holds, state.ErrLost)
			if err == nil {
				r.started = true
			}
		})
	case 3, 4:
		r.withClaim(m, func(c state.Claim, holds bool) {
			text := fmt.Sprint("said ", m.rand.Uint32())
			from := r.appended
			messages := []state.Message{said(text)}
			if from > 0 && m.rand.IntN(3) == 0 { // the last answer was lost
				from--
				messages = append([]state.Message{said("repeated")}, messages...)
			}
			err := m.s.AppendEntries(ctx, c, from, messages)
			m.expect("append", err, holds && r.started, state.ErrLost)
			if err == nil {
				r.said = append(r.said, text)
				r.appended++
			}
		})
	case 5:
		r.withClaim(m, func(c state.Claim, holds bool) {
			ends := []state.RunState{state.RunSucceeded, state.RunFailed, state.RunError, state.RunBlocked}
			result := state.Result{State: ends[m.rand.IntN(len(ends))], From: r.appended}
			if r.cancel {
				result.State = state.RunCancelled
			}
			got, err := m.s.FinishRun(ctx, c, result)
			m.expect("finish", err, holds && r.started, state.ErrLost)
			if err == nil {
				r.left(got)
			}
		})
	case 6:
		_, outcome, err := m.s.Followup(ctx, id, fmt.Sprint("asked ", len(r.asked)), state.Idempotency{})
		m.expect("follow-up", err, !r.cancel || r.holds < 0, state.ErrFull)
		if err != nil {
			break
		}
		want := state.FollowupQueued
		if r.holds >= 0 {
			want = state.FollowupPending
			r.waiting++
		} else if r.ended {
			want = state.FollowupHandoff
			r.ended, r.cancel = false, false
		}
		if outcome != want {
			m.t.Errorf("follow-up: %s, want %s", outcome, want)
		}
		r.asked = append(r.asked, fmt.Sprint("asked ", len(r.asked)))
	case 7:
		_, err := m.s.RequestCancel(ctx, id, "tester")
		m.expect("cancel", err, !r.ended, state.ErrConflict)
		if err == nil {
			r.cancel = true
			r.ended = r.holds < 0
			r.asked, r.waiting = r.asked[:len(r.asked)-r.waiting], 0
		}
	case 8:
		if m.rand.IntN(2) == 0 {
			r.withClaim(m, func(c state.Claim, holds bool) {
				err := m.s.ReleaseRun(ctx, c)
				m.expect("release", err, holds, state.ErrLost)
				if err == nil {
					r.left(run(m.t, m.s, id).State)
				}
			})
			return
		}
		reaped, err := m.s.ReapRuns(ctx, past(), 100) // every worker dies
		if err != nil {
			m.t.Fatal(err)
		}
		held := 0
		for _, other := range m.runs {
			if other.holds >= 0 {
				held++
			}
		}
		if len(reaped) != held {
			m.t.Errorf("%d runs were reaped, and %d were held", len(reaped), held)
		}
		for _, r := range reaped {
			m.runs[r.ID].left(r.State)
		}
	}
	m.check(id)
}

// left notes that no claim holds any more and the run is now in state st.
func (r *simulated) left(st state.RunState) {
	r.holds, r.waiting = -1, 0
	r.ended = st != state.RunQueued
}

// withClaim calls f with the claim that holds, or often with an old one.
func (r *simulated) withClaim(m *simulation, f func(c state.Claim, holds bool)) {
	if len(r.claims) == 0 {
		return
	}
	i := r.holds
	if i < 0 || m.rand.IntN(4) == 0 {
		i = m.rand.IntN(len(r.claims))
	}
	f(r.claims[i], i == r.holds)
}

func (m *simulation) expect(what string, err error, allowed bool, refusal error) {
	m.t.Helper()
	if allowed && err != nil || !allowed && !errors.Is(err, refusal) {
		m.t.Errorf("%s: %v; allowed: %t", what, err, allowed)
	}
}

// check compares a run with what the simulation knows of it.
func (m *simulation) check(id string) {
	m.t.Helper()
	got, r := run(m.t, m.s, id), m.runs[id]
	if got.Held() != (r.holds >= 0) || got.State.Ended() != r.ended {
		m.t.Errorf("run is %s; held %t, ended %t", got.State, r.holds >= 0, r.ended)
	}
	if got.Attempt > state.MaxAttempts {
		m.t.Errorf("attempt %d", got.Attempt)
	}
	if got.State == state.RunCancelled && !r.cancel {
		m.t.Error("cancelled, and nobody asked")
	}
}

// checkAll checks what a run went through, and what was said in it.
func (m *simulation) checkAll(id string) {
	at := "QUEUED"
	for _, to := range strings.Fields(changes(m.t, m.s, id)) {
		if !slices.Contains(strings.Fields(next[at]), to) {
			m.t.Errorf("run %s went from %s to %s", id, at, to)
		}
		at = to
	}
	r := run(m.t, m.s, id)
	if at != string(r.State) {
		m.t.Errorf("run %s is %s, and its last entry says %s", id, r.State, at)
	}
	steps, err := m.s.Steps(m.t.Context(), r, 0)
	if err != nil {
		m.t.Fatal(err)
	}
	var saidTexts, asked []string
	var all []state.Step // what attempts said that were given up comes before what the last one said
	for _, step := range steps {
		all = append(append(all, step.Steps...), step)
	}
	for _, text := range texts(all) {
		if strings.HasPrefix(text, "said") {
			saidTexts = append(saidTexts, text)
		}
		for part := range strings.SplitSeq(text, "\n\n") {
			if strings.HasPrefix(part, "asked") {
				asked = append(asked, part)
			}
		}
	}
	if !slices.Equal(saidTexts, m.runs[id].said) {
		m.t.Errorf("run %s: said %q, want %q", id, saidTexts, m.runs[id].said)
	}
	if r.Held() || r.CancelRequested != nil { // messages may wait for the end, or for the next follow-up
		if len(asked) > len(m.runs[id].asked) || !slices.Equal(asked, m.runs[id].asked[:len(asked)]) {
			m.t.Errorf("run %s: asked %q, want the beginning of %q", id, asked, m.runs[id].asked)
		}
	} else if !slices.Equal(asked, m.runs[id].asked) {
		m.t.Errorf("run %s: asked %q, want %q", id, asked, m.runs[id].asked)
	}
}
