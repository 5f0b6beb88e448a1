package schema_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"millwright/schema"
)

func TestFilterMatch(t *testing.T) {
	tests := []struct {
		filter, body string
		want         bool
	}{
		{`{}`, `{}`, true},
		{`{}`, `[1]`, true},
		{`{}`, `null`, true},
		{`{"a":[1]}`, `[{"a":1}]`, false}, // only objects match a filter with fields
		{`{"a":[1]}`, `1`, false},
		{`{"a":{"not_in":[1]}}`, `[]`, false},
		{`{"action":["opened","reopened"]}`, `{"action":"opened","n":1}`, true},
		{`{"action":["opened"]}`, `{"action":"Opened"}`, false},
		{`{"action":["opened"]}`, `{"Action":"opened"}`, false},
		{`{"action":["opened"]}`, `{}`, false},
		{`{"a.b":[1]}`, `{"a":{"b":1}}`, false}, // no dot paths
		{`{"a.b":[1]}`, `{"a.b":1}`, true},
		{`{"a":["x"],"b":["y"]}`, `{"a":"x","b":"y"}`, true},
		{`{"a":["x"],"b":["y"]}`, `{"a":"x","b":"z"}`, false},
		{`{"a":{"in":[1]}}`, `{"a":1}`, true},
		{`{"a":[1]}`, `{"a":[0,1]}`, true},
		{`{"a":[1]}`, `{"a":[]}`, false},
		{`{"a":[1]}`, `{"a":[[1]]}`, false},
		{`{"a":[1]}`, `{"a":{"b":1}}`, false},
		{`{"a":[null]}`, `{"a":null}`, true},
		{`{"a":[null]}`, `{}`, false},
		{`{"a":[null]}`, `{"a":[null]}`, true},
		{`{"a":{"not_in":[1]}}`, `{}`, true},
		{`{"a":{"not_in":[1]}}`, `{"a":2}`, true},
		{`{"a":{"not_in":[1]}}`, `{"a":1}`, false},
		{`{"a":{"not_in":[1]}}`, `{"a":[2,1]}`, false},
		{`{"a":{"not_in":[1]}}`, `{"a":[]}`, true},
		{`{"a":{"not_in":[1]}}`, `{"a":{"b":1}}`, true},
		{`{"a":{"exists":true}}`, `{"a":null}`, true},
		{`{"a":{"exists":true}}`, `{}`, false},
		{`{"a":{"exists":false}}`, `{"b":1}`, true},
		{`{"a":{"exists":false}}`, `{"a":null}`, false},
		{`{"a":{"exists":true,"not_in":["x"],"in":["y"]}}`, `{"a":"y"}`, true},
		{`{"a":{"exists":true,"not_in":["x"]}}`, `{}`, false},
		{`{"a":{"b":{"c":[1]}}}`, `{"a":{"b":{"c":1}}}`, true},
		{`{"a":{"b":{"c":[1]}}}`, `{"a":{"b":1}}`, false},
		{`{"a":{"b":{"not_in":[1]}}}`, `{}`, false}, // the object must be there
		{`{"a":{"b":{"not_in":[1]}}}`, `{"a":{}}`, true},
		{`{"a":{"b":{"exists":false}}}`, `{"a":"x"}`, false},
		{`{"a":{"b":[1]}}`, `{"a":[{"b":0},{"b":1}]}`, true},
		{`{"a":{"b":[1],"c":[2]}}`, `{"a":[{"b":1,"c":0},{"b":0,"c":2}]}`, false}, // one element matches all of it
		{`{"a":{"b":[1]}}`, `{"a":[[{"b":1}]]}`, false},
		{`{"a":{"b":[1]}}`, `{"a":[1,"x",null]}`, false},
		{`{"in":["x"]}`, `{"in":"x"}`, true}, // ordinary names at the root
		{`{"exists":[true],"not_in":["y"]}`, `{"exists":true,"not_in":"y"}`, true},
		{`{"a":[1]}`, `{"a":1,"a":2}`, false}, // the last value counts
		{`{"a":[2]}`, `{"a":1,"a":2}`, true},
		{`{"a":[""]}`, `{"a":""}`, true},
		{`{"":[1]}`, `{"":1}`, true},
		{`{"é":["日本"]}`, `{"\u00e9":"\u65e5\u672c"}`, true},
		{`{"a":["😀"]}`, `{"a":"\ud83d\ude00"}`, true},
		{`{"a":["\ud800"]}`, `{"a":"\ud800"}`, true},
		{`{"a":["\ud800"]}`, `{"a":"\udfff"}`, false},
		{`{"a":["\ud800"]}`, `{"a":"\ufffd"}`, false},
		{`{"a":["<&>"]}`, `{"a":"\u003c&>"}`, true},
		// types never mix
		{`{"a":["1"]}`, `{"a":1}`, false},
		{`{"a":[1]}`, `{"a":"1"}`, false},
		{`{"a":["true"]}`, `{"a":true}`, false},
		{`{"a":[0]}`, `{"a":false}`, false},
		{`{"a":["null"]}`, `{"a":null}`, false},
		{`{"a":[false]}`, `{"a":false}`, true},
		// numbers by value
		{`{"a":[1]}`, `{"a":1.0}`, true},
		{`{"a":[1]}`, `{"a":1e0}`, true},
		{`{"a":[1]}`, `{"a":10e-1}`, true},
		{`{"a":[1]}`, `{"a":0.001E+3}`, true},
		{`{"a":[0]}`, `{"a":-0}`, true},
		{`{"a":[0]}`, `{"a":0e999999999999}`, true},
		{`{"a":[1]}`, `{"a":-1}`, false},
		{`{"a":[9007199254740993]}`, `{"a":9007199254740992}`, false},
		{`{"a":[9007199254740993]}`, `{"a":9007199254740993.000}`, true},
		{`{"a":[1e400]}`, `{"a":10e399}`, true},
		{`{"a":[1e400]}`, `{"a":1e401}`, false},
		{`{"a":[1e99999999999999999999]}`, `{"a":10e99999999999999999998}`, true},
		{`{"a":[1e-99999999999999999999]}`, `{"a":0.1e-99999999999999999998}`, true},
		{`{"a":[1e100000000000000000000]}`, `{"a":10e99999999999999999999}`, true},
		{`{"a":[1e1000000000000000000]}`, `{"a":10e999999999999999999}`, true},
		{`{"a":[1e-1000000000000000000]}`, `{"a":0.1e-999999999999999999}`, true},
		{`{"a":[1e0000000000000000000001]}`, `{"a":10}`, true},
		{`{"a":[1e100000000000000000000]}`, `{"a":1e99999999999999999999}`, false},
		{`{"a":[0.1]}`, `{"a":0.1000000000000000055511151231257827}`, false},
	}
	for _, tt := range tests {
		f, problems := schema.CompileFilter([]byte(tt.filter))
		if len(problems) > 0 {
			t.Errorf("%s: %v", tt.filter, problems)
			continue
		}
		p, err := schema.ParsePayload([]byte(tt.body))
		if err != nil {
			t.Errorf("%s: %v", tt.body, err)
			continue
		}
		if got := f.Match(p); got != tt.want {
			t.Errorf("%s on %s: %v, want %v", tt.filter, tt.body, got, tt.want)
		}
		checkExplanation(t, f, p)
		if naive := naiveMatch(t, tt.filter, tt.body); naive != tt.want && !strings.Contains(tt.filter+tt.body, `\ud800`) {
			t.Errorf("the reference evaluator says %v for %s on %s, want %v", naive, tt.filter, tt.body, tt.want)
		}
	}
}

// checkExplanation checks that an explanation agrees with the verdict.
func checkExplanation(t testing.TB, f *schema.Filter, p schema.Payload) {
	t.Helper()
	e := f.Explain(p)
	if e.Matched != f.Match(p) {
		t.Errorf("explained as %v, matched as %v", e.Matched, !e.Matched)
	}
	all := true
	for _, leaf := range e.Leaves {
		all = all && leaf.Passed
		if len(leaf.Path) == 0 || leaf.Where == "" || leaf.Operator == "" || leaf.Expected == "" || leaf.Present != (leaf.Found != "") {
			t.Errorf("incomplete leaf %+v", leaf)
		}
	}
	if e.Reason == "" && all != e.Matched {
		t.Errorf("matched is %v and the leaves say %+v", e.Matched, e.Leaves)
	}
}

func TestFilterWithoutBody(t *testing.T) {
	empty, _ := schema.CompileFilter([]byte(`{}`))
	if empty.Match(schema.Payload{}) {
		t.Error("a body that was never read matches")
	}
	none, problems := schema.CompileFilter(nil)
	if none != nil || problems != nil || !none.Match(schema.Payload{}) {
		t.Error("no filter must match everything")
	}
	if e := none.Explain(schema.Payload{}); !e.Matched || e.Reason == "" || e.Leaves == nil {
		t.Errorf("explanation of no filter: %+v", e)
	}
}

func TestFilterProblems(t *testing.T) {
	nested := func(n int) string { return strings.Repeat(`{"k":`, n) + `[1]` + strings.Repeat("}", n) }
	wide := func(n int) string {
		var b strings.Builder
		b.WriteString(`{"x":["y"]`)
		for i := range n - 1 {
			fmt.Fprintf(&b, `,"f%d":{"exists":true,"not_in":[%d]}`, i, i)
		}
		return b.String() + "}"
	}
	set := func(n int) string {
		return `{"a":[` + strings.TrimSuffix(strings.Repeat("1,", n), ",") + `]}`
	}
	tests := []struct{ filter, where, says string }{
		{`{}`, "", ""},
		{nested(10), "", ""},
		{nested(11), "k.k.k.k.k.k.k.k.k.k", "10 levels"},
		{nested(5000), "k.k.k.k.k.k.k.k.k.k", "10 levels"},
		{wide(64), "", ""},
		{wide(65), "", "65 leaf fields"},
		{set(32), "", ""},
		{set(33), "a", "33 values"},
		{set(20_000), "", "more than 10000 fields and values"},
		{`{"a":` + strings.Repeat(`{"in":`, 9_000) + `1` + strings.Repeat("}", 9_000) + `}`, "a.in", "not an object"},
		{`[]`, "", "not a list"},
		{`null`, "", "not null"},
		{`{"a"`, "", "not valid JSON"},
		{"\ufeff{}", "", "byte-order mark"},
		{`{"a":"x"}`, "a", "not a string"},
		{`{"a":null}`, "a", "not null"},
		{`{"a":[]}`, "a", "empty"},
		{`{"a":{}}`, "a", "empty object"},
		{`{"a":{"in":[]}}`, "a.in", "empty"},
		{`{"a":{"in":"x"}}`, "a.in", "list"},
		{`{"a":{"in":{"b":1}}}`, "a.in", "list"},
		{`{"a":{"exists":1}}`, "a.exists", "true or false"},
		{`{"a":{"exists":"true"}}`, "a.exists", "true or false"},
		{`{"a":{"in":[1],"b":[2]}}`, "a.b", "among operators"},
		{`{"a":[[1]]}`, "a.0", "not a list"},
		{`{"a":[{"b":1}]}`, "a.0", "not an object"},
		{`{"a":{"in":[1,2],"not_in":[3,2.0]}}`, "a.not_in.1", "both"},
		{`{"a":{"exists":false,"in":[1]}}`, "a.exists", "never match"},
		{`{"a":{"exists":false,"not_in":[1]}}`, "", ""},
		{`{"a":[1],"a":[2]}`, "a", "twice"},
		{`{"a":{"in":[1],"in":[2]}}`, "a.in", "twice"},
	}
	for _, tt := range tests {
		f, problems := schema.CompileFilter([]byte(tt.filter))
		if tt.says == "" {
			if f == nil || len(problems) > 0 {
				t.Errorf("%.60s: %v", tt.filter, problems)
			}
			continue
		}
		if f != nil || len(problems) != 1 {
			t.Errorf("%.60s: %d problems %v", tt.filter, len(problems), problems)
			continue
		}
		if p := problems[0]; strings.Join(p.Path, ".") != tt.where || !strings.Contains(p.Message, tt.says) {
			t.Errorf("%.60s: at %v: %s", tt.filter, p.Path, p.Message)
		}
	}
}

func TestExplain(t *testing.T) {
	f, problems := schema.CompileFilter([]byte(`{"action":["opened"],"commits":{"author":["ann"],"files":{"exists":true}},"gone":{"b":{"not_in":[1]}},"n":{"in":[1],"not_in":[2]}}`))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	p, err := schema.ParsePayload([]byte(`{"action":"closed","commits":[{"author":"bob"},{"author":"ann","files":[]},{"files":1}],"n":1.0}`))
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.MarshalIndent(f.Explain(p), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	want := `{
 "matched": false,
 "leaves": [
  {
   "path": [
    "action"
   ],
   "where": "action",
   "operator": "in",
   "expected": "[\"opened\"]",
   "present": true,
   "found": "\"closed\"",
   "passed": false
  },
  {
   "path": [
    "commits",
    "author"
   ],
   "where": "commits[1].author",
   "operator": "in",
   "expected": "[\"ann\"]",
   "present": true,
   "found": "\"ann\"",
   "passed": true
  },
  {
   "path": [
    "commits",
    "files"
   ],
   "where": "commits[1].files",
   "operator": "exists",
   "expected": "true",
   "present": true,
   "found": "[]",
   "passed": true
  },
  {
   "path": [
    "gone",
    "b"
   ],
   "where": "gone.b",
   "operator": "not_in",
   "expected": "[1]",
   "present": false,
   "passed": false
  },
  {
   "path": [
    "n"
   ],
   "where": "n",
   "operator": "in",
   "expected": "[1]",
   "present": true,
   "found": "1.0",
   "passed": true
  },
  {
   "path": [
    "n"
   ],
   "where": "n",
   "operator": "not_in",
   "expected": "[2]",
   "present": true,
   "found": "1.0",
   "passed": true
  }
 ]
}`
	if string(got) != want {
		t.Errorf("got %s", got)
	}
}

// naiveMatch is the grammar of payload filters written down a second time, with
// encoding/json and exact rationals, for filters that compile.
func naiveMatch(t testing.TB, filter, body string) bool {
	t.Helper()
	decode := func(text string) (v any) {
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		if err := d.Decode(&v); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		return v
	}
	pattern, _ := decode(filter).(map[string]any)
	if len(pattern) == 0 {
		return true
	}
	object, ok := decode(body).(map[string]any)
	return ok && naiveObject(pattern, object)
}

func naiveObject(pattern, object map[string]any) bool {
	for key, want := range pattern {
		v, present := object[key]
		if !naiveField(want, v, present) {
			return false
		}
	}
	return true
}

func naiveField(want, v any, present bool) bool {
	if list, ok := want.([]any); ok {
		want = map[string]any{"in": list}
	}
	w, _ := want.(map[string]any)
	if _, operator := firstOperator(w); operator {
		ok := true
		if in, has := w["in"].([]any); has {
			ok = ok && present && naiveAny(v, in)
		}
		if notIn, has := w["not_in"].([]any); has {
			ok = ok && (!present || !naiveAny(v, notIn))
		}
		if exists, has := w["exists"].(bool); has {
			ok = ok && exists == present
		}
		return ok
	}
	switch v := v.(type) {
	case map[string]any:
		return naiveObject(w, v)
	case []any:
		for _, e := range v {
			if o, ok := e.(map[string]any); ok && naiveObject(w, o) {
				return true
			}
		}
	}
	return false
}

func firstOperator(w map[string]any) (string, bool) {
	for _, o := range []string{"in", "not_in", "exists"} {
		if _, ok := w[o]; ok {
			return o, true
		}
	}
	return "", false
}

func naiveAny(v any, set []any) bool {
	candidates := []any{v}
	if list, ok := v.([]any); ok {
		candidates = list
	}
	for _, c := range candidates {
		for _, s := range set {
			if naiveEqual(c, s) {
				return true
			}
		}
	}
	return false
}

func naiveEqual(a, b any) bool {
	x, xn := a.(json.Number)
	y, yn := b.(json.Number)
	if xn && yn {
		if x == y {
			return true
		}
		return naiveNumber(string(x)) == naiveNumber(string(y))
	}
	switch a.(type) {
	case nil, bool, string:
		return a == b
	}
	return false
}

// naiveNumber normalises by arithmetic on a big exponent.
func naiveNumber(s string) string {
	mantissa, exp, _ := strings.Cut(strings.ToLower(s), "e")
	e := new(big.Int)
	e.SetString(strings.TrimPrefix(exp, "+"), 10)
	whole, fraction, _ := strings.Cut(mantissa, ".")
	e.Sub(e, big.NewInt(int64(len(fraction))))
	m, _ := new(big.Int).SetString(whole+fraction, 10)
	if m == nil || m.Sign() == 0 {
		return "0"
	}
	ten := big.NewInt(10)
	for {
		q, r := new(big.Int).QuoRem(m, ten, new(big.Int))
		if r.Sign() != 0 {
			break
		}
		m = q
		e.Add(e, big.NewInt(1))
	}
	return m.String() + "e" + e.String()
}

// FuzzFilter compares the evaluator with the reference on every filter that compiles.
func FuzzFilter(f *testing.F) {
	f.Add([]byte(`{"a":[1,"x"],"b":{"c":{"not_in":[null]}}}`), []byte(`{"a":1.0,"b":[{"c":null},{}]}`))
	f.Add([]byte(`{"a":{"exists":true,"in":[1e5]}}`), []byte(`{"a":100000}`))
	f.Add([]byte(`{"in":{"in":[true]}}`), []byte(`{"in":[false,true],"in":1}`))
	f.Add([]byte(`{}`), []byte(`[]`))
	f.Add([]byte(`{"a":[0]}`), []byte(`{"a":-0.0E7,"A":1}`))
	f.Add([]byte(`{"a":{"in":[1e400]}}`), []byte(`{"\u0061":10e399}`))
	f.Add([]byte(`{"a":{"b":{"c":["x"]}}}`), []byte(` {"a" : [ {"b":{"c":"\u0078"}, "b":[]} ,{"b":[{},{"c":["y","x"]}]}]}`))
	f.Add([]byte(`{"b":["\\"]}`), []byte(`{"a":"\\","b":"\u005c","c":"\\\""}`))
	f.Add([]byte(`{"z":{"not_in":[null]}}`), []byte(`{`+strings.Repeat(`"a":[],`, 500)+`"z":0,"z":null}`))
	f.Fuzz(func(t *testing.T, filter, body []byte) {
		if len(filter) > 2000 || len(body) > 5000 {
			return
		}
		c, problems := schema.CompileFilter(filter)
		if (c == nil) != (len(problems) > 0) && len(filter) > 0 {
			t.Fatalf("filter %v with problems %v", c, problems)
		}
		p, err := schema.ParsePayload(body)
		if c == nil || err != nil {
			c.Match(p)
			c.Explain(p)
			return
		}
		checkExplanation(t, c, p)
		// encoding/json folds lone surrogates into one character.
		if bytes.Contains(bytes.ToLower(append(filter, body...)), []byte(`\ud`)) {
			return
		}
		if got, want := c.Match(p), naiveMatch(t, string(filter), string(body)); got != want {
			t.Fatalf("%s on %s: %v, the reference says %v", filter, body, got, want)
		}
	})
}
