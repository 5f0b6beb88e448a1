package provider

import (
	"bytes"
	"embed"
	"encoding/json"
)

// examples has a payload of each event, by the scheme of the sender: examples/<scheme>/<event>.json.
//
//go:embed examples
var examples embed.FS

// Texts in examples that a sender of one may replace.
const (
	ExampleRepository = "acme/shop"  // the full name of the repository
	ExampleID         = "Ev0AAAAAAA" // names the delivery where no header does
)

// Example returns a payload of an event, as the provider documents it, and the value of the header that names
// the event there. ok is false for a scheme whose sender has no such event, or no webhook for it.
func Example(scheme, eventName string) (header string, payload []byte, ok bool) {
	t := tableOf(scheme)
	if t.event(eventName) == nil {
		return "", nil, false
	}

	text, err := examples.ReadFile("examples/" + t.schemes[0] + "/" + eventName + ".json")
	if err != nil {
		return "", nil, false
	}

	var file struct {
		Event   string
		Payload json.RawMessage
	}
	var compact bytes.Buffer
	if json.Unmarshal(text, &file) != nil || json.Compact(&compact, file.Payload) != nil {
		return "", nil, false
	}

	return file.Event, compact.Bytes(), true
}

// Examples returns the events for which Example has a payload of a scheme's sender.
func Examples(scheme string) (names []string) {
	t := tableOf(scheme)
	if t == nil {
		return nil
	}
	for i := range t.events {
		if _, _, ok := Example(scheme, t.events[i].name); ok {
			names = append(names, t.events[i].name)
		}
	}
	return names
}
