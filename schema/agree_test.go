package schema_test

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"millwright/schema"
)

// goodDocuments are documents of each kind that use every key, from which the mutations start.
var goodDocuments = map[string][]string{
	"webhooks/x.yaml": {
		`{"secretName": "A", "authMode": "url_token", "enabled": false, "deliveryIdHeader": "X-Id"}`,
		`{"secretName": "A", "authMode": "signature", "signatureScheme": "slack", "handshake": true}`,
		`{"secretName": "A", "authMode": "signature", "signatureScheme": "github", "register": {"forge": "github", "repository": "a/b", "events": ["push"]}}`,
		`{"secretName": "A", "authMode": "signature", "signatureScheme": "gitlab", "register": {"forge": "gitlab", "repository": "a/b/c", "events": ["push", "note"]}}`,
		`{"secretName": "A", "authMode": "signature", "signatureScheme": "custom", "customScheme": {"alg": "token", "header": "X-S"}}`,
		`{"secretName": "A", "authMode": "signature", "signatureScheme": "custom", "customScheme": {"alg": "hmac-sha256", "key": "utf8", "header": "X-S", "parse": "whole",
			"encoding": "hex", "prefix": "v1=", "timestamp": {"header": "X-T", "unit": "s", "tolerance": 300}, "template": "{id}.{ts}.{body}", "deliveryHeader": "X-D"}}`,
	},
	"automations/x/automation.md": {
		`{"enabled": false, "model": "m", "secrets": ["A"], "mcpServers": {"d": {"url": "x"}}, "environmentId": "e", "workerHost": "h",
			"budget": {"tokensPerRun": 1, "usdPerRun": 0.5, "tokensPerDay": 2, "usdPerDay": 1, "runsPerDay": 3},
			"triggers": [{"provider": "webhook", "event": "received", "filter": {"webhook_ids": ["wh_01h2xcejqtf2nbrexx3vqjhp41"],
			"payload": {"a": ["x", 1, null, true], "b": {"in": ["x"], "not_in": ["z"], "exists": true}, "c": {"d": {"not_in": [1]}}}}}]}`,
		`{"triggers": [{"provider": "schedule", "event": "cron_fired", "schedule": {"cron": "0 6 * * 1-5", "name": "n"}}]}`,
		`{"triggers": [{"provider": "github", "event": "pull_request_opened", "filter": {"repos": ["a/b"], "baseBranches": {"in": ["main"], "not_in": ["dev"]},
			"pr_numbers": [12], "labels": ["x", 5], "authors": null}}]}`,
		`{"triggers": [{"provider": "webhook", "event": "received", "filter": {"webhook_ids": ["wh_01h2xcejqtf2nbrexx3vqjhp41"],
			"headers": {"X-Kind": ["push"], "x-other": {"in": ["a"], "not_in": ["b"]}}}}]}`,
		`{"triggers": [{"provider": "slack", "event": "app_mention", "filter": {"channels": ["C1"], "keywords": {"not_in": ["x"]}}}], "harness": {"type": "claude", "auth": {"source": "workerEnvironment"}}}`,
	},
	"agents/x/agent.md": {
		`{"description": "d", "agentType": "CUSTOM", "credentialStrategy": "EXECUTOR", "secrets": ["A"], "mcpServers": {"d": {"command": "c", "env": {"A": "b"}}}, "environmentId": "e", "workerHost": "h",
			"harness": {"type": "claude", "model": "m", "reasoningLevel": "high", "auth": {"source": "managedSecret", "secretName": "K"}}}`,
	},
	"factory.yaml": {
		`{"schemaVersion": "v1alpha1", "name": "n", "alias": "a", "description": "d", "credentialStrategy": "CREATOR", "repositories": [{"owner": "o", "name": "n"}],
			"agentDefaults": {"model": "m", "secrets": ["A"]}, "secrets": ["A"], "mcpServers": {"d": {}}, "cloudProviders": {"x": 1}, "integrations": [{"type": "linear"}]}`,
	},
	"runners/x.yaml": {
		`{"description": "d", "setupCommands": ["x"], "instanceShape": {"vcpus": 2, "memoryGb": 4}, "platform": {"os": "linux", "arch": "x86_64", "linux": {"dockerImage": "i"}}}`,
		`{"platform": {"os": "macos", "mac": {"version": "14"}}}`,
	},
	"skills/x/SKILL.md": {`{"name": "n", "description": "d", "license": "MIT", "allowed-tools": ["Bash"], "metadata": {"a": "b"}}`},
}

// otherValues take the places of good ones.
var otherValues = []string{
	`null`, `true`, `false`, `0`, `1`, `-1`, `86401`, `1.5`, `[]`, `{}`, `[1]`, `[[]]`, `["A", "A"]`, `{"a": 1}`, `{"in": ["x"]}`, `{"exists": false, "in": ["x"]}`, `""`, `"A"`, `"b-c"`, `"é"`,
	`"token"`, `"signature"`, `"github"`, `"slack"`, `"custom"`, `"authorization"`, `"Host"`, `"X-HUB-signature-256"`, `"a b"`, `"t="`, `"ed25519"`, `"ecdsa-p256"`, `"spki"`, `"space"`,
	`"{body}"`, `"{ts}{ts}{body}"`, `"{id}{body}"`, `"{id}{ts}.{body}"`, `"{id}.{url}{ts}{body}"`, `"{url}\n{id}.{body}"`, `"{ts}{body}"`, `"{nope}{body}"`, `"webhook"`, `"schedule"`, `"received"`, `"cron_fired"`, `"@daily"`, `"@dialy"`, `"@every 5m"`, `"60 * * * *"`, `"0 0 * * MON-fri/2"`,
	`"0 0 * *"`, `"managedSecret"`, `"workerEnvironment"`, `"linux"`, `"macos"`, `"jira"`, `"linear"`, `[{"type": "jira"}, {"type": "linear"}]`, `"FOREMAN"`, `"gitlab"`, `"gitea"`, `"a/b/c"`, `"push"`, `["note"]`, `["star"]`,
}

// TestSchemasAgree mutates good documents and holds the published schemas, as editors and CI use them,
// against Load: both refuse every mistake within one file, and accept the rest.
func TestSchemasAgree(t *testing.T) {
	kinds := map[string]string{
		"webhooks/x.yaml": "webhook", "automations/x/automation.md": "automation", "agents/x/agent.md": "agent",
		"factory.yaml": "factory", "runners/x.yaml": "runner", "skills/x/SKILL.md": "skill",
	}
	beyond := []string{"reference", "foreman"} // what other files decide
	const mutations = 350                      // of each kind of file
	r := rand.New(rand.NewPCG(3, 4))
	for path, docs := range goodDocuments {
		published := compiled(t, kinds[path])
		refused := 0
		for i := range mutations {
			doc := parsed(t, docs[i%len(docs)])
			for range r.IntN(3) {
				mutateJSON(t, r, doc)
			}
			text, err := json.Marshal(doc)
			if err != nil {
				t.Fatal(err)
			}
			file := string(text)
			if path[len(path)-3:] == ".md" {
				file = "---\n" + file + "\n---\nGo.\n"
			}
			all := load(t, nil, path, file).Problems
			if slices.ContainsFunc(all, func(p schema.Problem) bool { return beyondSchemas(p) && !slices.Contains(beyond, p.Code) }) {
				continue
			}
			problems := slices.DeleteFunc(all, func(p schema.Problem) bool {
				return slices.Contains(beyond, p.Code) || p.Severity != schema.SeverityError && p.Code != "unknown-key"
			})
			other := published.Validate(parsed(t, string(text)))
			if (other == nil) != (len(problems) == 0) {
				t.Errorf("%s: Load says %v, the schema %v:\n%s", path, problems, other, text)
			}
			if other != nil {
				refused++
			}
		}
		if refused < mutations/7 || refused > mutations*6/7 {
			t.Errorf("%s: %d of %d mutations are refused", path, refused, mutations)
		}
	}
}

func parsed(t *testing.T, text string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// mutateJSON changes one value somewhere in v: puts another in its place, takes it away, or adds one.
func mutateJSON(t *testing.T, r *rand.Rand, v any) {
	value := func() any { return parsed(t, otherValues[r.IntN(len(otherValues))]) }
	switch v := v.(type) {
	case map[string]any:
		keys := slices.Sorted(maps.Keys(v))
		if len(keys) == 0 || r.IntN(6) == 0 {
			v[[]string{"foo", "model", "handshake", "filter", "schedule", "Env"}[r.IntN(6)]] = value()
			return
		}
		key := keys[r.IntN(len(keys))]
		switch n := r.IntN(6); {
		case n == 0:
			delete(v, key)
		case n < 3 || !isContainer(v[key]):
			v[key] = value()
		default:
			mutateJSON(t, r, v[key])
		}
	case []any:
		if len(v) == 0 {
			return
		}
		if i := r.IntN(len(v)); isContainer(v[i]) {
			mutateJSON(t, r, v[i])
		} else {
			v[i] = value()
		}
	}
}

func isContainer(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}
