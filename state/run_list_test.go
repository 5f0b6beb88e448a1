package state_test

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	_ "modernc.org/sqlite" // the driver that changes times

	"millwright/state"
	"millwright/state/statetest"
)

// listed is a run and what was asked for.
type listed struct {
	state.Run
	asked state.NewRun
	links []state.ArtifactType
}

// world is a state with runs of all kinds, of which some took weeks, and the truth about them.
type world struct {
	*state.Store
	begin time.Time
	runs  []listed
}

// openDB opens the database of a state without millwright.
func openDB(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	driver := "pgx"
	if _, ok := state.SQLitePath(dsn); ok {
		driver, dsn = "sqlite", dsn+"?_pragma=busy_timeout(10000)"
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func newWorld(t *testing.T, dsn string, n int) *world {
	t.Helper()
	w := &world{Store: statetest.Open(t, dsn), begin: time.Now().Add(-time.Duration(n) * time.Minute).Truncate(time.Microsecond)}
	w.runs = make([]listed, n)
	var wg sync.WaitGroup
	add := func(i int) {
		r := newRun(fmt.Sprint("title ", i*7%10))
		r.At = w.begin.Add(time.Duration(i) * time.Minute)
		r.Metadata = map[string]string{"team": fmt.Sprint("team-", i%3), "build": fmt.Sprint("build-", i/4)}
		r.FactoryUID, r.AutomationUID, r.ConfigName = fmt.Sprint("fac_", i%5), fmt.Sprint("auto_", i%11), fmt.Sprint("agent-", i%4)
		r.Source = []string{"API", "CLI", "API"}[i%3]
		if first := i / 40 * 40; i%40 > 20 && i%6 > 0 {
			r.ParentRunID = w.runs[first+1].ID
		} else if i != first && i%6 > 0 {
			r.ParentRunID = w.runs[first].ID
		}
		w.runs[i] = listed{Run: create(t, w.Store, r), asked: r}
		w.link(t, i)
	}
	for i := 0; i < n; i += 40 { // the parents of the next ones
		add(i)
		if i+1 < n {
			add(i + 1)
		}
		for j := i + 2; j < min(i+40, n); j++ {
			wg.Go(func() { add(j) })
		}
		wg.Wait()
	}
	for i := range w.runs {
		if i%18 == 4 { // stays queued
			continue
		}
		wg.Go(func() {
			var err error
			if r := &w.runs[i]; i%18 == 13 {
				_, r.Run, err = w.ClaimRun(t.Context(), r.ID, "wrk_1", "worker", time.Hour)
			} else {
				r.Run, err = w.RequestCancel(t.Context(), r.ID, "tester")
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	i := 0
	w.update(t, dsn, func(r *listed) {
		took := time.Duration(i%50) * time.Second
		switch {
		case i%13 == 5:
			took = time.Duration(i%700) * time.Hour
		case i%13 == 6:
			took = time.Duration(i%700) * time.Minute
		}
		if r.Updated = r.Created.Add(took); i%4 == 1 {
			r.State = state.RunFailed
		}
		i++
	})
	return w
}

// link gives most runs a link or two, and few runs a pull request.
func (w *world) link(t *testing.T, i int) {
	r := &w.runs[i]
	for n := range i % 3 {
		r.links = append(r.links, state.ArtifactReference)
		link := state.Artifact{Type: state.ArtifactReference, Path: fmt.Sprint("https://example.com/", n)}
		if err := w.PutLink(t.Context(), r.ID, link); err != nil {
			t.Error(err)
		}
	}

	if i%60 == 7 {
		r.links = append(r.links, state.ArtifactPullRequest)
		link := state.Artifact{Type: state.ArtifactPullRequest, Path: "https://git.example.com/1"}
		if err := w.PutLink(t.Context(), r.ID, link); err != nil {
			t.Error(err)
		}
	}
}

// update changes state and end of the runs that have ended, behind the store's back: nobody waits for weeks.
func (w *world) update(t *testing.T, dsn string, change func(*listed)) {
	t.Helper()
	tx, err := openDB(t, dsn).BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range w.runs {
		r := &w.runs[i]
		if !r.State.Ended() {
			continue
		}
		change(r)
		row := `UPDATE runs SET state = '%s', updated_at = %[2]d, finished_at = %[2]d WHERE id = '%s'`
		if _, err := tx.ExecContext(t.Context(), fmt.Sprintf(row, r.State, r.Updated.UnixMicro(), r.ID)); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
}

// pick returns a filter of a few conditions.
func (w *world) pick(rnd *rand.Rand) (f state.RunFilter) {
	for range rnd.IntN(3) + 1 {
		r := w.runs[rnd.IntN(len(w.runs))]
		switch rnd.IntN(15) {
		case 0:
			f.Metadata = map[string]string{"team": r.asked.Metadata["team"]}
		case 1:
			f.Metadata = r.asked.Metadata
		case 2:
			f.States = []state.RunState{r.State}
		case 3:
			f.States = []state.RunState{state.RunQueued, state.RunFailed}
		case 4:
			f.Factories = []string{r.FactoryUID, "fac_none"}
		case 5:
			f.AutomationUID = r.AutomationUID
		case 6:
			f.Name = r.asked.ConfigName
		case 7:
			if f.Ancestor = r.ID; rnd.IntN(2) == 0 && r.ParentRunID != "" {
				f.Ancestor = r.ParentRunID
			}
		case 8:
			f.CreatedBefore = &r.Created
		case 9:
			f.CreatedAfter = &r.Created
		case 10:
			if f.UpdatedAfter = &r.Updated; rnd.IntN(2) == 0 {
				f.UpdatedAfter, f.UpdatedBefore = nil, &r.Updated
			}
		case 11:
			f.States = []state.RunState{state.RunClaimed}
		case 12:
			f.Query = r.Title
		case 13:
			f.ArtifactType = string(state.ArtifactReference)
		case 14:
			f.ArtifactType = string(state.ArtifactPullRequest)
		}
	}
	return f
}

func (w *world) descends(l listed, ancestor string) bool {
	for l.ParentRunID != "" && l.ParentRunID != ancestor {
		i := slices.IndexFunc(w.runs, func(p listed) bool { return p.ID == l.ParentRunID })
		l = w.runs[i]
	}
	return l.ParentRunID == ancestor
}

// matches is a filter as docs/contract.md, section 4, describes it.
func (w *world) matches(f state.RunFilter, l listed) bool {
	for k, v := range f.Metadata {
		if l.asked.Metadata[k] != v {
			return false
		}
	}
	if f.ArtifactType != "" && !slices.Contains(l.links, state.ArtifactType(f.ArtifactType)) {
		return false
	}
	return strings.Contains(l.Title, f.Query) && (len(f.States) == 0 || slices.Contains(f.States, l.State)) &&
		(len(f.Factories) == 0 || slices.Contains(f.Factories, l.FactoryUID)) &&
		(f.AutomationUID == "" || f.AutomationUID == l.AutomationUID) &&
		(f.Name == "" || f.Name == l.asked.ConfigName) &&
		(f.Ancestor == "" || w.descends(l, f.Ancestor)) &&
		(f.CreatedBefore == nil || l.Created.Before(*f.CreatedBefore)) &&
		(f.CreatedAfter == nil || l.Created.After(*f.CreatedAfter)) &&
		(f.UpdatedAfter == nil || l.Updated.After(*f.UpdatedAfter)) &&
		(f.UpdatedBefore == nil || l.Updated.Before(*f.UpdatedBefore))
}

// sorted returns the IDs of the runs in an order.
func sorted(runs []listed, o state.RunOrder) (ids []string) {
	slices.SortFunc(runs, func(a, b listed) int {
		n := 0
		switch o.By {
		case state.SortCreated:
			n = a.Created.Compare(b.Created)
		case state.SortTitle:
			n = strings.Compare(a.Title, b.Title)
		case state.SortAgent:
			n = cmp.Or(strings.Compare(a.asked.ConfigName, b.asked.ConfigName), a.Updated.Compare(b.Updated))
		default:
			n = a.Updated.Compare(b.Updated)
		}
		if n = cmp.Or(n, strings.Compare(a.ID, b.ID)); !o.Ascending {
			n = -n
		}
		return n
	})
	for _, r := range runs {
		ids = append(ids, r.ID)
	}
	return ids
}

// TestListsAreComplete pages through lists of every order with all kinds of filters.
func TestListsAreComplete(t *testing.T) {
	statetest.EachDSN(t, func(t *testing.T, dsn string) {
		w := newWorld(t, dsn, 1200)
		rnd := rand.New(rand.NewPCG(1, 2))
		for range 24 {
			f := w.pick(rnd)
			o := state.RunOrder{By: []state.RunSort{"", state.SortUpdated, state.SortCreated, state.SortTitle, state.SortAgent}[rnd.IntN(5)], Ascending: rnd.IntN(3) == 0}
			limit := []int{20, 60, 500}[rnd.IntN(3)]
			w.complete(t, f, o, limit)
		}
		if n := w.complete(t, state.RunFilter{Query: "nowhere"}, state.RunOrder{}, 20); n != 2 {
			t.Errorf("the list of no run has %d pages, want 2: one that looks at 1000 runs, and one at the rest", n)
		}
		// Now more were at work at one moment than are sorted in memory, and the first made are the last updated.
		end := w.runs[len(w.runs)-1].Created.Add(time.Hour)
		w.update(t, dsn, func(r *listed) { r.Updated = end.Add(end.Sub(r.Created)) })
		for _, f := range []state.RunFilter{{CreatedBefore: &end}, {CreatedBefore: &end, Factories: []string{"fac_1"}}, {Name: "agent-1"}} {
			for _, by := range []state.RunSort{state.SortUpdated, state.SortCreated} {
				w.complete(t, f, state.RunOrder{By: by}, 20)
			}
		}
	})
}

// complete pages through a list and returns how many pages it has.
func (w *world) complete(t *testing.T, f state.RunFilter, o state.RunOrder, limit int) (pages int) {
	t.Helper()
	want := sorted(slices.DeleteFunc(slices.Clone(w.runs), func(l listed) bool { return !w.matches(f, l) }), o)
	var got []string
	var after *state.RunPosition
	for more := true; more && len(got) <= len(w.runs); more = after != nil {
		runs, next, err := w.Runs(t.Context(), f, o, after, limit)
		if err != nil {
			t.Fatal(err)
		}
		again, nextAgain, err := w.Runs(t.Context(), f, o, after, limit)
		if err != nil || !reflect.DeepEqual(runs, again) || !gocmp.Equal(next, nextAgain) {
			diff := gocmp.Diff(runs, again, gocmp.AllowUnexported(state.Run{}))
			t.Errorf("%+v in the order %+v: the same request has another page: %v, %s", f, o, err, diff)
		}
		for _, r := range runs {
			got = append(got, r.ID)
		}
		after = next
		pages++
	}
	if !slices.Equal(got, want) {
		t.Errorf("%+v in the order %+v, pages of %d: %d runs, want %d", f, o, limit, len(got), len(want))
	}
	return pages
}

// TestListsWhileRunsChange pages while runs are added, end, and are gone on with: each of the others is
// shown once.
func TestListsWhileRunsChange(t *testing.T) {
	statetest.EachDSN(t, func(t *testing.T, dsn string) {
		w := newWorld(t, dsn, 400)
		rnd := rand.New(rand.NewPCG(3, 4))
		changed := map[string]bool{}
		for range 30 {
			f := w.pick(rnd)
			o := state.RunOrder{By: []state.RunSort{state.SortUpdated, state.SortCreated, state.SortTitle, state.SortAgent}[rnd.IntN(4)], Ascending: rnd.IntN(3) == 0}
			seen := map[string]int{}
			var after *state.RunPosition
			for more, pages := true, 0; more; pages++ {
				runs, next, err := w.Runs(t.Context(), f, o, after, 25)
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range runs {
					seen[r.ID]++
				}
				after, more = next, next != nil
				if pages >= 5 {
					continue
				}
				r := w.runs[rnd.IntN(len(w.runs))]
				changed[r.ID] = true
				w.change(t, r.ID, pages%2 == 0)
				added := r.asked
				added.At = time.Time{}
				create(t, w.Store, added)
			}
			for _, l := range w.runs {
				want := 0
				if w.matches(f, l) {
					want = 1
				}
				if !changed[l.ID] && seen[l.ID] != want {
					t.Errorf("%+v in the order %+v: run %s is shown %d times, want %d", f, o, l.ID, seen[l.ID], want)
				}
			}
		}
		for team := range 3 {
			value := fmt.Sprint("team-", team)
			got, want := w.all(t, state.RunFilter{Metadata: map[string]string{"team": value}}), w.all(t, state.RunFilter{})
			want = slices.DeleteFunc(want, func(r state.Run) bool { return r.Metadata["team"] != value })
			if !slices.EqualFunc(got, want, func(a, b state.Run) bool { return a.ID == b.ID }) {
				t.Errorf("%d runs of %s, want %d", len(got), value, len(want))
			}
		}
	})
}

// change ends a run that is queued, by its cancellation or by its success, and continues one that has ended.
func (w *world) change(t *testing.T, id string, cancel bool) {
	t.Helper()
	var err error
	if cancel {
		_, err = w.RequestCancel(t.Context(), id, "tester")
	} else {
		var claim state.Claim
		if claim, _, err = w.ClaimRun(t.Context(), id, "wrk_1", "worker", time.Minute); err == nil {
			_, err = w.StartRun(t.Context(), claim, time.Minute)
		}
		if err == nil {
			_, err = w.FinishRun(t.Context(), claim, state.Result{State: state.RunSucceeded})
		}
	}
	if errors.Is(err, state.ErrConflict) {
		_, _, err = w.Followup(t.Context(), id, "go on", state.Idempotency{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// all returns all runs of a filter.
func (w *world) all(t *testing.T, f state.RunFilter) (all []state.Run) {
	t.Helper()
	var after *state.RunPosition
	for more := true; more; more = after != nil {
		runs, next, err := w.Runs(t.Context(), f, state.RunOrder{}, after, 500)
		if err != nil {
			t.Fatal(err)
		}
		all, after = append(all, runs...), next
	}
	return all
}

// TestListsWhileOneRunEnds lists while a run that was read among the live ones ends, and is read among those
// that have ended: the list continues after it.
func TestListsWhileOneRunEnds(t *testing.T) {
	statetest.EachDSN(t, func(t *testing.T, dsn string) {
		w := &world{Store: statetest.Open(t, dsn)}
		add := func(n int, title string, end bool) (last state.Run) {
			for range n {
				r := newRun(title)
				r.ConfigName = "agent"
				if last = create(t, w.Store, r); end {
					w.change(t, last.ID, true)
				}
			}
			return last
		}
		add(3, "wanted", true)
		add(110, "other", true)
		add(5, "wanted", true)
		busy := add(1, "wanted", false)
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			for {
				select {
				case <-stop:
					return
				default:
					w.change(t, busy.ID, true)
				}
			}
		}()
		for range 150 {
			_, next, err := w.Runs(t.Context(), state.RunFilter{Name: "agent", Query: "wanted"}, state.RunOrder{By: state.SortCreated}, nil, 6)
			if err != nil || next == nil {
				t.Errorf("the list ends behind its first page: %v", err)
				break
			}
		}
		close(stop)
		<-stopped
	})
}

// TestListsWhileRunsAreHeld pages while workers take runs and hand them back, which changes neither their title nor
// their creation: each is shown once.
func TestListsWhileRunsAreHeld(t *testing.T) {
	statetest.EachDSN(t, func(t *testing.T, dsn string) {
		s := statetest.Open(t, dsn)
		const n = 900
		ids := make([]string, n)
		var made sync.WaitGroup
		for w := range 30 {
			made.Go(func() {
				for i := w; i < n; i += 30 {
					ids[i] = create(t, s, newRun(fmt.Sprint("title ", i%400))).ID
				}
			})
		}
		made.Wait()

		ctx, end := context.WithCancel(t.Context())
		var held sync.WaitGroup
		for w := range 4 {
			held.Go(func() {
				for i := w; ctx.Err() == nil; i = (i + 4) % n {
					claim, _, err := s.ClaimRun(t.Context(), ids[i], "wrk_1", "worker", time.Hour)
					if err == nil {
						err = s.ReleaseRun(t.Context(), claim)
					}
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		for i := range 12 { // each order twice
			o := state.RunOrder{By: []state.RunSort{state.SortTitle, state.SortCreated}[i%2], Ascending: i%3 == 0}
			seen := map[string]bool{}
			var after *state.RunPosition
			for more := true; more; more = after != nil {
				runs, next, err := s.Runs(t.Context(), state.RunFilter{Sources: []string{"API"}}, o, after, 200)
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range runs {
					if seen[r.ID] {
						t.Errorf("%+v: %s is shown twice", o, r.ID)
					}
					seen[r.ID] = true
				}
				after = next
			}
			if len(seen) != n {
				t.Errorf("%+v: %d runs, want %d", o, len(seen), n)
			}
		}
		end()
		held.Wait()
	})
}
