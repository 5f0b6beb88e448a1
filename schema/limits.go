package schema

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// The greatest lengths of texts, in characters, in definition files and in the requests of the API alike.
const (
	MaxTitle        = 120   // of a run
	MaxLabel        = 200   // the name of a configuration, a factory or a skill
	MaxModel        = 200   // the name of a language model
	MaxHarness      = 100   // the name of a harness
	MaxReasoning    = 100   // a level of reasoning
	MaxEnvironment  = 200   // the ID of an environment
	MaxRunner       = 200   // the name of a runner
	MaxWorkerHost   = 200   // the name of a worker's host
	MaxSkillSpec    = 500   // owner/repo:path of a skill
	MaxScheduleName = 64    // which is a value of a run's metadata: at most 256 bytes
	MaxAlias        = 60    // of a factory
	MaxWord         = 100   // a provider, an event, a kind
	MaxReference    = 500   // a repository's owner or name, an image
	MaxDescription  = 4000  // of a resource
	MaxCommand      = 65536 // a set-up command
)

// limits are the lengths by the names that the JSON Schemas have for them.
var limits = map[string]int{
	"label": MaxLabel, "model": MaxModel, "harness": MaxHarness, "reasoning": MaxReasoning, "environment": MaxEnvironment,
	"runner": MaxRunner, "workerHost": MaxWorkerHost, "scheduleName": MaxScheduleName, "alias": MaxAlias, "word": MaxWord,
	"reference": MaxReference, "description": MaxDescription, "command": MaxCommand, "name": MaxNameBytes,
}

// The patterns of texts without control characters: of one line, and of several.
const (
	linePattern = `^[^\x00-\x1f\x7f-\x9f]*$`
	textPattern = `^[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]*$`
)

// ControlCharacter returns the first control character of a text (C0, DEL or C1), and where it is. In a text of
// several lines tabs, line feeds and carriage returns are none.
func ControlCharacter(text string, lines bool) (r rune, at int, found bool) {
	for i, r := range text {
		switch {
		case lines && (r == '\t' || r == '\n' || r == '\r'):
		case r < ' ', r >= 0x7f && r <= 0x9f:
			return r, i, true
		}
	}
	return 0, 0, false
}

func controlMessage(what string, r rune) (message, hint string) {
	hint = "delete it"
	if r == '\t' || r == '\n' || r == '\r' {
		hint = "write it on one line, without tabs"
	}
	return fmt.Sprintf("%s holds the control character U+%04X", what, r), hint
}

func (d *document) controlCharacter(n *yaml.Node, what string, r rune) {
	message, hint := controlMessage(what, r)
	d.errorAt(n, ruleControlCharacter, message, hint)
}

// checkControls reports control characters, written as escapes, in the keys and values at and below a node.
func (d *document) checkControls(n *yaml.Node, path []string) {
	if n == nil {
		return
	}

	if n.Kind == yaml.ScalarNode {
		if r, _, found := ControlCharacter(n.Value, true); found {
			what := "the file"
			if len(path) > 0 {
				what = wherePath(path)
			}

			d.controlCharacter(n, what, r)
		}

		return
	}

	for i, c := range n.Content {
		switch {
		case n.Kind == yaml.SequenceNode:
			d.checkControls(c, append(path, fmt.Sprint(i)))
		case i%2 == 1:
			d.checkControls(c, append(path, n.Content[i-1].Value))
		default:
			if r, _, found := ControlCharacter(c.Value, false); found {
				d.controlCharacter(c, "the key "+quoted(c.Value), r)
			}
		}
	}
}

// checkBody reports the first control character below the front matter.
func (d *document) checkBody(kind fileKind) {
	from := d.close + 3 // behind the fence
	if len(d.body) == 0 || from > len(d.src) {
		return
	}

	text := string(d.src[from:])
	r, at, found := ControlCharacter(text, true)
	if !found {
		return
	}

	size := utf8.RuneLen(r)
	what := "the prompt"
	if kind == kindSkill {
		what = "the text"
	}

	message, hint := controlMessage(what, r)
	more := 0
	for rest := text[at:]; found; {
		rest = rest[utf8.RuneLen(r):]
		var next int
		if r, next, found = ControlCharacter(rest, true); found {
			more++
			rest = rest[next:]
		}
	}

	if more > 0 {
		message += fmt.Sprintf(", and %d more like it", more)
	}

	first := from + at
	d.report(d.spanAt(first, first+size), ruleControlCharacter, message, hint)
}

// fillLimits puts lengths and patterns into the text of a JSON Schema in place of their names.
func fillLimits(text string) string {
	pairs := []string{`"@line"`, inJSON(linePattern), `"@text"`, inJSON(textPattern)}
	for name, limit := range limits {
		pairs = append(pairs, `"@max `+name+`"`, fmt.Sprint(limit))
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

func inJSON(text string) string {
	out, _ := json.Marshal(text) // a string always marshals
	return string(out)
}
