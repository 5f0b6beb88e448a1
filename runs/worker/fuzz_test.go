package worker

import (
	"bytes"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"unicode/utf8"

	"millwright/runs/wire"
	"millwright/runs/worker/preset"
)

// FuzzOutput feeds what a harness may print to each adapter, and checks that only sound, bounded blocks
// come out, and no secret.
func FuzzOutput(f *testing.F) {
	files, err := filepath.Glob("testdata/*.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte("{\"type\":\"text\",\"text\":\"hunter2-secret\"}\n{\"type\":\"skills_advertised\",\"skills\":[{\"name\":\"x\"}]}\n\xff\x00\r\n{"))
	f.Add([]byte(`{"type":"action","name":"x","input":` + string(bytes.Repeat([]byte("["), 2000)) + string(bytes.Repeat([]byte("]"), 2000)) + `}`))
	f.Fuzz(func(t *testing.T, output []byte) {
		for _, name := range append(preset.Names(), "lines") {
			adapters, err := preset.AdapterOf(name)
			if err != nil {
				t.Fatal(err)
			}
			rec := &recorder{wake: make(chan struct{}, 1), redact: newRedactor(&wire.Order{Secrets: map[string]string{"S": "hunter2-secret"}}, nil)}
			rec.room = sync.NewCond(&rec.mu)
			adapt := adapters(preset.Task{})
			if err := readLines(bytes.NewReader(output), func(line []byte, _ int) {
				adapt.Line(rec, clean(string(line)))
			}); err != nil {
				t.Fatal(err)
			}
			adapt.End(rec)
			if bytes.Contains(rec.skills, []byte("hunter2-secret")) {
				t.Errorf("%s: a secret in %s", name, rec.skills)
			}
			for _, item := range rec.waiting {
				b := item.block()
				text := quoted(b)
				if !b.Valid() || !utf8.Valid(text) || len(text) > maxBatch {
					t.Errorf("%s: block %.200q of %d bytes", name, text, len(text))
				}
				if bytes.Contains(text, []byte("hunter2-secret")) {
					t.Errorf("%s: a secret in %s", name, text)
				}
			}
		}
	})
}

func TestReadLines(t *testing.T) {
	long := bytes.Repeat([]byte("x"), maxLine+100)
	for _, test := range []struct {
		in   string
		want []string
		left []int
	}{
		{"", nil, nil},
		{"a", []string{"a"}, []int{0}},
		{"a\nb\r\n\nc\n", []string{"a", "b", "", "c"}, []int{0, 0, 0, 0}},
		{string(long) + "\nb", []string{string(long[:maxLine]), "b"}, []int{100, 0}},
		{string(long), []string{string(long[:maxLine])}, []int{100}},
		{string(long[:maxLine]) + "\n", []string{string(long[:maxLine])}, []int{0}},
	} {
		var got []string
		var left []int
		if err := readLines(bytes.NewReader([]byte(test.in)), func(line []byte, n int) {
			got, left = append(got, string(line)), append(left, n)
		}); err != nil {
			t.Fatal(err)
		}
		if len(got) != len(test.want) {
			t.Fatalf("%.20q: %d lines, want %d", test.in, len(got), len(test.want))
		}
		for i := range got {
			if got[i] != test.want[i] || left[i] != test.left[i] {
				t.Errorf("%.20q: line %d has %d bytes and %d left out, want %d and %d", test.in, i, len(got[i]), left[i], len(test.want[i]), test.left[i])
			}
		}
	}
}
