package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"millwright/api"
	"millwright/runs"
	"millwright/state"
)

// lists measures how long the server takes for a page of each list, with few runs and with many, in turns. Where
// few runs make a shorter page, the ratio is that of pages that are as short.
func lists(ctx context.Context, o options) error {
	var subjects []*subject
	for _, n := range []int{o.few, o.many} {
		s, err := o.subject(ctx, n)
		if err != nil {
			return err
		}
		defer s.close()

		subjects = append(subjects, s)
	}

	warm := 1
	if o.postgres != "" {
		warm = 6 // it plans a statement anew five times before it keeps a plan
	}

	fmt.Printf(
		"\nTime at the server for a page of 20, medians (and slowest) of %d, and how many runs it has; "+
			"ratio of pages with equally many\n\n",
		o.rounds,
	)
	out := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(out, "list\t%d runs\t\t\t%d runs\t\t\tratio\t\n", o.few, o.many)
	for _, q := range asked() {
		times, found, err := o.page(ctx, subjects, q.query, warm)
		if err != nil {
			return err
		}

		fmt.Fprintf(out, "%s\t", q.name)
		for j := range subjects {
			fmt.Fprintf(out, "%s\t(%s)\t%d\t", ms(times[j][o.rounds/2]), ms(times[j][o.rounds-1]), found[j])
		}

		if found[0] > 0 && found[0] < found[1] {
			if times, _, err = o.page(ctx, subjects, fmt.Sprintf("%s&limit=%d", q.query, found[0]), warm); err != nil {
				return err
			}
		}

		fmt.Fprintf(out, "%.2f\t\n", float64(times[1][o.rounds/2])/float64(times[0][o.rounds/2]))
	}

	return out.Flush()
}

// page asks each subject for a page in turns, and returns how long that took, sorted, and how many runs it has.
func (o options) page(
	ctx context.Context,
	subjects []*subject,
	query string,
	warm int,
) (times [2][]time.Duration, found [2]int, err error) {
	for i := range warm + o.rounds {
		for j, s := range subjects {
			p, took, err := s.ask(ctx, s.meant.Replace(query))
			if err != nil {
				return times, found, err
			}
			if found[j] = len(p.Runs); i >= warm {
				times[j] = append(times[j], took)
			}
		}
	}

	for j := range times {
		slices.Sort(times[j])
	}

	return times, found, nil
}

// subject is a state whose lists are measured.
type subject struct {
	api   http.Handler
	meant *strings.Replacer // what words in capitals in the queries mean here
	close func()
}

func (o options) subject(ctx context.Context, n int) (*subject, error) {
	name := "lists"
	if o.backlog {
		name = "backlog"
	}

	dsn, done, err := o.filled(ctx, name, n)
	if err != nil {
		return nil, err
	}

	store, err := state.Open(ctx, state.Config{DSN: dsn, MasterKey: make([]byte, 32)})
	if err != nil {
		return nil, err
	}

	a := api.New(api.Config{Store: store})
	runs.Register(a, runs.Config{Store: store})
	s := &subject{api: a, close: func() { store.Close(); done() }}
	newest, _, err := s.ask(ctx, "")
	if err != nil {
		return nil, err
	}

	parent, _, err := s.ask(ctx, "metadata[build]=build-99")
	if err != nil || len(parent.Runs) != 1 {
		return nil, fmt.Errorf("the ancestor is not there: %v", err)
	}

	before := func(d int) time.Time { return newest.Runs[0].UpdatedAt.Add(-time.Duration(d) * time.Second) }
	deep := api.EncodeCursor(
		map[string]any{"b": "updated_at", "p": state.RunPosition{ID: "0", Time: before(n * 9 / 10).UnixMicro()}},
	)
	s.meant = strings.NewReplacer(
		"HALF",
		before(n/2).UTC().Format(time.RFC3339),
		"DEEP",
		url.QueryEscape(deep),
		"PARENT",
		parent.Runs[0].RunID,
	)

	return s, nil
}

// ask asks for a page and returns how long it took.
func (s *subject) ask(ctx context.Context, query string) (p page, took time.Duration, err error) {
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, api.Base+"/agent/runs?"+query, nil)
	r.Header.Set("Authorization", "Bearer "+apiKey)
	w := httptest.NewRecorder()
	began := time.Now()
	s.api.ServeHTTP(w, r)
	took = time.Since(began)
	if w.Code != http.StatusOK {
		return p, 0, fmt.Errorf("%s: %d %s", query, w.Code, w.Body)
	}
	return p, took, json.Unmarshal(w.Body.Bytes(), &p)
}

type list struct{ name, query string }

// asked are the lists that are measured.
func asked() []list {
	return []list{
		{"first page", ""},
		{"deep page", "cursor=DEEP"},
		{"oldest first", "sort_order=asc"},
		{"by creation", "sort_by=created_at"},
		{"by title", "sort_by=title"},
		{"by agent", "sort_by=agent"},
		{"500 at once", "limit=500"},
		{"state FAILED", "state=FAILED"},
		{"state QUEUED", "state=QUEUED"},
		{"state INPROGRESS", "state=INPROGRESS"},
		{"four states", "state=FAILED&state=ERROR&state=BLOCKED&state=QUEUED"},
		{"task_status running", "task_status=running"},
		{"source common", "source=CUSTOM_WEBHOOK"},
		{"source rare", "source=CLI"},
		{"source of none", "source=SCHEDULED_AGENT"},
		{"name", "name=agent-3"},
		{"model_id", "model_id=model-1"},
		{"creator", "creator=key_1"},
		{"executor", "executor=local3"},
		{"environment_id", "environment_id=env-1"},
		{"skill", "skill=owner/repo:skill-2"},
		{"factory_uid", "factory_uid=fac_3"},
		{"factory_only", "factory_only=true"},
		{"automation_id", "automation_id=auto_3"},
		{"automation_id, only old runs", "automation_id=auto_old"},
		{"webhook_id", "webhook_id=wh_3"},
		{"delivery_id", "delivery_id=dlv_12"},
		{"ancestor_run_id", "ancestor_run_id=PARENT"},
		{"metadata common", "metadata[team]=team-3"},
		{"metadata unique", "metadata[build]=build-99"},
		{"artifact_type common", "artifact_type=FILE"},
		{"artifact_type one in 300", "artifact_type=PULL_REQUEST"},
		{"artifact_type rare", "artifact_type=EXTERNAL_REFERENCE"},
		{"q common", "q=event"},
		{"q of none", "q=nowhere"},
		{"created_after", "created_after=HALF"},
		{"created_before", "created_before=HALF"},
		{"updated_after", "updated_after=HALF"},
		{"state and factory", "state=FAILED&factory_uid=fac_3"},
		{"state and automation", "state=BLOCKED&automation_id=auto_11"},
		{"state by title", "state=FAILED&sort_by=title"},
		{"webhook by creation", "webhook_id=wh_3&sort_by=created_at"},
		{"webhook by title", "webhook_id=wh_3&sort_by=title"},
		{"state by agent", "state=FAILED&sort_by=agent"},
		{"webhook by agent", "webhook_id=wh_3&sort_by=agent"},
		{"metadata and source", "metadata[team]=team-3&source=CLI"},
		{"metadata by creation", "metadata[team]=team-3&sort_by=created_at"},
		{"created_before and state", "state=FAILED&created_before=HALF"},
		{"created_before, oldest first", "sort_order=asc&created_before=HALF"},
		{"created_before by creation", "sort_by=created_at&created_before=HALF"},
		{"nothing of this", "automation_id=auto_none&sort_by=title"},
	}
}

type page struct {
	Runs []struct {
		RunID     string    `json:"run_id"`
		UpdatedAt time.Time `json:"updated_at"`
	} `json:"runs"`
	PageInfo api.PageInfo `json:"page_info"`
}
