package schema

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

// fix puts text in the place of the value, in the same quotes; nil for a value of several lines.
func (f *fact) fix(text string) *Fix {
	if f.start == f.end {
		return nil
	}
	if f.quote != 0 {
		text = string(f.quote) + text + string(f.quote)
	}
	return &Fix{Start: int(f.start), End: int(f.end), Text: text}
}

// maxFacts bounds the facts of one file.
const maxFacts = 2000

func (d *document) fact(kind factKind, n *yaml.Node, value string) {
	if d.bad[n] {
		return
	}

	if len(d.facts) >= maxFacts {
		if len(d.facts) == maxFacts && !d.crowded {
			d.crowded = true
			d.errorAt(
				n,
				ruleInvalidValue,
				fmt.Sprintf("this file names more than %d webhooks, secrets and other resources", maxFacts),
				"",
			)
		}

		return
	}

	start, end := d.extent(n)
	s := d.spanAt(start, end)

	// A file has at most MaxFileBytes, so every place in it fits.
	f := fact{
		kind: kind, path: d.path, value: value, start: int32(start), end: int32(end),
		line: int32(s.line), col: int32(s.col), endLine: int32(s.endLine), endCol: int32(s.endCol),
	}
	switch {
	case !d.onOneLine(n, start, end):
		f.end = f.start
	case n.Style&yaml.DoubleQuotedStyle != 0:
		f.quote = '"'
	case n.Style&yaml.SingleQuotedStyle != 0:
		f.quote = '\''
	}

	if outputs := d.value("outputs"); kind == factPublic && outputs != nil {
		f.outputs = !isNull(outputs)
	}

	d.facts = append(d.facts, f)
}

// nearby bounds the work of suggestions over many names.
type nearby struct{ spent int }

func (b *nearby) suggest(text string, candidates []string) string {
	const most = 1 << 20 // comparisons
	if b.spent += len(candidates); b.spent > most {
		return ""
	}
	return suggest(text, candidates)
}
