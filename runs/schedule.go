package runs

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"millwright/schema"
	"millwright/state"
	"millwright/state/notice"
	"millwright/trace"
)

// Clock starts the runs of automations with a schedule, until ctx ends. Each tick of a schedule makes one
// run, however many servers share the state.
//
// If no server ran at a tick, the run starts up to an hour late. Only the last missed tick of each schedule
// counts.
func Clock(ctx context.Context, store *state.Store, tracer *trace.Tracer, log *slog.Logger) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}

	c := &clock{store: store, tracer: tracer, log: log, failing: map[state.ScheduleKey]failure{}}
	notices, end := store.Subscribe(8, notice.Routing)
	defer end()

	for {
		next := c.round(ctx, time.Now())
		timer := time.NewTimer(max(time.Until(next), 10*time.Millisecond))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-notices:
			timer.Stop()
			c.stale = true
		case <-timer.C:
		}
	}
}

const (
	clockReload = 30 * time.Second // interval of reading the definitions without a notice
	clockAgain  = 200 * time.Millisecond
	maxBackoff  = time.Minute // between tries of a schedule that cannot fire
	madeUpFor   = time.Hour

	// loopSchedules names the loop in reports of skipped rows.
	loopSchedules = "schedules"
)

// clock has the schedules of all factories as last read.
type clock struct {
	store   *state.Store
	tracer  *trace.Tracer
	log     *slog.Logger
	entries []*entry
	loaded  time.Time
	stale   bool
	failing map[state.ScheduleKey]failure
}

// failure is an error of a schedule, which is not tried again for a while.
type failure struct {
	until time.Time
	wait  time.Duration
}

// entry is one schedule.
type entry struct {
	factory    string
	generation int64
	key        state.ScheduleKey
	name       string
	automation state.RoutedAutomation
	schedule   cron.Schedule
	last       time.Time
}

// round fires the due schedules and returns the time of the next round.
func (c *clock) round(ctx context.Context, now time.Time) time.Time {
	if c.stale || now.Sub(c.loaded) >= clockReload || now.Before(c.loaded) {
		if err := c.load(ctx, now); err != nil {
			if ctx.Err() == nil {
				c.log.Warn("schedules cannot be read", "error", err)
			}
			return now.Add(time.Second)
		}
	}

	next := c.loaded.Add(clockReload)
	for _, e := range c.entries {
		at, err := c.visit(ctx, e, now)
		if errors.Is(err, state.ErrUnavailable) {
			c.log.Warn("schedules cannot fire", "error", err)
			return now.Add(time.Second)
		}
		if ctx.Err() != nil {
			return next
		}
		if at.Before(next) {
			next = at
		}
	}

	return next
}

// visit fires a due schedule and returns the time of its next visit. A failing schedule is skipped for a
// while, and does not stop the others.
func (c *clock) visit(ctx context.Context, e *entry, now time.Time) (time.Time, error) {
	failed := c.failing[e.key]
	if now.Before(failed.until) {
		return failed.until, nil
	}

	tick := lastTick(e.schedule, e.last, now)
	if tick.IsZero() {
		return e.schedule.Next(e.last), nil
	}

	err := c.fire(ctx, e, tick, now)
	switch {
	case err == nil:
		delete(c.failing, e.key)
		return e.schedule.Next(e.last), nil
	case errors.Is(err, state.ErrMoved):
		c.stale = true
		return now.Add(clockAgain), nil
	case errors.Is(err, state.ErrUnavailable), ctx.Err() != nil:
		c.stale = true
		return now, err
	}

	c.skip(e.factory, e.key, err)
	failed.wait = min(max(2*failed.wait, time.Second), maxBackoff)
	failed.until = now.Add(failed.wait)
	c.failing[e.key] = failed
	return failed.until, nil
}

func (c *clock) skip(factory string, key state.ScheduleKey, err error) {
	cron, _, _ := strings.Cut(key.Schedule, "\n")
	c.store.Skip(loopSchedules, factory, "schedule "+cron+" of automation "+key.AutomationUID, err)
}

// lastTick returns the last tick after last up to now, or the zero time.
func lastTick(s cron.Schedule, last, now time.Time) time.Time {
	tick := s.Next(last)
	if tick.IsZero() || tick.After(now) {
		return time.Time{}
	}
	if every, ok := s.(cron.ConstantDelaySchedule); ok {
		return tick.Add(now.Sub(tick) / every.Delay * every.Delay)
	}

	if from := now.Add(-2 * madeUpFor); tick.Before(from) { // old ticks need not be counted one by one
		if later := s.Next(from); !later.After(now) {
			tick = later
		}
	}

	for {
		next := s.Next(tick)
		if next.IsZero() || next.After(now) {
			return tick
		}

		tick = next
	}
}

// fire makes the run of a tick. It skips the tick if the automation is disabled or the tick is too old.
func (c *clock) fire(ctx context.Context, e *entry, tick, now time.Time) error {
	ctx, span := c.tracer.Start(ctx, "tick", tick)
	defer span.End()

	var run *state.NewRun
	if e.automation.Spec.Enabled && now.Sub(tick) <= madeUpFor {
		r := e.run(now)
		r.Traceparent = trace.Position(ctx)
		run = &r
	}

	fired, flow, err := c.store.Fire(
		ctx,
		state.Tick{FactoryUID: e.factory, Generation: e.generation, Key: e.key, Last: e.last, At: tick},
		run,
	)
	if err != nil {
		span.Fail("not_stored")
		return err
	}
	if !fired {
		c.stale = true // another server did
	}
	switch {
	case !fired || run == nil:
	case flow.Skipped():
		c.log.Info("schedule fired", "automation", e.automation.Spec.Name, "flow", flow.Decision, "tick", tick)
	default:
		span.Set(trace.Run, run.ID)
		c.log.Info("schedule fired", "automation", e.automation.Spec.Name, "run_id", run.ID, "tick", tick)
	}

	e.last = tick
	return nil
}

// run returns the run of a tick.
func (e *entry) run(now time.Time) state.NewRun {
	a := e.automation
	id := state.NewRunID()
	r := state.NewRun{
		ID:             id,
		RootRunID:      id,
		ConversationID: state.NewRunID(),
		FactoryUID:     e.factory,
		Title:          title(a.Spec.Prompt),
		Prompt:         a.Spec.Prompt,
		Source:         sourceSchedule,
		Creator:        state.Creator{Type: "service_account", UID: a.UID, DisplayName: a.Spec.Name},
		AutomationUID:  a.UID, AgentUID: a.Agent, Config: a.Config, Sealed: a.Sealed, Secrets: a.Secrets,
		ConfigName: a.Spec.Name, ModelID: a.Model, EnvironmentID: a.Env, At: now,
		Flow: state.FlowOf(a, "", schema.Payload{}, ""),
	}
	if e.name != "" {
		r.Metadata = map[string]string{metaSchedule: e.name}
	}

	return r
}

// load reads the schedules of all factories. It skips unreadable ones.
func (c *clock) load(ctx context.Context, now time.Time) error {
	routing, err := c.store.Routing(ctx)
	if err != nil {
		return err
	}

	var entries []*entry
	for _, f := range routing.Factories {
		of := scheduled(f)
		if len(of) == 0 {
			continue
		}

		err := c.resume(ctx, f.UID, of, now)
		if errors.Is(err, state.ErrUnavailable) || ctx.Err() != nil {
			return err
		}
		if err != nil {
			c.store.Skip(loopSchedules, f.UID, "schedules of factory "+f.UID, err)
			continue
		}

		for _, e := range of {
			if !e.last.IsZero() {
				entries = append(entries, e)
			}
		}
	}

	c.entries, c.loaded, c.stale = entries, now, false

	present := map[state.ScheduleKey]bool{}
	for _, e := range entries {
		present[e.key] = true
	}

	maps.DeleteFunc(c.failing, func(key state.ScheduleKey, _ failure) bool { return !present[key] })
	return nil
}

// scheduled returns the schedules of a factory's automations.
func scheduled(f state.RoutedFactory) (all []*entry) {
	for _, a := range f.Automations {
		for _, t := range a.Spec.Triggers {
			if !t.Fires() || t.Schedule == nil {
				continue
			}

			schedule, err := schema.ParseCron(t.Schedule.Cron)
			if err != nil {
				continue // a definition of another version
			}

			e := &entry{
				factory:    f.UID,
				generation: f.Generation,
				automation: a,
				schedule:   schedule,
				name:       t.Schedule.Name,
			}

			e.key = state.ScheduleKey{AutomationUID: a.UID, Schedule: t.Schedule.Cron + "\n" + t.Schedule.Name}
			all = append(all, e)
		}
	}

	return all
}

// resume sets the last tick of each schedule of a factory, and records new schedules. If a schedule cannot
// be recorded, its last stays zero.
func (c *clock) resume(ctx context.Context, factory string, all []*entry, now time.Time) error {
	known, err := c.store.Schedules(ctx, factory)
	if err != nil {
		return err
	}

	for _, e := range all {
		last, ok := known[e.key]
		if !ok {
			last, err = c.store.AddSchedule(ctx, factory, e.key, now.Truncate(time.Second))
		}

		switch {
		case errors.Is(err, state.ErrUnavailable), ctx.Err() != nil:
			return err
		case err != nil:
			c.skip(factory, e.key, err)
			err = nil
		default:
			e.last = last
		}
	}

	return nil
}
