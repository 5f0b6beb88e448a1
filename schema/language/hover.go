package language

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"millwright/schema"
	"millwright/schema/provider"
	"millwright/signature"
)

// hover describes what is at a place: first the rules that it breaks, then what it means.
func (s *session) hover(ctx context.Context, doc *document, params json.RawMessage) (any, error) {
	near, doc, offset, err := s.at(ctx, doc, params)
	if doc == nil {
		return nil, err
	}

	var parts []string
	for _, p := range near.Problems {
		start, end := doc.place(p.Line, p.Column), doc.place(p.EndLine, p.EndColumn)
		if p.Path == doc.path && start <= offset && offset <= end {
			parts = append(parts, aboutRule(p.Code))
		}
	}

	outline, ok := schema.ReadOutline(doc.path, doc.src)
	near.deliveries = func(uid string, filter *schema.Node) string {
		return s.aboutDeliveries(ctx, doc, uid, filter)
	}

	var placed *Range
	if ok && outline.Root != nil {
		text, start, end := near.aboutPlace(outline, doc, offset)
		if text != "" {
			at := doc.span(start, end)
			parts, placed = append(parts, text), &at
		}
	}

	parts = slices.Compact(parts)
	if len(parts) == 0 {
		return nil, nil
	}

	out := map[string]any{"contents": markdown(strings.Join(parts, "\n\n---\n\n"))}
	if placed != nil {
		out["range"] = placed
	}
	return out, nil
}

// aboutRule explains a rule in Markdown.
func aboutRule(code string) string {
	rule, known := schema.LookupRule(code)
	if !known {
		return ""
	}
	const form = "**%s** (rule `%s`)\n\n%s\n\n`millwright explain %[2]s` has an example."
	return fmt.Sprintf(form, rule.Title, code, rule.Doc)
}

// aboutPlace describes the key or value at an offset, and returns its place.
func (near nearby) aboutPlace(o schema.Outline, doc *document, offset int) (text string, start, end int) {
	c := cursor{outline: o}
	n := c.findOffset(o.Root, offset)
	if n == nil {
		return "", 0, 0
	}

	of := shapes(o.Document)
	steps := c.names()
	for _, step := range steps {
		if step == "[]" {
			of = item(of)
		} else {
			of = key(of, step)
		}
	}

	if n.KeyStart <= offset && offset <= n.KeyEnd && n.Key != "" {
		text := about(n.Key, of)
		if found := near.aboutFilterKey(&c, n.Key); found != "" {
			text = found
		}
		if len(of) == 0 && !strings.Contains(text, "\n") {
			return "", 0, 0
		}
		return text, n.KeyStart, n.KeyEnd
	}

	return near.aboutValue(&c, n, doc, of), n.Start, n.End
}

// findOffset goes to the innermost node at an offset, and returns it.
func (c *cursor) findOffset(n *schema.Node, offset int) *schema.Node {
	c.path = append(c.path, n)
	for _, inner := range n.Items {
		first := inner.Start
		if inner.Key != "" {
			first = inner.KeyStart
		}
		if first <= offset && offset <= max(inner.End, inner.KeyEnd) {
			return c.findOffset(inner, offset)
		}
	}
	return n
}

// aboutFilterKey describes a key of a trigger's filter.
func (near nearby) aboutFilterKey(c *cursor, name string) string {
	trigger, rest := c.trigger()
	if trigger == nil || len(rest) < 2 || rest[0] != "filter" {
		return ""
	}

	from, event := trigger.At("provider"), trigger.At("event")
	for _, o := range operatorDocs {
		if o.label == name && len(rest) > 2 {
			return "**" + name + "**\n\n" + o.doc
		}
	}
	if from == nil || event == nil || len(rest) > 2 {
		return ""
	}
	if known, ok := provider.Lookup(from.Value, event.Value); ok {
		canonical := provider.CanonicalKey(from.Value, event.Value, name)
		for _, o := range filterKeys(from.Value, known) {
			if o.label == canonical {
				return "**" + canonical + "**\n\n" + o.doc
			}
		}
	}
	return ""
}

// aboutValue describes a value.
func (near nearby) aboutValue(c *cursor, n *schema.Node, doc *document, of []shape) string {
	if n.Kind != schema.NodeScalar {
		return ""
	}

	where := strings.Join(c.names(), ".")
	trigger, _ := c.trigger()
	switch {
	case where == "triggers.[].event" && trigger != nil && trigger.At("provider") != nil:
		return aboutEvent(trigger.At("provider").Value, n.Value)
	case where == "triggers.[].schedule.cron":
		if ticks := nextTicks(n.Value, time.Now()); ticks != nil {
			return aboutTicks(n.Value, ticks)
		}
		return ""
	case where == "signatureScheme":
		if scheme, ok := signature.Lookup(n.Value); ok {
			return "**" + scheme.Name() + "**\n\n" + scheme.Doc()
		}
		return ""
	}

	for _, r := range near.References() {
		if r.Path == doc.path && r.Start == n.Start {
			text := near.aboutReference(r)
			if r.Kind == "webhook" && schema.ParseUID(r.Name) {
				text += near.deliveries(r.Name, trigger.At("filter"))
			}
			return text
		}
	}
	return ""
}

// aboutReference describes what a value names.
func (near nearby) aboutReference(r schema.Reference) string {
	said, asked := near.facts.of(near.dir)
	name := near.webhookName(r)
	switch r.Kind {
	case "webhook":
		if w, ok := said.Webhooks[r.Name]; ok {
			return aboutWebhook(w, r.Name)
		}
		if name == r.Name && schema.ParseUID(name) {
			return "The UID of a webhook. Its name is known to its server: start `millwright lsp` with `--server`."
		}
		return "The webhook **" + name + "**, in `webhooks/" + name + ".yaml`"

	case "secret":
		for _, x := range said.Secrets {
			if x.Name == name {
				return "The team secret **" + name + "**: " + x.Standing
			}
		}
		if asked {
			return "The server has no team secret **" + name + "**"
		}
		return "The team secret **" + name + "**"
	}

	file := near.file(target{kind: r.Kind, name: name})
	if file == "" {
		return ""
	}
	text := fmt.Sprintf("The %s **%s**, in `%s`", r.Kind, name, file)
	if said := near.describe(schema.Resource{Kind: r.Kind, Name: name, Path: file}); said != "" {
		text += "\n\n" + said
	}
	return text
}

// Bounds of what a hover asks for.
const (
	hoverDeliveries = 3
	hoverTime       = 2 * time.Second
)

// aboutDeliveries lists the last deliveries of a webhook, and what the filter would have done with them. It
// is empty where no server answers in time.
func (s *session) aboutDeliveries(
	ctx context.Context,
	doc *document,
	uid string,
	filter *schema.Node,
) string {
	if s.config.Lookup == nil || filter == nil {
		return ""
	}

	ctx, cancel := context.WithTimeout(ctx, hoverTime)
	defer cancel()

	// The first line stands behind its key: what follows keeps its place below it.
	text := string(doc.src[filter.Start:filter.End])
	indent := strings.Repeat(" ", int(doc.position(filter.Start).Character))
	all, err := s.config.Lookup.Deliveries(ctx, uid, indent+text, hoverDeliveries)
	if err != nil || len(all) == 0 {
		return ""
	}

	var b strings.Builder
	b.WriteString("\n\nLast deliveries, and what this filter would do with them:\n")
	for _, d := range all {
		verdict := "starts the automation"
		if !d.Matches {
			verdict = "starts nothing: `" + plain(d.Failed) + "` fails"
		}
		fmt.Fprintf(&b, "\n* %s `%s` %s", d.ReceivedAt.UTC().Format(time.DateTime), plain(d.ID), verdict)
	}
	return b.String()
}

// plain is foreign text that stays inside a code span.
func plain(s string) string { return clipped(strings.ReplaceAll(s, "`", "'")) }
