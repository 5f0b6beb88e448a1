package runs_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"millwright/runs"
	"millwright/schema"
	"millwright/state"
	"millwright/state/statetest"
)

// scheduled applies an automation with a schedule and returns the factory.
func scheduled(t *testing.T, s *state.Store, a schema.Automation) state.Factory {
	t.Helper()
	f, err := s.EnsureFactory(t.Context(), "clock", state.Source{Kind: "dir"}, false)
	if err != nil {
		t.Fatal(err)
	}
	current, err := s.Current(t.Context(), f.UID)
	if err != nil {
		t.Fatal(err)
	}
	a.Name = "nightly"
	change := state.ResourceChange{UID: current.UIDs[state.ResourceKey("automation", a.Name)], Kind: "automation", Name: a.Name, Spec: a}
	if err := s.Apply(t.Context(), state.ChangeSet{FactoryUID: f.UID, Base: f.Generation, BaseRevision: f.Applied.ID, Started: time.Now(), Resources: []state.ResourceChange{change}}); err != nil {
		t.Fatal(err)
	}
	if f, err = s.Factory(t.Context(), f.UID); err != nil {
		t.Fatal(err)
	}
	return f
}

func every(second string, enabled bool) schema.Automation {
	return schema.Automation{Enabled: enabled, Prompt: "Tidy up\nall of it", Triggers: []schema.Trigger{
		{Provider: "schedule", Event: "cron_fired", Schedule: &schema.Schedule{Cron: "@every " + second, Name: "tidy"}},
	}}
}

func all(t *testing.T, s *state.Store) []state.Run {
	t.Helper()
	found, _, err := s.Runs(t.Context(), state.RunFilter{}, state.RunOrder{By: state.SortCreated, Ascending: true}, nil, 500)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestClocksFireEachTickOnce(t *testing.T) {
	statetest.EachDSN(t, func(t *testing.T, dsn string) {
		stores := []*state.Store{statetest.Open(t, dsn)}
		if stores[0].Shared() {
			stores = append(stores, statetest.Open(t, dsn), statetest.Open(t, dsn))
		} else {
			stores = append(stores, stores[0], stores[0])
		}
		s := stores[0]
		f := scheduled(t, s, every("1s", true))
		ctx, cancel := context.WithCancel(t.Context())
		var clocks sync.WaitGroup
		for _, store := range stores {
			clocks.Go(func() { runs.Clock(ctx, store, nil, nil) })
		}
		statetest.Drain(t, "the schedule has fired three times", func() int { return 3 - len(all(t, s)) })
		cancel()
		clocks.Wait()
		found := all(t, s)
		for i, r := range found {
			if i > 0 && r.Created.Truncate(time.Second).Equal(found[i-1].Created.Truncate(time.Second)) {
				t.Errorf("two runs within a second: %s, %s", found[i-1].Created, r.Created)
			}
			if r.Source != "SCHEDULED_AGENT" || r.FactoryUID != f.UID || r.AutomationUID == "" || r.Title != "Tidy up" || r.Metadata["schedule"] != "tidy" || r.State != state.RunQueued {
				t.Errorf("run %+v", r)
			}
		}
	})
}

func TestFire(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		ctx := t.Context()
		f := scheduled(t, s, every("1h", true))
		current, err := s.Current(ctx, f.UID)
		if err != nil {
			t.Fatal(err)
		}
		key := state.ScheduleKey{AutomationUID: current.UIDs[state.ResourceKey("automation", "nightly")], Schedule: "x"}
		begin := time.Now().Truncate(time.Second).UTC()
		for _, now := range []time.Time{begin, begin.Add(time.Minute)} { // the second replica learns of the first
			if last, err := s.AddSchedule(ctx, f.UID, key, now); err != nil || !last.Equal(begin) {
				t.Fatalf("added: %s %v", last, err)
			}
		}
		if _, err := s.AddSchedule(ctx, f.UID, state.ScheduleKey{AutomationUID: "auto_none"}, begin); !errors.Is(err, state.ErrNotFound) {
			t.Errorf("unknown automation: %v", err)
		}
		tick := state.Tick{FactoryUID: f.UID, Generation: f.Generation, Key: key, Last: begin, At: begin.Add(time.Hour)}
		newRun := func() *state.NewRun {
			id := state.NewRunID()
			return &state.NewRun{ID: id, RootRunID: id, ConversationID: id, Prompt: "p", Source: "SCHEDULED_AGENT", Creator: state.Creator{Type: "service_account"}, At: time.Now()}
		}
		var wg sync.WaitGroup
		fired := make(chan bool, 10)
		for range cap(fired) {
			wg.Go(func() {
				ok, _, err := s.Fire(ctx, tick, newRun())
				if err != nil {
					t.Error(err)
				}
				fired <- ok
			})
		}
		wg.Wait()
		n := 0
		for range cap(fired) {
			if <-fired {
				n++
			}
		}
		if n != 1 || len(all(t, s)) != 1 {
			t.Errorf("fired %d times, %d runs", n, len(all(t, s)))
		}
		skipped := tick
		skipped.Last, skipped.At = tick.At, tick.At.Add(time.Hour)
		if ok, _, err := s.Fire(ctx, skipped, nil); !ok || err != nil || len(all(t, s)) != 1 {
			t.Errorf("skipped: %t %v", ok, err)
		}
		stale := skipped
		stale.Last, stale.At, stale.Generation = skipped.At, skipped.At.Add(time.Hour), f.Generation-1
		if _, _, err := s.Fire(ctx, stale, newRun()); !errors.Is(err, state.ErrMoved) {
			t.Errorf("fired by an old definition: %v", err)
		}
		if got, err := s.Schedules(ctx, f.UID); err != nil || !got[key].Equal(skipped.At) {
			t.Errorf("schedules %v %v", got, err)
		}
	})
}

func TestDisabledAutomationsDoNotFire(t *testing.T) {
	s := statetest.Open(t, statetest.SQLite(t))
	f := scheduled(t, s, every("1s", false))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); runs.Clock(ctx, s, nil, nil) }()
	last := func() (at time.Time) {
		known, err := s.Schedules(t.Context(), f.UID)
		if err != nil {
			t.Fatal(err)
		}
		for _, at = range known {
		}
		return at
	}
	var first time.Time
	statetest.Until(t, "the schedule is known", func() bool {
		first = last()
		return !first.IsZero()
	})
	statetest.Until(t, "another tick is counted", func() bool { return last().After(first) })
	cancel()
	<-done
	if found := all(t, s); len(found) != 0 {
		t.Errorf("%d runs", len(found))
	}
}
