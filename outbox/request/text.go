package request

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"regexp"
	"strings"
	"unicode/utf8"
)

// mention is a person or team that a text names. Markdown allows one in _emphasis_.
var mention = regexp.MustCompile(`(?:^|[^A-Za-z0-9@/])@([A-Za-z0-9][A-Za-z0-9_-]*(?:/[A-Za-z0-9][A-Za-z0-9_.-]*)?)`)

// mentions returns how many people and teams the texts name.
func mentions(texts []string) int {
	seen := map[string]bool{}
	for _, text := range texts {
		for _, m := range mention.FindAllStringSubmatch(text, -1) {
			seen[strings.ToLower(m[1])] = true
		}
	}
	return len(seen)
}

// Commands to bots: a word at the beginning of a line, and the names of bots anywhere.
var (
	commandLine = regexp.MustCompile(`(?mi)^([\pZ\t\x{feff}>*+-]*)` +
		`(/[a-z][a-z0-9_-]*(?:[^a-z0-9_/-]|$)|!?(?:atlantis|bors|digger|terrateam|homu)[\pZ\t]|r[+-])`)
	botName = regexp.MustCompile(`(?i)@(all|everyone|channel|here|` +
		`bors|claude|codex|coderabbitai|copilot|cursor|cursoragent|dependabot|devin-ai-integration|gemini-cli|` +
		`gitlab-bot|greenkeeper|homu|imgbot|jules|mergify|mergifyio|openhands|pre-commit-ci|renovate|renovatebot|` +
		`rultor|snyk-bot|sweep-ai|[a-z0-9-]+\[bot\])`)
)

// zeroWidth is not shown, and keeps a bot from reading a command.
const zeroWidth = "\u200b"

// lineEnds replaces all that some program takes for the end of a line.
var lineEnds = strings.NewReplacer(
	"\r\n", "\n", "\r", "\n", "\v", "\n", "\f", "\n", "\x1c", "\n", "\x1d", "\n", "\x1e", "\n",
	"\u0085", "\n", "\u2028", "\n", "\u2029", "\n",
)

// brokenMarker is the start of a marker that is none any more. It only adds to the text, so that no other
// marker comes about.
var brokenMarker = strings.Replace(markerStart, ":", zeroWidth+":", 1)

// Neutralise breaks the commands to bots in a text, and markers. People read the same text as before.
func Neutralise(text string) string {
	text = strings.ReplaceAll(text, markerStart, brokenMarker)
	text = lineEnds.Replace(text)
	text = commandLine.ReplaceAllStringFunc(text, func(found string) string {
		at := strings.IndexFunc(found,
			func(c rune) bool { return c < utf8.RuneSelf && !strings.ContainsRune(" \t>*+-", c) })
		return found[:at+1] + zeroWidth + found[at+1:]
	})
	return botName.ReplaceAllString(text, "@"+zeroWidth+"$1")
}

// neutral returns a request whose texts hold no commands to bots.
func (r Request) neutral() Request {
	r.Title, r.Body = Neutralise(oneLine(r.Title)), Neutralise(r.Body)
	comments := make([]LineComment, len(r.Comments))
	for i, c := range r.Comments {
		comments[i] = LineComment{c.Path, c.Line, Neutralise(c.Body)}
	}
	r.Comments = comments
	return r
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// shortestSecret is the length in bytes below which a value is not looked for: it would be found everywhere.
const shortestSecret = 8

// Secrets are values that no output may contain.
type Secrets struct{ forms []string }

// NewSecrets returns the values in the forms in which they are looked for: as they are, in JSON, in base64, in
// hex and in URLs, and each longer line of a value with several.
func NewSecrets(values []string) Secrets {
	var s Secrets
	seen := map[string]bool{}
	add := func(form string) {
		if len(form) >= shortestSecret && !seen[form] {
			seen[form] = true
			s.forms = append(s.forms, form)
		}
	}

	for _, v := range values {
		if len(v) < shortestSecret {
			continue
		}

		quoted, _ := json.Marshal(v)
		add(v)
		add(strings.TrimSpace(v))
		add(string(quoted[1 : len(quoted)-1]))
		add(url.QueryEscape(v))
		add(hex.EncodeToString([]byte(v)))
		for _, alphabet := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			for before := range 3 {
				add(within(alphabet, v, before))
			}
		}
		for line := range strings.Lines(v) {
			add(strings.TrimSpace(line))
		}
	}

	return s
}

// within returns the digits of base64 that a value has in whatever is encoded, after so many bytes modulo 3.
func within(alphabet *base64.Encoding, value string, before int) string {
	text := alphabet.EncodeToString(append(make([]byte, before), value...))
	return text[(8*before+5)/6 : 8*(before+len(value))/6]
}

// In reports whether one of the texts has a secret. Zero-width characters do not hide one.
func (s Secrets) In(texts ...string) bool {
	for _, text := range texts {
		bare := hidden.Replace(text)
		for _, form := range s.forms {
			if strings.Contains(text, form) || len(bare) < len(text) && strings.Contains(bare, form) {
				return true
			}
		}
	}
	return false
}

var hidden = strings.NewReplacer("\u200b", "", "\u200c", "", "\u200d", "", "\u2060", "", "\ufeff", "", "\u00ad", "")
