package language

import (
	"strings"

	"millwright/schema"
	"millwright/schema/provider"
)

// operatorDocs are the operators of filters.
var operatorDocs = []offer{
	{label: "in", doc: "The value is one of these."},
	{label: "not_in", doc: "The value is none of these. Where the field is missing, it holds."},
	{label: "exists", doc: "`true`: the field is there. `false`: it is not."},
}

// filterOffers offers what may stand in the filter of a trigger. steps lead from the filter to the cursor.
func (c completion) filterOffers(trigger *schema.Node, steps []string) []offer {
	from, event := "", ""
	if n := trigger.At("provider"); n != nil {
		from = n.Value
	}
	if n := trigger.At("event"); n != nil {
		event = n.Value
	}

	inList := len(steps) > 0 && steps[len(steps)-1] == "[]"
	switch {
	case from == "webhook" && len(steps) == 0:
		return c.named([]offer{
			{label: "webhook_ids", doc: "The UIDs of the webhooks whose deliveries start the automation."},
			{label: "payload", doc: "A pattern that mirrors the body: the fields that must have certain values."},
			{label: "headers", doc: "The values of headers, by their names."},
		})
	case from == "webhook" && steps[0] == "webhook_ids":
		return c.webhookOffers()
	case from == "webhook" && (steps[0] == "payload" || steps[0] == "headers"):
		if len(steps) < 2 || inList {
			return nil
		}
		operators := operatorDocs
		if steps[0] == "headers" {
			operators = operatorDocs[:2]
		}
		return c.named(operators)
	case from == "schedule" && len(steps) == 0:
		return c.named([]offer{{label: "schedule_ids", doc: "Schedules of a hosted service."}})
	}

	known, ok := provider.Lookup(from, event)
	switch {
	case !ok:
		return nil
	case len(steps) == 0:
		return c.named(filterKeys(from, known))
	}

	canonical := provider.CanonicalKey(from, event, steps[0])
	if c.onKey || !inList && !c.inline {
		return c.named(operatorDocs[:2])
	}

	for _, k := range known.Keys {
		if k.Name != canonical {
			continue
		}

		all := []offer{}
		for _, word := range k.Words {
			text := yamlText(word)
			if !inList {
				text = "[" + text + "]"
			}
			all = append(all, offer{label: word, text: text, detail: "documented value", kind: itemValue})
		}
		return all
	}

	return nil
}

// filterKeys are the keys of the filter of an event.
func filterKeys(from string, event provider.Event) (all []offer) {
	for _, k := range event.Keys {
		doc := "A key of the filter of `" + from + "/" + event.Name + "`: a list of values, or `in` and `not_in`."
		if len(k.Words) > 0 {
			doc += "\n\nKnown: `" + strings.Join(k.Words, "`, `") + "`"
		}
		if k.Unread != "" {
			doc += "\n\nNo payload has a value: " + k.Unread
		}
		all = append(all, offer{label: k.Name, detail: "filter key", doc: doc})
	}
	return all
}

// named offers keys that the mapping around the cursor does not have yet.
func (c completion) named(offers []offer) (all []offer) {
	if c.inline {
		return nil
	}

	mapping := c.path[len(c.path)-1]
	for _, o := range offers {
		if mapping.At(o.label) == nil {
			o.text, o.kind = c.keyText(o.label), itemProperty
			all = append(all, o)
		}
	}
	return all
}

// webhookOffers offers the UIDs of the webhooks of the tree under their names. Without a server it offers the
// names, which "millwright webhook uids --write" turns into UIDs.
func (c completion) webhookOffers() []offer {
	all := []offer{}
	said, _ := c.facts.of(c.tree.dir)
	for _, name := range c.tree.WebhookNames() {
		uid := said.Known.UIDs[name]
		o := offer{label: name, text: uid, detail: uid, kind: itemReference}
		if uid == "" {
			o.text = yamlText(name)
			o.detail = "the UID is not known without a server"
			o.doc = "`millwright webhook uids --write` replaces the name by the UID."
		} else if w, served := said.Webhooks[uid]; served {
			o.doc = aboutWebhook(w, uid)
		}

		if steps := c.names(); steps[len(steps)-1] != "[]" && steps[len(steps)-1] != "in" {
			o.text = "[" + o.text + "]"
		}
		all = append(all, o)
	}
	return all
}

// aboutWebhook describes a webhook that a server serves.
func aboutWebhook(w Webhook, uid string) string {
	text := "**" + w.Name + "**, a webhook of the factory " + w.Factory + "\n\n`" + uid + "`"
	if w.URL != "" {
		text += "\n\nServed at " + w.URL
	}
	return text
}
