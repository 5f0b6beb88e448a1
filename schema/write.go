package schema

import (
	"bytes"
	"encoding/json"
	"fmt"

	"sigs.k8s.io/yaml"
)

// AutomationFile writes the text of automations/<name>/automation.md for an
// automation, leaving out keys that have their default. Loading it gives the
// automation back; what cannot be written so is an error.
func AutomationFile(a Automation) ([]byte, error) {
	keys, err := asKeys(a, "name", "path", "line", "prompt", "triggers")
	if err != nil {
		return nil, fmt.Errorf("automation %q: %w", a.Name, err)
	}

	dropDefault(keys, "enabled", true)
	delete(keys, "noWorkerHost")
	if a.NoWorkerHost {
		keys["workerHost"] = nil
	}

	// The writer passes numbers through float64, which would change a filter:
	// filters are put in afterwards, as JSON, which is YAML too.
	var raw []json.RawMessage
	later := func(text json.RawMessage) string {
		raw = append(raw, text)
		return fmt.Sprintf("filter-%d-goes-here", len(raw)-1)
	}
	triggers := make([]map[string]any, len(a.Triggers))
	for i, t := range a.Triggers {
		m, err := asKeys(t, "webhookIds", "payload", "headers", "filter")
		if err != nil {
			return nil, fmt.Errorf("automation %q: %w", a.Name, err)
		}

		if t.Provider == providerWebhook {
			filter := map[string]any{"webhook_ids": t.WebhookIDs}
			if t.Payload != nil {
				filter["payload"] = later(t.Payload)
			}

			if t.Headers != nil {
				filter["headers"] = later(t.Headers)
			}

			m["filter"] = filter
		} else if t.Filter != nil {
			m["filter"] = later(t.Filter)
		}

		triggers[i] = m
	}

	keys["triggers"] = triggers
	front, err := yaml.Marshal(keys)
	if err != nil {
		return nil, fmt.Errorf("automation %q: %w", a.Name, err)
	}

	for i, text := range raw {
		exact, err := exactJSON(text)
		if err != nil {
			return nil, fmt.Errorf("automation %q: %w", a.Name, err)
		}

		mark := fmt.Appendf(nil, ": filter-%d-goes-here\n", i)
		front = bytes.Replace(front, mark, fmt.Appendf(nil, ": %s\n", exact), 1)
	}

	text := fmt.Appendf(nil, "---\n%s---\n\n%s\n", front, a.Prompt)
	return text, checkWritten(a.Name, text)
}

// exactJSON writes JSON anew without escapes that YAML does not share; numbers
// stay as they are.
func exactJSON(text json.RawMessage) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

// asKeys turns a resource into its keys, without those named.
func asKeys(v any, without ...string) (map[string]any, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}

	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	keys := map[string]any{}
	if err := d.Decode(&keys); err != nil {
		return nil, err
	}

	for _, k := range without {
		delete(keys, k)
	}

	return keys, nil
}

func dropDefault(keys map[string]any, key string, value bool) {
	if keys[key] == value {
		delete(keys, key)
	}
}

// checkWritten refuses the text of an automation that would not load: the
// writer's quoting is not the reader's.
func checkWritten(name string, text []byte) error {
	path := "automations/" + name + "/automation.md"
	d := &document{path: path, src: text}
	d.resource(entry{path: path, kind: kindAutomation, name: name})
	d.diagnose(diagnosisBudget)
	SortProblems(d.problems)
	for _, p := range d.problems {
		if p.Severity == SeverityError {
			return fmt.Errorf("%s cannot be written: %s", clean(path), clean(p.Message))
		}
	}

	return nil
}
