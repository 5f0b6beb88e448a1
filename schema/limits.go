package schema

import (
	"encoding/json"
	"fmt"
	"strings"
)

// The greatest lengths of texts, in characters, in definition files and in the requests of the API alike.
const (
	MaxTitle        = 120   // of a run
	MaxLabel        = 200   // the name of a configuration, a factory or a skill
	MaxModel        = 200   // the name of a language model
	MaxHarness      = 100   // the name of a harness
	MaxReasoning    = 100   // a level of reasoning
	MaxEnvironment  = 200   // the ID of an environment
	MaxRunner       = 200   // the name of a runner
	MaxWorkerHost   = 200   // the name of a worker's host
	MaxSkillSpec    = 500   // owner/repo:path of a skill
	MaxScheduleName = 64    // which is a value of a run's metadata: at most 256 bytes
	MaxAlias        = 60    // of a factory
	MaxWord         = 100   // a provider, an event, a kind
	MaxRef          = 200   // the name of a branch or tag
	MaxReference    = 500   // a repository's owner or name, an image
	MaxDescription  = 4000  // of a resource
	MaxCommand      = 65536 // a set-up command
	MaxURL          = 2000  // the address of a receiver
)

// limits are the lengths by the names that the JSON Schemas have for them.
var limits = map[string]int{
	"label": MaxLabel, "model": MaxModel, "harness": MaxHarness, "reasoning": MaxReasoning,
	"environment": MaxEnvironment,
	"runner":      MaxRunner, "workerHost": MaxWorkerHost, "scheduleName": MaxScheduleName, "word": MaxWord,
	"reference": MaxReference, "description": MaxDescription, "command": MaxCommand, "name": MaxNameBytes,
	"ref": MaxRef, "url": MaxURL,
}

// The patterns of texts without control characters: of one line, and of several.
const (
	linePattern = `^[^\x00-\x1f\x7f-\x9f]*$`
	// aliasPattern leaves room for blanks at both ends, which are no part of an alias.
	aliasPattern = `^ *[\p{L}\p{M}\p{N} ._-]{0,60} *$`
	textPattern  = `^[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]*$`
)

// fillLimits puts lengths and patterns into the text of a JSON Schema in place of their names.
func fillLimits(text string) string {
	pairs := []string{
		`"@line"`, inJSON(linePattern), `"@text"`, inJSON(textPattern),
		`"@alias"`, inJSON(aliasPattern), `"@cron"`, inJSON(cronPattern()),
		`"@flowPath"`, inJSON(flowPathPattern), `"@wait"`, inJSON(waitPattern),
		`"@most"`, inJSON(mostPattern), `"@backoff"`, inJSON(backoffPattern),
		`"@secretValue"`, inJSON(secretPattern), `"@digest"`, inJSON(digestPattern),
	}
	for name, limit := range limits {
		pairs = append(pairs, `"@max `+name+`"`, fmt.Sprint(limit))
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

func inJSON(text string) string {
	out, _ := json.Marshal(text) // a string always marshals
	return string(out)
}

// inJSONBytes is inJSON for replacements in bytes.
func inJSONBytes(text string) []byte { return []byte(inJSON(text)) }

// maxYAMLDepth is how deep the values of a definition may nest.
const maxYAMLDepth = 64

// maxNumberText bounds the text of a number outside a payload filter, and with
// it the cost of its arithmetic.
const maxNumberText = 32
