// Package conformance tells whether a webhook receiver keeps the contract of the ingress: it sends
// requests that are written down as data, byte for byte over TCP, and compares the answers with what
// the data says must come. The data is in testdata/conformance, whose README describes it.
package conformance

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// Case is one thing that a receiver must do, shown by one request or by several in a row.
type Case struct {
	ID  string `json:"id"`
	Why string `json:"why"`
	// Webhook names the target that the steps post to, unless they say otherwise.
	Webhook string `json:"webhook"`
	Steps   []Step `json:"steps"`

	// File and Line say where the case is written.
	File string `json:"-"`
	Line int    `json:"-"`
}

// Step is a request and what must come back. The zero value of each field is the usual: a POST to the
// webhook's path, with the right credential, and a Content-Length.
type Step struct {
	Webhook string `json:"webhook,omitempty"`
	Label   string `json:"label,omitempty"` // so that a later step can compare its answer

	Method  string   `json:"method,omitempty"`
	Target  string   `json:"target,omitempty"` // of the request line
	Version string   `json:"version,omitempty"`
	Headers []string `json:"headers,omitempty"` // lines, verbatim
	// Auth "none" sends no credential; else the target's own is sent, or what Sign says.
	Auth string `json:"auth,omitempty"`
	Sign *Sign  `json:"sign,omitempty"`

	Body   string  `json:"body,omitempty"`
	Base64 string  `json:"base64,omitempty"` // a body that is not UTF-8
	Repeat *Repeat `json:"repeat,omitempty"` // a long body

	// Framing is "length" (the default), "chunked", "bytes" (chunks of one byte) or "none".
	Framing string `json:"framing,omitempty"`
	// Announce is sent as Content-Length instead of the body's length.
	Announce string `json:"announce,omitempty"`
	// Hold means that the body is not sent before an answer came, or at all when that was not 100.
	Hold bool `json:"hold,omitempty"`
	// Half means that the sending side is closed after the request.
	Half bool `json:"half,omitempty"`
	// Raw replaces the whole request.
	Raw string `json:"raw,omitempty"`
	// Times sends the request so often, each with the same expectation.
	Times int `json:"times,omitempty"`

	Expect Expect `json:"expect"`
}

// Sign says how a request is signed, where that is not simply right.
type Sign struct {
	Scheme string `json:"scheme,omitempty"` // another one than the target's
	Secret string `json:"secret,omitempty"` // another one than the target's
	ID     string `json:"id,omitempty"`
	Age    int64  `json:"age,omitempty"`  // seconds since signing; negative: in the future
	Body   string `json:"body,omitempty"` // what is signed in place of the body
	// Set replaces values of the headers that signing made; an empty value leaves the header out. In it
	// {value} stands for the right one.
	Set map[string]string `json:"set,omitempty"`
}

// Repeat is a body of Before, Count times Unit, and After.
type Repeat struct {
	Before string `json:"before,omitempty"`
	Unit   string `json:"unit"`
	Count  int    `json:"count"`
	After  string `json:"after,omitempty"`
}

// Expect describes the required answer.
type Expect struct {
	Status []int `json:"status"` // one of these
	// Headers that must be as given; "*" is any value, "integer" a whole number of at least 1, "" absence.
	Headers map[string]string `json:"headers,omitempty"`
	// Delivery is "new" for a 202 without a duplicate, "duplicate" for one of the step labelled Of.
	Delivery string `json:"delivery,omitempty"`
	Of       string `json:"of,omitempty"`
	// Same is the label of a step whose answer must be the same, byte for byte, but for Date.
	Same string `json:"same,omitempty"`
	// Closes means that the connection must end after the answer.
	Closes bool `json:"closes,omitempty"`
	// Continue means that 100 must come before the body is sent; else it must not.
	Continue bool `json:"continue,omitempty"`
	// Answers is how many answers the connection must give; 0 means 1.
	Answers int `json:"answers,omitempty"`
}

// Load reads the cases of every .jsonl file of a directory.
func Load(dir fs.FS) ([]Case, error) {
	files, err := fs.Glob(dir, "*.jsonl")
	if err != nil {
		return nil, err
	}

	var all []Case
	seen := map[string]bool{}
	for _, file := range files {
		text, err := fs.ReadFile(dir, file)
		if err != nil {
			return nil, err
		}

		lines := bufio.NewScanner(bytes.NewReader(text))
		lines.Buffer(nil, 1<<20)
		for n := 1; lines.Scan(); n++ {
			if len(bytes.TrimSpace(lines.Bytes())) == 0 {
				continue
			}

			c := Case{File: file, Line: n}
			strict := json.NewDecoder(bytes.NewReader(lines.Bytes()))
			strict.DisallowUnknownFields()
			if err := strict.Decode(&c); err != nil {
				return nil, fmt.Errorf("%s:%d: %w", file, n, err)
			}
			if err := c.check(); err != nil {
				return nil, fmt.Errorf("%s:%d: %w", file, n, err)
			}
			if seen[c.ID] {
				return nil, fmt.Errorf("%s:%d: the ID %q is there twice", file, n, c.ID)
			}

			seen[c.ID] = true
			all = append(all, c)
		}

		if err := lines.Err(); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}

	return all, nil
}

func (c *Case) check() error {
	if c.ID == "" || c.Why == "" || len(c.Steps) == 0 {
		return errors.New("a case needs id, why and steps")
	}

	for i, s := range c.Steps {
		switch {
		case len(s.Expect.Status) == 0:
			return fmt.Errorf("step %d expects no status", i+1)
		case c.Webhook == "" && s.Webhook == "":
			return fmt.Errorf("step %d has no webhook", i+1)
		case strings.Count("length chunked bytes none", s.Framing) != 1 && s.Framing != "":
			return fmt.Errorf("step %d has an unknown framing %q", i+1, s.Framing)
		}

		if _, err := base64.StdEncoding.DecodeString(s.Base64); err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		}
	}

	return nil
}
