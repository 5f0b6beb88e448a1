package simtest

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"millwright/state"
	"millwright/state/outputs"
)

// worker executes runs, one or two at a time.
type worker struct {
	*world
	name string
	jobs map[string]*job // by run
}

// job is a run that a worker executes.
type job struct {
	claim   state.Claim
	until   time.Time // the worker stops then, unless its lease was renewed
	started bool
	said    int
	output  string
}

// executing returns the runs that the worker executes.
func (k *worker) executing() map[string]*job {
	running := map[string]*job{}
	for run, j := range k.jobs {
		if time.Now().Before(j.until) || k.mutant == "worker outlives its lease" {
			running[run] = j
		}
	}
	return running
}

func (k *worker) act() {
	if k.rand.IntN(30) == 0 && !k.ending {
		k.note("%s crashes", k.name)
		k.jobs = nil
		return
	}
	running := k.executing()
	if len(running) == 0 {
		k.claim()
		return
	}

	run := slices.MinFunc(slices.Collect(maps.Keys(running)), func(a, b string) int {
		return cmp.Compare(k.number(a), k.number(b))
	})
	k.work(run, running[run])
}

// claim asks for runs.
func (k *worker) claim() {
	k.jobs = map[string]*job{}
	asks := slices.Repeat([]state.Ask{{Worker: k.name, WorkerName: k.name}}, 1+k.rand.IntN(2))
	bounds := state.ClaimBounds{Factory: mostHeld}
	if k.mutant == "bounds forgotten" {
		bounds = state.ClaimBounds{}
	}

	until := time.Now().Add(lease)
	if k.mutant == "claim without the state" {
		all, err := k.runs()
		k.must(err)
		for _, r := range all {
			if r.State == state.RunQueued {
				k.jobs[r.ID] = &job{claim: state.Claim{RunID: r.ID, Worker: k.name}, until: until}
				return
			}
		}
		return
	}

	var all []state.Claimed
	err := k.message(func() (err error) {
		all, err = k.s.ClaimRuns(k.ctx, "", asks, lease, bounds)
		return err
	})
	if k.must(err); err != nil {
		return
	}
	for _, c := range all {
		k.note("%s claims %s", k.name, k.short(c.Run.ID))
		k.jobs[c.Run.ID] = &job{claim: c.Claim, until: until, output: state.NewID(state.PrefixOutput)}
	}
}

// work takes the next step of a run.
func (k *worker) work(run string, j *job) {
	until := time.Now().Add(lease)
	var err error
	switch {
	case !j.started:
		k.note("%s starts %s", k.name, k.short(run))
		err = k.message(func() error { _, err := k.s.StartRun(k.ctx, j.claim, lease); return err })
		if err == nil {
			j.started, j.until = true, until
		}
	case k.rand.IntN(3) == 0:
		k.note("%s renews %s", k.name, k.short(run))
		err = k.message(func() error { _, err := k.s.RenewLease(k.ctx, j.claim, lease); return err })
		if err == nil {
			j.until = until
		}
	case j.said < 2 && k.rand.IntN(2) == 0:
		err = k.message(func() error {
			said := state.Message{
				Role: state.RoleAssistant, Content: []state.Block{state.Text("said")}, At: time.Now(),
			}
			return k.s.AppendEntries(k.ctx, j.claim, j.said, []state.Message{said})
		})
		if err == nil {
			j.said++
		}
	default:
		k.note("%s finishes %s", k.name, k.short(run))
		o := outputs.Output{UID: j.output, Kind: outputs.Comment, State: outputs.Pending, Body: []byte(`{}`)}
		result := state.Result{State: state.RunSucceeded, From: j.said, Outputs: []outputs.Output{o}}
		err = k.message(func() error { _, err := k.s.FinishRun(k.ctx, j.claim, result); return err })
		if err == nil {
			delete(k.jobs, run)
		}
	}

	if errors.Is(err, state.ErrLost) {
		k.note("%s has lost %s", k.name, k.short(run))
		if k.mutant != "worker outlives its lease" && k.mutant != "claim without the state" {
			delete(k.jobs, run)
		}
		return
	}
	k.must(err)
}

// performer performs outputs at a forge.
type performer struct {
	*world
	name   string
	o      outputs.Output
	taken  bool
	looked bool // for what an earlier attempt made
	found  bool
	done   bool
	until  time.Time
}

func (p *performer) act() {
	switch {
	case p.rand.IntN(15) == 0 && !p.ending:
		p.note("%s crashes", p.name)
		p.taken = false
	case !p.taken:
		p.take()
	case !time.Now().Before(p.until) && p.mutant != "output after its lease":
		p.note("%s gives an output up: its lease ran out", p.name)
		p.taken = false
	case !p.looked:
		p.looked, p.found = true, p.made[p.o.UID] > 0 && p.mutant != "output performed on doubt"
	case !p.done:
		p.done = true
		if !p.found {
			p.note("%s makes an output, attempt %d", p.name, p.o.Attempts)
			p.made[p.o.UID]++
		}
	default:
		err := p.call(func() error { return p.s.Outputs().Done(p.ctx, p.o, "https://forge.example.com/1") })
		if p.must(err); err == nil {
			p.taken = false
		}
	}
}

func (p *performer) take() {
	until := time.Now().Add(lease)
	var o outputs.Output
	var ok bool
	err := p.call(func() (err error) {
		o, ok, err = p.s.Outputs().Take(context.WithoutCancel(p.ctx), lease)
		return err
	})
	if p.must(err); err != nil || !ok {
		return
	}
	p.note("%s takes an output, attempt %d", p.name, o.Attempts)
	p.o, p.until, p.taken, p.looked, p.done = o, until, true, false, false
}
