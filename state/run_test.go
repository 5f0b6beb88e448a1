package state_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"millwright/state"
	"millwright/state/notice"
	"millwright/state/statetest"
)

// newRun is a run that an API key asks for.
func newRun(prompt string) state.NewRun {
	return state.NewRun{
		Title: prompt, Prompt: prompt, Source: "API",
		Creator: state.Creator{Type: "service_account", UID: "key_1", DisplayName: "ci"},
	}
}

func create(t *testing.T, s *state.Store, r state.NewRun, files ...state.Attachment) state.Run {
	t.Helper()
	run, err := s.CreateRun(t.Context(), r, files, state.Idempotency{})
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func TestCreateRun(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		ctx := t.Context()
		notices, end := s.Subscribe(10, notice.Queued)
		defer end()
		n := newRun("Look at this")
		n.Envelope = "The envelope."
		n.Config = []byte(`{"name":"x","mcp_servers":{"a":{"url":"https://a","headers":{"X":"***"}}}}`)
		n.Sealed = []byte(`{"a":{"url":"https://a","headers":{"X":"hunter2"}}}`)
		n.ConfigName, n.Metadata, n.Secrets = "x", map[string]string{"ticket": "7"}, []string{"TOKEN"}
		r := create(t, s, n, state.Attachment{Name: "a.txt", MimeType: "text/plain", Body: []byte("hello")})
		if diff := cmp.Diff(r, run(t, s, r.ID), cmp.AllowUnexported(state.Run{})); diff != "" {
			t.Errorf("the new run is not as it is stored: %s", diff)
		}
		if r.State != state.RunQueued || r.Execution != 1 || r.Attempt != 1 || r.RootRunID != r.ID || r.ConversationID == "" || r.Started != nil || r.Finished != nil {
			t.Errorf("new run: %+v", r)
		}
		if r.Metadata["ticket"] != "7" || !cmp.Equal(r.Secrets, []string{"TOKEN"}) {
			t.Errorf("metadata %v, secrets %v", r.Metadata, r.Secrets)
		}
		if got, _ := s.SubmittedPrompt(ctx, r); got != "Look at this\n\nThe envelope." {
			t.Errorf("submitted prompt %q", got)
		}
		notice, _ := statetest.Receive(t, "the notice of the run", notices)
		if notice.ID == "" { // that we listen to other replicas now
			notice, _ = statetest.Receive(t, "the notice of the run", notices)
		}
		if notice.ID != r.ID {
			t.Errorf("announced %q, want %q", notice.ID, r.ID)
		}
		if strings.Contains(string(r.Config), "hunter2") {
			t.Error("the configuration shows a sealed value")
		}
		if got, err := s.Servers(ctx, r); err != nil || string(got) != string(n.Sealed) {
			t.Errorf("servers %s, %v", got, err)
		}
		files, err := s.Attachments(ctx, r)
		if err != nil || len(files) != 1 || files[0].Name != "a.txt" || files[0].Size != 5 {
			t.Errorf("attachments %v, %v", files, err)
		}
		if of, err := s.AttachmentsOf(ctx, []state.Run{r, {ID: state.NewRunID()}}); err != nil || !cmp.Equal(of, map[string][]state.Attachment{r.ID: files}) {
			t.Errorf("attachments by run %v, %v", of, err)
		}
		if a, err := s.Attachment(ctx, r, "a.txt"); err != nil || string(a.Body) != "hello" || a.MimeType != "text/plain" {
			t.Errorf("attachment %v, %v", a, err)
		}
		for _, name := range []string{"b.txt", state.PayloadName, ""} {
			if _, err := s.Attachment(ctx, r, name); !errors.Is(err, state.ErrNotFound) {
				t.Errorf("attachment %q: %v", name, err)
			}
		}
		if _, err := s.Run(ctx, state.NewRunID()); !errors.Is(err, state.ErrNotFound) {
			t.Errorf("unknown run: %v", err)
		}

		child := newRun("child")
		child.ParentRunID, child.ConversationID = r.ID, r.ConversationID
		c := create(t, s, child)
		if c.RootRunID != r.ID || c.ConversationID != r.ConversationID {
			t.Errorf("child: %+v", c)
		}
		for _, change := range []func(*state.NewRun){
			func(n *state.NewRun) { n.ParentRunID = state.NewRunID() },
			func(n *state.NewRun) { n.ConversationID = state.NewRunID() },
		} {
			bad := newRun("bad")
			change(&bad)
			if _, err := s.CreateRun(ctx, bad, nil, state.Idempotency{}); !errors.Is(err, state.ErrNotFound) {
				t.Errorf("%+v: %v", bad, err)
			}
		}
	})
}

func TestIdempotentCreate(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		ctx := t.Context()
		idem := state.Idempotency{KeyUID: "key_1", Key: "once", Request: [32]byte{1}}
		ids := make([]string, 20)
		var wg sync.WaitGroup
		for i := range ids {
			wg.Go(func() {
				r, err := s.CreateRun(ctx, newRun("x"), nil, idem)
				if err != nil {
					t.Error(err)
				}
				ids[i] = r.ID
			})
		}
		wg.Wait()
		for _, id := range ids {
			if id != ids[0] {
				t.Fatalf("runs %v, want one", ids)
			}
		}
		runs, _, err := s.Runs(ctx, state.RunFilter{}, state.RunOrder{}, nil, 100)
		if err != nil || len(runs) != 1 {
			t.Fatalf("%d runs, %v", len(runs), err)
		}
		other := idem
		other.Request[0] = 2
		if _, err := s.CreateRun(ctx, newRun("y"), nil, other); !errors.Is(err, state.ErrConflict) {
			t.Errorf("other body: %v", err)
		}
		other.KeyUID = "key_2"
		if r, err := s.CreateRun(ctx, newRun("y"), nil, other); err != nil || r.ID == ids[0] {
			t.Errorf("other key holder: %v %v", r.ID, err)
		}
		bad := newRun("z")
		bad.ParentRunID = state.NewRunID()
		retry := state.Idempotency{KeyUID: "key_1", Key: "twice"}
		if _, err := s.CreateRun(ctx, bad, nil, retry); err == nil {
			t.Error("a missing parent is accepted")
		}
		if _, err := s.CreateRun(ctx, newRun("z"), nil, retry); err != nil {
			t.Errorf("a request that failed took the key: %v", err)
		}
	})
}

func TestListRuns(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		ctx := t.Context()
		base := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		ids := map[string]string{}
		add := func(name string, at int, change func(*state.NewRun)) {
			n := newRun(name)
			n.At = base.Add(time.Duration(at) * time.Second)
			change(&n)
			ids[name] = create(t, s, n).ID
		}
		add("alpha", 0, func(n *state.NewRun) {
			n.ConfigName, n.ModelID, n.FactoryUID, n.Metadata = "zed", "m1", "fac_1", map[string]string{"a": "1"}
		})
		add("beta", 1, func(n *state.NewRun) {
			n.ConfigName, n.Source, n.WebhookUID, n.AutomationUID, n.DeliveryUID = "ann", "CUSTOM_WEBHOOK", "wh_1", "auto_1", "dlv_1"
		})
		add("gamma 100%", 2, func(n *state.NewRun) {
			n.EnvironmentID, n.SkillSpec, n.Metadata = "env", "o/r:s", map[string]string{"a": "1", "b": "2"}
		})
		add("delta", 3, func(n *state.NewRun) {
			n.ParentRunID, n.Creator.UID, n.FactoryUID = ids["alpha"], "key_2", "fac_2"
		})
		add("Epsilon", 3, func(n *state.NewRun) { n.ParentRunID, n.Prompt = ids["delta"], "secret WORD" })
		if _, err := s.RequestCancel(ctx, ids["beta"], "tester"); err != nil { // now the last one updated
			t.Fatal(err)
		}
		at := func(d int) *time.Time { t := base.Add(time.Duration(d) * time.Second); return &t }
		tests := []struct {
			name   string
			filter state.RunFilter
			order  state.RunOrder
			want   string
		}{
			{"default", state.RunFilter{}, state.RunOrder{}, "beta Epsilon delta gamma alpha"},
			{"ascending", state.RunFilter{}, state.RunOrder{By: state.SortUpdated, Ascending: true}, "alpha gamma delta Epsilon beta"},
			{"created", state.RunFilter{}, state.RunOrder{By: state.SortCreated}, "Epsilon delta gamma beta alpha"},
			{"title", state.RunFilter{}, state.RunOrder{By: state.SortTitle, Ascending: true}, "Epsilon alpha beta delta gamma"},
			{"agent", state.RunFilter{}, state.RunOrder{By: state.SortAgent, Ascending: true}, "gamma delta Epsilon beta alpha"},
			{"state", state.RunFilter{States: []state.RunState{state.RunCancelled}}, state.RunOrder{}, "beta"},
			{"states", state.RunFilter{States: []state.RunState{state.RunCancelled, state.RunQueued, state.RunCancelled}}, state.RunOrder{}, "beta Epsilon delta gamma alpha"},
			{"states by title", state.RunFilter{States: []state.RunState{state.RunCancelled, state.RunQueued}}, state.RunOrder{By: state.SortTitle}, "gamma delta beta alpha Epsilon"},
			{"sources and states", state.RunFilter{Sources: []string{"API", "CUSTOM_WEBHOOK"}, States: []state.RunState{state.RunQueued, state.RunError}}, state.RunOrder{}, "Epsilon delta gamma alpha"},
			{"pending", state.RunFilter{States: []state.RunState{state.RunPending}}, state.RunOrder{}, ""},
			{"name", state.RunFilter{Name: "zed"}, state.RunOrder{}, "alpha"},
			{"model", state.RunFilter{ModelID: "m1"}, state.RunOrder{}, "alpha"},
			{"environment", state.RunFilter{EnvironmentID: "env"}, state.RunOrder{}, "gamma"},
			{"skill", state.RunFilter{Skill: "o/r:s"}, state.RunOrder{}, "gamma"},
			{"creator", state.RunFilter{Creator: "key_2"}, state.RunOrder{}, "delta"},
			{"executor", state.RunFilter{Executor: "nobody"}, state.RunOrder{}, ""},
			{"automation", state.RunFilter{AutomationUID: "auto_1"}, state.RunOrder{}, "beta"},
			{"webhook", state.RunFilter{WebhookUID: "wh_1"}, state.RunOrder{}, "beta"},
			{"delivery", state.RunFilter{DeliveryUID: "dlv_1"}, state.RunOrder{}, "beta"},
			{"factories", state.RunFilter{Factories: []string{"fac_1", "fac_2"}}, state.RunOrder{}, "delta alpha"},
			{"factory only", state.RunFilter{FactoryOnly: true}, state.RunOrder{}, "delta alpha"},
			{"ancestor", state.RunFilter{Ancestor: ids["alpha"]}, state.RunOrder{}, "Epsilon delta"},
			{"nearer ancestor", state.RunFilter{Ancestor: ids["delta"]}, state.RunOrder{}, "Epsilon"},
			{"metadata", state.RunFilter{Metadata: map[string]string{"a": "1"}}, state.RunOrder{}, "gamma alpha"},
			{"all metadata", state.RunFilter{Metadata: map[string]string{"a": "1", "b": "2"}}, state.RunOrder{}, "gamma"},
			{"query in title", state.RunFilter{Query: "LPH"}, state.RunOrder{}, "alpha"},
			{"query in prompt", state.RunFilter{Query: "word"}, state.RunOrder{}, "Epsilon"},
			{"query with a wildcard", state.RunFilter{Query: "100%"}, state.RunOrder{}, "gamma"},
			{"query that is only a wildcard", state.RunFilter{Query: "_"}, state.RunOrder{}, ""},
			{"query by ID", state.RunFilter{Query: strings.ToUpper(ids["delta"])}, state.RunOrder{}, "delta"},
			{"created after", state.RunFilter{CreatedAfter: at(2)}, state.RunOrder{}, "Epsilon delta"},
			{"created before", state.RunFilter{CreatedBefore: at(1)}, state.RunOrder{}, "alpha"},
			{"updated after", state.RunFilter{UpdatedAfter: at(100)}, state.RunOrder{}, "beta"},
		}
		for _, test := range tests {
			for _, limit := range []int{1, 2, 100} {
				if got := list(t, s, test.filter, test.order, limit); got != test.want {
					t.Errorf("%s, pages of %d: %q, want %q", test.name, limit, got, test.want)
				}
			}
		}
	})
}

// list walks all pages and returns the first words of the titles.
func list(t *testing.T, s *state.Store, f state.RunFilter, o state.RunOrder, limit int) string {
	t.Helper()
	var titles []string
	var after *state.RunPosition
	for {
		runs, next, err := s.Runs(t.Context(), f, o, after, limit)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range runs {
			title, _, _ := strings.Cut(r.Title, " ")
			titles = append(titles, title)
		}
		if after = next; next == nil {
			return strings.Join(titles, " ")
		}
	}
}

// TestListsBesideManyQueuedRuns lists few runs, some of which have ended, beside more queued ones than are looked
// at for one page: each is shown once, in any order.
func TestListsBesideManyQueuedRuns(t *testing.T) {
	s := statetest.Open(t, statetest.SQLite(t))
	want := map[string]int{}
	var mu sync.Mutex
	const n = 12_600
	add := func(i int) {
		r := newRun(fmt.Sprint("t", i%7))
		if i%300 == 0 {
			r.FactoryUID, r.Metadata = "fac_1", map[string]string{"rare": "yes"}
		}
		made := create(t, s, r)
		if i%600 == 0 {
			if _, err := s.RequestCancel(t.Context(), made.ID, "tester"); err != nil {
				t.Error(err)
			}
		}
		if i%300 == 0 {
			mu.Lock()
			want[made.ID] = 1
			mu.Unlock()
		}
	}
	var wg sync.WaitGroup
	for w := range 30 {
		wg.Go(func() {
			for i := w; i < n; i += 30 {
				add(i)
			}
		})
	}
	wg.Wait()
	for _, f := range []state.RunFilter{
		{Factories: []string{"fac_1"}},
		{FactoryOnly: true},
		{Factories: []string{"fac_0", "fac_1"}, Sources: []string{"API"}},
		{Factories: []string{"fac_1"}, Metadata: map[string]string{"rare": "yes"}},
		{Metadata: map[string]string{"rare": "yes"}},
	} {
		for _, o := range []state.RunOrder{{}, {Ascending: true}, {By: state.SortCreated}, {By: state.SortTitle, Ascending: true}, {By: state.SortAgent}} {
			got := map[string]int{}
			var after *state.RunPosition
			for more := true; more; more = after != nil {
				runs, next, err := s.Runs(t.Context(), f, o, after, 4)
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range runs {
					got[r.ID]++
				}
				after = next
			}
			if !maps.Equal(got, want) {
				t.Errorf("%+v %+v: %d runs, want %d: %v", f, o, len(got), len(want), got)
			}
		}
	}
}

func TestPagesAreStableWhileRunsAreAdded(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		for _, by := range []state.RunSort{state.SortUpdated, state.SortCreated, state.SortTitle, state.SortAgent} {
			want := map[string]bool{}
			for i := range 12 {
				want[create(t, s, newRun(fmt.Sprint(by, i%3))).ID] = true
			}
			o := state.RunOrder{By: by}
			var after *state.RunPosition
			seen := map[string]int{}
			for more := true; more; {
				runs, next, err := s.Runs(t.Context(), state.RunFilter{Query: string(by)}, o, after, 3)
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range runs {
					seen[r.ID]++
				}
				after, more = next, next != nil
				create(t, s, newRun(fmt.Sprint(by, "zzz")))
			}
			for id := range want {
				if seen[id] != 1 {
					t.Errorf("%s: run %s was shown %d times", by, id, seen[id])
				}
			}
		}
	})
}

func TestConcurrentChangesShareACommit(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for i := range 200 {
			wg.Go(func() {
				n := newRun("x")
				if i%5 == 0 {
					n.ParentRunID = state.NewRunID() // fails, and must not fail its neighbours
				}
				_, err := s.CreateRun(t.Context(), n, nil, state.Idempotency{})
				if (err != nil) != (i%5 == 0) {
					t.Error(err)
				}
			})
			wg.Go(func() { s.CreateRun(ctx, newRun("given up"), nil, state.Idempotency{}) })
			if i == 100 {
				cancel()
			}
		}
		wg.Wait()
		cancel()
		runs, _, err := s.Runs(t.Context(), state.RunFilter{Query: "x"}, state.RunOrder{}, nil, 500)
		if err != nil || len(runs) != 160 {
			t.Errorf("%d runs, %v", len(runs), err)
		}
	})
}
