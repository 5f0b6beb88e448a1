package schema

import (
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Common mistakes in first definitions.

// elsewhere names the right place of a key in the wrong mapping, or its replacement.
func elsewhere(what, key string, known []string) string {
	folded := fold(key)
	switch {
	case strings.HasPrefix(what, "triggers[") && slices.Contains(known, "provider"):
		switch folded {
		case "webhookids", "webhookid", "payload":
			return "it belongs under filter, one level deeper"
		case "cron":
			return "it belongs under schedule, one level deeper"
		}

	case what == "concurrency":
		switch folded {
		case "group":
			return "write key: and the paths of the fields that runs are compared by, for example [pull_request.number]"
		case "cancelinprogress":
			return "write whenBusy: cancel"
		case "max", "maxruns", "runs":
			return "write limit"
		}

	case strings.HasSuffix(what, ".schedule") && (folded == "timezone" || folded == "tz"):
		return "schedules are always UTC: delete this key"
	case what != "the file":
	case folded == "disabled" && slices.Contains(known, "enabled"):
		return "write enabled: false"
	case slices.Contains(known, "authMode"): // a webhook
		switch folded {
		case "secret", "secretref", "credential":
			return "write secretName: the name of a team secret, not its value"
		case "auth", "authentication", "authtype", "type":
			return "write authMode: token, url_token or signature"
		case "signature":
			return "write authMode: signature and signatureScheme: the provider's name"
		case "idheader", "deliveryid", "header":
			return "write deliveryIdHeader: the header with the sender's own event ID"
		case "webhook", "webhooks", "spec":
			return "the keys of the webhook stand at the beginning of the line, without this one"
		case "name":
			return "a webhook's name is that of its file: delete this key"
		case "uid", "id":
			return "the server assigns the UID: delete this key"
		case "url", "path":
			return "the server assigns the URL: see millwright webhook list; delete this key"
		case "token", "value", "password", "key":
			return "a file never holds the value of a secret: write secretName, and make it with millwright secret set"
		case "provider", "scheme":
			return "a provider's signing scheme is authMode: signature with signatureScheme"
		}

	case slices.Contains(known, "triggers"): // an automation
		switch folded {
		case "name":
			return "an automation's name is that of its directory: delete this key"
		case "prompt", "description", "instructions":
			return "the prompt is the text below the front matter"
		case "on", "webhook", "webhooks", "webhookids", "filter", "provider", "event":
			return "it belongs into a trigger: triggers: with - provider: webhook, event: received and filter: below it"
		case "schedule", "cron":
			return "it belongs into a trigger: triggers: with - provider: schedule, event: cron_fired and " +
				"schedule: below it"
		}
	}

	return ""
}

var missingHints = map[string]string{
	"secretName": "name the team secret that holds the credential, for example: secretName: CI_TOKEN",
	"url": "name the receiver, for example: url: https://ops.example.com/hooks/agents, or name a team secret " +
		"that holds the URL: urlSecretName",
	"events":   "list the events to send, for example: events: [run.failed, factory.refused]",
	"triggers": "add a trigger, for example one with provider: webhook and event: received",
	"provider": "write provider: webhook or provider: schedule",
	"allow":    "list the labels that may be added and removed, for example: allow: [triaged]",
	"event":    "write event: received for a webhook, event: cron_fired for a schedule",
	"wait":     "set the time that the run waits after each delivery, for example: wait: 30s",
	"key":      "list paths into the payload, for example: key: [issue.id]",
	"cron":     `write five fields in UTC, for example: cron: "0 6 * * 1-5"`,

	"schemaVersion": "write schemaVersion: " + SchemaVersion,
	"name":          "write a name, for example: name: Payments",
	"repositories":  "list the repositories, for example: [{owner: acme, name: shop}]",
	"agentDefaults": "set the defaults of runs, for example: agentDefaults: {model: auto}",
	"platform":      "name the machine, for example: platform: {os: linux, linux: {dockerImage: debian:13}}",
	"linux":         "name the image, for example: linux: {dockerImage: debian:13}",
	"dockerImage":   "name the image that runs execute in, for example: dockerImage: debian:13",
	"version":       `name the version, for example: version: "14"`,
	"memoryGb":      "set the memory that goes with the processors, for example: memoryGb: 8",
	"alg":           "name the algorithm of the signature, for example: alg: hmac-sha256",
	"header":        "name the header that carries it, for example: X-Acme-Signature",
}

// mainKey is the key of a mapping that people leave out, writing its value alone.
func mainKey(what string) string {
	switch step := what[strings.LastIndexByte(what, '.')+1:]; {
	case step == "harness":
		return "type"
	case step == "schedule":
		return "cron"
	case step == "auth":
		return "source"
	case strings.HasPrefix(what, "integrations["):
		return "type"
	}

	return ""
}

// asWritten is a scalar as it stands in the file, to be put elsewhere.
func asWritten(n *yaml.Node) string {
	if n.Style == 0 {
		return clip(n.Value)
	}
	return doubleQuoted(n.Value)
}

// secretReference is how other tools write the name of a secret, and a name with what belongs to JSON.
var secretReference = regexp.MustCompile(
	`^(?:\$\{?\{? *(?:secrets\.)?)?([A-Za-z_][A-Za-z0-9_]{0,127})(?: *\}?\}|[,;])?$`,
)
