package schema

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"millwright/schema/provider"
)

// providerTrigger checks a trigger of a provider whose events this server fires, and keeps its filter.
func (d *document) providerTrigger(trigger *yaml.Node, t *Trigger, where string) {
	event, _ := provider.Lookup(t.Provider, t.Event)
	at := child(trigger, "provider")
	if event.Never == "" {
		d.fact(factSource, at, t.Provider)
	} else {
		d.notFired(at, t.Provider, fmt.Sprintf("%s/%s is not fired: %s", t.Provider, t.Event, event.Never))
	}

	_, filter := find(trigger, "filter")
	if isNull(filter) {
		filter = nil
	}
	if filter != nil && (filter.Kind != yaml.MappingNode || d.anyBad(filter)) {
		return
	}

	compiled, ok := d.compileProvider(filter, t, where)
	if !ok {
		return
	}

	d.unreadKeys(filter, t, event)
	d.askedKeys(filter, child(trigger, "event"), t, event)
	if event.Public && !compiled.Restricted() {
		d.fact(factPublic, child(trigger, "event"), t.Provider+"/"+t.Event)
	}
}

// compileProvider reports the problems of a filter of a provider's trigger. Without an error it keeps the
// filter.
func (d *document) compileProvider(filter *yaml.Node, t *Trigger, where string) (f *provider.Filter, ok bool) {
	raw := []byte(nil)
	if filter != nil {
		t.Filter = nodeJSON(filter)
		raw = t.Filter
	}

	f, problems := provider.Compile(t.Provider, t.Event, raw)
	unknown := false
	for _, p := range problems {
		at := nodeAt(filter, p.Path, p.OnKey)
		place := where + ".filter"
		if len(p.Path) > 0 {
			place += "." + wherePath(p.Path)
		}

		switch {
		case p.Unknown != "":
			unknown = true
		case p.Words != nil:
			near := suggest(p.Word, p.Words)
			d.report(d.spanOf(at), ruleFilterValue,
				fmt.Sprintf("%s: %s never has %s", place, t.Provider, quoted(p.Word)),
				didYouMean(near, "it documents "+listed(p.Words)))
		case p.Odd:
			d.report(d.spanOf(at), ruleFilterValue, place+": "+p.Message, p.Hint)
		default:
			d.errorAt(at, ruleFilter, place+": "+p.Message, p.Hint)
		}
	}

	if unknown {
		d.unknownFilterKeys(filter, t, where)
	}

	return f, f != nil
}

// nodeAt follows a path into a mapping or list; the last step may be a key. It ends where the path does not go
// on.
func nodeAt(n *yaml.Node, path []string, onKey bool) *yaml.Node {
	for i, step := range path {
		next := child(n, step)
		if i == len(path)-1 && onKey {
			next, _ = find(n, step)
		}
		if next == nil {
			return n
		}
		n = next
	}
	return n
}

// unknownFilterKeys reports the keys of a filter that its event does not have: first those that other events
// of the provider have.
func (d *document) unknownFilterKeys(filter *yaml.Node, t *Trigger, where string) {
	event, _ := provider.Lookup(t.Provider, t.Event)
	known := event.KeyNames()
	for i := 0; i+1 < len(filter.Content); i += 2 {
		key := filter.Content[i]
		if provider.CanonicalKey(t.Provider, t.Event, key.Value) != "" {
			known = append(known, key.Value)
			continue
		}

		others := eventsWith(t.Provider, key.Value)
		if len(others) == 0 || suggest(key.Value, known) != "" {
			continue
		}

		d.errorAt(key, ruleUnknownKey,
			fmt.Sprintf("%s.filter: %s/%s has no %s", where, t.Provider, t.Event, quoted(key.Value)),
			fmt.Sprintf("the event has %s; %s has %s", listed(event.KeyNames()), others[0], key.Value))
	}

	d.unknownKeys(filter, known, where+".filter")
}

// eventsWith returns the events of a provider whose filter may have a key as it is written.
func eventsWith(name, written string) []string {
	return slices.DeleteFunc(provider.Events(name), func(event string) bool {
		return provider.CanonicalKey(name, event, written) == ""
	})
}

// unreadKeys warns of keys that no payload has a value for: with one, the trigger never matches.
func (d *document) unreadKeys(filter *yaml.Node, t *Trigger, event provider.Event) {
	if filter == nil || event.Never != "" {
		return
	}
	for i := 0; i+1 < len(filter.Content); i += 2 {
		key := filter.Content[i]
		canonical := provider.CanonicalKey(t.Provider, t.Event, key.Value)
		for _, k := range event.Keys {
			if k.Name == canonical && k.Unread != "" && !emptyMatcher(filter.Content[i+1]) {
				d.report(d.spanOf(key), ruleFilterNoValue,
					fmt.Sprintf("%s/%s never matches a filter with %s: %s", t.Provider, t.Event, key.Value, k.Unread),
					"delete the key, or leave the choice to the prompt")
			}
		}
	}
}

// askedKeys notes the key by which the trigger asks the forge, or the event if it does so without the key.
func (d *document) askedKeys(filter, name *yaml.Node, t *Trigger, event provider.Event) {
	own := event.Own
	for i := 0; filter != nil && i+1 < len(filter.Content); i += 2 {
		key, matcher := filter.Content[i], filter.Content[i+1]
		canonical := provider.CanonicalKey(t.Provider, t.Event, key.Value)
		if emptyMatcher(matcher) {
			continue
		}
		if canonical == own && (matcher.Kind == yaml.SequenceNode || !emptyMatcher(child(matcher, "in"))) {
			own = ""
		}

		for _, k := range event.Keys {
			if k.Name == canonical && k.Files {
				d.fact(factForge, key, t.Provider)
			}
		}
	}

	if own != "" {
		d.fact(factForge, name, t.Provider)
	}
}

// forge warns of a trigger that asks forges of which the server has none.
func (c *stateCheck) forge(f *fact) {
	if c.known.ForgeKinds == nil {
		return
	}

	for _, w := range c.factory.Webhooks {
		kind := provider.ForgeKind(canonicalScheme(w.SignatureScheme))
		if !w.Enabled || w.Source() != f.value || slices.Contains(c.known.ForgeKinds, kind) {
			continue
		}

		c.report(f, ruleTriggerNoForge,
			fmt.Sprintf("the server has no forge of kind %s to ask about deliveries to the webhook %s: "+
				"the trigger does not match them", kind, clip(w.Name)),
			"have the operator add the forge to the settings, or choose another filter")
		return
	}
}

// emptyMatcher reports whether a matcher asks for nothing.
func emptyMatcher(n *yaml.Node) bool {
	if n == nil || isNull(n) || len(n.Content) == 0 {
		return true
	}
	return n.Kind == yaml.MappingNode && emptyMatcher(child(n, "in")) && emptyMatcher(child(n, "not_in"))
}

// sources warns of each provider whose events triggers name while no webhook of the tree receives them.
func (c *crossed) sources() {
	if len(c.factory.webhookNames) > len(c.factory.Webhooks) {
		return // a file that cannot be read may be the source
	}

	first := map[string]*fact{}
	for i := range c.factory.facts {
		f := &c.factory.facts[i]
		if f.kind == factSource && (first[f.value] == nil || before(f, first[f.value])) {
			first[f.value] = f
		}
	}

	for _, name := range provider.Names() {
		f := first[name]
		if f == nil {
			continue
		}

		var disabled string
		found := slices.ContainsFunc(c.factory.Webhooks, func(w Webhook) bool {
			if w.Source() != name {
				return false
			}
			if !w.Enabled {
				disabled = w.Path
			}
			return w.Enabled
		})
		if found {
			continue
		}

		message := fmt.Sprintf("no webhook of this tree receives events of %s: its triggers do not fire", name)
		hint := "add webhooks/" + name + ".yaml: " + SourceFile(name)
		if disabled != "" {
			hint = "delete enabled: false from " + clip(disabled)
		}
		c.report(f.path, f.span(), ruleTriggerNoSource, message, hint)
	}
}

func before(a, b *fact) bool {
	if a.path != b.path {
		return a.path < b.path
	}
	return a.start < b.start
}

// SourceFile returns, in one line of YAML, a webhook that receives the events of a provider.
func SourceFile(name string) string {
	keys := []string{
		"authMode: signature", "signatureScheme: " + name, "secretName: " + strings.ToUpper(name) + "_WEBHOOK_SECRET",
	}
	if name == provider.Slack {
		keys = append(keys, "handshake: true")
	}
	return "{" + strings.Join(keys, ", ") + "}"
}

// strangers warns of automations with secrets or outputs that anybody may start.
func (c *crossed) strangers() {
	for i := range c.factory.facts {
		f := &c.factory.facts[i]
		if f.kind != factPublic {
			continue
		}

		at := slices.IndexFunc(c.factory.Automations, func(a Automation) bool { return a.Path == f.path })
		if at < 0 {
			continue
		}

		exec, _, _ := c.factory.Resolve(c.factory.Automations[at])
		has := ""
		switch {
		case f.outputs:
			has = "outputs"
		case len(exec.Secrets) > 0:
			has = "secrets"
		default:
			continue
		}

		keys := "authors"
		if strings.HasPrefix(f.value, provider.GitHub+"/") {
			keys = "authors or author_associations"
		}
		c.report(f.path, f.span(), ruleTriggerAnybody,
			fmt.Sprintf("anybody who may comment can start this automation, which has %s", has),
			"add "+keys+" to the filter of "+f.value)
	}
}
