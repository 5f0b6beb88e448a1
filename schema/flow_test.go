package schema_test

import (
	"strings"
	"testing"

	"millwright/schema"
)

// TestFlowKey compares the keys of payloads.
func TestFlowKey(t *testing.T) {
	key := func(body string, paths ...string) (schema.FlowKey, bool) {
		p, err := schema.ParsePayload([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		return p.Key(paths, []string{"concurrency", "auto", "wh"})
	}

	large := strings.Repeat("x", 200<<10)
	for _, same := range [][3]string{
		{`{"a":{"b":1}}`, `{"a":{"b":1.0}}`, "a.b"},
		{`{"a":{"b":100}}`, `{"c":2, "a" : {"b": 1e2}}`, "a.b"},
		{`{"a":"x"}`, `{"a":"\u0078"}`, "a"},
		{`{"a":1,"a":2}`, `{"a":2}`, "a"},
		{`{"a":true}`, `{"z":[1,2],"a":true}`, "a"},
		{`{"a.b":{"c d":1}}`, `{"a.b":{"c d":1},"a":{"b":2}}`, `"a.b"."c d"`},
		{`{"a":"` + large + `"}`, `{"a":"` + large + `"}`, "a"},
	} {
		x, ok := key(same[0], same[2])
		if y, also := key(same[1], same[2]); !ok || !also || x != y {
			t.Errorf("%.80s and %.80s differ at %s (%t, %t)", same[0], same[1], same[2], ok, also)
		}
	}

	for _, other := range [][3]string{
		{`{"a":1}`, `{"a":"1"}`, "a"},
		{`{"a":true}`, `{"a":"true"}`, "a"},
		{`{"a":"x"}`, `{"a":"X"}`, "a"},
		{`{"a":12345678901234567890}`, `{"a":12345678901234567891}`, "a"},
		{`{"a":"` + large + `"}`, `{"a":"` + large + `y"}`, "a"},
	} {
		x, _ := key(other[0], other[2])
		if y, _ := key(other[1], other[2]); x == y {
			t.Errorf("%.80s and %.80s are equal at %s", other[0], other[1], other[2])
		}
	}

	for body, path := range map[string]string{
		`{}`: "a", `{"a":null}`: "a", `{"a":{}}`: "a", `{"a":[]}`: "a", `{"a":[{"b":1}]}`: "a.b", `{"a":1}`: "a.b",
		`[1]`: "a", `"a"`: "a", `{"a":{"c":1}}`: "a.b",
	} {
		if _, ok := key(body, path); ok {
			t.Errorf("%s has a key at %s", body, path)
		}
	}

	flow := schema.Flow{
		Concurrency:  &schema.Concurrency{Key: []string{"a", "b.c"}},
		Debounce:     &schema.Debounce{Key: []string{"a"}},
		Conversation: &schema.Conversation{Key: []string{"b.c"}},
	}
	for body, want := range map[string]string{
		`{"a":1,"b":{"c":true}}`: "",
		`{"a":1,"b":{"c":{}}}`:   "concurrency: b.c is an object, conversation: b.c is an object",
		`{"a":1,"b":{"c":[1]}}`:  "concurrency: b.c is a list, conversation: b.c is a list",
		`{"a":null,"b":{"c":1}}`: "concurrency: a is null, debounce: a is null",
		`[]`: "concurrency: a is not in the payload, debounce: a is not in the payload, " +
			"conversation: b.c is not in the payload",
	} {
		p, err := schema.ParsePayload([]byte(body))
		if got := strings.Join(flow.Unkeyed(p), ", "); err != nil || got != want {
			t.Errorf("%s: %q, want %q, %v", body, got, want, err)
		}
	}

	// Where one value ends and the next begins counts, and so does what uses the key.
	x, _ := key(`{"a":"xy","b":"z"}`, "a", "b")
	if y, _ := key(`{"a":"x","b":"yz"}`, "a", "b"); x == y {
		t.Error("xy, z equals x, yz")
	}
	p, _ := schema.ParsePayload([]byte(`{"a":1}`))
	one, _ := p.Key([]string{"a"}, []string{"concurrency", "auto", "wh"})
	for _, scope := range [][]string{{"debounce", "auto", "wh"}, {"concurrency", "auto2", "wh"}, {"concurrency", "auto", "wh2"}} {
		if other, _ := p.Key([]string{"a"}, scope); one == other {
			t.Errorf("%v has the same key", scope)
		}
	}
	if _, ok := p.Key(nil, []string{"concurrency"}); !ok {
		t.Error("no paths are no key")
	}
}
