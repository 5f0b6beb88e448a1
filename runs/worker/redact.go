package worker

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"sort"
	"strings"
	"unicode/utf16"

	"millwright/runs/dispatch"
)

// shortestSecret is the length in bytes below which a value is not looked for: it would be found
// everywhere.
const shortestSecret = 4

// redactor replaces the secret values of an order wherever a harness puts them out: as they are, as JSON
// writes them, in ASCII too, in base64, and each longer line of a value with several.
type redactor struct {
	replacer *strings.Replacer
	longest  int
}

func newRedactor(o *dispatch.Order) *redactor {
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
			if line = strings.TrimSpace(line); len(line) >= 2*shortestSecret {
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
	sort.Slice(all, func(i, j int) bool { return len(all[i]) > len(all[j]) || len(all[i]) == len(all[j]) && all[i] < all[j] })
	r := &redactor{}
	var pairs []string
	for _, f := range all {
		pairs = append(pairs, f, "***")
		r.longest = max(r.longest, len(f))
	}
	r.replacer = strings.NewReplacer(pairs...)
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
func (r *redactor) text(text string) string { return r.replacer.Replace(text) }
