package state

import (
	"encoding/json"

	"millwright/schema"
	"millwright/schema/agentconfig"
)

var resourcePrefix = map[string]string{
	"automation": PrefixAutomation,
	"agent":      PrefixAgent,
	"runner":     PrefixRunner,
	"skill":      PrefixSkill,
}

func routeAutomation(tree schema.Factory, uids map[string]string, a schema.Automation) (RoutedAutomation, error) {
	exec, basePrompt, agent := tree.Resolve(a)
	config, err := agentconfig.FromDefinition(exec, basePrompt, a.Name)
	if err != nil {
		return RoutedAutomation{}, err
	}

	sealed, err := config.Mask()
	if err != nil {
		return RoutedAutomation{}, err
	}

	raw, err := json.Marshal(config)
	r := RoutedAutomation{
		UID:     uids[ResourceKey("automation", a.Name)],
		Spec:    a,
		Config:  raw,
		Sealed:  sealed,
		Model:   config.ModelID,
		Env:     config.EnvironmentID,
		Secrets: exec.Secrets,
	}
	if agent != "" {
		r.Agent = uids[ResourceKey("agent", agent)]
	}

	return r, err
}
