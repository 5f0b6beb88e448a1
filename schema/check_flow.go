package schema

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// flow reads how the runs of an automation wait for one another.
func (d *document) flow(triggers []Trigger) Flow {
	var f Flow
	if m, ok := d.data["concurrency"].(map[string]any); ok {
		f.Concurrency = &Concurrency{Key: texts(m, "key"), Limit: 1, WhenBusy: BusyQueue}
		if limit := int(number(m, "limit")); limit > 0 {
			f.Concurrency.Limit = limit
		}
		if busy := text(m, "whenBusy"); busy != "" {
			f.Concurrency.WhenBusy = WhenBusy(busy)
		}
	}

	if m, ok := d.data["debounce"].(map[string]any); ok {
		f.Debounce = &Debounce{Key: texts(m, "key"), Wait: text(m, "wait"), Max: text(m, "max")}
		d.debounceMax(f.Debounce)
	}

	if m, ok := d.data["conversation"].(map[string]any); ok {
		f.Conversation = &Conversation{Key: texts(m, "key")}
	}

	if m, ok := d.data["retry"].(map[string]any); ok {
		f.Retry = &Retry{Attempts: defaultAttempts, On: texts(m, "on"), Backoff: defaultBackoff}
		if n := int(number(m, "attempts")); n > 0 {
			f.Retry.Attempts = n
		}
		if f.Retry.On == nil {
			f.Retry.On = []string{"ERROR"}
		}
		if backoff := text(m, "backoff"); backoff != "" {
			f.Retry.Backoff = backoff
		}

		d.listedTwice(child(d.value("retry"), "on"))
	}

	for _, part := range []string{"concurrency", "debounce", "conversation"} {
		d.flowKey(part, triggers)
	}

	return f
}

// debounceMax refuses a window that ends before its first wait does.
func (d *document) debounceMax(b *Debounce) {
	n := child(d.value("debounce"), "max")
	if n == nil || d.bad[n] || d.anyBad(d.value("debounce")) {
		return
	}

	if wait, most := b.Waits(); most < wait {
		d.errorAt(n, ruleFlow, fmt.Sprintf("debounce.max of %s is shorter than debounce.wait of %s", b.Max, b.Wait),
			"max is how long the run waits after the first delivery of a burst at most")
	}
}

// flowKey refuses a path that is listed twice, and keys of automations that no delivery starts.
func (d *document) flowKey(part string, triggers []Trigger) {
	d.listedTwice(child(d.value(part), "key"))

	at := d.value(part)
	if part == "concurrency" {
		at = child(at, "key")
	}
	if at == nil || len(triggers) == 0 || slices.ContainsFunc(triggers, func(t Trigger) bool {
		return t.Provider != providerSchedule
	}) {
		return
	}

	key, _ := find(d.root, part)
	d.errorAt(key, ruleFlow, part+" compares deliveries, and this automation has schedules alone",
		map[string]string{"concurrency": "delete concurrency.key: then the automation's runs share one bound"}[part])
}

// listedTwice refuses a text that is twice in a list.
func (d *document) listedTwice(n *yaml.Node) {
	if n == nil || n.Kind != yaml.SequenceNode {
		return
	}

	seen := map[string]bool{}
	for _, c := range n.Content {
		if c.Kind == yaml.ScalarNode && !d.bad[c] && seen[c.Value] {
			d.errorAt(c, ruleFlow, fmt.Sprintf("%s is listed twice", quoted(c.Value)), "delete one of the two")
		}
		seen[c.Value] = true
	}
}

// isFlow reports whether a path from the root of an automation leads into its flow.
func isFlow(path []string) bool {
	switch path[0] {
	case "concurrency", "debounce", "conversation", "retry":
		return true
	}
	return false
}

// flowHint says how to write a value of a flow that does not have its form.
func flowHint(what, value string) string {
	switch {
	case strings.HasSuffix(what, ".wait"):
		return "write 1s to 1h, for example 30s"
	case strings.HasSuffix(what, ".max"):
		return "write 1s to 24h, for example 10m"
	case strings.HasSuffix(what, ".backoff"):
		return "write 1m to 24h, for example 5m"
	case strings.Contains(what, ".key["):
		steps := flowPathPart.FindAllString(value, -1)
		if strings.HasPrefix(value, "{{") && len(steps) > 1 && steps[0] == "payload" { // a path begins in the payload
			steps = steps[1:]
		}
		if len(steps) > 0 && len(steps) <= 10 && len(steps[0]) < maxFlowPath {
			return "a path is names of fields with dots between them: write " + strings.Join(steps, ".")
		}
		return "a path is at most 10 names of fields with dots between them, for example pull_request.number"
	}

	return ""
}

var flowPathPart = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_-]*`)
