package schema

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// notification reads the document as a notification and checks the rules that tie its keys together.
func (d *document) notification(name string) Notification {
	d.checkStructure("notification")
	n := Notification{
		Name:          name,
		Path:          d.path,
		Line:          d.line(),
		Description:   text(d.data, "description"),
		URL:           text(d.data, "url"),
		URLSecretName: text(d.data, "urlSecretName"),
		SecretName:    text(d.data, "secretName"),
		Events:        texts(d.data, "events"),
		Format:        text(d.data, "format"),
		Enabled:       boolean(d.data, "enabled", true),
	}
	if _, given := d.data["format"]; !given {
		n.Format = FormatStandard
	}
	if filter, ok := d.data["filter"].(map[string]any); ok {
		n.Filter = NotificationFilter{texts(filter, "automation"), texts(filter, "state")}
	}

	d.namedSecret("secretName")
	d.namedSecret("urlSecretName")
	d.receiver(n)
	d.distinct("events", d.value("events"))
	d.distinct("filter.state", d.value("filter", "state"))
	d.distinct("filter.automation", d.value("filter", "automation"))
	d.neverSent(n)
	if list := d.value("filter", "automation"); list != nil && list.Kind == yaml.SequenceNode {
		for _, item := range list.Content {
			if item.Kind == yaml.ScalarNode && !d.bad[item] {
				d.fact(factAutomation, item, item.Value)
			}
		}
	}

	return n
}

// namedSecret notes the team secret that a key names.
func (d *document) namedSecret(key string) {
	n := d.value(key)
	if n == nil || n.Kind != yaml.ScalarNode || n.Value == "" {
		return
	}
	if looksLikeSecret(n.Value) {
		d.secretValue(n)
		return
	}
	if !d.bad[n] {
		d.fact(factSecret, n, n.Value)
	}
}

// receiver checks where the events go, and how they are signed.
func (d *document) receiver(n Notification) {
	urlKey, address := find(d.root, "url")
	secretKey, _ := find(d.root, "urlSecretName")
	switch {
	case urlKey == nil && secretKey == nil:
		d.missingKey(d.root, nil, "url")
	case urlKey != nil && secretKey != nil:
		d.errorAt(secretKey, ruleNotification, "url and urlSecretName exclude one another", "delete one of the two")
	case urlKey != nil && n.URL != "" && !d.bad[address]:
		d.receiverURL(address, n.URL)
	}

	if key, _ := find(d.root, "secretName"); key == nil && n.Format == FormatStandard {
		d.missingKey(d.root, nil, "secretName")
	}
}

// receiverURL checks an address that stands in the file.
func (d *document) receiverURL(n *yaml.Node, text string) {
	u, problem := ReceiverURL(text)
	if problem != "" {
		d.errorAt(n, ruleNotification, "url "+problem, "write it like https://ops.example.com/hooks/agents")
		return
	}

	host := strings.ToLower(u.Hostname())
	credential := u.User != nil || host == "hooks.slack.com" && strings.HasPrefix(u.Path, "/services/") ||
		(host == "discord.com" || host == "discordapp.com") && strings.HasPrefix(u.Path, "/api/webhooks/")
	if credential {
		d.errorAt(n, ruleNotification, "url holds a credential: whoever can read the file can send there",
			"store the URL as a team secret, name it by urlSecretName, and replace the credential, which is in the "+
				"repository now")
	}
}

// ReceiverURL parses the address of a receiver. problem describes why it is none, without quoting it.
func ReceiverURL(text string) (u *url.URL, problem string) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Opaque != "" || len(text) > MaxURL:
		return nil, "is not a URL"
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, "does not begin with https://"
	case u.Hostname() == "":
		return nil, "names no host"
	case u.Fragment != "":
		return nil, "has a fragment, which is never sent"
	}
	return u, ""
}

// neverSent warns of a filter of states that no event of the list passes.
func (d *document) neverSent(n Notification) {
	states := d.value("filter", "state")
	if states == nil || len(n.Filter.State) == 0 || d.anyBad(states) || d.anyBad(d.value("events")) {
		return
	}

	for _, event := range n.Events {
		state, ofRun := strings.CutPrefix(event, "run.")
		if !ofRun || slices.Contains(n.Filter.State, strings.ToUpper(state)) {
			return
		}
	}

	d.report(
		d.spanOf(states),
		ruleNotificationNever,
		fmt.Sprintf("no run of events ends in %s: this is never sent", strings.Join(n.Filter.State, " or ")),
		"add the events of these states to events, or delete filter.state",
	)
}

// distinct refuses a text that is listed before.
func (d *document) distinct(what string, n *yaml.Node) {
	if n == nil || n.Kind != yaml.SequenceNode {
		return
	}

	var seen []string
	for _, item := range n.Content {
		if item.Kind != yaml.ScalarNode || d.bad[item] {
			continue
		}
		if slices.Contains(seen, item.Value) {
			d.errorAt(item, ruleInvalidValue, fmt.Sprintf("%s is listed twice in %s", quoted(item.Value), what),
				"delete one of the two")
		}
		seen = append(seen, item.Value)
	}
}
