package state_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"millwright/schema"
	"millwright/state"
	"millwright/state/statetest"
)

// flowWorld plays random deliveries, workers, cancels and crashes on the state and on the model.
type flowWorld struct {
	*flowModel
	t      *testing.T
	dsn    string
	stores []*state.Store
	rand   *rand.Rand
	now    time.Time // of deliveries, in the past: every window is over for ReleaseDue
	claims map[string]state.Claim
	sent   int
}

// TestFlowModel holds limits, order, windows and exactly-once against the model: on PostgreSQL with three servers
// that come and go, on SQLite with one.
func TestFlowModel(t *testing.T) {
	statetest.EachDSN(t, func(t *testing.T, dsn string) {
		for _, s := range []uint64{*seed, *seed + 1, *seed + 2} {
			t.Run(fmt.Sprint("seed ", s), func(t *testing.T) { playFlow(t, dsn, s) })
			if t.Failed() || strings.Contains(dsn, "://") { // a schema is not emptied in between
				return
			}
			dsn = statetest.SQLite(t)
		}
	})
}

func playFlow(t *testing.T, dsn string, seed uint64) {
	m := &flowWorld{
		flowModel: &flowModel{
			rules: map[string]flowRules{
				"queue":    {limit: 2, busy: schema.BusyQueue},
				"skip":     {limit: 1, busy: schema.BusySkip, attempts: 3},
				"cancel":   {limit: 2, busy: schema.BusyCancel},
				"latest":   {limit: 1, busy: schema.BusyLatest},
				"debounce": {limit: 1, busy: schema.BusyQueue, wait: 10 * time.Second, most: 25 * time.Second},
				"burst":    {limit: 1, busy: schema.BusySkip, wait: 5 * time.Second, most: time.Minute},
				"talk":     {limit: 1, busy: schema.BusyQueue, conversation: true, attempts: 2},
				"all":      {limit: 2, busy: schema.BusyCancel, conversation: true, wait: 10 * time.Second, most: time.Minute},
			},
			active: map[string][]*flowRun{}, queue: map[string][]*flowRun{},
		},
		t: t, dsn: dsn, rand: rand.New(rand.NewPCG(seed, 0)), claims: map[string]state.Claim{},
		now: time.Now().Add(-10 * time.Hour).Truncate(time.Microsecond),
	}
	servers := 1
	if strings.Contains(dsn, "://") {
		servers = 3
	}
	for range servers {
		m.stores = append(m.stores, m.open())
	}
	t.Cleanup(func() {
		for _, s := range m.stores {
			s.Close()
		}
	})

	steps := 600
	if testing.Short() {
		steps = 150
	}
	newHooks(t, m.stores[0], "h")
	for i := range steps {
		m.act()
		if m.check(); t.Failed() {
			t.Fatalf("step %d of seed %d", i, seed)
		}
	}
}

func (m *flowWorld) open() *state.Store {
	m.t.Helper()
	s, err := state.Open(context.Background(), state.Config{DSN: m.dsn, MasterKey: statetest.MasterKey()})
	if err != nil {
		m.t.Fatal(err)
	}
	return s
}

func (m *flowWorld) act() {
	i := m.rand.IntN(len(m.stores))
	s, ctx := m.stores[i], m.t.Context()
	m.now = m.now.Add(time.Duration(m.rand.IntN(4)) * time.Second)
	switch m.rand.IntN(12) {
	case 0, 1, 2, 3, 4:
		m.send(s)
	case 5, 6:
		all, err := s.ClaimRuns(ctx, "", ask(1+m.rand.IntN(3)), lease, state.ClaimBounds{})
		if err != nil {
			m.t.Fatal(err)
		}
		for _, c := range all {
			if r := m.run(c.Run.ID); r.state != "ready" {
				m.t.Errorf("run %s was claimed, and the model has it %s", r.id, r.state)
			} else {
				r.state = "held"
			}
			if _, err := s.StartRun(ctx, c.Claim, lease); err != nil {
				m.t.Error(err)
			}
			m.claims[c.Run.ID] = c.Claim
		}
	case 7, 8:
		m.finishOne(s)
	case 9:
		if len(m.runs) == 0 {
			return
		}
		r := m.runs[m.rand.IntN(len(m.runs))]
		if _, err := s.RequestCancel(ctx, r.id, "tester"); (err == nil) != (r.state != "ended") {
			m.t.Errorf("cancel of a run that is %s: %v", r.state, err)
		} else if err == nil {
			m.cancel(r)
		}
	case 10:
		due := slices.Clone(m.runs)
		slices.SortStableFunc(due, func(a, b *flowRun) int { return a.starts.Compare(b.starts) })
		if _, err := s.ReleaseDue(ctx); err != nil {
			m.t.Fatal(err)
		}
		for _, r := range due {
			if r.state == "window" || r.state == "retry" {
				m.release(r)
			}
		}
	case 11:
		if m.rand.IntN(2) == 0 { // a server ends, and another one comes
			s.Close()
			m.stores[i] = m.open()
			return
		}
		reaped, err := s.ReapRuns(ctx, past(), 1000) // every worker ends
		if err != nil {
			m.t.Fatal(err)
		}
		for _, r := range reaped {
			m.lose(m.run(r.ID))
			delete(m.claims, r.ID)
		}
		if len(m.claims) > 0 {
			m.t.Errorf("%d runs are still held", len(m.claims))
		}
	}
}

// send has a sender deliver something, which it repeats when it gets no answer.
func (m *flowWorld) send(s *state.Store) {
	automation := slices.Sorted(maps.Keys(m.rules))[m.rand.IntN(len(m.rules))]
	key := []string{"a", "b", "c", ""}[m.rand.IntN(4)]
	m.sent++
	h := &hooks{t: m.t, s: s}
	var tries []state.Acceptance
	for {
		a := h.acceptance("h", fmt.Sprint("event ", m.sent), 1)
		a.Runs[0].AutomationUID, a.Runs[0].At, a.Runs[0].Flow = automation, m.now, m.flow(automation, key)
		tries = append(tries, a)
		ctx, cancel := context.WithCancel(m.t.Context())
		if len(tries) < 3 && m.rand.IntN(4) == 0 {
			cancel() // the sender goes away: nobody knows what became of it
		}
		got, err := s.Accept(ctx, a)
		cancel()
		if errors.Is(err, state.ErrUnavailable) && len(tries) < 3 {
			continue
		}
		if err != nil {
			m.t.Fatal(err)
		}

		at := slices.IndexFunc(tries, func(a state.Acceptance) bool { return a.UID == got.DeliveryUID })
		if at < 0 || got.Duplicate != (at < len(tries)-1) {
			m.t.Fatalf("%+v after %d tries", got, len(tries))
		}
		decision, r := m.deliver(m.now, automation, key, tries[at].UID, tries[at].Runs[0].ID)
		m.checkDecision(s, h, tries[at], decision, r)
		return
	}
}

func (m *flowWorld) flow(automation, key string) *state.Flow {
	rules := m.rules[automation]
	f := &state.Flow{Message: "again"}
	if rules.attempts > 0 {
		f.Retry = &state.FlowRetry{Attempts: rules.attempts, On: []string{"ERROR"}}
	}
	if key == "" {
		return f
	}
	f.Concurrency = &state.FlowConcurrency{Key: key, Limit: rules.limit, WhenBusy: rules.busy}
	if rules.wait > 0 {
		f.Debounce = &state.FlowDebounce{Key: key, Wait: rules.wait, Max: rules.most}
	}
	if rules.conversation {
		f.Conversation = key
	}
	return f
}

// checkDecision compares what the log says of a delivery.
func (m *flowWorld) checkDecision(s *state.Store, h *hooks, a state.Acceptance, decision string, r *flowRun) {
	d, err := s.Delivery(m.t.Context(), a.FactoryUID, a.WebhookUID, a.UID)
	if err != nil {
		m.t.Fatal(err)
	}
	got, run := "", ""
	if len(d.Flow) > 0 {
		got, run = d.Flow[0].Decision, d.Flow[0].RunID
	}
	if got != decision {
		m.t.Errorf("delivery for %s: %q, want %q", a.Runs[0].AutomationUID, got, decision)
	}
	if decision != "" && r != nil && run != r.id {
		m.t.Errorf("%s: run %s, want %s", decision, run, r.id)
	}
}

func (m *flowWorld) finishOne(s *state.Store) {
	if len(m.claims) == 0 {
		return
	}
	id := slices.Sorted(maps.Keys(m.claims))[m.rand.IntN(len(m.claims))]
	r, failed := m.run(id), m.rand.IntN(3) == 0
	result := state.Result{State: state.RunSucceeded}
	switch {
	case r.cancel:
		result.State = state.RunCancelled
	case failed:
		result.State = state.RunError
	}
	if _, err := s.FinishRun(m.t.Context(), m.claims[id], result); err != nil {
		m.t.Fatal(err)
	}
	delete(m.claims, id)
	m.finish(r, failed)
}

func (m *flowWorld) run(id string) *flowRun {
	i := slices.IndexFunc(m.runs, func(r *flowRun) bool { return r.id == id })
	if i < 0 {
		m.t.Fatalf("the model has no run %s", id)
	}
	return m.runs[i]
}

// check compares all runs with the model, and that there are no others.
func (m *flowWorld) check() {
	m.t.Helper()
	s := m.stores[m.rand.IntN(len(m.stores))]
	all, next, err := s.Runs(m.t.Context(), state.RunFilter{}, state.RunOrder{}, nil, 500)
	for err == nil && next != nil {
		var more []state.Run
		more, next, err = s.Runs(m.t.Context(), state.RunFilter{}, state.RunOrder{}, next, 500)
		all = append(all, more...)
	}
	if err != nil {
		m.t.Fatal(err)
	}
	if len(all) != len(m.runs) {
		m.t.Errorf("%d runs, want %d", len(all), len(m.runs))
	}
	for _, got := range all {
		r := m.run(got.ID)
		is := map[bool]string{true: "ended", false: "held"}[got.State.Ended()]
		if got.State == state.RunQueued {
			is = map[string]string{"": "ready", "concurrency": "waiting", "debounce": "window", "retry": "retry"}[got.WaitsFor]
		}
		cancelled := got.State == state.RunCancelled
		if is != r.state || cancelled != r.cancelled && r.state == "ended" || got.Execution != r.execution {
			m.t.Errorf("run %s of %s %q: %s, execution %d, cancelled %t; want %s, %d, %t", r.id, r.automation, r.key,
				is, got.Execution, cancelled, r.state, r.execution, r.cancelled)
		}
		if r.state == "window" && !got.Queued.Equal(r.starts) || got.DeliveryUID != r.deliveries[len(r.deliveries)-1] {
			m.t.Errorf("run %s: starts %s for %s, want %s for %s", r.id, got.Queued, got.DeliveryUID, r.starts,
				r.deliveries[len(r.deliveries)-1])
		}
	}
}

// TestFlowAcrossServers has several servers accept deliveries of one key at once, and give their runs to workers: no
// more go on at once than the limit says, and each is executed once.
func TestFlowAcrossServers(t *testing.T) {
	statetest.EachDSN(t, func(t *testing.T, dsn string) {
		const limit, deliveries = 2, 40
		stores := []*state.Store{statetest.Open(t, dsn)}
		for len(stores) < 3 && strings.Contains(dsn, "://") {
			stores = append(stores, statetest.Open(t, dsn))
		}
		h := newHooks(t, stores[0], "h")
		f, w := h.routed("h")

		var accepting, working sync.WaitGroup
		for i := range deliveries {
			accepting.Go(func() {
				a := h.acceptanceAt(f, w, fmt.Sprint("event ", i), 1)
				a.Runs[0].Flow = &state.Flow{Concurrency: &state.FlowConcurrency{Key: "k", Limit: limit, WhenBusy: schema.BusyQueue}}
				if _, err := stores[i%len(stores)].Accept(t.Context(), a); err != nil {
					t.Error(err)
				}
			})
		}

		var held, done atomic.Int64
		for i := range 6 {
			working.Go(func() {
				s := stores[i%len(stores)]
				statetest.Until(t, "all runs have ended", func() bool {
					all, err := s.ClaimRuns(t.Context(), "", ask(2), lease, state.ClaimBounds{})
					if err != nil {
						t.Error(err)
					}
					for range all {
						if n := held.Add(1); n > limit {
							t.Errorf("%d runs go on at once", n)
						}
					}
					for _, c := range all {
						if _, err := s.StartRun(t.Context(), c.Claim, lease); err != nil {
							t.Error(err)
						}
						held.Add(-1) // before another one may begin
						if _, err := s.FinishRun(t.Context(), c.Claim, state.Result{State: state.RunSucceeded}); err != nil {
							t.Error(err)
						}
						done.Add(1)
					}
					return done.Load() == deliveries || t.Failed()
				})
			})
		}
		accepting.Wait()
		working.Wait()
		if n := done.Load(); n != deliveries {
			t.Errorf("%d runs of %d deliveries", n, deliveries)
		}
	})
}

// TestRunsPerAutomation claims with a bound for each automation: those that are full are passed over.
func TestRunsPerAutomation(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		h := newHooks(t, s, "h")
		for i, automation := range []string{"a", "a", "a", "b", "a", "b"} {
			a := h.acceptance("h", fmt.Sprint(i), 1)
			a.Runs[0].AutomationUID = automation
			if _, err := s.Accept(t.Context(), a); err != nil {
				t.Fatal(err)
			}
		}
		claim := func(n int) (automations []string, claims []state.Claim) {
			all, err := s.ClaimRuns(t.Context(), "", ask(n), lease, state.ClaimBounds{Automation: 2, Factory: 3})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range all {
				automations, claims = append(automations, c.Run.AutomationUID), append(claims, c.Claim)
			}
			return automations, claims
		}

		got, claims := claim(5)
		if want := []string{"a", "a", "b"}; !slices.Equal(got, want) {
			t.Fatalf("claimed runs of %v, want %v", got, want)
		}
		if _, err := s.StartRun(t.Context(), claims[0], lease); err != nil {
			t.Fatal(err)
		}
		if _, err := s.FinishRun(t.Context(), claims[0], state.Result{State: state.RunFailed}); err != nil {
			t.Fatal(err)
		}
		if got, _ := claim(5); !slices.Equal(got, []string{"a"}) {
			t.Errorf("claimed runs of %v, want one of a", got)
		}
	})
}

// TestFlowLimits fills an automation with runs that wait, and with conversations.
func TestFlowLimits(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		h := newHooks(t, s, "h")
		f, w := h.routed("h")
		send := func(i int, flow state.Flow) state.Accepted {
			a := h.acceptanceAt(f, w, fmt.Sprint("event ", i), 1)
			a.Runs[0].Flow = &flow
			got, err := s.Accept(t.Context(), a)
			if err != nil {
				t.Fatal(err)
			}
			return got
		}

		waits := state.Flow{Concurrency: &state.FlowConcurrency{Key: "k", Limit: 1, WhenBusy: schema.BusyQueue}}
		for i := range 1001 {
			if got := send(i, waits); len(got.Flow) > 0 {
				t.Fatalf("delivery %d: %+v", i, got.Flow)
			}
		}
		got := send(1001, waits)
		if len(got.Flow) != 1 || got.Flow[0].Decision != "skipped: queue full" || got.Flow[0].RunID != "" {
			t.Errorf("with 1,000 runs waiting: %+v", got.Flow)
		}
		if runs, err := s.WaitingRuns(t.Context(), "auto_0", 2000); err != nil || len(runs) != 1000 {
			t.Errorf("%d runs wait, %v", len(runs), err)
		}
		if all, err := s.FlowDecisions(t.Context(), "auto_0", "", 10); err != nil || len(all) != 1 {
			t.Errorf("skipped: %+v, %v", all, err)
		}
	})
}
