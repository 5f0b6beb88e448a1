package schema_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"millwright/schema"
)

func TestValidJSON(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	tests := []struct {
		name, body, reason string // no reason: valid
	}{
		{"object", `{"a":1}`, ""},
		{"scalars", `null`, ""},
		{"white space around", " \r\n\t\"x\"\n ", ""},
		{"huge exponent", `1e400`, ""},
		{"absurd exponent", `-1.5E+999999999999999999999999`, ""},
		{"negative zero", `-0`, ""},
		{"long integer", strings.Repeat("7", 200_000), ""},
		{"lone surrogate", `"\ud800"`, ""},
		{"escapes", `"\"\\\/\b\f\n\r\t\u00e9"`, ""},
		{"deepest", deep(10_000), ""},
		{"many brackets, not deep", "[" + strings.Repeat("[],", 20_000) + "[]]", ""},
		{"brackets in strings", `"` + strings.Repeat(`[{\"`, 20_000) + `"`, ""},
		{"too deep", deep(10_001), "more than 10000 levels deep at byte 10000"},
		{"much too deep", deep(131_072), "levels deep"},
		{"too deep and not closed", strings.Repeat(`{"a":`, 50_000), "levels deep"},
		{"byte-order mark", "\ufeff{}", "byte-order mark"},
		{"UTF-16", "\xff\xfe{\x00}\x00", "UTF-8 at byte 0"},
		{"bad UTF-8", "{\"a\":\"\xff\"}", "UTF-8 at byte 6"},
		{"encoded surrogate", "\"\xed\xa0\x80\"", "UTF-8 at byte 1"},
		{"empty", "", "empty"},
		{"blank", " \n", "empty"},
		{"text after", `{} x`, "byte 3"},
		{"two values", `{}{}`, "byte 2"},
		{"two lines", "{}\n{}", "byte 3"},
		{"NUL after", "{}\x00", "byte 2"},
		{"truncated", `{"a":`, "not valid JSON"},
		{"trailing comma", `[1,]`, "byte 3"},
		{"single quotes", `{'a':1}`, "byte 1"},
		{"leading zero", `01`, "byte 1"},
		{"plus sign", `+1`, "byte 0"},
		{"no digits after point", `1.`, "not valid JSON"},
		{"NaN", `NaN`, "byte 0"},
		{"control character in string", "\"a\nb\"", "byte 2"},
		{"bad escape", `"\x"`, "byte 2"},
		{"comment", `{} // x`, "byte 3"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := schema.ValidJSON([]byte(tt.body))
			_, perr := schema.ParsePayload([]byte(tt.body))
			if (err == nil) != (perr == nil) {
				t.Errorf("ValidJSON says %v, ParsePayload %v", err, perr)
			}
			switch {
			case tt.reason == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tt.reason != "" && err == nil:
				t.Error("accepted")
			case tt.reason != "" && !strings.Contains(err.Error(), tt.reason):
				t.Errorf("error %q does not say %q", err, tt.reason)
			case err != nil && len(err.Error()) > 200:
				t.Errorf("the error is %d bytes long", len(err.Error()))
			}
		})
	}
}

// FuzzValidJSON compares with encoding/json, which has the same limit of depth.
func FuzzValidJSON(f *testing.F) {
	for _, s := range []string{`{"a":[1,2,{"b":null}]}`, `"\ud800\udc00"`, `[1e5,-0.0]`, "{\"a\" :\n1}", `{"a":1,"a":2}`, "\xff", "[[[["} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		want := utf8.Valid(body) && json.Valid(body)
		err := schema.ValidJSON(body)
		if (err == nil) != want {
			t.Fatalf("ValidJSON(%q) = %v, encoding/json says %v", body, err, want)
		}
		p, perr := schema.ParsePayload(body)
		if (perr == nil) != want {
			t.Fatalf("ParsePayload(%q) = %v", body, perr)
		}
		var none *schema.Filter
		if !none.Match(p) {
			t.Fatal("no filter must match everything")
		}
	})
}

func TestPayloadsStayCheap(t *testing.T) {
	// Each of these took a naive evaluator seconds or gigabytes. They run in
	// milliseconds here; a regression shows as a test that does not end.
	filter, problems := schema.CompileFilter([]byte(`{"n":[1],"m":{"in":[1e999999998]},"deep":{"a":{"a":{"a":["x"]}}}}`))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	bodies := []string{
		`{"n":1e999999999}`,
		`{"n":` + strings.Repeat("9", 250_000) + `}`,
		`{"n":1e` + strings.Repeat("9", 250_000) + `}`,
		`{"n":0.` + strings.Repeat("0", 250_000) + `1}`,
		`{"n":[` + strings.Repeat("1e99999999999999999999,", 11_000) + `2]}`,
		`{"deep":` + strings.Repeat(`{"a":`, 9_000) + `1` + strings.Repeat("}", 9_000) + `}`,
		`{"deep":[` + strings.Repeat("[],", 80_000) + `{}]}`,
		`{` + strings.Repeat(`"n":2,`, 40_000) + `"n":2}`,
	}
	for _, body := range bodies {
		p, err := schema.ParsePayload([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		if filter.Match(p) {
			t.Errorf("matches %.40s", body)
		}
		for _, leaf := range filter.Explain(p).Leaves {
			if len(leaf.Found) > 210 {
				t.Errorf("an explanation shows %d bytes", len(leaf.Found))
			}
		}
	}
}
