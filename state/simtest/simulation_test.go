// Package simtest simulates servers, workers and senders on one state, in an order that a seed gives.
package simtest

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"millwright/state"
	"millwright/state/statetest"
)

var (
	firstSeed = flag.Uint64("first-seed", 1, "first seed of TestServers")
	seeds     = flag.Int("seeds", 100, "seeds of TestServers")
)

// TestServers has three servers, five workers, senders, a source of changes and two performers of outputs act on
// one state, one call at a time, in an order that a seed gives. Calls fail before and after their commit, answers
// are lost, requests arrive twice, actors pause, crash and start again, and the clock jumps, over midnight too.
// After each step the promises are checked.
func TestServers(t *testing.T) {
	makeTemplate(t)
	for i := range *seeds {
		seed := *firstSeed + uint64(i)
		if steps, broken := simulate(t, seed, ""); broken != nil {
			t.Fatalf("seed %d: %v\nthe last steps:\n%s\nrun it again: go test ./state/simtest "+
				"-run '^TestServers$' -first-seed %d -seeds 1", seed, broken, steps, seed)
		}
	}
	t.Logf("%d seeds", *seeds)
}

// mutants are servers and workers that each make one mistake.
var mutants = []string{
	"fence removed",                // a server lets the state judge a delivery by its present generation
	"answer before commit",         // a server answers 202 before it stores
	"announcement as truth",        // a server reports a change as loaded when it hears of it
	"start without second look",    // a server that starts does not look for changes while it joined
	"answers without its lease",    // a server that left goes on to answer
	"identity made anew",           // a server gives each try of an event another identity
	"claim without the state",      // a worker executes what it reads in the queue
	"reaper ahead of its clock",    // a server takes runs from workers whose lease lasts
	"worker outlives its lease",    // a worker goes on without a lease
	"bounds forgotten",             // a server gives out more runs than a factory may have
	"budget forgotten",             // a server gives out more runs than a day may have
	"automation forgotten",         // a server that judges anew makes a run for one automation of two
	"output performed on doubt",    // a performer does not look for what an earlier attempt made
	"output after its lease",       // a performer that paused goes on
	"unheard claims are forgotten", // nobody takes back what a worker did not hear of
}

// mutantSeeds is within how many seeds each mutant must be found.
const mutantSeeds = 40

// TestMutantsAreFound holds that TestServers finds each mutant.
func TestMutantsAreFound(t *testing.T) {
	makeTemplate(t)
	for _, mutant := range mutants {
		t.Run(mutant, func(t *testing.T) {
			for seed := range uint64(mutantSeeds) {
				if _, broken := simulate(t, 1+seed, mutant); broken != nil {
					t.Logf("%d seeds: %v", 1+seed, broken)
					return
				}
			}
			t.Errorf("not found within %d seeds", mutantSeeds)
		})
	}
}

// TestSeedsRepeat holds that a seed gives the same steps each time.
func TestSeedsRepeat(t *testing.T) {
	makeTemplate(t)
	for seed := range uint64(2) {
		first, _ := simulate(t, 1+seed, "")
		again, _ := simulate(t, 1+seed, "")
		if first != again {
			t.Errorf("seed %d\nfirst:\n%s\nthen:\n%s", 1+seed, first, again)
		}
	}
}

// simulate runs a seed. It returns the last steps, and the promise that was broken.
func simulate(t *testing.T, seed uint64, mutant string) (steps string, broken error) {
	t.Helper()
	dir, err := os.MkdirTemp(memory(), "simulation")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)

	synctest.Test(t, func(t *testing.T) {
		s := statetest.Open(t, dir+"/state.db")
		w := newWorld(t, s, rand.New(rand.NewPCG(seed, 0)), mutant)
		for range 250 {
			if w.step(); w.broken != nil {
				break
			}
		}
		if w.broken == nil {
			w.finish()
		}
		w.admin.stop()
		steps, broken = strings.Join(w.steps[max(0, len(w.steps)-25):], "\n"), w.broken
	})
	return steps, broken
}

// memory is a directory of files in memory, where there is one: no power fails here.
func memory() string {
	if _, err := os.Stat("/dev/shm"); err == nil {
		return "/dev/shm"
	}
	return ""
}

// makeTemplate has statetest make the empty state outside of a simulation, which waits for all that begins in
// it.
func makeTemplate(t *testing.T) {
	t.Helper()
	s := statetest.Open(t, statetest.SQLite(t))
	if err := s.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		t.Fatal(err)
	}
}

var errLost = errors.New("no answer")

// call makes a call of the state, whose answer may be lost, and which may not be made at all.
func (w *world) call(f func() error) error {
	if !w.ending && w.rand.IntN(12) == 0 {
		if w.rand.IntN(2) == 0 {
			w.note("  and fails before its commit")
			return errLost
		}
		w.note("  and its answer is lost")
		_ = f()
		return errLost
	}
	return f()
}

// message is call for what a worker sends to a server, which may arrive twice: then the second answer counts.
func (w *world) message(f func() error) error {
	if !w.ending && w.rand.IntN(12) == 0 {
		w.note("  and arrives twice")
		_ = f()
	}
	return w.call(f)
}

func (w *world) note(format string, args ...any) {
	w.steps = append(w.steps, time.Now().Format("15:04:05 ")+fmt.Sprintf(format, args...))
}

// breaks notes that a promise is broken. The first one counts.
func (w *world) breaks(format string, args ...any) {
	if w.broken == nil {
		w.broken = fmt.Errorf(format, args...)
	}
}

// must ends the test on an error that no simulated fault explains.
func (w *world) must(err error) {
	if err != nil && !errors.Is(err, errLost) {
		w.t.Fatalf("%v\n%s", err, strings.Join(w.steps, "\n"))
	}
}

// step lets one actor act once. No two steps have the same time: what they make is in their order.
func (w *world) step() {
	time.Sleep(time.Millisecond)
	switch n := w.rand.IntN(40); {
	case n < 8:
		w.servers[w.rand.IntN(len(w.servers))].act()
	case n < 20:
		w.senders[w.rand.IntN(len(w.senders))].act()
	case n < 31:
		w.workers[w.rand.IntN(len(w.workers))].act()
	case n < 33:
		w.admin.act()
	case n < 36:
		w.performers[w.rand.IntN(len(w.performers))].act()
	case n < 37:
		w.reap()
		w.review()
	case n < 39:
		w.pass(time.Duration(1+w.rand.IntN(20)) * time.Second)
	default:
		w.pass(time.Duration(20+w.rand.IntN(30)) * time.Second)
	}
	w.checkAll()
}

// pass lets time pass: for those who were about to act, a pause.
func (w *world) pass(d time.Duration) {
	w.note("%v pass", d)
	time.Sleep(d)
}

// reap is what a server does about lost workers.
func (w *world) reap() {
	deadline := time.Now()
	switch w.mutant {
	case "reaper ahead of its clock":
		deadline = deadline.Add(lease)
	case "unheard claims are forgotten":
		return
	}
	w.note("runs are taken back")
	w.must(w.call(func() error {
		_, err := w.s.ReapRuns(w.ctx, deadline, 100)
		return err
	}))
}

// review is what a server does about runs that wait for their budget.
func (w *world) review() {
	w.must(w.call(func() error {
		_, err := w.s.ReviewParked(w.ctx, time.Now())
		return err
	}))
}

// checkAll checks what holds after each step.
func (w *world) checkAll() {
	w.admin.look()

	holders := map[string]string{}
	for _, k := range w.workers {
		for run := range k.executing() {
			if other := holders[run]; other != "" {
				w.breaks("%s and %s execute %s", other, k.name, w.short(run))
			}
			holders[run] = k.name
		}
	}

	runs, err := w.runs()
	w.must(err)
	held := 0
	for _, r := range runs {
		if !r.Held() {
			continue
		}
		held++
		if !w.begun[r.ID] {
			w.begun[r.ID] = true
			w.begunOn[today()]++
		}
	}
	if n := w.begunOn[today()]; n > w.perDay {
		w.breaks("%d runs began on one day, more than %d", n, w.perDay)
	}
	if held > mostHeld {
		w.breaks("workers hold %d runs, more than %d", held, mostHeld)
	}
	for output, times := range w.made {
		if times > 1 {
			w.breaks("the output %s was made %d times", output, times)
		}
	}
}

func (w *world) runs() (all []state.Run, err error) {
	all, _, err = w.s.Runs(w.ctx, state.RunFilter{}, state.RunOrder{}, nil, 500)
	return all, err
}

// finish ends the faults, lets all come to an end, and checks what holds then.
func (w *world) finish() {
	w.ending = true
	for round := 0; !w.quiet(); round++ {
		if round == 100 {
			w.breaks("events or runs that never end: %s", w.left())
			return
		}
		w.pass(5 * time.Second)
		w.reap()
		w.review()
		w.admin.settle()
		if round == 5 {
			w.setBudget(1000)
		}
		for _, s := range w.servers {
			s.settle()
		}
		for range 4 {
			for _, s := range w.senders {
				s.act()
			}
			for _, k := range w.workers {
				time.Sleep(time.Millisecond)
				k.act()
			}
		}
		for _, p := range w.performers {
			p.act()
		}
		if w.checkAll(); w.broken != nil {
			return
		}
	}
	w.checkEnd()
}

// today is the day for which budgets count.
func today() string { return time.Now().UTC().Format(time.DateOnly) }

// checkEnd checks that each event is one delivery with one run for each automation, and that each run has its one
// output made.
func (w *world) checkEnd() {
	runs, err := w.runs()
	w.must(err)
	of := map[string]map[string]int{}
	for _, r := range runs {
		if of[r.DeliveryUID] == nil {
			of[r.DeliveryUID] = map[string]int{}
		}
		of[r.DeliveryUID][r.AutomationUID]++
		if r.State != state.RunSucceeded {
			continue
		}
		all, err := w.s.Outputs().Of(w.ctx, r.ID)
		w.must(err)
		if len(all) != 1 || w.made[all[0].UID] != 1 {
			w.breaks("run %s succeeded and has %d outputs, not one that was made", w.short(r.ID), len(all))
		}
	}

	for event, delivery := range w.accepted {
		for _, automation := range automations() {
			if n := of[delivery][automation]; n != 1 {
				w.breaks("%s was accepted and has %d runs of %s", event, n, automation)
			}
		}
		delete(of, delivery)
	}
	for delivery := range of {
		w.breaks("%s has runs and belongs to no event that was accepted", delivery)
	}
}
