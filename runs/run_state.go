package runs

import (
	"github.com/danielgtaylor/huma/v2"

	"millwright/state"
)

// RunState is state.RunState with its description for the OpenAPI document.
type RunState string

// Schema describes RunState.
func (RunState) Schema(r huma.Registry) *huma.Schema {
	var values []any
	for _, st := range state.RunStates() {
		values = append(values, string(st))
	}
	return named(r, "RunState", &huma.Schema{
		Type: huma.TypeString, Enum: values,
		Description: "State of a run. FAILED: the agent's work failed, and the user must act; ERROR: the " +
			"platform failed, and a retry may help; BLOCKED: the agent waits for input; PENDING is never " +
			"produced.",
	})
}

// named puts a schema among the document's components and returns a reference to it.
func named(r huma.Registry, name string, schema *huma.Schema) *huma.Schema {
	if r.Map()[name] == nil {
		schema.PrecomputeMessages()
		r.Map()[name] = schema
	}
	return &huma.Schema{Ref: "#/components/schemas/" + name}
}
