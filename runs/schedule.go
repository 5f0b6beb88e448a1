package runs

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/robfig/cron/v3"

	"millwright/schema"
	"millwright/state"
	"millwright/trace"
)

// Clock starts the runs of automations with a schedule: each tick of each schedule makes one run, however
// many servers share the state. It works until ctx ends.
//
// A tick that no server was there for is made up for when it is at most an hour ago, and only the last one
// of each schedule; older ones are gone.
func Clock(ctx context.Context, store *state.Store, tracer *trace.Tracer, log *slog.Logger) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	c := &clock{store: store, tracer: tracer, log: log}
	notices, end := store.Subscribe(8, state.TopicRouting)
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
	clockReload = 30 * time.Second // how often the definitions are read even without a notice
	madeUpFor   = time.Hour
)

// clock is the schedules of all factories, as they were read last.
type clock struct {
	store   *state.Store
	tracer  *trace.Tracer
	log     *slog.Logger
	entries []*entry
	loaded  time.Time
	stale   bool
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

// round fires what is due and returns when to look again.
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
		tick := lastTick(e.schedule, e.last, now)
		if tick.IsZero() {
			if at := e.schedule.Next(e.last); at.Before(next) {
				next = at
			}
			continue
		}
		if err := c.fire(ctx, e, tick, now); err != nil {
			if !errors.Is(err, state.ErrMoved) && ctx.Err() == nil {
				c.log.Warn("a schedule could not fire", "automation", e.key.AutomationUID, "error", err)
			}
			c.stale = true
			return now.Add(200 * time.Millisecond)
		}
		if at := e.schedule.Next(e.last); at.Before(next) {
			next = at
		}
	}
	return next
}

// lastTick returns the last tick after last and not after now; the zero time when there is none.
func lastTick(s cron.Schedule, last, now time.Time) time.Time {
	tick := s.Next(last)
	if tick.IsZero() || tick.After(now) {
		return time.Time{}
	}
	if every, ok := s.(cron.ConstantDelaySchedule); ok {
		return tick.Add(now.Sub(tick) / every.Delay * every.Delay)
	}
	if from := now.Add(-2 * madeUpFor); tick.Before(from) { // ticks that are gone need not be counted one by one
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

// fire makes the run of a tick, or skips it where the automation is disabled or the tick is long gone.
func (c *clock) fire(ctx context.Context, e *entry, tick, now time.Time) error {
	ctx, span := c.tracer.Start(ctx, "tick", tick)
	defer span.End()
	var run *state.NewRun
	if e.automation.Spec.Enabled && now.Sub(tick) <= madeUpFor {
		r := e.run(now)
		r.Traceparent = trace.Position(ctx)
		run = &r
	}
	fired, err := c.store.Fire(ctx, state.Tick{FactoryUID: e.factory, Generation: e.generation, Key: e.key, Last: e.last, At: tick}, run)
	if err != nil {
		span.Fail("not_stored")
		return err
	}
	if !fired {
		c.stale = true // another server did
	}
	if fired && run != nil {
		span.Set(trace.Run, run.ID)
		c.log.Info("schedule fired", "automation", e.automation.Spec.Name, "run_id", run.ID, "tick", tick)
	}
	e.last = tick
	return nil
}

// run is the run that a tick starts.
func (e *entry) run(now time.Time) state.NewRun {
	a := e.automation
	id := state.NewRunID()
	r := state.NewRun{
		ID: id, RootRunID: id, ConversationID: state.NewRunID(), FactoryUID: e.factory, Title: title(a.Spec.Prompt), Prompt: a.Spec.Prompt, Source: "SCHEDULED_AGENT",
		Creator:       state.Creator{Type: "service_account", UID: a.UID, DisplayName: a.Spec.Name},
		AutomationUID: a.UID, AgentUID: a.Agent, Config: a.Config, Sealed: a.Sealed, Secrets: a.Secrets,
		ConfigName: a.Spec.Name, ModelID: a.Model, EnvironmentID: a.Env, At: now,
	}
	if e.name != "" {
		r.Metadata = map[string]string{"schedule": e.name}
	}
	return r
}

// load reads the schedules of all factories.
func (c *clock) load(ctx context.Context, now time.Time) error {
	routing, err := c.store.Routing(ctx)
	if err != nil {
		return err
	}
	var entries []*entry
	for _, f := range routing.Factories {
		var known map[state.ScheduleKey]time.Time
		for _, a := range f.Automations {
			for _, t := range a.Spec.Triggers {
				if !t.Fires() || t.Schedule == nil {
					continue
				}
				schedule, err := schema.ParseCron(t.Schedule.Cron)
				if err != nil {
					continue // a definition of another version
				}
				if known == nil {
					if known, err = c.store.Schedules(ctx, f.UID); err != nil {
						return err
					}
				}
				e := &entry{factory: f.UID, generation: f.Generation, automation: a, schedule: schedule, name: t.Schedule.Name}
				e.key = state.ScheduleKey{AutomationUID: a.UID, Schedule: t.Schedule.Cron + "\n" + t.Schedule.Name}
				last, ok := known[e.key]
				if !ok {
					if last, err = c.store.AddSchedule(ctx, f.UID, e.key, now.Truncate(time.Second)); err != nil {
						return err
					}
				}
				e.last = last
				entries = append(entries, e)
			}
		}
	}
	c.entries, c.loaded, c.stale = entries, now, false
	return nil
}
