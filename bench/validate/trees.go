package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"millwright/schema"
)

const webhook = "authMode: signature\nsignatureScheme: github\nsecretName: GITHUB_SECRET\n"

// frontMatter and prompt are an automation of about 400 bytes.
func frontMatter(i int) string {
	return fmt.Sprintf(`enabled: true
agent: foreman
triggers:
  - provider: webhook
    event: received
    filter:
      webhook_ids: [wh_01h2xcejqtf2nbrexx3vqjhp41]
      payload:
        action: [opened, reopened]
        repository:
          name: {not_in: [sandbox-%d]}
secrets: [NPM_TOKEN]
`, i)
}

const prompt = `Read event-payload.json and say which build failed, why it failed, and which
commit broke it. Open a pull request when the cause is clear.
`

// writeTree writes a definition tree and returns its directory and its size in bytes.
func writeTree(dir string, webhooks, automations int) (_ string, size int, err error) {
	write := func(name, text string) {
		if err == nil {
			size += len(text)
			err = writeFile(filepath.Join(dir, name), text)
		}
	}

	for i := range webhooks {
		write(fmt.Sprintf("webhooks/w%d.yaml", i), webhook)
	}

	for i := range automations {
		write(fmt.Sprintf("automations/a%d/automation.md", i), "---\n"+frontMatter(i)+"---\n\n"+prompt)
	}

	write("agents/foreman/agent.md", "---\nagentType: FOREMAN\n---\nYou plan the work.\n")
	return dir, size, err
}

// writeManifests writes as many files as writeTree, with the same keys and text, in the form that
// kubeconform reads, and the schema of an automation for them. It returns the directories of both.
func writeManifests(dir string, n int) (manifests, schemas string, err error) {
	text, ok := schema.JSONSchema("automation")
	var doc map[string]any
	if !ok || json.Unmarshal(text, &doc) != nil {
		return "", "", errors.New("there is no schema of an automation")
	}

	properties, _ := doc["properties"].(map[string]any)
	for _, key := range []string{"apiVersion", "kind", "prompt"} {
		properties[key] = map[string]any{"type": "string"}
	}

	if text, err = json.Marshal(doc); err != nil {
		return "", "", err
	}

	manifests, schemas = filepath.Join(dir, "files"), filepath.Join(dir, "schemas")
	if err := writeFile(filepath.Join(schemas, "automation.json"), string(text)); err != nil {
		return "", "", err
	}

	body := "prompt: |\n  " + strings.ReplaceAll(strings.TrimSpace(prompt), "\n", "\n  ") + "\n"
	for i := range n {
		manifest := filepath.Join(manifests, fmt.Sprintf("a%d", i), "automation.yaml")
		if err := writeFile(manifest, "apiVersion: v1\nkind: Automation\n"+frontMatter(i)+body); err != nil {
			return "", "", err
		}
	}

	return manifests, schemas, nil
}

func writeFile(name, text string) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, []byte(text), 0o644)
}
