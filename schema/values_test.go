package schema_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"millwright/schema"
)

// A file that is small and holds little but values takes little memory.
func TestFilesOfManyValues(t *testing.T) {
	for name, text := range map[string]string{
		"webhooks/zeros.yaml":              "secretName: X\nx: [" + strings.Repeat("0,", 120_000) + "0]\n",
		"webhooks/maps.yaml":               "secretName: X\nx: [" + strings.Repeat("{a: 0},", 35_000) + "0]\n",
		"webhooks/lines.yaml":              "secretName: X\nx:\n" + strings.Repeat("- 0\n", 50_000),
		"webhooks/aliases.yaml":            "a: &a 0\nb: [" + strings.Repeat("*a,", 30_000) + "0]\n",
		"automations/many/automation.md":   "---\ntriggers: [" + strings.Repeat("0,", 120_000) + "0]\n---\nx\n",
		"automations/blocks/automation.md": "---\ntriggers:\n" + strings.Repeat("- a: 0\n", 30_000) + "---\nx\n",
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r := schema.Load(fstest.MapFS{name: {Data: []byte(text)}}, nil)
		runtime.ReadMemStats(&after)
		if !slices.Equal(codes(r), []string{"file-too-large"}) {
			t.Errorf("%s: %v", name, codes(r))
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 100<<20 {
			t.Errorf("%s: allocated %d MB", name, took>>20)
		}
	}
	items := make([]string, 10_000)
	for i := range items {
		items[i] = fmt.Sprintf("'item %d: a, b'", i)
	}
	text := "---\ntriggers:\n  - provider: webhook\n    event: received\n    filter:\n      webhook_ids: [wh_00000000000000000000000000]\n" +
		"      payload: {status: [" + strings.Join(items, ", ") + "]}\n---\n" + strings.Repeat("Look at it, now: [x].\n", 2000)
	if r := schema.Load(fstest.MapFS{"automations/large/automation.md": {Data: []byte(text)}}, nil); slices.Contains(codes(r), "file-too-large") {
		t.Errorf("a long filter: %v", r.Problems)
	}
}
