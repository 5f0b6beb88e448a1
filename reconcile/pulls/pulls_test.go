package pulls

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"millwright/forge"
	"millwright/reconcile"
	"millwright/state"
	"millwright/state/checks"
	"millwright/state/statetest"
)

// hub serves the part of GitHub's API that the watcher needs.
type hub struct {
	mu      sync.Mutex
	lists   int // how often the pull requests were listed
	listed  int // files of one
	private bool
	pulls   int            // open ones, with numbers from 1
	files   map[int]string // by number of the pull request; an empty text: the list of its files is not found
	looks   int            // for the visibility of the repository
	wait    string         // seconds that the forge asks to wait; empty: it answers
}

func (h *hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()

	answer := func(status int, v any) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v)
	}

	path := strings.TrimPrefix(r.URL.Path, "/api/v3/repos/acme/shop")
	var number int
	_, _ = fmt.Sscanf(path, "/pulls/%d/files", &number)

	switch {
	case h.wait != "":
		w.Header().Set("Retry-After", h.wait)
		answer(http.StatusTooManyRequests, map[string]any{"message": "rate limit"})
	case path == "":
		h.looks++
		answer(http.StatusOK, map[string]any{"private": h.private})
	case path == "/pulls":
		h.lists++
		list := []any{}
		for n := 1; n <= h.pulls; n++ {
			list = append(list, map[string]any{
				"number": n,
				"head":   map[string]any{"sha": fmt.Sprintf("%040d", n), "ref": "b", "repo": map[string]any{"full_name": "acme/shop"}},
				"base":   map[string]any{"ref": "main"},
			})
		}
		answer(http.StatusOK, list)
	case number > 0 && h.files[number] != "" && r.FormValue("page") == "2":
		h.listed++
		answer(http.StatusOK, []any{})
	case number > 0 && h.files[number] != "":
		answer(http.StatusOK, []any{map[string]any{"filename": h.files[number]}})
	default:
		answer(http.StatusNotFound, map[string]any{"message": "Not Found"})
	}
}

// newWatcher returns a watcher of the directory def of acme/shop at a hub. Its repository cannot be fetched.
func newWatcher(t *testing.T, s *state.Store, h *hub) *Watcher {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)

	forges, err := forge.Open(forge.Config{
		Forges: map[string]forge.Settings{"acme": {Kind: forge.GitHub, URL: server.URL, TokenSecret: "TOKEN"}},
		Secret: func(context.Context, string) ([]byte, error) { return []byte("tok"), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	factory, err := s.EnsureFactory(t.Context(), "shop", state.Source{Kind: "git"}, false)
	if err != nil {
		t.Fatal(err)
	}

	git := reconcile.GitConfig{URL: server.URL + "/acme/shop.git", Path: "def", CloneDir: t.TempDir()}
	source, err := reconcile.Dir(reconcile.DirConfig{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	w, err := New(Config{
		Store:   s,
		Factory: factory,
		Loop:    reconcile.New(reconcile.Config{Store: s, Factory: factory, Source: source}),
		Git:     git,
		Forges:  forges,
		On:      func() bool { return true },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.heads.Close() })
	return w
}

// results returns the results of all pull requests, the newest first.
func results(t *testing.T, w *Watcher) (all []checks.Result) {
	t.Helper()
	rows, err := w.cfg.Store.Checks().Pulls(t.Context(), w.cfg.Factory.UID, checks.MaxPulls)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range rows {
		all = append(all, c.Result)
	}
	return all
}

// TestUnlistedFiles checks a pull request whose files the forge does not list: it fails in the end, and holds back
// no other.
func TestUnlistedFiles(t *testing.T) {
	w := newWatcher(t, statetest.Open(t, statetest.SQLite(t)), &hub{pulls: 5, files: map[int]string{1: "README.md"}})
	for round := range 3 * triesOfHead {
		if _, err := w.round(t.Context()); err != nil {
			t.Logf("round %d: %v", round, err)
		}
	}

	want := "[error error error error success]"
	if got := fmt.Sprint(results(t, w)); got != want {
		t.Errorf("the checks are %s, want %s", got, want)
	}
}

// TestRepositoryIsOpened checks a pull request as of a public repository as soon as the repository is public.
func TestRepositoryIsOpened(t *testing.T) {
	h := &hub{pulls: 1, private: true, files: map[int]string{1: "README.md"}}
	w := newWatcher(t, statetest.Open(t, statetest.SQLite(t)), h)
	for _, h.private = range []bool{true, false} {
		if _, err := w.round(t.Context()); err != nil {
			t.Fatal(err)
		}
		if w.private != h.private {
			t.Errorf("private is %t, want %t", w.private, h.private)
		}
	}

	looks := h.looks
	if _, err := w.round(t.Context()); err != nil || h.looks != looks {
		t.Errorf("%d looks at a public repository, want %d: %v", h.looks, looks, err)
	}
}

// TestNotice looks at the forge at once after a notice, and else after the interval.
func TestNotice(t *testing.T) {
	h := &hub{files: map[int]string{1: "README.md", 2: "README.md"}}
	w := newWatcher(t, statetest.Open(t, statetest.SQLite(t)), h)
	w.cfg.Interval = time.Hour

	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = w.cfg.Loop.Run(ctx) })
	running.Go(func() { w.Run(ctx) })
	defer running.Wait()
	defer stop()

	lists := func() int {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.lists
	}
	statetest.Until(t, "the first list", func() bool { return lists() > 0 })
	for n := 1; n <= 2; n++ {
		h.mu.Lock()
		h.pulls = n
		h.mu.Unlock()
		w.Notice()
		statetest.Until(t, "the check of the new pull request", func() bool {
			return fmt.Sprint(results(t, w)) == "["+strings.TrimSpace(strings.Repeat("success ", n))+"]"
		})
	}
}

// TestRateLimit waits as long as the forge asks, and checks the pull requests afterwards.
func TestRateLimit(t *testing.T) {
	h := &hub{pulls: 2, files: map[int]string{1: "README.md", 2: "README.md"}, wait: "600"}
	w := newWatcher(t, statetest.Open(t, statetest.SQLite(t)), h)
	if pause := w.next(t.Context()); pause < 10*time.Minute || time.Until(w.notBefore) < 9*time.Minute {
		t.Errorf("the watcher waits for %s, until %s", pause, w.notBefore)
	}

	h.wait = ""
	if pause := w.next(t.Context()); pause > 2*w.cfg.Interval || fmt.Sprint(results(t, w)) != "[success success]" {
		t.Errorf("checks %s, and the watcher waits for %s", results(t, w), pause)
	}
}

// TestHundredsOfPulls checks many pull requests in bounded rounds, the last updated first, and lists no files of
// those that it checked before.
func TestHundredsOfPulls(t *testing.T) {
	const open = 3 * perMinute
	h := &hub{pulls: open, files: map[int]string{}}
	for n := range open {
		h.files[n+1] = "README.md"
	}
	w := newWatcher(t, statetest.Open(t, statetest.SQLite(t)), h)

	for minute := 1; minute <= 3; minute++ {
		for range 2 { // in the same minute
			more, err := w.round(t.Context())
			if err != nil || more != (minute < 3) {
				t.Fatalf("minute %d: more is %t, %v", minute, more, err)
			}
			done := 0
			for _, result := range results(t, w) {
				if result == checks.Success {
					done++
				}
			}
			if done != minute*perMinute {
				t.Fatalf("%d are checked in minute %d", done, minute)
			}
		}
		w.minute = w.minute.Add(-time.Minute) // the next one begins
	}

	listed := h.listed
	if more, err := w.round(t.Context()); more || err != nil || h.listed != listed || listed != open {
		t.Errorf("%d lists of files, %d before: %t, %v", h.listed, listed, more, err)
	}
}
