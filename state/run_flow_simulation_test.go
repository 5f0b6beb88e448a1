package state_test

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"millwright/schema"
	"millwright/state"
	"millwright/state/statetest"
)

var rounds = flag.Int("rounds", 60, "rounds of the simulation of flow")

// flowWorld has senders, workers and servers act on the state at once, at random.
type flowWorld struct {
	t       *testing.T
	dsn     string
	name    string // of the servers' connections
	servers []*state.Store
	hooks   *hooks
	factory state.RoutedFactory
	hook    state.RoutedWebhook
	rand    *rand.Rand
	now     time.Time // of deliveries, in the past: every window is over for ReleaseDue
	number  int       // of the last sender or worker

	places map[string][]*flowPlace  // the states that each may be in
	at     map[string]string        // the places of runs
	claims map[string]state.Claimed // of workers that go on, by run

	mu       sync.Mutex
	changes  map[string][]flowChange // of the round, by place
	unheard  map[string]bool         // workers that may have claimed runs and got no answer
	released map[string]bool         // runs that waited for a time, in a round that released them; else nil
	crashed  int                     // the server that ends in this round; -1: none
}

// TestFlowModel holds limits, order, windows and exactly-once against the model: on PostgreSQL with three
// servers, of which some end without notice, on SQLite with one.
func TestFlowModel(t *testing.T) {
	statetest.EachDSN(t, func(t *testing.T, dsn string) {
		t.Logf("-seed %d -rounds %d", *seed, *rounds)
		m := newFlowWorld(t, dsn)
		for i := range *rounds {
			m.round()
			if m.check(); t.Failed() {
				t.Fatalf("round %d of seed %d", i, *seed)
			}
		}
	})
}

func newFlowWorld(t *testing.T, dsn string) *flowWorld {
	m := &flowWorld{
		t: t, dsn: dsn, name: fmt.Sprint("flow ", time.Now().UnixNano()), rand: rand.New(rand.NewPCG(*seed, 0)),
		now:    time.Now().Add(-10 * time.Hour).Truncate(time.Microsecond),
		places: map[string][]*flowPlace{}, at: map[string]string{}, claims: map[string]state.Claimed{},
	}

	servers := 1
	if strings.Contains(dsn, "://") {
		servers = 3
	}
	for i := range servers {
		m.servers = append(m.servers, m.open(i))
	}
	t.Cleanup(func() {
		for _, s := range m.servers {
			s.Close()
		}
	})

	m.hooks = newHooks(t, m.servers[0], "h")
	m.factory, m.hook = m.hooks.routed("h")
	return m
}

// rulesOfFlow are those of the automations.
var rulesOfFlow = map[string]flowRules{
	"queue":    {limit: 2, busy: schema.BusyQueue},
	"skip":     {limit: 1, busy: schema.BusySkip, attempts: 3},
	"cancel":   {limit: 2, busy: schema.BusyCancel},
	"latest":   {limit: 1, busy: schema.BusyLatest},
	"debounce": {limit: 1, busy: schema.BusyQueue, wait: 10 * time.Second, most: 25 * time.Second},
	"burst":    {limit: 1, busy: schema.BusySkip, wait: 5 * time.Second, most: time.Minute},
	"talk":     {limit: 1, busy: schema.BusyQueue, conversation: true, attempts: 2},
	"all":      {limit: 2, busy: schema.BusyCancel, conversation: true, wait: 10 * time.Second, most: time.Minute},
}

// open opens the state as a server whose connections have a name of its own.
func (m *flowWorld) open(i int) *state.Store {
	m.t.Helper()
	dsn := m.dsn
	if u, err := url.Parse(dsn); err == nil && u.Scheme != "" {
		q := u.Query()
		q.Set("application_name", fmt.Sprint(m.name, " ", i))
		u.RawQuery = q.Encode()
		dsn = u.String()
	}

	s, err := state.Open(context.Background(), state.Config{DSN: dsn, MasterKey: statetest.MasterKey()})
	if err != nil {
		m.t.Fatal(err)
	}
	return s
}

// crash ends a server in the midst of what it does: the database loses its connections, and it writes no
// more.
func (m *flowWorld) crash(i int) {
	if strings.Contains(m.dsn, "://") {
		admin, err := sql.Open("pgx", m.dsn)
		if err != nil {
			m.t.Error(err)
			return
		}
		defer admin.Close()
		query := `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = $1`
		if _, err := admin.Exec(query, fmt.Sprint(m.name, " ", i)); err != nil {
			m.t.Error(err)
		}
	}
	m.servers[i].Close()
}

// act does something on a server. Where the server crashed, it is done again after the round.
type act func(s *state.Store) error

// round lets some act at once.
func (m *flowWorld) round() {
	m.changes, m.unheard, m.released, m.crashed = map[string][]flowChange{}, map[string]bool{}, nil, -1
	m.now = m.now.Add(time.Duration(m.rand.IntN(4)) * time.Second)
	if m.rand.IntN(6) == 0 {
		m.crashed = m.rand.IntN(len(m.servers))
	}

	var acts []act
	automation := slices.Sorted(maps.Keys(rulesOfFlow))[m.rand.IntN(len(rulesOfFlow))]
	for range m.rand.IntN(4) {
		acts = append(acts, m.sender(automation))
		if m.rand.IntN(3) == 0 {
			automation = slices.Sorted(maps.Keys(rulesOfFlow))[m.rand.IntN(len(rulesOfFlow))]
		}
	}
	for range m.rand.IntN(3) {
		acts = append(acts, m.claimer())
	}
	acts = append(acts, m.finishers()...)
	if m.rand.IntN(3) == 0 && len(m.at) > 0 {
		acts = append(acts, m.canceller())
	}
	switch others := m.rand.IntN(6); {
	case others == 0:
		acts = append(acts, m.releaser())
	case others == 1 && m.crashed < 0:
		acts = append(acts, m.reaper())
	}

	m.perform(acts)
}

// perform does all at once, on servers of which one may crash, and again what that left undone.
func (m *flowWorld) perform(acts []act) {
	var under sync.WaitGroup
	undone := make([]bool, len(acts))
	for i, do := range acts {
		server := m.rand.IntN(len(m.servers))
		s := m.servers[server]
		under.Go(func() {
			if err := do(s); err != nil && server == m.crashed {
				undone[i] = true
			} else if err != nil {
				m.t.Error(err)
			}
		})
	}
	if m.crashed >= 0 {
		under.Go(func() { m.crash(m.crashed) })
	}
	under.Wait()

	if m.crashed >= 0 {
		m.servers[m.crashed] = m.open(m.crashed)
	}
	for i, do := range acts {
		if undone[i] {
			if err := do(m.servers[m.rand.IntN(len(m.servers))]); err != nil {
				m.t.Error(err)
			}
		}
	}
}

// changed notes a change at a place.
func (m *flowWorld) changed(place string, c flowChange) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.changes[place] = append(m.changes[place], c)
}

// sender sends a delivery, often more than once: as long as it gets no answer, and at times without a reason.
func (m *flowWorld) sender(automation string) act {
	m.number++
	event := fmt.Sprint("event ", m.number)
	at := m.now.Add(time.Duration(m.rand.IntN(3000)) * time.Millisecond)
	key := []string{"a", "a", "a", "b", ""}[m.rand.IntN(5)]
	place, rules := automation+" "+key, rulesOfFlow[automation]
	if key == "" { // the run waits for no others
		place, rules = event, flowRules{limit: 1, attempts: rules.attempts}
	}
	if m.places[place] == nil {
		m.places[place] = []*flowPlace{{flowRules: rules}}
	}

	try := func() state.Acceptance {
		a := m.hooks.acceptanceAt(m.factory, m.hook, event, 1)
		a.Runs[0].AutomationUID, a.Runs[0].At, a.Runs[0].Flow = automation, at, flowOf(rules, key)
		m.at[a.Runs[0].ID] = place
		return a
	}

	var tries []state.Acceptance
	next := []state.Acceptance{try()}
	if m.rand.IntN(2) == 0 {
		next = append(next, try())
	}
	return func(s *state.Store) error {
		if next == nil {
			next = []state.Acceptance{try()}
		}
		sent := next
		tries, next = append(tries, sent...), nil

		answers, failures := make([]state.Accepted, len(sent)), make([]error, len(sent))
		var under sync.WaitGroup
		for i, a := range sent {
			under.Go(func() { answers[i], failures[i] = s.Accept(m.t.Context(), a) })
		}
		under.Wait()
		if err := errors.Join(failures...); err != nil {
			return err
		}

		first := slices.IndexFunc(tries, func(a state.Acceptance) bool { return a.UID == answers[0].DeliveryUID })
		if last := answers[len(answers)-1]; first < 0 || last.DeliveryUID != tries[first].UID {
			return fmt.Errorf("%s is accepted twice: %+v", event, answers)
		}

		a := tries[first]
		d, err := s.Delivery(m.t.Context(), a.FactoryUID, a.WebhookUID, a.UID)
		if err != nil {
			return err
		}
		c := flowChange{kind: "deliver", at: at, delivery: a.UID, run: a.Runs[0].ID, says: "started " + a.Runs[0].ID}
		if len(d.Flow) > 0 {
			c.says = d.Flow[0].Decision + " " + d.Flow[0].RunID
		}
		m.changed(place, c)
		return nil
	}
}

func flowOf(rules flowRules, key string) *state.Flow {
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

// claimer is a worker that claims runs. What it claims on a server that crashes, it does not hear of.
func (m *flowWorld) claimer() act {
	m.number++
	worker := fmt.Sprint("w", m.number)
	asks := slices.Repeat([]state.Ask{{Worker: worker, WorkerName: worker}}, 1+m.rand.IntN(3))
	unheard := false
	return func(s *state.Store) error {
		if unheard {
			return nil
		}

		all, err := s.ClaimRuns(m.t.Context(), "", asks, lease, state.ClaimBounds{})
		for _, c := range all {
			m.changed(m.at[c.Run.ID], flowChange{kind: "claim", run: c.Run.ID, worker: worker, says: "done"})
			if _, err := s.StartRun(m.t.Context(), c.Claim, lease); err == nil {
				m.mu.Lock()
				m.claims[c.Run.ID] = c
				m.mu.Unlock()
			}
		}
		if err != nil {
			m.mu.Lock()
			unheard, m.unheard[worker] = true, true
			m.mu.Unlock()
		}
		return err
	}
}

// finishers are workers that end what they execute.
func (m *flowWorld) finishers() (acts []act) {
	for _, id := range slices.Sorted(maps.Keys(m.claims)) {
		if m.rand.IntN(3) > 0 {
			continue
		}

		claimed := m.claims[id]
		result := []state.RunState{"SUCCEEDED", "SUCCEEDED", "ERROR", "CANCELLED"}[m.rand.IntN(4)]
		acts = append(acts, func(s *state.Store) error {
			_, err := s.FinishRun(m.t.Context(), claimed.Claim, state.Result{State: result})
			c := flowChange{kind: "finish", run: id, worker: claimed.Run.Worker, result: string(result), says: "done"}
			if errors.Is(err, state.ErrLost) && m.crashed < 0 {
				c.says = "refused"
			} else if err != nil && !errors.Is(err, state.ErrLost) { // else it was done before the crash
				return err
			}
			m.changed(m.at[id], c)
			return nil
		})
	}
	return acts
}

func (m *flowWorld) canceller() act {
	id := slices.Sorted(maps.Keys(m.at))[m.rand.IntN(len(m.at))]
	return func(s *state.Store) error {
		_, err := s.RequestCancel(m.t.Context(), id, "tester")
		c := flowChange{kind: "cancel", run: id, says: "done"}
		switch {
		case errors.Is(err, state.ErrNotFound):
			return nil
		case errors.Is(err, state.ErrConflict) && m.crashed < 0:
			c.says = "refused"
		case errors.Is(err, state.ErrConflict): // maybe by this one, before the crash
			c.says = ""
		case err != nil:
			return err
		}
		m.changed(m.at[id], c)
		return nil
	}
}

// releaser ends waits for a time.
func (m *flowWorld) releaser() act {
	waiting := map[string]bool{}
	for _, states := range m.places {
		for _, r := range states[0].runs {
			waiting[r.id] = r.state == "window" || r.state == "retry"
		}
	}

	m.released = waiting
	return func(s *state.Store) error {
		_, err := s.ReleaseDue(m.t.Context())
		return err
	}
}

// reaper takes all runs away from their workers.
func (m *flowWorld) reaper() act {
	return func(s *state.Store) error {
		reaped, err := s.ReapRuns(m.t.Context(), past(), 1000)
		for _, r := range reaped {
			c := flowChange{kind: "lose", run: r.ID, says: "done"}
			if r.State.Ended() {
				c.result = string(r.State)
			}
			m.changed(m.at[r.ID], c)
		}
		return err
	}
}

// check finds the orders of the round's changes that explain how the runs look.
func (m *flowWorld) check() {
	m.t.Helper()
	seen := m.look()
	m.addReleases()
	for place, states := range m.places {
		o := &orders{changes: m.changes[place], tried: map[string]bool{}, fits: func(p *flowPlace) bool {
			return maps.Equal(p.look(), seen[place])
		}}
		left := make([]int, len(o.changes))
		for i := range left {
			left[i] = i
		}
		for _, p := range states {
			o.from(p, left)
		}

		if len(o.found) == 0 {
			m.t.Errorf("nothing explains the runs of %s\nbefore: %v\nchanges: %+v\nnow: %v",
				place, states[0].look(), o.changes, seen[place])
		}
		m.places[place] = o.found
		delete(seen, place)
	}

	if len(seen) > 0 {
		m.t.Errorf("runs that no delivery explains: %v", seen)
	}
}

// addReleases adds that runs stopped waiting for a time: those that waited, and maybe some that began to.
func (m *flowWorld) addReleases() {
	if m.released == nil {
		return
	}

	touched := map[string]bool{}
	for _, changes := range m.changes {
		for _, c := range changes {
			touched[c.run] = true
		}
	}
	for id, place := range m.at {
		if m.released[id] || touched[id] {
			m.changed(place, flowChange{kind: "release", run: id, unsure: !m.released[id]})
		}
	}
}

// look returns what is seen of all runs, by place and ID. It notes which claims hold.
func (m *flowWorld) look() map[string]map[string]string {
	m.t.Helper()
	s := m.servers[m.rand.IntN(len(m.servers))]
	var all []state.Run
	var next *state.RunPosition
	for more := true; more; more = next != nil {
		var page []state.Run
		var err error
		if page, next, err = s.Runs(m.t.Context(), state.RunFilter{}, state.RunOrder{}, next, 500); err != nil {
			m.t.Fatal(err)
		}
		all = append(all, page...)
	}

	seen := map[string]map[string]string{}
	for _, r := range all {
		place, is, starts := m.at[r.ID], "held", time.Time{}
		switch {
		case r.State.Ended():
			is = string(r.State)
		case r.State == state.RunQueued && r.WaitsFor == "debounce":
			is, starts = "window", r.Queued
		case r.State == state.RunQueued:
			is = map[string]string{"": "ready", "concurrency": "waiting", "retry": "retry"}[r.WaitsFor]
		}

		if seen[place] == nil {
			seen[place] = map[string]string{}
		}
		seen[place][r.ID] = lookOf(is, r.DeliveryUID, r.Execution, starts)

		if is == "held" && m.unheard[r.Worker] {
			m.changed(place, flowChange{kind: "claim", run: r.ID, worker: r.Worker, says: "done"})
		}
		if is != "held" || m.claims[r.ID].Run.Worker != r.Worker {
			delete(m.claims, r.ID)
		}
	}
	return seen
}
