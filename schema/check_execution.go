package schema

import (
	"encoding/json"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// execution reads the execution keys of a mapping. With one of model and
// harness required, their absence is an error too.
func (d *document) execution(n *yaml.Node, m map[string]any, required bool) Execution {
	e := Execution{
		Model: text(m, "model"), Runner: text(m, "runner"), EnvironmentID: text(m, "environmentId"),
		Secrets: texts(m, "secrets"), WorkerHost: text(m, "workerHost"), Budget: budget(m),
	}
	modelKey, model := find(n, "model")
	if isNull(model) { // inherits, as an absent key does
		modelKey = nil
	}

	harnessKey, harness := find(n, "harness")
	e.NoWorkerHost = isNull(child(n, "workerHost"))
	switch {
	case modelKey != nil && harnessKey != nil:
		later := harnessKey
		if modelKey.Line > harnessKey.Line {
			later = modelKey
		}

		d.errorAt(
			later,
			ruleModelOrHarness,
			"model and harness exclude one another",
			"keep one of the two; a harness takes its model as harness.model",
		)
	case required && modelKey == nil && harnessKey == nil && n != nil:
		d.report(
			d.spanOf(d.keyOf(n)),
			ruleModelOrHarness,
			"agentDefaults needs model or harness",
			"write one of the two, for example: model: auto",
		)
	}

	if h, ok := m["harness"].(map[string]any); ok {
		e.Harness = &Harness{
			Type:           text(h, "type"),
			Model:          text(h, "model"),
			ReasoningLevel: text(h, "reasoningLevel"),
		}
		if _, v := find(harness, "type"); v != nil && e.Harness.Type != "" {
			d.fact(factHarness, v, e.Harness.Type)
		}
		if a, ok := h["auth"].(map[string]any); ok {
			e.Harness.Auth = &HarnessAuth{Source: text(a, "source"), SecretName: text(a, "secretName")}
			d.harnessAuth(child(harness, "auth"), e.Harness.Auth)
		}
	}

	if r := child(n, "runner"); r != nil && e.Runner != "" {
		d.fact(factRunner, r, e.Runner)
	}

	_, _, unreadable := ControlCharacter(e.EnvironmentID, false)
	if id := child(n, "environmentId"); id != nil && e.EnvironmentID != "" && !d.bad[id] && !unreadable {
		d.fact(factEnvironment, id, e.EnvironmentID)
	}

	d.grants(child(n, "secrets"))
	e.MCPServers = d.servers(child(n, "mcpServers"))
	return e
}

func (d *document) harnessAuth(n *yaml.Node, a *HarnessAuth) {
	sourceKey, _ := find(n, "source")
	secretKey, secret := find(n, "secretName")
	switch {
	case a.Source == "managedSecret" && secretKey == nil:
		d.errorAt(
			sourceKey,
			ruleMissingKey,
			"harness.auth: source: managedSecret needs secretName",
			"name the team secret that holds the credential",
		)

	case a.Source == "workerEnvironment" && secretKey != nil:
		d.errorAt(
			secretKey,
			ruleInvalidValue,
			"harness.auth: secretName does not go with source: workerEnvironment",
			"delete this key, or write source: managedSecret",
		)

	case secretKey != nil && looksLikeSecret(a.SecretName):
		d.secretValue(secret)
	case secretKey != nil && a.SecretName != "":
		d.fact(factGrant, secret, a.SecretName)
	}
}

// grants notes the secrets that runs are given, and refuses one that is listed twice.
func (d *document) grants(n *yaml.Node) {
	if n == nil || n.Kind != yaml.SequenceNode {
		return
	}
	seen := map[string]bool{}
	for _, c := range n.Content {
		if c.Kind != yaml.ScalarNode || d.bad[c] {
			continue
		}

		if looksLikeSecret(c.Value) {
			d.secretValue(c)
			continue
		}

		d.fact(factGrant, c, c.Value)
		if seen[c.Value] {
			d.errorAt(
				c,
				ruleInvalidValue,
				fmt.Sprintf("the secret %s is listed twice", quoted(c.Value)),
				"delete one of the two",
			)
		}

		seen[c.Value] = true
	}
}

// references notes the secrets that an MCP server refers to.
func (d *document) references(server *yaml.Node) {
	for _, part := range SecretParts() {
		values := child(server, part)
		if values == nil || values.Kind != yaml.MappingNode {
			continue
		}

		for i := 1; i < len(values.Content); i += 2 {
			for _, name := range SecretReferences(values.Content[i].Value) {
				d.fact(factReference, values.Content[i], name)
			}
		}
	}
}

func (d *document) servers(n *yaml.Node) map[string]json.RawMessage {
	if n == nil || n.Kind != yaml.MappingNode || d.anyBad(n) {
		return nil
	}
	out := make(map[string]json.RawMessage, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		d.serverKeys(n.Content[i+1])
		d.serverWay(n.Content[i], n.Content[i+1])
		out[n.Content[i].Value] = nodeJSON(n.Content[i+1])
		d.references(n.Content[i+1])
	}
	return out
}

// serverWay warns of an MCP server that has not exactly one of the keys by which an agent reaches it.
func (d *document) serverWay(name, server *yaml.Node) {
	var given []string
	for _, key := range []string{"command", "url", "warp_id"} {
		if value := child(server, key); value != nil && value.Value != "" {
			given = append(given, key)
		}
	}

	switch {
	case len(given) == 0:
		d.report(
			d.spanOf(name),
			ruleMCPServer,
			fmt.Sprintf("the MCP server %s has neither command nor url", quoted(name.Value)),
			"write the program to start as command, or the server's address as url",
		)

	case len(given) > 1:
		d.report(
			d.spanOf(name),
			ruleMCPServer,
			fmt.Sprintf("the MCP server %s has %s", quoted(name.Value), strings.Join(given, " and ")),
			"delete all of them but one",
		)
	}
}

// serverKeys refuses keys of an MCP server that differ only in case from a known one: readers of JSON take
// Env for env, or do not.
func (d *document) serverKeys(server *yaml.Node) {
	for i := 0; i+1 < len(server.Content); i += 2 {
		key := server.Content[i]
		for _, known := range []string{"command", "args", "url", "warp_id", "env", "headers"} {
			if key.Value == known || !strings.EqualFold(key.Value, known) {
				continue
			}

			p := d.errorAt(key, ruleUnknownKey, fmt.Sprintf("an MCP server has no key %s", quoted(key.Value)),
				"keys are case-sensitive: write "+known)
			if twin, _ := find(server, known); p != nil && twin == nil {
				p.Fix = d.replace(key, known)
			}
		}
	}
}
