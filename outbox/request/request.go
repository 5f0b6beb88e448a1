// Package request reads what agents ask the server to do at a forge, and decides what is performed. It is
// pure: it knows neither the state nor a forge.
//
// An agent is never trusted. A request is allowed if the definition allowed its kind when the execution
// started, and still does when the server performs it.
package request

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"millwright/schema"
)

// The types of requests.
const (
	PullRequest = "pull_request"
	Comment     = "comment"
	Label       = "label"
	Review      = "review"
	Reference   = "reference"
)

// Request is a line that an agent wrote.
type Request struct {
	Type       string        `json:"type"`
	Repository string        `json:"repository"` // owner/name; may be empty
	Title      string        `json:"title"`
	Body       string        `json:"body"`
	Add        []string      `json:"add"`
	Remove     []string      `json:"remove"`
	Event      string        `json:"event"`
	Comments   []LineComment `json:"comments"`
	URL        string        `json:"url"`
}

// LineComment is a comment of a review on a line of a file.
type LineComment struct {
	Path string `json:"path"`
	Line int    `json:"line"`
	Body string `json:"body"`
}

// Bounds of a request.
const (
	MaxLines        = 100
	MaxLine         = 64 << 10 // bytes
	maxTitle        = 250      // characters
	maxBody         = 60_000   // characters, below what GitHub takes
	maxLabel        = 50       // characters
	maxMentions     = 5
	maxLineComments = 50
	maxURL          = 2000
	maxReferences   = 20
)

// parse reads a line. Unknown keys are ignored.
func parse(line json.RawMessage) (Request, error) {
	var r Request
	if len(line) > MaxLine {
		return r, fmt.Errorf("it has %d bytes: at most %d are allowed", len(line), MaxLine)
	}

	trimmed := bytes.TrimSpace(line)
	if !bytes.HasPrefix(trimmed, []byte("{")) {
		return r, errors.New("it is no JSON object")
	}

	d := json.NewDecoder(bytes.NewReader(trimmed))
	if err := d.Decode(&r); err != nil {
		if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return r, fmt.Errorf("%s cannot be a JSON %s", Printable(kind.Field), kind.Value)
		}
		return r, errors.New("it is no JSON object")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return r, errors.New("it is more than one JSON object")
	}

	return r, nil
}

// check returns an error if a request of a known type is incomplete or too large.
func (r Request) check() error {
	switch r.Type {
	case PullRequest:
		return longer("title", r.Title, maxTitle)
	case Comment:
		return missing("body", r.Body)
	case Label:
		if len(r.Add)+len(r.Remove) == 0 {
			return errors.New("it adds and removes no label")
		}
	case Review:
		return r.checkReview()
	case Reference:
		if err := missing("title", r.Title); err != nil {
			return err
		}
		if len(r.URL) > maxURL || !strings.HasPrefix(r.URL, "https://") && !strings.HasPrefix(r.URL, "http://") ||
			strings.ContainsFunc(r.URL, func(c rune) bool { return c <= ' ' || c == 0x7f }) {
			return fmt.Errorf("url is no http or https address of at most %d bytes", maxURL)
		}
		return longer("title", r.Title, maxTitle)
	case "":
		return errors.New("it has no type")
	default:
		return fmt.Errorf("the type %q is unknown: pull_request, comment, label, review or reference",
			Printable(r.Type))
	}

	return nil
}

func (r Request) checkReview() error {
	switch {
	case r.Event == "APPROVE":
		return errors.New("a review never approves")
	case r.Event == "":
		return errors.New("event is missing: COMMENT or REQUEST_CHANGES")
	case len(r.Comments) > maxLineComments:
		return fmt.Errorf("it has %d comments: at most %d are allowed", len(r.Comments), maxLineComments)
	case len(r.Comments) == 0:
		return missing("body", r.Body)
	}

	for i, c := range r.Comments {
		if c.Path == "" || c.Line < 1 || strings.TrimSpace(c.Body) == "" || len(c.Path) > schema.MaxReference {
			return fmt.Errorf("comments[%d] needs a path, a line from 1 on and a body", i)
		}
	}

	return nil
}

func missing(what, text string) error {
	if strings.TrimSpace(text) == "" {
		return fmt.Errorf("%s is missing", what)
	}
	return nil
}

func longer(what, text string, most int) error {
	if n := utf8.RuneCountInString(text); n > most {
		return fmt.Errorf("%s has %d characters: at most %d are allowed", what, n, most)
	}
	return nil
}

// texts returns all that a request would make others read.
func (r Request) texts() []string {
	all := []string{r.Title, r.Body, r.URL}
	for _, c := range r.Comments {
		all = append(all, c.Body, c.Path)
	}
	all = append(all, r.Add...)
	return append(all, r.Remove...)
}

// Printable makes one short line of foreign text.
func Printable(text string) string {
	text = strings.Map(func(c rune) rune {
		if c < ' ' || c >= 0x7f && c < 0xa0 || c >= 0x202a && c <= 0x202e || c >= 0x2066 && c <= 0x2069 {
			return ' '
		}
		return c
	}, strings.ToValidUTF8(text, "\uFFFD"))
	if r := []rune(text); len(r) > 100 {
		text = string(r[:99]) + "…"
	}
	return text
}
