package schema

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/textproto"
	"slices"
	"strings"

	"millwright/schema/provider"
	"millwright/signature"
)

// Delivered is a delivery as triggers see it. It is for one goroutine.
type Delivered struct {
	WebhookUID string
	Scheme     string // the signature scheme of the webhook, "" without one
	Event      string // the value of the header that names the event
	// Header has the request's headers by canonical name; nil where they were not kept.
	Header  map[string][]string
	Body    []byte
	Payload Payload // of Body; the zero Payload where no trigger has a payload filter

	event *provider.Delivery
	read  bool
}

// OfProvider returns the delivery as its provider's; nil for one of none.
func (d *Delivered) OfProvider() *provider.Delivery {
	if !d.read {
		d.event, d.read = provider.Read(canonicalScheme(d.Scheme), d.Event, d.Body), true
	}
	return d.event
}

// canonicalScheme returns the name of a scheme that is named by an alias.
func canonicalScheme(name string) string {
	if s, ok := signature.Lookup(name); ok {
		return s.Name()
	}
	return name
}

// Source returns the provider whose events the webhook receives, or "".
func (w Webhook) Source() string {
	if w.AuthMode != AuthSignature {
		return ""
	}
	return provider.OfScheme(canonicalScheme(w.SignatureScheme))
}

// Matcher is a compiled trigger: it judges deliveries to the webhooks that Selects names. It is immutable and
// safe for concurrent use.
type Matcher struct {
	payload *Filter
	headers *HeaderFilter
	event   *provider.Filter
}

// CompileTrigger compiles a trigger that deliveries fire. Its error describes the first problem of the
// filter.
func CompileTrigger(t Trigger) (*Matcher, error) {
	if t.Provider != providerWebhook {
		event, problems := provider.Compile(t.Provider, t.Event, t.Filter)
		if event == nil {
			return nil, errors.New(providerProblem(problems[0]))
		}
		return &Matcher{event: event}, nil
	}

	payload, problems := CompileFilter(t.Payload)
	if len(problems) > 0 {
		return nil, errors.New(problems[0].Message)
	}

	headers, err := CompileHeaders(t.Headers)
	if err != nil {
		return nil, err
	}
	return &Matcher{payload: payload, headers: headers}, nil
}

func providerProblem(p provider.Problem) string {
	if p.Unknown != "" {
		return fmt.Sprintf("the filter has an unknown key %s", quoted(p.Unknown))
	}
	return p.Message
}

// Selects reports whether deliveries to a webhook are judged by the trigger: those to the webhooks that
// webhook_ids names, or those to all webhooks that receive events of the trigger's provider.
func (t Trigger) Selects(webhookUID string, source string) bool {
	if t.Provider != providerWebhook {
		return source != "" && source == t.Provider && t.Fires()
	}
	return t.Fires() && slices.Contains(t.WebhookIDs, webhookUID)
}

// ReadsPayload reports whether Match needs Delivered.Payload.
func (m *Matcher) ReadsPayload() bool { return m.payload != nil }

// ReadsHeaders reports whether Match needs Delivered.Header.
func (m *Matcher) ReadsHeaders() bool { return m.headers != nil }

// Match reports whether the delivery matches, by what is known of it.
func (m *Matcher) Match(d *Delivered) bool {
	matched, _ := m.Judge(d)
	return matched
}

// Judge is Match, and returns what the forge is to be asked for if the answer decides. Then matched is false.
func (m *Matcher) Judge(d *Delivered) (matched bool, ask provider.Ask) {
	if m.event != nil {
		return m.event.Judge(d.OfProvider())
	}
	return m.headers.Match(d.Header) && m.payload.Match(d.Payload), provider.Ask{}
}

// Explain evaluates as Match does and says how.
func (m *Matcher) Explain(d *Delivered) Explanation {
	if m.event != nil {
		return m.explainEvent(d.OfProvider())
	}

	e := m.payload.Explain(d.Payload)
	if m.headers == nil {
		return e
	}

	leaves := m.headers.explain(d.Header)
	e.Matched = e.Matched && m.headers.Match(d.Header)
	e.Leaves = append(leaves, e.Leaves...)
	switch {
	case d.Header == nil:
		e.Reason = "the headers of this delivery were not kept: no trigger asked for them then"
	case m.payload == nil:
		e.Reason = ""
	}

	return e
}

// explainEvent explains a trigger of a provider.
func (m *Matcher) explainEvent(d *provider.Delivery) Explanation {
	if d == nil {
		return Explanation{Reason: "the webhook receives no events of a provider", Leaves: []LeafExplanation{}}
	}

	of := m.event.Explain(d)
	e := Explanation{
		Matched: of.Matched, AsksForge: of.Ask.Any(), Reason: of.Reason, Leaves: []LeafExplanation{},
	}
	for _, k := range of.Keys {
		leaf := LeafExplanation{
			Path: []string{k.Key}, Where: k.Key, Operator: k.Operator, Expected: preview(textList(k.Wanted)),
			Present: len(k.Found) > 0, Passed: k.Passed,
		}
		if leaf.Present {
			leaf.Found = preview(textList(k.Found))
		}
		if k.Note != "" {
			e.Reason = k.Key + ": " + k.Note
		}
		e.Leaves = append(e.Leaves, leaf)
	}

	return e
}

// Events returns the events of its provider that the delivery is, by the names of triggers.
func (d *Delivered) Events() (names []string) {
	event := d.OfProvider()
	for _, name := range event.Events() {
		names = append(names, event.Provider()+"/"+name)
	}
	return names
}

// StoredHeader reads headers as they are kept of a delivery: lines "Name: value" that end in CR LF. It returns
// nil for nil.
func StoredHeader(lines []byte) map[string][]string {
	if lines == nil {
		return nil
	}

	whole := io.MultiReader(bytes.NewReader(lines), strings.NewReader("\r\n"))
	header, _ := textproto.NewReader(bufio.NewReader(whole)).ReadMIMEHeader() // of what it read before an error
	return header
}
