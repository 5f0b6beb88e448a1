package simtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"millwright/schema"
	"millwright/state"
)

const (
	lease    = 30 * time.Second // of runs and outputs
	mostHeld = 4                // runs of a factory at once
	perDay   = 16               // runs that begin
)

// automations are what each delivery starts.
func automations() []string { return []string{"auto 1", "auto 2"} }

// world is a state with all that acts on it.
type world struct {
	t      *testing.T
	ctx    context.Context
	s      *state.Store
	rand   *rand.Rand
	mutant string
	steps  []string
	broken error
	ending bool // no more faults

	factory    string
	servers    []*server
	senders    []*sender
	copies     []*sender // of requests that arrive twice
	workers    []*worker
	performers []*performer
	admin      *admin

	events   int
	accepted map[string]string // event: delivery
	made     map[string]int    // at the forge, by output
	numbers  map[string]int    // of runs, in the order in which they were seen
	begun    map[string]bool   // runs
	begunOn  map[string]int    // how many runs, by day
	perDay   int
}

func newWorld(t *testing.T, s *state.Store, random *rand.Rand, mutant string) *world {
	w := &world{
		t: t, ctx: t.Context(), s: s, rand: random, mutant: mutant,
		accepted: map[string]string{}, made: map[string]int{}, numbers: map[string]int{},
		begun: map[string]bool{}, begunOn: map[string]int{},
	}
	time.Sleep(24*time.Hour - 2*time.Minute) // midnight comes while they act
	w.setBudget(perDay)
	f, err := s.EnsureFactory(w.ctx, "acme", state.Source{Kind: "managed"}, false)
	w.must(err)
	w.factory = f.UID
	w.admin = &admin{world: w, tokens: []string{"t0"}, enabled: true}
	_, err = s.SetSecret(w.ctx, "KEY", []byte("t0"))
	w.must(err)
	w.must(w.admin.apply(w.ctx, true))

	for i := range 3 {
		srv := &server{world: w, name: fmt.Sprint("server ", i)}
		srv.start()
		srv.settle()
		w.servers = append(w.servers, srv)
		w.senders = append(w.senders, &sender{world: w, name: fmt.Sprint("sender ", i)})
	}
	for i := range 5 {
		w.workers = append(w.workers, &worker{world: w, name: fmt.Sprint("worker ", i)})
	}
	for i := range 2 {
		w.performers = append(w.performers, &performer{world: w, name: fmt.Sprint("performer ", i)})
	}
	return w
}

// setBudget sets how many runs may begin on a day.
func (w *world) setBudget(runs int) {
	w.perDay = runs
	if w.mutant != "budget forgotten" {
		w.must(w.s.SetBudget(w.ctx, schema.Budget{RunsPerDay: int64(runs)}))
	}
}

// number numbers runs alike in each simulation of a seed.
func (w *world) number(run string) int {
	if w.numbers[run] == 0 {
		w.numbers[run] = len(w.numbers) + 1
	}
	return w.numbers[run]
}

func (w *world) short(run string) string { return fmt.Sprint("run ", w.number(run)) }

// admin commits changes of the webhook, one at a time.
type admin struct {
	*world
	tokens  []string // that senders know, the newest last
	enabled bool

	done   chan error
	cancel context.CancelFunc
	// The generation of the last change that returned: nothing older may answer.
	returned int64
	token    string // that the change under way brings
}

func (a *admin) act() {
	if a.done != nil {
		if a.rand.IntN(6) == 0 && !a.ending {
			a.note("the caller of the change gives up")
			a.cancel()
		}
		return
	}

	a.token = ""
	enabled := a.enabled
	if a.rand.IntN(2) == 0 {
		a.token = fmt.Sprint("t", len(a.steps))
		_, err := a.s.SetSecret(a.ctx, "KEY", []byte(a.token))
		a.must(err)
	} else {
		enabled = !enabled
	}
	a.begin(enabled)
}

// begin begins a change, which goes on until all servers serve it.
func (a *admin) begin(enabled bool) {
	a.note("change: enabled %t, token %q", enabled, a.token)
	a.enabled = enabled
	ctx, cancel := context.WithCancel(a.ctx)
	done := make(chan error, 1)
	a.done, a.cancel = done, cancel
	go func() { done <- a.apply(ctx, enabled) }()
	a.look()
}

// apply changes the webhook.
func (a *admin) apply(ctx context.Context, enabled bool) error {
	cur, err := a.s.Current(ctx, a.factory)
	if err != nil {
		return err
	}
	uid := state.WebhookUID(cur.Key, "hook", 0)
	return a.s.Apply(ctx, state.ChangeSet{
		FactoryUID: a.factory, Base: cur.Factory.Generation, BaseRevision: cur.Factory.Applied.ID,
		Started: time.Now(), Revision: state.Revision{ID: state.NewID("rev")},
		Webhooks: []state.WebhookChange{{
			UID: uid, SecretVersion: cur.Secrets["KEY"].Version,
			Spec: schema.Webhook{
				Name: "hook", Path: "webhooks/hook.yaml", AuthMode: schema.AuthToken, SecretName: "KEY", Enabled: enabled,
			},
		}},
	})
}

// look notes that the change returned.
func (a *admin) look() {
	synctest.Wait()
	if a.done == nil {
		return
	}
	select {
	case err := <-a.done:
		a.cancel()
		a.done = nil
		if a.token != "" {
			a.tokens = append(a.tokens, a.token)
		}
		if err != nil {
			a.note("the change ended: %v", err)
			return
		}
		a.note("the change returned")
		a.returned, err = a.s.RoutingGeneration(a.ctx)
		a.must(err)
	default:
	}
}

// settle enables the webhook for good.
func (a *admin) settle() {
	if a.done == nil && !a.enabled {
		a.token = ""
		a.begin(true)
	}
}

// stop ends a change that is under way.
func (a *admin) stop() {
	if a.done != nil {
		a.cancel()
		<-a.done
		a.done = nil
	}
}

// server answers deliveries by a snapshot of the routing facts.
type server struct {
	*world
	name    string
	up      bool
	facts   state.Routing
	replica *state.Replica
	joined  bool
}

func (s *server) act() {
	switch {
	case !s.up:
		s.start()
	case !s.joined:
		s.join()
	case s.rand.IntN(10) == 0:
		s.crash()
	default:
		s.reload()
		if s.rand.IntN(4) == 0 { // the notice came twice
			s.reload()
		}
	}
}

// start reads the facts. The server answers once it has joined.
func (s *server) start() {
	s.note("%s starts", s.name)
	facts, err := s.s.Routing(s.ctx)
	s.must(err)
	s.facts, s.up, s.joined = facts, true, false
}

func (s *server) join() {
	s.note("%s joins", s.name)
	replica, err := s.s.Join(s.ctx, s.facts.Generation)
	s.must(err)
	s.replica, s.joined = replica, true
	if s.mutant != "start without second look" {
		facts, err := s.s.Routing(s.ctx)
		s.must(err)
		s.facts = facts
		s.must(s.replica.Loaded(s.ctx, facts.Generation))
	}
}

func (s *server) crash() {
	s.note("%s crashes", s.name)
	s.must(s.replica.Leave(s.ctx))
	s.up = s.mutant == "answers without its lease"
	for _, sender := range slices.Concat(s.world.senders, s.world.copies) {
		if sender.at == s {
			sender.at = nil
		}
	}
}

// reload is what a server does on a notice, and at times without one.
func (s *server) reload() {
	s.note("%s loads", s.name)
	if s.mutant == "announcement as truth" {
		generation, err := s.s.RoutingGeneration(s.ctx)
		s.must(err)
		s.must(s.replica.Loaded(s.ctx, generation))
		if s.rand.IntN(2) == 0 {
			return
		}
	}
	var facts state.Routing
	err := s.call(func() (err error) {
		facts, err = s.s.Routing(s.ctx)
		return err
	})
	if s.must(err); err == nil {
		s.facts = facts
		s.must(s.replica.Loaded(s.ctx, facts.Generation))
	}
}

// settle brings the server up to date.
func (s *server) settle() {
	if !s.up {
		s.start()
	}
	if !s.joined {
		s.join()
	}
	s.reload()
}

// sender sends one event after the other, each until it is accepted.
type sender struct {
	*world
	name  string
	event string

	at     *server // that has judged the event; nil: it is to be sent
	a      state.Acceptance
	token  string
	tries  int
	oldest int64 // what was in force when the event was sent
	again  bool  // it is judged once more, since what was in force has changed
}

func (s *sender) act() {
	if s.at != nil {
		s.store()
		return
	}
	if len(s.copies) > 0 && s.rand.IntN(2) == 0 {
		s.storeCopy()
		return
	}

	srv := s.world.servers[s.rand.IntN(len(s.world.servers))]
	if !srv.up || !srv.joined {
		return
	}
	if s.event == "" {
		if s.ending {
			return
		}
		s.events++
		s.event = fmt.Sprint("event ", s.events)
	}
	s.token = s.admin.tokens[len(s.admin.tokens)-1]
	if s.rand.IntN(5) == 0 && !s.ending {
		s.token = s.admin.tokens[s.rand.IntN(len(s.admin.tokens))]
	}
	s.oldest, s.again = s.admin.returned, false
	s.judge(srv)
	if s.rand.IntN(4) == 0 && !s.ending {
		s.arriveTwice()
	}
}

// arriveTwice lets the request arrive at a second server, too. Nobody waits for the answer.
func (s *sender) arriveTwice() {
	srv := s.world.servers[s.rand.IntN(len(s.world.servers))]
	if !srv.up || !srv.joined {
		return
	}
	s.note("%s arrives at %s, too", s.event, srv.name)
	second := &sender{world: s.world, name: s.name, event: s.event, token: s.token, tries: 100 + s.tries, oldest: s.oldest}
	second.judge(srv)
	s.copies = append(s.copies, second)
}

// storeCopy has a server store the oldest request that arrived twice, unless the server crashed.
func (s *sender) storeCopy() {
	second := s.copies[0]
	if second.at != nil {
		second.store()
	}
	if second.at == nil {
		s.copies = slices.Delete(s.copies, 0, 1)
	}
}

// judge has a server judge the event by what it knows.
func (s *sender) judge(srv *server) {
	f := srv.facts.Factories[0]
	hook := f.Webhooks[0]
	if !hook.Spec.Enabled || string(hook.Secret) != s.token {
		s.note("%s refuses %s", srv.name, s.event)
		if srv.facts.Generation < s.oldest {
			s.breaks("%s refuses %s by what was in force before a change that returned", srv.name, s.event)
		}
		return
	}

	id := s.event
	if s.mutant == "identity made anew" {
		s.tries++
		id = fmt.Sprint(s.event, " try ", s.tries)
	}
	s.at = srv
	s.a = state.Acceptance{
		UID: state.NewID(state.PrefixDelivery), FactoryUID: f.UID, Generation: f.Generation,
		WebhookID: hook.ID, WebhookUID: hook.UID, Identity: state.IdentityOf(state.IdentityServiceHeader, id),
		Sender: "192.0.2.1", Body: []byte(`{}`), Received: time.Now(),
	}
	for i, automation := range automations() {
		if i > 0 && s.again && s.mutant == "automation forgotten" {
			break
		}
		run := state.NewRunID()
		s.a.Runs = append(s.a.Runs, state.NewRun{
			ID: run, RootRunID: run, ConversationID: run, FactoryUID: f.UID, Title: "t", Prompt: "p", Envelope: "e",
			Source: "CUSTOM_WEBHOOK", Creator: state.Creator{Type: "service_account", UID: automation, DisplayName: "a"},
			AutomationUID: automation, WebhookUID: hook.UID, DeliveryUID: s.a.UID, Config: json.RawMessage(`{}`),
			At: s.a.Received,
		})
	}
}

// store has the server store what it judged, and answer.
func (s *sender) store() {
	srv := s.at
	s.at = nil
	if s.mutant == "fence removed" {
		generation, err := s.s.RoutingGeneration(s.ctx)
		s.must(err)
		s.a.Generation = generation
	}

	s.note("%s stores %s", srv.name, s.event)
	var done state.Accepted
	err := s.call(func() (err error) {
		done, err = s.s.Accept(s.ctx, s.a)
		return err
	})
	switch {
	case errors.Is(err, state.ErrMoved):
		srv.reload()
		s.again = true
		s.judge(srv)
		return
	case errors.Is(err, errLost) && s.mutant == "answer before commit":
		done = state.Accepted{DeliveryUID: s.a.UID}
	case errors.Is(err, errLost):
		return // and sends the event again
	}
	if !errors.Is(err, errLost) {
		s.must(err)
	}
	s.answered(srv, done)
}

// answered checks a 202.
func (s *sender) answered(srv *server, done state.Accepted) {
	s.note("%s accepts %s, duplicate %t", srv.name, s.event, done.Duplicate)
	runs, err := s.s.RunsOfDeliveries(s.ctx, done.DeliveryUID)
	s.must(err)
	if n := len(runs[done.DeliveryUID]); n != len(automations()) {
		s.breaks("%s was answered 202 and is stored with %d runs", s.event, n)
	}
	if before := s.accepted[s.event]; before != "" && before != done.DeliveryUID {
		s.breaks("%s was accepted twice, as two deliveries", s.event)
	}

	now, err := s.s.Routing(s.ctx)
	s.must(err)
	hook := now.Factories[0].Webhooks[0]
	if !hook.Spec.Enabled || string(hook.Secret) != s.token {
		s.breaks("%s accepts %s, which is not in force: enabled %t", srv.name, s.event, hook.Spec.Enabled)
	}
	s.accepted[s.event] = done.DeliveryUID
	if s.rand.IntN(4) > 0 { // else the answer is lost on the way, and the event is sent again
		s.event = ""
	}
}

// quiet reports whether nothing is left to do.
func (w *world) quiet() bool { return w.left() == "" }

// left describes what is left to do.
func (w *world) left() string {
	var all []string
	for _, s := range w.senders {
		if s.event != "" {
			all = append(all, s.event)
		}
	}
	for _, s := range w.copies {
		all = append(all, s.event+" again")
	}
	runs, err := w.runs()
	w.must(err)
	for _, r := range runs {
		if !r.State.Ended() {
			all = append(all, w.short(r.ID)+" is "+string(r.State))
		}
	}
	counts, err := w.s.Outputs().Counts(w.ctx)
	w.must(err)
	if n := counts["pending"] + counts["doing"]; n > 0 {
		all = append(all, fmt.Sprint(n, " outputs"))
	}
	if w.admin.done != nil {
		all = append(all, "a change")
	}
	slices.Sort(all)
	return fmt.Sprint(all)[1 : len(fmt.Sprint(all))-1]
}
