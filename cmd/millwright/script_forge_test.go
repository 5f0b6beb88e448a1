package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// hookForge has the webhooks of one repository in a file, which the script reads and changes. It serves the part of
// GitHub's API that they need.
type hookForge struct {
	file string
	mu   sync.Mutex
}

// cmdForge starts a forge at $FORGE that has the webhooks of acme/shop in a file: forge FILE.
func cmdForge(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: forge FILE")
	}
	f := &hookForge{file: ts.MkAbs(args[0])}
	ts.Check(os.WriteFile(f.file, []byte("[]"), 0o600))
	srv := httptest.NewServer(f)
	ts.Defer(srv.Close)
	ts.Setenv("FORGE", srv.URL)
}

func (f *hookForge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()

	var hooks []map[string]any
	text, err := os.ReadFile(f.file)
	if err != nil || json.Unmarshal(text, &hooks) != nil {
		http.Error(w, "the file has no webhooks", http.StatusInternalServerError)
		return
	}

	path := strings.TrimPrefix(r.URL.Path, "/api/v3/repos/acme/shop/hooks")
	var id int
	_, _ = fmt.Sscanf(path, "/%d", &id)
	at := slices.IndexFunc(hooks, func(h map[string]any) bool { return h["id"] == float64(id) })
	given := map[string]any{}
	_ = json.NewDecoder(r.Body).Decode(&given)

	var answer any = map[string]any{"message": "Not Found"}
	status := http.StatusNotFound
	switch {
	case path == "" && r.Method == http.MethodGet:
		status, answer = http.StatusOK, hooks
	case path == "" && r.Method == http.MethodPost:
		given["id"] = float64(len(hooks) + 1)
		hooks = append(hooks, given)
		status, answer = http.StatusCreated, given
	case strings.HasSuffix(path, "/deliveries"):
		status, answer = http.StatusOK, []any{}
	case at >= 0 && r.Method == http.MethodPatch:
		maps.Copy(hooks[at], given)
		status, answer = http.StatusOK, hooks[at]
	case at >= 0 && r.Method == http.MethodDelete:
		hooks = slices.Delete(hooks, at, at+1)
		status, answer = http.StatusNoContent, nil
	}

	if r.Method != http.MethodGet {
		text, _ = json.Marshal(hooks)
		_ = os.WriteFile(f.file, text, 0o600)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	if answer != nil {
		_ = json.NewEncoder(w).Encode(answer)
	}
}
