package state_test

import (
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"millwright/schema"
	"millwright/state"
	"millwright/state/statetest"
)

// flowsOfMishaps are the flows of definitions, by name.
var flowsOfMishaps = map[string]schema.Flow{
	"none":  {},
	"one":   {Concurrency: &schema.Concurrency{Key: []string{"k"}, Limit: 1, WhenBusy: schema.BusyQueue}},
	"three": {Concurrency: &schema.Concurrency{Key: []string{"k"}, Limit: 3, WhenBusy: schema.BusyQueue}},
	"new":   {Concurrency: &schema.Concurrency{Key: []string{"k"}, Limit: 1, WhenBusy: schema.BusyCancel}},
	"last":  {Concurrency: &schema.Concurrency{Key: []string{"k"}, Limit: 1, WhenBusy: schema.BusyLatest}},
	"two":   {Concurrency: &schema.Concurrency{Key: []string{"k"}, Limit: 2, WhenBusy: schema.BusyCancel}},
	"by j":  {Concurrency: &schema.Concurrency{Key: []string{"j"}, Limit: 1, WhenBusy: schema.BusyQueue}},
	"burst": {Debounce: &schema.Debounce{Key: []string{"k"}, Wait: "1m", Max: "10m"}},
	"talk":  {Conversation: &schema.Conversation{Key: []string{"k"}}},
	"all": {
		Concurrency:  &schema.Concurrency{Key: []string{"k"}, Limit: 1, WhenBusy: schema.BusyQueue},
		Debounce:     &schema.Debounce{Key: []string{"k"}, Wait: "1m", Max: "10m"},
		Conversation: &schema.Conversation{Key: []string{"k"}},
	},
}

// mishaps are what clocks, senders and authors of definitions do without meaning to. A delivery has its time,
// its payload, and what becomes of it; a run has the number of the delivery that made it.
var mishaps = map[string]string{
	"a clock set back by less than a minute": `flow burst
		deliver 0s {"k":1} = debounced 1
		deliver -30s {"k":1} = debounced 1
		deliver 10s {"k":1} = debounced 1
		release
		run 1 = ready`,
	"a clock set back by an hour": `flow burst
		deliver 0s {"k":1} = debounced 1
		deliver -1h {"k":1} = debounced 2
		run 1 = ready
		deliver -59m30s {"k":1} = debounced 2
		release
		run 2 = ready`,
	"values that are no keys": `flow all
		deliver 0s {} = started 1
		deliver 0s {} = started 2
		deliver 0s {"k":null} = started 3
		deliver 0s {"k":{"a":1}} = started 4
		deliver 0s {"k":{"a":1}} = started 5
		deliver 0s {"k":[1]} = started 6
		deliver 0s {"k":[1]} = started 7
		deliver 0s [{"k":1}] = started 8
		deliver 0s 7 = started 9
		run 9 = ready`,
	"keys of 200 KB": `flow one
		deliver 0s {"k":"LARGE"} = started 1
		deliver 0s {"k":"LARGE"} = waits 2
		deliver 0s {"k":"LARGE."} = started 3`,
	"10,000 keys": `flow one
		deliver 0s {"k":1} = started 1
		keys concurrency 9998 1
		deliver 0s {"k":2} = started 2
		deliver 0s {"k":3} = skipped: queue full
		finish 2
		deliver 0s {"k":3} = started 4`,
	"10,000 conversations that have ended": `flow talk
		keys conversation 10000 -
		deliver 0s {"k":1} = started 1
		deliver 0s {"k":1} = follow-up 1`,
	"10,000 conversations that go on": `flow talk
		deliver 0s {"k":1} = started 1
		keys conversation 9999 1
		deliver 0s {"k":2} = skipped: queue full
		deliver 0s {"k":1} = follow-up 1`,
	"a definition that allows more": `flow one
		deliver 0s {"k":1} = started 1
		deliver 0s {"k":1} = waits 2
		deliver 0s {"k":1} = waits 3
		flow three
		deliver 0s {"k":1} = waits 4
		run 2 = ready
		run 3 = ready`,
	"a definition that allows fewer": `flow three
		deliver 0s {"k":1} = started 1
		deliver 0s {"k":1} = started 2
		flow one
		deliver 0s {"k":1} = waits 3
		finish 1
		run 3 = waits
		finish 2
		run 3 = ready`,
	"a definition without concurrency": `flow one
		deliver 0s {"k":1} = started 1
		deliver 0s {"k":1} = waits 2
		flow none
		deliver 0s {"k":1} = started 3
		run 2 = waits
		finish 1
		run 2 = ready`,
	"a definition with another key": `flow one
		deliver 0s {"k":1} = started 1
		deliver 0s {"k":1} = waits 2
		flow by j
		deliver 0s {"k":1,"j":1} = started 3
		finish 1
		run 2 = ready`,
	"a definition that cancels": `flow one
		deliver 0s {"k":1} = started 1
		deliver 0s {"k":1} = waits 2
		flow new
		deliver 0s {"k":1} = started 3
		run 1 = CANCELLED
		run 2 = CANCELLED`,
	"a definition without debounce": `flow burst
		deliver 0s {"k":1} = debounced 1
		flow none
		deliver 1s {"k":1} = started 2
		release
		run 1 = ready`,
	"an automation that is deleted and made anew": `flow all
		deliver 0s {"k":1} = debounced 1
		automation other
		deliver 1s {"k":1} = debounced 2
		release
		run 1 = ready
		run 2 = ready
		deliver 2s {"k":1} = follow-up 2`,
	"an automation that is deleted while runs wait": `flow one
		deliver 0s {"k":1} = started 1
		deliver 0s {"k":1} = waits 2
		deliver 0s {"k":1} = waits 3
		delete
		run 2 = waits
		finish 1
		run 2 = ready
		finish 2
		run 3 = ready`,
	"an automation that is deleted in a window": `flow burst
		deliver 0s {"k":1} = debounced 1
		delete
		release
		run 1 = ready`,
	"an answer of the forge after a newer delivery of the window": `flow burst
		ask
		deliver 0s {"k":1} = debounced 2
		ask
		answer 1 {"k":1} = debounced 2
		newest 2 = 2
		answer 3 {"k":1} = debounced 2
		newest 2 = 3`,
	"an answer of the forge after a newer run that goes on": `flow new
		ask
		deliver 0s {"k":1} = started 2
		answer 1 {"k":1} = skipped: newer
		run 2 = ready
		ask
		answer 3 {"k":1} = started 3
		run 2 = CANCELLED`,
	"an answer of the forge between an older and a newer run": `flow two
		deliver 0s {"k":1} = started 1
		ask
		deliver 0s {"k":1} = started 3
		answer 2 {"k":1} = started 2
		run 1 = CANCELLED
		run 3 = ready`,
	"an answer of the forge after a newer run that waits": `flow last
		deliver 0s {"k":1} = started 1
		ask
		deliver 0s {"k":1} = waits 3
		answer 2 {"k":1} = skipped: newer
		run 3 = waits
		ask
		answer 4 {"k":1} = started 4
		run 4 = waits
		run 3 = CANCELLED
		run 1 = ready`,
	"an answer of the forge after newer runs with places": `flow last
		ask
		deliver 0s {"k":1} = started 2
		answer 1 {"k":1} = skipped: newer
		finish 2
		ask
		deliver 0s {"k":2} = started 4
		answer 3 {"k":1} = started 3`,
	"an answer of the forge after a newer delivery of the conversation": `flow talk
		ask
		deliver 0s {"k":1} = started 2
		answer 1 {"k":1} = follow-up 2
		newest 2 = 2`,
	"a conversation that was cancelled": `flow talk
		deliver 0s {"k":1} = started 1
		cancel 1
		deliver 0s {"k":1} = started 2
		deliver 0s {"k":1} = follow-up 2`,
	"a conversation that ended": `flow talk
		deliver 0s {"k":1} = started 1
		finish 1
		deliver 0s {"k":1} = follow-up 1
		run 1 = ready`,
	"a conversation that has expired": `flow talk
		deliver 0s {"k":1} = started 1
		finish 1
		expire
		deliver 0s {"k":1} = started 2`,
	"a conversation that was dropped in its window": `flow all
		deliver 0s {"k":1} = debounced 1
		cancel 1
		deliver 1s {"k":1} = debounced 2`,
}

// TestFlowMishaps holds that nothing starts twice, and nothing is lost.
func TestFlowMishaps(t *testing.T) {
	statetest.EachDSN(t, func(t *testing.T, dsn string) {
		h := newHooks(t, statetest.Open(t, dsn), "h")
		for name, play := range mishaps {
			t.Run(name, func(t *testing.T) {
				h.t = t
				p := &mishap{hooks: h, t: t, dsn: dsn, automation: name, now: time.Now().Add(-3 * time.Hour)}
				for line := range strings.Lines(play) {
					if act, want, _ := strings.Cut(strings.TrimSpace(line), " = "); p.act(act) != want {
						t.Fatalf("%s: %s, want %s", act, p.said, want)
					}
				}
			})
		}
	})
}

type mishap struct {
	*hooks
	t               *testing.T
	dsn, automation string
	flow            schema.Flow
	now             time.Time
	runs            []string // that each delivery made, or would have made
	sent            []state.Acceptance
	said            string
}

// act does what a line of a play says, and returns what is to be seen of it.
func (p *mishap) act(line string) string {
	p.t.Helper()
	what, rest, _ := strings.Cut(line, " ")
	p.said = ""
	var err error
	switch what {
	case "flow":
		p.flow = flowsOfMishaps[rest]
	case "automation":
		p.automation += " " + rest
	case "deliver":
		p.said = p.deliver(rest)
	case "run":
		r := run(p.t, p.s, p.of(rest))
		p.said = map[string]string{"": "ready", "concurrency": "waits", "debounce": "debounced"}[r.WaitsFor]
		if r.State != state.RunQueued {
			p.said = string(r.State)
		}
	case "cancel":
		_, err = p.s.RequestCancel(p.t.Context(), p.of(rest), "tester")
	case "finish":
		claim := start(p.t, p.s, p.of(rest))
		_, err = p.s.FinishRun(p.t.Context(), claim, state.Result{State: state.RunSucceeded})
	case "delete":
		p.delete()
	case "ask":
		p.ask()
	case "answer":
		p.said = p.answer(rest)
	case "newest":
		newest := run(p.t, p.s, p.of(rest)).DeliveryUID
		p.said = fmt.Sprint(slices.IndexFunc(p.sent, func(a state.Acceptance) bool { return a.UID == newest }) + 1)
	case "release":
		_, err = p.s.ReleaseDue(p.t.Context())
	case "expire":
		_, err = p.s.ExpireRuns(p.t.Context(), time.Nanosecond)
	case "keys":
		p.addKeys(strings.Fields(rest))
	default:
		p.t.Fatalf("nobody can %q", line)
	}
	if err != nil {
		p.t.Fatalf("%s: %v", line, err)
	}
	return p.said
}

// of returns the run that a delivery made, by the number of the delivery; "" for none.
func (p *mishap) of(number string) string {
	n, err := strconv.Atoi(number)
	if err != nil {
		return ""
	}
	return p.runs[n-1]
}

// deliver accepts a delivery and returns what becomes of it.
func (p *mishap) deliver(text string) string {
	p.t.Helper()
	offset, body, _ := strings.Cut(text, " ")
	after, err := time.ParseDuration(offset)
	if err != nil {
		p.t.Fatal(err)
	}

	a := p.next()
	a.Body = []byte(strings.ReplaceAll(body, "LARGE", strings.Repeat("x", 200<<10)))
	r := &a.Runs[0]
	r.At = p.now.Add(after)
	r.Flow = p.flowOf(a)

	got, err := p.s.Accept(p.t.Context(), a)
	if err != nil {
		p.t.Fatal(err)
	}
	if len(got.Flow) > 0 {
		return p.decided(got.Flow[0])
	}

	made, err := p.s.Run(p.t.Context(), r.ID)
	if err != nil {
		p.t.Fatal(err)
	}
	if made.WaitsFor != "" {
		return fmt.Sprint("waits ", len(p.runs))
	}
	return fmt.Sprint("started ", len(p.runs))
}

// next returns the next delivery, with its run.
func (p *mishap) next() state.Acceptance {
	p.t.Helper()
	a := p.acceptance("h", fmt.Sprint(p.automation, " event ", len(p.runs)), 1)
	a.Runs[0].AutomationUID, a.Runs[0].At = p.automation, p.now
	p.runs, p.sent = append(p.runs, a.Runs[0].ID), append(p.sent, a)
	return a
}

// flowOf returns the flow of the run that a delivery starts.
func (p *mishap) flowOf(a state.Acceptance) *state.Flow {
	p.t.Helper()
	payload, err := schema.ParsePayload(a.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	automation := state.RoutedAutomation{UID: p.automation, Spec: schema.Automation{Flow: p.flow}}
	return state.FlowOf(automation, a.WebhookUID, payload, "again")
}

// decided spells a decision with the number of the delivery that made its run.
func (p *mishap) decided(d state.FlowDecision) string {
	if i := slices.Index(p.runs, d.RunID); i >= 0 {
		return fmt.Sprint(d.Decision, " ", i+1)
	}
	return d.Decision
}

// ask accepts a delivery that the forge's answer decides on.
func (p *mishap) ask() {
	p.t.Helper()
	a := p.next()
	a.Runs, a.Undecided = nil, []string{p.automation}
	if _, err := p.s.Accept(p.t.Context(), a); err != nil {
		p.t.Fatal(err)
	}
}

// answer starts the run of a delivery that waited for the forge, and returns what becomes of it.
func (p *mishap) answer(text string) string {
	p.t.Helper()
	number, body, _ := strings.Cut(text, " ")
	n, err := strconv.Atoi(number)
	if err != nil {
		p.t.Fatal(err)
	}

	a := p.sent[n-1]
	a.Body = []byte(body)
	a.Runs[0].Flow = p.flowOf(a)
	u := state.Undecided{
		AutomationUID: p.automation, DeliveryUID: a.UID, FactoryUID: a.FactoryUID, WebhookUID: a.WebhookUID,
	}
	decided, made, err := p.s.Decide(p.t.Context(), u, a.Generation, &a.Runs[0], state.FlowDecision{})
	if err != nil || !decided {
		p.t.Fatalf("decided %t: %v", decided, err)
	}
	if made.Decision == "" {
		return fmt.Sprint("started ", n) // or waits for its key
	}
	return p.decided(made)
}

// delete makes the automation a resource of the factory, and deletes it.
func (p *mishap) delete() {
	p.t.Helper()
	p.apply(state.ChangeSet{Resources: []state.ResourceChange{{
		UID: p.automation, Kind: "automation", Name: p.automation, Spec: schema.Automation{Name: p.automation},
	}}})
	p.apply(state.ChangeSet{DeleteResources: []string{p.automation}})
}

// addKeys has the automation remember many keys of a run.
func (p *mishap) addKeys(args []string) {
	p.t.Helper()
	driver := "sqlite"
	if strings.Contains(p.dsn, "://") {
		driver = "pgx"
	}
	db, err := sql.Open(driver, p.dsn)
	if err != nil {
		p.t.Fatal(err)
	}
	defer db.Close()

	_, err = db.Exec(fmt.Sprintf(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %s)
		INSERT INTO flow_keys (automation_uid, part, waiting, hash, position, run_id, factory_uid, used_at)
		SELECT '%s', '%s', 0, 'key ' || i, 1, '%s', '%s', i FROM n`,
		args[1], p.automation, args[0], p.of(args[2]), p.factory))
	if err != nil {
		p.t.Fatal(err)
	}
}
