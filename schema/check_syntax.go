package schema

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The YAML parser reports a problem in its own words and with a rough place. The
// functions here find the exact place, mostly by parsing a part of the text again,
// and word the message.

// diagnosisBudget bounds the bytes parsed again for all broken files of a tree
// together. Beyond it, problems stand at the line the parser named.
const diagnosisBudget = 4 << 20

var parserLine = regexp.MustCompile(`^yaml: (?:line ([0-9]+): )?`)

// diagnose reports why the text of d cannot be read, and returns what is left
// of the budget.
func (d *document) diagnose(budget int) int {
	if d.parseErr == nil {
		return budget
	}

	text := d.parseErr.Error()
	m := parserLine.FindStringSubmatch(text)
	said := ""
	line := 1
	if m != nil {
		said = text[len(m[0]):]
		if m[1] != "" {
			line, _ = strconv.Atoi(m[1])
		}
	}

	p := parseFailure{d: d, said: said, line: line, budget: budget}
	p.report()
	return p.budget
}

var unknownAnchor = regexp.MustCompile(`^unknown anchor '(.*)' referenced$`)

type parseFailure struct {
	d      *document
	said   string // the parser's words
	line   int    // the parser's line, in the text
	budget int
}

func (p *parseFailure) at(start, end int, rule RuleID, message, hint string) {
	end = max(min(end, len(p.d.text)), start)
	p.d.report(p.d.spanAt(p.d.at+start, p.d.at+end), rule, message, hint)
}

var conflictMark = regexp.MustCompile(`(?m)^<{7} [^\r\n]*`)

func (p *parseFailure) report() {
	if m := unknownAnchor.FindStringSubmatch(p.said); m != nil {
		for start := 0; start < len(p.d.text); start++ {
			if bytes.HasPrefix(p.d.text[start:], []byte("*"+m[1])) && startsValue(p.d.text, start) {
				p.at(
					start,
					start+1+len(m[1]),
					ruleYAMLAnchor,
					"this alias has no anchor",
					"write the value out; put a text that begins with * in quotes",
				)
				return
			}
		}
	}

	if found := conflictMark.FindIndex(p.d.text); found != nil {
		p.at(
			found[0],
			found[1],
			ruleInvalidYAML,
			"an unresolved merge conflict",
			"keep what is right of the two, and delete the lines with <<<<<<<, ======= and >>>>>>>",
		)
		return
	}

	if start, end, ok := p.d.prompt(); ok {
		p.d.openPrompt(start, end)
		return
	}

	if start, ok := p.tooDeep(); ok {
		p.at(start, start+1, ruleInvalidYAML, fmt.Sprintf("values nest more than %d levels deep", maxYAMLDepth), "")
		return
	}

	if start, ok := p.indentTab(); ok {
		p.at(
			start,
			start+1,
			ruleInvalidYAML,
			"a tab in the indentation; YAML indents with spaces only",
			"replace the tab by spaces",
		)
		return
	}

	if start, word, ok := p.openBracket(); ok &&
		(strings.Contains(p.said, "',' or") || strings.Contains(p.said, "node content")) {
		message := "this " + word + " is never closed"
		if word == "]" || word == "}" {
			message = "this " + word + " closes nothing"
		}

		p.at(start, start+1, ruleInvalidYAML, message, "")
		return
	}

	if strings.Contains(p.said, "unexpected end of stream") ||
		strings.Contains(p.said, "unexpected document indicator") {
		if start, ok := p.openQuote(); ok {
			p.at(start, start+1, ruleInvalidYAML, "this quote is never closed", "")
			return
		}
	}

	message, hint := p.words()
	start, ok := p.bisect(!strings.Contains(p.said, "could not find expected ':'"))
	if !ok {
		start = p.lineStart(min(p.line, bytes.Count(p.d.text, []byte{'\n'})+1))
	}

	rest := p.d.text[start:]
	if strings.Contains(p.said, "could not find expected ':'") {
		// The parser notices one line late that a key has no colon.
		p.at(start, start+lineLen(rest), ruleInvalidYAML, message, hint)
		return
	}

	end := start + max(wordLen(rest), min(1, lineLen(rest)))
	if at := bytes.LastIndexByte(p.d.text[:min(start+1, len(p.d.text))], '\\'); at >= 0 &&
		start-at <= len(`\U0001F600`) &&
		ok &&
		p.escape() {
		start, end = at, at+escapeLen(p.d.text[at:])
	}

	p.at(start, end, ruleInvalidYAML, message, hint)
}

// escape says whether the parser stumbled over an escape in double quotes.
func (p *parseFailure) escape() bool {
	return strings.Contains(p.said, "escape") || strings.Contains(p.said, "hexdecimal")
}

// escapeLen is the length of the escape that text begins with, as far as it is one.
func escapeLen(text []byte) int {
	n, digits := min(2, len(text)), 0
	if n == 2 {
		digits = map[byte]int{'x': 2, 'u': 4, 'U': 8}[text[1]]
	}
	for end := n + digits; n < min(end, len(text)) && isAlnum(text[n]); n++ {
	}
	return n
}

// words puts the parser's message into words for someone who writes files.
func (p *parseFailure) words() (message, hint string) {
	switch s := p.said; {
	case strings.Contains(s, "mapping values are not allowed"):
		if blank := p.d.falseBlank(p.line-1, p.line); blank != "" {
			return "an unexpected colon", blank
		}
		return "an unexpected colon",
			"put a value that contains \": \" in quotes, and check the indentation of this line"
	case strings.Contains(s, "cannot start any token"):
		return "a value cannot begin with this character", "put the value in quotes"
	case strings.Contains(s, "alphabetic or numeric character"):
		return "a value cannot begin with this character", "a text that begins with * or & goes in quotes"
	case strings.Contains(s, "could not find expected ':'"):
		hint = "write \"key: value\", with a space after the colon"
		if p.d.base == 1 {
			hint += "; if the prompt begins here, close the front matter above it with a line ---"
		}

		return "this line is neither a key nor part of a value", hint
	case strings.Contains(s, "did not find expected key"):
		return "a key was expected here", "check the indentation of this line, and the quotes of the value before it"
	case strings.Contains(s, "expected '-' indicator"):
		return "a list item was expected here", "begin it with \"- \", at the same indentation as the items above"
	case strings.Contains(s, "block sequence entries are not allowed"):
		return "a list cannot begin on the line of its key", "put \"- \" on a line of its own, indented under the key"
	case strings.Contains(s, "Unicode character escape"):
		return "an escape that stands for no character",
			`write the character itself, or all of its code: "\U0001F600" and not half of a pair`
	case strings.Contains(s, "unknown escape"), strings.Contains(s, "hexdecimal"):
		return "an escape that double quotes do not know", `write \\ for a backslash, or use single quotes`
	case strings.Contains(s, "node content"):
		return "a value was expected here", ""
	case strings.Contains(s, "unexpected end of stream"):
		return "the text ends inside a value", "close the quote or bracket"
	case strings.Contains(s, "document start") && p.ended():
		return "text after the end of the document",
			"delete the line with ... that ends the document, or what follows it"
	case strings.Contains(s, "document start"):
		return "text after the end of the document",
			"begin this line where the first one begins; a file holds one document"
	case strings.Contains(s, "exceeded"):
		return fmt.Sprintf("values nest more than %d levels deep", maxYAMLDepth), ""
	case strings.Contains(s, "YAML document"), strings.Contains(s, "%YAML"), strings.Contains(s, "directive"):
		return "YAML directives are not supported", "delete the line that begins with %"
	case strings.Contains(s, "tab character"):
		return "a tab in the indentation; YAML indents with spaces only", "replace the tab by spaces"
	case s == "":
		return "the text is not valid YAML", ""
	default:
		return "the text is not valid YAML: " + s, ""
	}
}

// ended reports whether a line with ... ends the document before the text does.
func (p *parseFailure) ended() bool {
	return bytes.HasPrefix(p.d.text, []byte("...")) || bytes.Contains(p.d.text, []byte("\n..."))
}

// lineStart returns the offset in the text at which a line begins, from 1.
func (p *parseFailure) lineStart(line int) int {
	at := 0
	for ; line > 1; line-- {
		n := bytes.IndexByte(p.d.text[at:], '\n')
		if n < 0 {
			return at
		}
		at += n + 1
	}
	return at
}

// fails says whether the first n bytes of the text fail with the same words.
func (p *parseFailure) fails(n int) bool {
	p.budget -= n
	_, _, err := decode(p.d.text[:n])
	return err != nil && strings.HasSuffix(err.Error(), p.said)
}

// bisect finds the offset at which the parser first sees the mistake: the
// shortest run of whole lines that fails with the same words, then, with exact,
// the place within its last line.
func (p *parseFailure) bisect(exact bool) (offset int, ok bool) {
	const most = 64 << 10 // longer files stand at the parser's line
	if len(p.d.text) > most || p.budget < 20*len(p.d.text) || p.said == "" {
		return 0, false
	}

	var ends []int
	for at := 0; at < len(p.d.text); {
		_, at = lineAt(p.d.text, at)
		ends = append(ends, at)
	}

	lo, hi := -1, len(ends)-1 // the text up to ends[hi] fails, up to ends[lo] does not
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; p.fails(ends[mid]) {
			hi = mid
		} else {
			lo = mid
		}
	}

	if hi < 0 {
		return 0, false
	}

	start := 0
	if hi > 0 {
		start = ends[hi-1]
	}

	if !exact {
		if strings.Contains(p.said, "could not find expected ':'") && hi > 0 && !p.loneWord(start) &&
			p.loneWord(p.previous(start)) {
			start = p.previous(start)
		}
		return start + indentation(p.d.text[start:]), true
	}

	a, b := start, ends[hi]
	for b-a > 1 {
		if mid := (a + b) / 2; p.fails(mid) {
			b = mid
		} else {
			a = mid
		}
	}

	at := b - 1
	for at > start && !utf8.RuneStart(p.d.text[at]) {
		at--
	}

	// A mistake that shows at the line's end lies in the line.
	if at < len(p.d.text) && (p.d.text[at] == '\n' || p.d.text[at] == '\r') {
		at = start + indentation(p.d.text[start:])
	}

	return at, true
}

func (p *parseFailure) previous(start int) int {
	return bytes.LastIndexByte(p.d.text[:max(start-1, 0)], '\n') + 1
}

// loneWord says whether the line has text but no key.
func (p *parseFailure) loneWord(start int) bool {
	line, _ := lineAt(p.d.text, start)
	line = bytes.TrimSpace(line)
	return len(line) > 0 && line[0] != '#' && !bytes.Contains(line, []byte(": ")) &&
		!bytes.HasSuffix(line, []byte(":"))
}

func indentation(text []byte) int {
	for i, c := range text {
		if c != ' ' && c != '\t' {
			return i
		}
	}
	return 0
}

// tooDeep finds the bracket that opens the first level beyond those allowed, where the parser gave up over the
// depth.
func (p *parseFailure) tooDeep() (int, bool) {
	if !strings.Contains(p.said, "exceeded") {
		return 0, false
	}

	depth := 1 // the mapping of the file
	for i, c := range p.d.text {
		switch c {
		case '[', '{':
			if depth++; depth > maxYAMLDepth {
				return i, true
			}
		case ']', '}':
			depth--
		}
	}

	return 0, false
}

// indentTab finds a tab in the indentation at or before the line in question.
func (p *parseFailure) indentTab() (int, bool) {
	if !strings.Contains(p.said, "tab") && !strings.Contains(p.said, "cannot start any token") {
		return 0, false
	}

	for at, line := 0, 1; at < len(p.d.text) && line <= p.line+1; line++ {
		text, next := lineAt(p.d.text, at)
		indent := text[:len(text)-len(bytes.TrimLeft(text, " \t"))] // of a line of blanks, all of it
		if i := bytes.IndexByte(indent, '\t'); i >= 0 && line >= p.line-1 {
			return at + i, true
		}

		at = next
	}

	return 0, false
}

// openBracket finds the innermost flow bracket that nothing closes, or one that
// closes nothing, leaving out quoted text and comments.
func (p *parseFailure) openBracket() (at int, word string, ok bool) {
	var open []int
	text := p.d.text
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '"', '\'':
			if !startsValue(text, i) {
				continue
			}

			end := closingQuote(text, i)
			if end < 0 {
				return 0, "", false
			}

			i = end

		case '#':
			if i == 0 || text[i-1] == ' ' || text[i-1] == '\t' || text[i-1] == '\n' {
				n := bytes.IndexByte(text[i:], '\n')
				if n < 0 {
					i = len(text)
				} else {
					i += n
				}
			}

		case '[', '{':
			if len(open) > 0 || startsValue(text, i) {
				open = append(open, i)
			}
		case ']', '}':
			if len(open) == 0 {
				if startsValue(text, i) {
					return i, string(c), true
				}
				continue
			}

			open = open[:len(open)-1]
		}
	}

	if len(open) == 0 {
		return 0, "", false
	}

	at = open[len(open)-1]
	return at, string(text[at]), true
}

// openQuote finds a quote that opens a value and is never closed.
func (p *parseFailure) openQuote() (int, bool) {
	text := p.d.text
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case (c == '"' || c == '\'') && startsValue(text, i):
			end := closingQuote(text, i)
			if end < 0 {
				return i, true
			}

			i = end
		case c == '#' && (i == 0 || text[i-1] == ' ' || text[i-1] == '\n'):
			n := bytes.IndexByte(text[i:], '\n')
			if n < 0 {
				return 0, false
			}

			i += n
		}
	}

	return 0, false
}

// startsValue says whether a value can begin at i: after a key's colon, a
// dash, a bracket, a comma, or at the start of a line.
func startsValue(text []byte, i int) bool {
	before := bytes.TrimRight(text[:i], " \t")
	if len(before) == 0 {
		return true
	}

	switch before[len(before)-1] {
	case '\n', '[', '{', ',':
		return true
	case ':', '-', '?':
		return len(before) < i
	}

	return false
}

// closingQuote returns the offset of the quote that closes the one at i, or -1.
func closingQuote(text []byte, i int) int {
	quote := text[i]
	for j := i + 1; j < len(text); j++ {
		switch {
		case text[j] == '\\' && quote == '"':
			j++
		case text[j] == quote:
			if quote == '\'' && j+1 < len(text) && text[j+1] == '\'' {
				j++
				continue
			}
			return j
		}
	}

	return -1
}
