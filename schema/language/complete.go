package language

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"millwright/schema"
	"millwright/schema/provider"
	"millwright/signature"
)

// complete offers what may stand at a place.
func (s *session) complete(ctx context.Context, doc *document, params json.RawMessage) (any, error) {
	var p textDocument
	items := []completionItem{}
	if err := decode(params, &p); err != nil || doc == nil || doc.dir == "" {
		return items, err
	}

	now, err := s.around(ctx, doc)
	if err != nil || now == nil {
		return items, err
	}

	at, ok := cursorIn(doc.path, doc.src, doc.offset(p.Position))
	if !ok {
		return items, nil
	}

	offers := completion{cursor: at, tree: now, facts: s.facts}.offers()
	replaced := doc.span(at.start, at.end)
	for i, o := range offers {
		text := o.text
		if text == "" {
			text = o.label
		}

		filter := o.label
		if at.quote != 0 && !at.onKey {
			text = strconv.Quote(strings.Trim(text, `"'`))
			filter = string(at.quote) + filter
		}

		item := completionItem{
			Label: o.label, Kind: o.kind, Detail: o.detail, FilterText: filter, SortText: fmt.Sprintf("%04d", i),
			TextEdit: TextEdit{replaced, text},
		}
		if o.doc != "" {
			item.Documentation = markdown(o.doc)
		}
		items = append(items, item)
	}

	return items, nil
}

func (c completion) offers() []offer {
	of := shapes(c.outline.Document)
	steps := c.names()
	for _, step := range steps {
		if step == "[]" {
			of = item(of)
		} else {
			of = key(of, step)
		}
	}

	trigger, rest := c.trigger()
	if trigger != nil && len(rest) > 0 && rest[0] == "filter" {
		return c.filterOffers(trigger, rest[1:])
	}
	if c.onKey {
		return c.keyOffers(of, "")
	}

	if found := c.nameOffers(strings.Join(steps, "."), trigger); found != nil {
		return found
	}
	if found := valueOffers(of); len(found) > 0 {
		return found
	}

	// A word below the key of a mapping is the first key in it.
	switch {
	case c.inline:
	case is(of, "object"):
		return c.keyOffers(of, "")
	case is(of, "array"):
		return c.keyOffers(item(of), "- ")
	}

	return nil
}

// keyOffers offers the keys that the mapping around the cursor does not have yet.
func (c completion) keyOffers(of []shape, before string) (all []offer) {
	mapping := c.path[len(c.path)-1]
	for _, name := range keys(of) {
		if before == "" && mapping.At(name) != nil {
			continue
		}

		is := key(of, name)
		all = append(all, offer{
			label: name, text: before + c.keyText(name), detail: member(is, "title"), doc: about(name, is),
			kind: itemProperty,
		})
	}
	return all
}

// valueOffers offers the values that the schema lists.
func valueOffers(of []shape) (all []offer) {
	seen := map[string]bool{}
	add := func(v any, detail string) {
		text := valueText(v)
		if text == "" || seen[text] {
			return
		}
		seen[text] = true

		o := offer{label: strings.Trim(text, `"`), text: text, detail: detail, kind: itemValue}
		if name, isText := v.(string); isText {
			if scheme, known := signature.Lookup(name); known && len(list(of, "enum")) > 20 {
				o.detail, o.doc = scheme.Confidence(), scheme.Doc()
			}
		}
		all = append(all, o)
	}

	for _, v := range list(of, "enum") {
		add(v, "")
	}
	if is(of, "boolean") {
		add(true, "")
		add(false, "")
	}
	for _, s := range of {
		if v, ok := s.at["default"]; ok {
			add(v, "default")
		}
	}
	for _, v := range list(of, "examples") {
		add(v, "example")
	}

	return all
}

// valueText writes a value as YAML; "" for a list or mapping.
func valueText(v any) string {
	switch v := v.(type) {
	case string:
		return yamlText(v)
	case bool:
		return strconv.FormatBool(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return ""
}

// nameOffers offers the names that the tree, the providers and the server have. It returns nil where a value
// is no such name.
func (c completion) nameOffers(where string, trigger *schema.Node) []offer {
	last := where[strings.LastIndexByte(where, '.')+1:]
	switch {
	case where == "agent" && c.outline.Document == "automation":
		return c.resources("agent")
	case last == "runner":
		return c.resources("runner")
	case last == "environmentId":
		return c.resources("environment")
	case where == "filter.automation.[]" && c.outline.Document == "notification":
		return c.resources("automation")
	case last == "secretName", last == "urlSecretName", strings.HasSuffix(where, "secrets.[]"):
		return c.secrets()
	case trigger == nil:
		return nil
	}

	from := trigger.At("provider")
	switch where {
	case "triggers.[].provider":
		return providers()
	case "triggers.[].event":
		if from == nil {
			return []offer{}
		}
		return events(from.Value)
	case "triggers.[].schedule.cron":
		return schedules(c.typed)
	}

	return nil
}

// resources offers the names of the tree's resources of a kind.
func (c completion) resources(kind string) []offer {
	all := []offer{}
	for _, r := range c.tree.Resources() {
		if r.Kind == kind && r.Agent == "" {
			all = append(all, offer{
				label: r.Name, text: yamlText(r.Name), detail: r.Path, doc: c.tree.describe(r), kind: itemReference,
			})
		}
	}
	return all
}

// secrets offers the team secrets that the server has, or else those that the tree names elsewhere.
func (c completion) secrets() []offer {
	all := []offer{}
	if said, ok := c.facts.of(c.tree.dir); ok {
		for _, x := range said.Secrets {
			all = append(all, offer{label: x.Name, detail: "team secret, " + x.Standing, kind: itemReference})
		}
		return all
	}

	seen := map[string]bool{"": true}
	for _, r := range c.tree.References() {
		if r.Kind == "secret" && !seen[r.Name] && !strings.Contains(r.Name, mark) {
			seen[r.Name] = true
			all = append(all, offer{label: r.Name, detail: "named in " + r.Path, kind: itemReference})
		}
	}

	slices.SortFunc(all, func(a, b offer) int { return strings.Compare(a.label, b.label) })
	return all
}

// providers offers the providers of triggers.
func providers() []offer {
	all := []offer{
		{
			label: "webhook", detail: "any delivery to a webhook",
			doc: "Deliveries to the webhooks in `filter.webhook_ids`.",
		},
		{label: "schedule", detail: "a time", doc: "Times, in UTC, of `schedule.cron`."},
	}
	for _, name := range provider.Names() {
		all = append(all, offer{
			label: name, detail: fmt.Sprintf("%d events", len(provider.Events(name))),
			doc: "Events: " + strings.Join(provider.Events(name), ", "),
		})
	}

	for i := range all {
		all[i].kind = itemValue
	}
	return all
}

// events offers the events of a provider.
func events(of string) []offer {
	switch of {
	case "webhook":
		return []offer{{label: "received", detail: "a delivery was accepted", kind: itemValue}}
	case "schedule":
		return []offer{{label: "cron_fired", detail: "a time of the schedule has come", kind: itemValue}}
	}

	all := []offer{}
	for _, name := range provider.Events(of) {
		all = append(all, offer{label: name, detail: of + " event", doc: aboutEvent(of, name), kind: itemValue})
	}
	return all
}

// aboutEvent describes an event of a provider in Markdown.
func aboutEvent(of, name string) string {
	event, known := provider.Lookup(of, name)
	if !known {
		return ""
	}

	text := fmt.Sprintf("**%s/%s**", of, name)
	if event.Never != "" {
		text += "\n\nNot fired: " + event.Never
	}
	if event.Public {
		text += "\n\nStrangers may cause it where anybody may write."
	}
	if names := event.KeyNames(); len(names) > 0 {
		text += "\n\nKeys of its filter: `" + strings.Join(names, "`, `") + "`"
	}
	return text
}

// schedules offers schedules, each with the next times that it fires.
func schedules(typed string) (all []offer) {
	for _, text := range []string{
		typed, "0 6 * * 1-5", "*/15 * * * *", "0 * * * *", "0 0 1 * *",
		"@hourly", "@daily", "@weekly", "@monthly", "@every 90m",
	} {
		same := func(o offer) bool { return o.label == text }
		ticks := nextTicks(text, time.Now())
		if ticks == nil || slices.ContainsFunc(all, same) {
			continue
		}

		all = append(all, offer{
			label: text, text: yamlText(text), detail: "next " + ticks[0], doc: aboutTicks(text, ticks),
			kind: itemValue,
		})
	}
	return all
}

// nextTicks returns the next three times at which a schedule fires, nil for what is no schedule.
func nextTicks(text string, now time.Time) (ticks []string) {
	parsed, err := schema.ParseCron(text)
	if err != nil {
		return nil
	}

	at := now.UTC()
	for range 3 {
		at = parsed.Next(at)
		ticks = append(ticks, at.Format("Mon 2 Jan 2006 15:04:05 UTC"))
	}
	return ticks
}

func aboutTicks(text string, ticks []string) string {
	return fmt.Sprintf("`%s` fires next\n\n* %s", text, strings.Join(ticks, "\n* "))
}

// describe is what a file says of itself.
func (l *loaded) describe(r schema.Resource) string {
	t := l.text(r.Path)
	if t == nil {
		return ""
	}

	outline, ok := schema.ReadOutline(r.Path, t.src)
	if !ok {
		return ""
	}
	if said := outline.Root.At("description"); said != nil {
		return said.Value
	}
	return ""
}
