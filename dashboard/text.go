package dashboard

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"html/template"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"millwright/state"
)

// Bounds of one foreign text on a page, in bytes.
const (
	maxLine  = 300       // of what stands in a line: names, titles, reasons
	maxText  = 64 << 10  // of what stands in a block: prompts, messages
	maxJSON  = 512 << 10 // of a payload, pretty-printed
	maxDepth = 32        // of a payload that is pretty-printed; a deeper one is shown as it came
)

// visible replaces the control characters, bidirectional and other format characters, and bytes that are not
// UTF-8 of a finished page by Go's escapes. The templates have none of these, so all of them are foreign.
// Joiners stay: emoji and some scripts need them. Text in forms is written as character references (editable),
// and stays as it is.
func visible(page []byte) []byte {
	clean := true
	for _, c := range page {
		if c < ' ' && c != '\n' && c != '\t' || c >= 0x7f {
			clean = false
			break
		}
	}

	if clean {
		return page
	}

	out := make([]byte, 0, len(page)+256)
	for len(page) > 0 {
		r, n := utf8.DecodeRune(page)
		switch {
		case r == utf8.RuneError && n == 1:
			out = fmt.Appendf(out, `\x%02x`, page[0])
		case hidden(r):
			out = appendEscape(out, r)
		default:
			out = append(out, page[:n]...)
		}

		page = page[n:]
	}

	return out
}

// hidden reports whether a character cannot be seen, or changes the display of others.
func hidden(r rune) bool {
	switch r {
	case '\n', '\t', 0x200c, 0x200d:
		return false
	}
	return r < ' ' ||
		r >= 0x7f &&
			(unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co, unicode.Cs))
}

func appendEscape(out []byte, r rune) []byte {
	quoted := strconv.QuoteRuneToASCII(r)
	return append(out, quoted[1:len(quoted)-1]...)
}

// editable returns text for a textarea, exactly as it is, hidden characters included.
func editable(text string) template.HTML {
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == utf8.RuneError && text[i] != 0xef:
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case r == 0:
			b.WriteString(`\x00`)
		case hidden(r):
			fmt.Fprintf(&b, "&#%d;", r)
		default:
			b.WriteString(html.EscapeString(string(r)))
		}
	}

	return template.HTML("\n" + b.String()) // a parser drops the first line end of a textarea
}

// clip returns at most the first n bytes of text, in whole characters. It adds the length of a longer text.
func clip(n int, text string) string {
	if len(text) <= n {
		return text
	}
	end := n
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "… (" + byteCount(int64(len(text))) + " in all)"
}

// typed returns a text of an address as the state can look for it: bounded, UTF-8 and without NUL.
func typed(n int, text string) string {
	text = strings.ToValidUTF8(clip(n, text), "")
	return strings.TrimSpace(strings.ReplaceAll(text, "\x00", ""))
}

// line returns foreign text for a line: bounded, and without line ends.
func line(text string) string {
	text = clip(maxLine, text)
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), " ")
}

// prose returns foreign text for a block: bounded, with plain line ends.
func prose(text string) string { return strings.ReplaceAll(clip(maxText, text), "\r\n", "\n") }

// pretty returns JSON with a line for each member. JSON that is too deep or too long stays as it is, up to a
// bound.
func pretty(body []byte) string {
	if depth, size := indented(body); depth <= maxDepth && size <= 2*maxJSON {
		var b bytes.Buffer
		if json.Indent(&b, body, "", "  ") == nil && b.Len() <= maxJSON {
			return b.String()
		}
	}
	return clip(maxJSON, string(body))
}

// indented returns how deep the arrays and objects of valid JSON nest, and the most bytes that it takes with
// a line for each member.
func indented(body []byte) (deepest, size int) {
	depth, quoted := 0, false
	size = len(body)
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			depth++
			deepest = max(deepest, depth)
			size += 1 + 2*depth
		case c == ']' || c == '}':
			depth--
			size += 1 + 2*depth
		case c == ',':
			size += 1 + 2*depth
		case c == ':':
			size++
		}
	}

	return deepest, size
}

// byteCount writes a size for people.
func byteCount(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1000*1000:
		return fmt.Sprintf("%.1f kB", float64(n)/1000)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1000/1000)
}

// size writes the size of a delivery's body.
func size(d state.Delivery) string {
	switch {
	case d.Size == nil:
		return "unknown"
	case d.SizeMax != nil && *d.SizeMax > *d.Size:
		return byteCount(*d.Size) + " – " + byteCount(*d.SizeMax)
	}
	return byteCount(*d.Size)
}

const stampFormat = "2 Jan 2006, 15:04:05 UTC"

// ago writes a time as people say it, with the exact one behind it.
func ago(now func() time.Time, v any) template.HTML {
	var t time.Time
	switch v := v.(type) {
	case time.Time:
		t = v
	case *time.Time:
		if v == nil {
			return "never"
		}
		t = *v
	}

	if t.IsZero() {
		return "never"
	}

	t = t.UTC()
	return template.HTML(
		fmt.Sprintf(
			`<time datetime="%s" title="%s">%s</time>`,
			t.Format(time.RFC3339),
			t.Format(stampFormat),
			since(now().Sub(t), t),
		),
	)
}

func since(d time.Duration, t time.Time) string {
	past := d >= 0
	if !past {
		d = -d
	}

	var text string
	switch {
	case d < 10*time.Second:
		return "just now"
	case d < time.Minute:
		text = fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		text = fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 24*time.Hour:
		text = fmt.Sprintf("%d h", int(d.Hours()))
	case d < 14*24*time.Hour:
		text = fmt.Sprintf("%d d", int(d.Hours()/24))
	default:
		return t.Format("2 Jan 2006")
	}

	if past {
		return text + " ago"
	}

	return "in " + text
}

// spell writes a duration for people.
func spell(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
}

// short writes a revision for people: the first digits of a commit or hash.
func short(revision string) string {
	if rest, ok := strings.CutPrefix(revision, "sha256:"); ok {
		return "sha256:" + rest[:min(len(rest), 10)]
	}
	if len(revision) == 40 || len(revision) == 64 {
		return revision[:10]
	}
	return line(revision)
}

func contentHash(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:6])
}

// panicKind names what a panic was about without its text, which may quote foreign data.
func panicKind(v any) string { return reflect.TypeOf(v).String() }

// webAddress returns the address of a link that a browser may follow; empty for any other.
func webAddress(a state.Artifact) string {
	u, err := url.Parse(a.Path)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil {
		return ""
	}
	return u.String()
}

// unixLines replaces the line ends that browsers put into a textarea.
func unixLines(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
