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
	"text/tabwriter"
	"time"

	"millwright/api"
	"millwright/runs"
	"millwright/state"
)

const apiKey = "mw_benchmark-key-of-thirty-two-characters-or-more"

// lists measures how long the server takes for a page of each list, with few runs and with many.
func lists(ctx context.Context, o options) error {
	var few, many []timing
	var err error
	if few, err = o.listsOf(ctx, o.few); err != nil {
		return err
	}
	if many, err = o.listsOf(ctx, o.many); err != nil {
		return err
	}
	fmt.Printf("\nTime at the server for a page of 20, medians (and slowest) of %d\n\n", o.rounds)
	out := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(out, "list\t%d runs\t\t%d runs\t\tratio\tfound\t\n", o.few, o.many)
	for i, m := range many {
		f := few[i]
		fmt.Fprintf(out, "%s\t%s\t(%s)\t%s\t(%s)\t%.2f\t%d\t\n", m.name, ms(f.median), ms(f.slowest), ms(m.median), ms(m.slowest), float64(m.median)/float64(f.median), m.found)
	}
	return out.Flush()
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d.Microseconds())/1000) }

type timing struct {
	name            string
	median, slowest time.Duration
	found           int
}

func (o options) listsOf(ctx context.Context, n int) ([]timing, error) {
	dsn, done, err := o.filled(ctx, "lists", n)
	if err != nil {
		return nil, err
	}
	defer done()
	store, err := state.Open(ctx, state.Config{DSN: dsn, MasterKey: make([]byte, 32)})
	if err != nil {
		return nil, err
	}
	defer store.Close()
	a := api.New(api.Config{Store: store})
	runs.Register(a, runs.Config{Store: store})
	ask := func(query string) (page, time.Duration, error) {
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, api.Base+"/agent/runs?"+query, nil)
		r.Header.Set("Authorization", "Bearer "+apiKey)
		w := httptest.NewRecorder()
		began := time.Now()
		a.ServeHTTP(w, r)
		took := time.Since(began)
		var p page
		if w.Code != http.StatusOK {
			return p, 0, fmt.Errorf("%s: %d %s", query, w.Code, w.Body)
		}
		return p, took, json.Unmarshal(w.Body.Bytes(), &p)
	}
	newest, _, err := ask("")
	if err != nil {
		return nil, err
	}
	before := func(d int) time.Time { return newest.Runs[0].UpdatedAt.Add(-time.Duration(d) * time.Second) }
	old := before(n / 2).UTC().Format(time.RFC3339)
	warm := 0
	if o.postgres != "" {
		warm = 6 // it plans a statement anew five times before it keeps a plan
	}
	var all []timing
	for _, q := range [][2]string{
		{"first page", ""},
		{"deep page", "deep"},
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
		{"ancestor_run_id", "ancestor_run_id=ancestor"},
		{"metadata common", "metadata[team]=team-3"},
		{"metadata unique", "metadata[build]=build-99"},
		{"q common", "q=event"},
		{"q of none", "q=nowhere"},
		{"created_after", "created_after=" + old},
		{"created_before", "created_before=" + old},
		{"updated_after", "updated_after=" + old},
		{"state and factory", "state=FAILED&factory_uid=fac_3"},
		{"state and automation", "state=BLOCKED&automation_id=auto_11"},
		{"state by title", "state=FAILED&sort_by=title"},
		{"webhook by creation", "webhook_id=wh_3&sort_by=created_at"},
		{"webhook by title", "webhook_id=wh_3&sort_by=title"},
		{"metadata and source", "metadata[team]=team-3&source=CLI"},
		{"metadata by creation", "metadata[team]=team-3&sort_by=created_at"},
		{"created_before and state", "state=FAILED&created_before=" + old},
		{"created_before, oldest first", "sort_order=asc&created_before=" + old},
		{"created_before by creation", "sort_by=created_at&created_before=" + old},
		{"nothing of this", "automation_id=auto_none&sort_by=title"},
	} {
		query := q[1]
		switch query {
		case "deep":
			query = "cursor=" + url.QueryEscape(api.EncodeCursor(map[string]any{
				"b": "updated_at", "p": state.RunPosition{ID: "0", Time: before(n * 9 / 10).UnixMicro()},
			}))
		case "ancestor_run_id=ancestor":
			p, _, err := ask("metadata[build]=build-99")
			if err != nil || len(p.Runs) != 1 {
				return nil, fmt.Errorf("the ancestor is not there: %v", err)
			}
			query = "ancestor_run_id=" + p.Runs[0].RunID
		}
		t := timing{name: q[0]}
		var times []time.Duration
		for i := range warm + o.rounds {
			p, took, err := ask(query)
			if err != nil {
				return nil, err
			}
			if t.found = len(p.Runs); i >= warm {
				times = append(times, took)
			}
		}
		slices.Sort(times)
		t.median, t.slowest = times[len(times)/2], times[len(times)-1]
		all = append(all, t)
	}
	return all, nil
}

type page struct {
	Runs []struct {
		RunID     string    `json:"run_id"`
		UpdatedAt time.Time `json:"updated_at"`
	} `json:"runs"`
	PageInfo api.PageInfo `json:"page_info"`
}
