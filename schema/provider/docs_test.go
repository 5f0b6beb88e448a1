package provider_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"millwright/schema/provider"
)

var update = flag.Bool("update", false, "write the tables of docs/triggers.md anew")

// TestDocs holds that docs/triggers.md lists every event with its keys.
func TestDocs(t *testing.T) {
	const path = "../../docs/triggers.md"
	src, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(src), "-update. -->\n")
	_, after, ended := strings.Cut(rest, "<!-- end -->")
	if !found || !ended {
		t.Fatalf("%s has no place for the tables", path)
	}

	want := before + "-update. -->\n" + eventTable() + "<!-- end -->" + after
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want != string(src) {
		t.Errorf("%s is stale: run go test ./schema/provider -run TestDocs -update", path)
	}
}

// eventTable lists the events of all providers; those with the same keys share a row.
func eventTable() string {
	var b strings.Builder
	b.WriteString("\n| provider | event | filter keys |\n| --- | --- | --- |\n")
	for _, name := range provider.Names() {
		var order []string
		events := map[string][]string{}
		for _, event := range provider.Events(name) {
			known, _ := provider.Lookup(name, event)
			var keys []string
			for _, k := range known.Keys {
				keys = append(keys, "`"+k.Name+"`")
			}
			text := strings.Join(keys, ", ")
			if known.Never != "" {
				text += " (never fired: " + known.Never + ")"
			}
			if events[text] == nil {
				order = append(order, text)
			}
			events[text] = append(events[text], "`"+event+"`")
		}
		for _, text := range order {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, strings.Join(events[text], ", "), text)
		}
	}
	b.WriteString("\n")
	return b.String()
}
