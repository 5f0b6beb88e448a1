//go:build unix

package worker

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strings"
	"unicode/utf16"

	"millwright/runs/wire"
)

// shortestSecret is the length in bytes below which a value is not looked for: it would be found
// everywhere.
const shortestSecret = 8

// redactor replaces secret values wherever a harness puts them out: those of an order and those of the
// variables that the harness gets. It finds them as they are, as JSON writes them, in ASCII too, in base64,
// and each longer line of a value with several. It works on decoded text, so that no value can break a line
// of JSON.
type redactor struct {
	replacer *strings.Replacer // nil: there is nothing to look for
	longest  int
}

func newRedactor(o *wire.Order, env []string) *redactor {
	forms := map[string]bool{}
	add := func(s string) {
		if len(s) >= shortestSecret {
			forms[s] = true
		}
	}
	values := append([]string(nil), o.Redact...)
	for _, v := range o.Secrets {
		values = append(values, v)
	}

	for _, name := range env {
		values = append(values, os.Getenv(name))
	}

	for _, v := range values {
		if len(v) < shortestSecret {
			continue
		}

		add(v)
		add(strings.TrimSpace(v))
		add(inJSON(v, true))
		add(inJSON(v, false))
		add(inASCII(inJSON(v, false)))
		add(base64.StdEncoding.EncodeToString([]byte(v)))
		for line := range strings.Lines(v) {
			if line = strings.TrimSpace(line); len(line) >= shortestSecret {
				add(line)
				add(inJSON(line, true))
				add(inJSON(line, false))
				add(inASCII(inJSON(line, false)))
			}
		}
	}

	all := make([]string, 0, len(forms))
	for f := range forms {
		all = append(all, f)
	}

	sort.Slice(
		all,
		func(i, j int) bool { return len(all[i]) > len(all[j]) || len(all[i]) == len(all[j]) && all[i] < all[j] },
	)
	r := &redactor{}
	var pairs []string
	for _, f := range all {
		pairs = append(pairs, f, "***")
		r.longest = max(r.longest, len(f))
	}

	if len(pairs) > 0 {
		r.replacer = strings.NewReplacer(pairs...)
	}

	return r
}

// inJSON returns s as it is written inside a JSON string, with or without HTML's characters escaped.
func inJSON(s string, html bool) string {
	var out strings.Builder
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(html)
	if enc.Encode(s) != nil {
		return s
	}
	text := strings.TrimSuffix(out.String(), "\n")
	return text[1 : len(text)-1]
}

// inASCII returns a string of JSON with all other characters escaped, as many writers of JSON do.
func inASCII(text string) string {
	var out strings.Builder
	for _, unit := range utf16.Encode([]rune(text)) {
		if unit < 0x7f {
			out.WriteByte(byte(unit))
		} else {
			fmt.Fprintf(&out, `\u%04x`, unit)
		}
	}
	return out.String()
}

// text returns text with the secrets replaced by ***.
func (r *redactor) text(text string) string {
	if r.replacer == nil {
		return text
	}
	return r.replacer.Replace(text)
}

// block returns a block with the secrets replaced in all of its texts.
func (r *redactor) block(b wire.Block) wire.Block {
	for _, text := range []*string{&b.Text, &b.ID, &b.ActionID, &b.Category, &b.Name, &b.State} {
		*text = r.text(*text)
	}
	for _, raw := range []*json.RawMessage{&b.Input, &b.Output, &b.Data} {
		*raw = r.json(*raw)
	}
	return b
}

// json returns a value with the secrets replaced in its strings, keys and numbers. A value without any stays
// as it was written.
func (r *redactor) json(raw json.RawMessage) json.RawMessage {
	if r.replacer == nil || len(raw) == 0 {
		return raw
	}

	var value any
	in := json.NewDecoder(bytes.NewReader(raw))
	in.UseNumber()
	if in.Decode(&value) != nil {
		return quoted(r.text(string(raw)))
	}

	value, changed := r.value(value)
	if !changed {
		return raw
	}

	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if enc.Encode(value) != nil {
		return quoted("***")
	}

	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

func quoted(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return text
}

// value replaces the secrets in a decoded value, and reports whether there were any.
func (r *redactor) value(v any) (_ any, changed bool) {
	switch v := v.(type) {
	case string:
		text := r.text(v)
		return text, text != v
	case json.Number:
		if text := r.text(v.String()); text != v.String() {
			return text, true
		}
	case []any:
		for i := range v {
			item, c := r.value(v[i])
			v[i], changed = item, changed || c
		}
		return v, changed

	case map[string]any:
		for key, item := range v {
			item, c := r.value(item)
			v[key], changed = item, changed || c
			if text := r.text(key); text != key {
				delete(v, key)
				v[text], changed = item, true
			}
		}

		return v, changed
	}

	return v, false
}
