package schema_test

import (
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"millwright/schema"
)

// pieces makes filters and bodies of few names and values, so that they often meet.
type pieces struct{ *rand.Rand }

func (r pieces) one(of ...string) string { return of[r.IntN(len(of))] }

func (r pieces) key() string {
	return r.one(`"a"`, `"\u0061"`, `"A"`, `"b"`, `"in"`, `""`, `"é"`, `"\u00e9"`, `"\"\\"`)
}

func (r pieces) scalar() string {
	return r.one(`1`, `1.0`, `10e-1`, `0`, `-0`, `0.00E9`, `-1`, `1e400`, `10e399`, `1e99999999999999999999`,
		`0.1e100000000000000000000`, `1e-1000000000000000000`, `10e-1000000000000000001`, `120.50`, `1205E-1`,
		`true`, `false`, `null`, `"x"`, `"\u0078"`, `""`, `"1"`, `"true"`, `"\\"`, `"\u005c"`, `"\ud83d\ude00"`, `"😀"`)
}

func (r pieces) space() string { return r.one("", "", "", " ", "\n\t") }

// list joins up to n items.
func (r pieces) list(opening, closing string, n int, item func() string) string {
	var items []string
	for range r.IntN(n) {
		items = append(items, r.space()+item()+r.space())
	}
	return opening + r.space() + strings.Join(items, ",") + closing
}

func (r pieces) body(depth int) string {
	switch n := r.IntN(10); {
	case depth == 0 || n >= 7:
		return r.scalar()
	case n >= 4:
		return r.list("[", "]", 5, func() string { return r.body(depth - 1) })
	}
	return r.object(depth)
}

func (r pieces) object(depth int) string {
	return r.list("{", "}", 6, func() string { return r.key() + r.space() + ":" + r.space() + r.body(depth-1) })
}

// filter may repeat a field, and then does not compile.
func (r pieces) filter(depth int) string {
	set := func() string { return r.list("["+r.scalar()+",", r.scalar()+"]", 1, r.scalar) }
	return r.list("{", "}", 4, func() string {
		field := r.key() + ":"
		switch r.IntN(6) {
		case 0:
			return field + set()
		case 1:
			return field + `{"in":` + set() + `}`
		case 2:
			return field + `{"not_in":` + set() + `}`
		case 3:
			return field + `{"exists":` + r.one("true", "false") + `}`
		case 4:
			return field + `{"exists":true,"not_in":` + set() + `,"in":` + set() + `}`
		}
		if depth == 0 {
			return field + set()
		}
		return field + r.filter(depth-1)
	})
}

// TestFilterAgainstReference compares the evaluator with the reference on random filters and bodies.
func TestFilterAgainstReference(t *testing.T) {
	seed := rand.Uint64()
	r := pieces{rand.New(rand.NewPCG(seed, 1))}
	tested, matched := 0, 0
	for tested < 5_000 {
		filter, body := r.filter(3), r.object(5)
		if r.IntN(8) == 0 { // more members than are looked up once
			body = `{` + strings.Repeat(`"":[{}],`, 150) + r.key() + `:` + body + `}`
		}
		f, problems := schema.CompileFilter([]byte(filter))
		if len(problems) > 0 {
			continue
		}
		p, err := schema.ParsePayload([]byte(body))
		if err != nil {
			t.Fatalf("seed %d: %s: %v", seed, body, err)
		}

		tested++
		got, want := f.Match(p), naiveMatch(t, filter, body)
		if got != want {
			t.Fatalf("seed %d: %s on %s: %v, the reference says %v", seed, filter, body, got, want)
		}
		if got {
			matched++
		}
		checkExplanation(t, f, p)
	}
	if matched < tested/100 || matched > tested*99/100 {
		t.Errorf("%d of %d match", matched, tested)
	}
}

// TestPayloadsDoNotGrow matches and explains bodies of many values. What it allocates is a small multiple of
// the body's bytes.
func TestPayloadsDoNotGrow(t *testing.T) {
	const size = 256 << 10
	fill := func(opening, item, closing string) string {
		n := (size - len(opening) - len(closing)) / len(item)
		return opening + strings.Repeat(item, n) + closing
	}
	bodies := map[string]string{
		"numbers":          fill(`[`, `0,`, `0]`),
		"looked at":        fill(`{"n":[`, `0,`, `0]}`),
		"not normal":       fill(`{"n":[`, `1e5,`, `0]}`),
		"escaped":          fill(`{"s":[`, `"\u0061",`, `0]}`),
		"strings":          fill(`{"s":[`, `"",`, `0]}`),
		"objects":          fill(`{"o":[`, `{},`, `0]}`),
		"members":          fill(`{`, `"":0,`, `"n":0}`),
		"escaped members":  fill(`{`, `"\u006e":0,`, `"n":0}`),
		"members, nested":  fill(`{"o":{"p":{`, `"a":0,`, `"a":0}}}`),
		"objects, nested":  fill(`{"o":[`, `{"p":[{}]},`, `0]}`),
		"one number":       fill(`{"n":1.`, `7`, `e-999999999999999999999}`),
		"one string":       fill(`{"s":"`, `\n`, `"}`),
		"lists in lists":   `{"n":` + strings.Repeat(`[`, 9_000) + fill(``, `0,`, `0`)[:size-20_000] + `0` + strings.Repeat(`]`, 9_000) + `}`,
		"no object at all": fill(`"`, `x`, `"`),
	}
	filter, problems := schema.CompileFilter([]byte(
		`{"n":{"not_in":[1,2.5,1e999]},"s":["a","x"],"o":{"p":{"a":{"in":["y"]},"b":{"exists":true}}}}`))
	if len(problems) > 0 {
		t.Fatal(problems)
	}

	for name, body := range bodies {
		foreign := []byte(body)
		took := allocated(func() {
			p, err := schema.ParsePayload(foreign)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			filter.Match(p)
			if e := filter.Explain(p); len(e.Leaves) != 4 {
				t.Errorf("%s: %d leaves", name, len(e.Leaves))
			}
		})
		if limit := uint64(8*len(body) + 32<<10); took > limit {
			t.Errorf("%s: %d bytes allocated for %d", name, took, len(body))
		}
	}

	text := []byte(fill(`{"a":[`, `0,`, `0]}`))
	if took := allocated(func() { schema.CompileFilter(text) }); took > 16*size {
		t.Errorf("a filter's text: %d bytes allocated for %d", took, len(text))
	}
}

// allocated returns how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
