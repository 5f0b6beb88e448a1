package forge_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"millwright/forge"
)

// TestHooks makes, lists, changes and removes a webhook, with the exchanges of the forges' documentation.
func TestHooks(t *testing.T) {
	for kind, events := range map[string][]string{
		forge.GitHub: {"push", "pull_request"},
		forge.GitLab: {"push", "merge_requests"},
	} {
		t.Run(kind, func(t *testing.T) {
			set := one(t, forge.Settings{Kind: kind, URL: recorded(t, kind+"_hooks.json"), TokenSecret: "TOKEN"})
			f, err := set.Of(tool)
			must(t, err)
			hooks := f.(forge.Hooks)
			ctx := t.Context()

			none, err := hooks.Hooks(ctx, tool)
			must(t, err)
			equal(t, "webhooks", len(none), 0)

			want := forge.NewHook{URL: "https://hooks.example.com/webhooks/w/wh_1", Secret: "s3cret", Events: events}
			made, err := hooks.CreateHook(ctx, tool, want)
			must(t, err)
			all, err := hooks.Hooks(ctx, tool)
			must(t, err)
			equal(t, "webhooks", all, []forge.Hook{made})
			if !made.Active || made.URL != want.URL || !slices.Equal(made.Events, slices.Sorted(slices.Values(events))) {
				t.Errorf("made %+v", made)
			}

			want.Events = []string{"push"}
			must(t, hooks.UpdateHook(ctx, tool, made.ID, want))
			if again, ok := hooks.(forge.Redeliveries); ok {
				redeliveries(t, again, made.ID)
			}
			must(t, hooks.DeleteHook(ctx, tool, made.ID))
			must(t, hooks.DeleteHook(ctx, tool, made.ID))
		})
	}
}

func redeliveries(t *testing.T, f forge.Redeliveries, hook int64) {
	t.Helper()
	since := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	failed, err := f.FailedDeliveries(t.Context(), tool, hook, since)
	must(t, err)
	equal(t, "failed deliveries", failed, []forge.Delivery{{ID: 3, GUID: "b", At: since.Add(3 * time.Minute)}})
	must(t, f.Redeliver(t.Context(), tool, hook, failed[0].ID))
}

// TestManyDeliveries finds a failed delivery behind 1,500 that were delivered.
func TestManyDeliveries(t *testing.T) {
	now := time.Now().UTC().Truncate(time.Second)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page, _ := strconv.Atoi(r.FormValue("cursor"))
		list := []any{}
		for i := range 100 {
			id, status := 100*page+i+1, 202
			if id == 1600 {
				status = 503
			}
			list = append(list, map[string]any{
				"id": id, "guid": fmt.Sprint("g", id), "event": "push", "status_code": status,
				"delivered_at": now.Add(-time.Duration(id) * time.Second),
			})
		}

		if page < 15 {
			w.Header().Set("Link", fmt.Sprintf(`<http://%s%s?per_page=100&cursor=%d>; rel="next"`, r.Host, r.URL.Path, page+1))
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_ = json.NewEncoder(w).Encode(list)
	}))
	t.Cleanup(server.Close)

	f, err := one(t, forge.Settings{Kind: forge.GitHub, URL: server.URL, TokenSecret: "TOKEN"}).Of(tool)
	must(t, err)
	failed, err := f.(forge.Redeliveries).FailedDeliveries(t.Context(), tool, 1, now.Add(-time.Hour))
	must(t, err)
	if len(failed) != 1 || failed[0].ID != 1600 {
		t.Errorf("failed deliveries %+v", failed)
	}
}

// TestCutFileLists refuses to list the files of a merge request that GitLab does not list whole.
func TestCutFileLists(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		if strings.HasSuffix(r.URL.Path, "/diffs") {
			_, _ = io.WriteString(w, `[]`)
			return
		}
		_, _ = io.WriteString(w, `{"iid": 8, "changes_count": "1000+"}`)
	}))
	t.Cleanup(server.Close)

	f, err := one(t, forge.Settings{Kind: forge.GitLab, URL: server.URL, TokenSecret: "TOKEN"}).Of(tool)
	must(t, err)
	_, err = f.PullFiles(t.Context(), tool, 8)
	is(t, err, forge.ErrRefused)
}

// TestHooksOfGitLab refuses events that GitLab does not have.
func TestHooksOfGitLab(t *testing.T) {
	f, err := one(t, forge.Settings{Kind: forge.GitLab, URL: "http://127.0.0.1:1", TokenSecret: "TOKEN"}).Of(tool)
	must(t, err)
	_, err = f.(forge.Hooks).CreateHook(t.Context(), tool, forge.NewHook{URL: "https://hooks.example.com/x", Events: []string{"star"}})
	is(t, err, forge.ErrRefused)
}
