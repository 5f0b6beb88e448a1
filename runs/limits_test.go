package runs_test

import (
	"reflect"
	"strconv"
	"testing"

	"millwright/runs"
	"millwright/schema"
	"millwright/schema/agentconfig"
)

// TestLimitsAreThoseOfDefinitions compares the lengths that requests may have with those of definition files.
func TestLimitsAreThoseOfDefinitions(t *testing.T) {
	limited(t, runs.RunAgentRequest{}, map[string]int{"Title": schema.MaxTitle, "Skill": schema.MaxSkillSpec})
	limited(t, agentconfig.AmbientAgentConfig{}, map[string]int{
		"Name": schema.MaxLabel, "ModelID": schema.MaxModel, "EnvironmentID": schema.MaxEnvironment, "SkillSpec": schema.MaxSkillSpec,
		"WorkerHost": schema.MaxWorkerHost, "RunnerID": schema.MaxRunner,
	})
	limited(t, agentconfig.Harness{}, map[string]int{"Type": schema.MaxHarness, "ModelID": schema.MaxModel, "ReasoningLevel": schema.MaxReasoning})
}

func limited(t *testing.T, of any, want map[string]int) {
	t.Helper()
	for name, limit := range want {
		field, found := reflect.TypeOf(of).FieldByName(name)
		if got := field.Tag.Get("maxLength"); !found || got != strconv.Itoa(limit) {
			t.Errorf("%T.%s has at most %q characters, a definition %d", of, name, got, limit)
		}
	}
}
