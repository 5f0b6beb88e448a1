//go:build unix

package worker

import (
	"maps"
	"os"
	"path"
	"strings"
)

// variables returns the variables of a harness, beside those of the machine. It finds its working directory at seen.
func variables(h Harness, t Task, seen string) map[string]string {
	o := t.Order
	env := map[string]string{}
	for _, name := range h.Env {
		if value, ok := os.LookupEnv(name); ok {
			env[name] = value
		}
	}

	maps.Copy(env, o.Env)
	maps.Copy(env, o.Secrets)
	maps.Copy(env, map[string]string{ // whatever a definition says
		ownDirVariable:      path.Join(seen, t.ownDir),
		"MILLWRIGHT_RUN_ID": o.RunID, "MILLWRIGHT_MODEL_ID": o.ModelID,
		"MILLWRIGHT_ENVIRONMENT_ID": o.EnvironmentID, "MILLWRIGHT_SKILL": o.Skill,
	})
	maps.Copy(env, t.Env)
	for name, value := range env {
		if strings.ContainsAny(name, "=\x00") || strings.Contains(value, "\x00") {
			delete(env, name)
		}
	}

	return env
}
