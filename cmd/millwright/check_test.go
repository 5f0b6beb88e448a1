package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"millwright/schema"
)

// TestLargeAndHostileTrees checks what the loader refuses, through the program: a status and a problem, and
// nothing worse.
func TestLargeAndHostileTrees(t *testing.T) {
	many := t.TempDir()
	if err := os.Mkdir(filepath.Join(many, "webhooks"), 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range schema.MaxFiles + 1 {
		if err := os.WriteFile(filepath.Join(many, "webhooks", fmt.Sprintf("w%d.yaml", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	wantProgram(t, 1, []string{"validate", many}, `\[tree-too-large\]`, "more than 20000 files")
	for _, format := range []string{"json", "sarif", "github", "gitlab", "junit", "markdown"} {
		wantProgram(t, 1, []string{"validate", many, "--format", format}, "tree-too-large")
	}

	large := map[string]string{}
	for i := range 70 {
		large[fmt.Sprintf("automations/a%d/automation.md", i)] = strings.Repeat("x", 250<<10)
	}
	wantProgram(t, 1, []string{"validate", files(t, large)}, `\[tree-too-large\]`, "16 MiB")

	deep := strings.Repeat("a:\n ", 1) + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000)
	wantProgram(t, 1, []string{"validate", files(t, map[string]string{"webhooks/deep.yaml": deep})}, `webhooks/deep.yaml:\d+:\d+: error`)

	wantProgram(t, 1, []string{"validate", files(t, map[string]string{"webhooks/a.yaml": "secretName: A\n", "webhooks/A.yaml": "secretName: A\n"})}, `\[duplicate-name\]`)

	if os.Getuid() != 0 { // who may read everything
		closed := files(t, map[string]string{"webhooks/a.yaml": "secretName: A\n", "webhooks/b.yaml": "secretname: A\n"})
		if err := os.Chmod(filepath.Join(closed, "webhooks", "a.yaml"), 0); err != nil {
			t.Fatal(err)
		}
		wantProgram(t, 3, []string{"validate", closed}, `a.yaml:1:1: error: .*\[unreadable\]`, `b.yaml:1:1: error: .*\[unknown-key\]`, "could not check all")
	}
}

// TestCollectorIsLeftAsItWas checks that a check does not change how the rest of the process is run.
func TestCollectorIsLeftAsItWas(t *testing.T) {
	percent, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(-1)
	defer debug.SetGCPercent(percent)
	var out, errs bytes.Buffer
	run(context.Background(), []string{"validate", t.TempDir()}, nil, &out, &errs)
	if now := debug.SetGCPercent(100); now != 100 {
		t.Errorf("GC percent %d", now)
	}
	if now := debug.SetMemoryLimit(-1); now != limit {
		t.Errorf("memory limit %d, it was %d", now, limit)
	}
}
