package request

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"regexp"
	"strings"
)

// mention is a person or team that a text names.
var mention = regexp.MustCompile(`(?:^|[^A-Za-z0-9_@/])@([A-Za-z0-9][A-Za-z0-9_-]*(?:/[A-Za-z0-9][A-Za-z0-9_.-]*)?)`)

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
	commandLine = regexp.MustCompile(`(?mi)^([ \t>*+-]*)(/[a-z][a-z0-9_-]*(?:[ \t]|$)|` +
		`!?(?:atlantis|bors|digger|terrateam|homu)[ \t]|r[+-])`)
	botName = regexp.MustCompile(`(?i)@(all|everyone|channel|here|` +
		`bors|claude|codex|coderabbitai|copilot|cursor|cursoragent|dependabot|devin-ai-integration|gemini-cli|` +
		`gitlab-bot|greenkeeper|homu|imgbot|jules|mergify|mergifyio|openhands|pre-commit-ci|renovate|renovatebot|` +
		`rultor|snyk-bot|sweep-ai|[a-z0-9-]+\[bot\])`)
)

// zeroWidth is not shown, and keeps a bot from reading a command.
const zeroWidth = "\u200b"

// Neutralise breaks the commands to bots in a text. People read the same text as before.
func Neutralise(text string) string {
	text = strings.ReplaceAll(text, markerStart, "<!-- ")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	text = commandLine.ReplaceAllStringFunc(text, func(found string) string {
		at := len(found) - len(strings.TrimLeft(found, " \t>*+-"))
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
		add(strings.TrimRight(base64.StdEncoding.EncodeToString([]byte(v)), "="))
		add(base64.RawURLEncoding.EncodeToString([]byte(v)))
		for line := range strings.Lines(v) {
			add(strings.TrimSpace(line))
		}
	}

	return s
}

// In reports whether one of the texts has a secret. Zero-width characters do not hide one.
func (s Secrets) In(texts ...string) bool {
	for _, text := range texts {
		bare := hidden.Replace(text)
		for _, form := range s.forms {
			if strings.Contains(text, form) || strings.Contains(bare, form) {
				return true
			}
		}
	}
	return false
}

var hidden = strings.NewReplacer("\u200b", "", "\u200c", "", "\u200d", "", "\u2060", "", "\ufeff", "", "\u00ad", "")
