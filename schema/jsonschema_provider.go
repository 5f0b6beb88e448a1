package schema

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"millwright/schema/provider"
)

// providerConditions are the conditions of the published schema on triggers of providers: the keys of each
// event's filter. An event that is not known is free.
func providerConditions() []byte {
	var all [][]byte
	for _, name := range provider.Names() {
		for _, event := range provider.Events(name) {
			all = append(all, providerCondition(name, event))
		}
	}
	return bytes.Join(all, []byte(", "))
}

func providerCondition(name, eventName string) []byte {
	event, _ := provider.Lookup(name, eventName)
	of := map[string]any{}
	for _, k := range event.Keys {
		of[k.Name] = matcherSchema(k)
	}

	properties := map[string]any{}
	spellings := provider.Spellings(name, eventName)
	for _, written := range slices.Sorted(maps.Keys(spellings)) {
		properties[written] = of[spellings[written]]
	}

	type object = map[string]any
	text, _ := json.Marshal(object{ // of texts alone
		"if": object{
			"properties": object{"provider": object{"const": name}, "event": object{"const": eventName}},
			"required":   []string{"provider", "event"},
		},
		"then": object{"properties": object{"filter": object{"properties": properties, "additionalProperties": false}}},
	})
	return text
}

// matcherSchema is the schema of what a key of a filter asks for.
func matcherSchema(k provider.Key) any {
	list := "#/$defs/texts"
	switch {
	case k.Name == "repos":
		list = "#/$defs/repositories"
	case k.Integer:
		list = "#/$defs/numbers"
	}

	type object = map[string]any
	orNull := object{"anyOf": []any{object{"type": "null"}, object{"$ref": list}}}
	schema := object{
		"if": object{"type": "object"},
		"then": object{
			"properties": object{"in": orNull, "not_in": orNull}, "additionalProperties": false,
		},
		"else": orNull,
	}
	if k.Words != nil {
		schema["description"] = "Known: " + strings.Join(k.Words, ", ") + "."
	}

	return schema
}
