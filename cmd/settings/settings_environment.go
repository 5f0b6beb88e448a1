package settings

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"millwright/forge"
	"millwright/schema"
)

// EnvironmentsByName returns the environments as definitions have them.
func (s *Settings) EnvironmentsByName() map[string]schema.Environment {
	all := make(map[string]schema.Environment, len(s.Environments))
	for name, e := range s.Environments {
		all[name] = schema.Environment{
			Name:          name,
			DockerImage:   e.DockerImage,
			Repositories:  e.Repositories,
			SetupCommands: e.SetupCommands,
			Env:           e.Env,
			Secrets:       e.Secrets,
		}
	}

	return all
}

// variableForm is the form of the name of an environment variable or a team secret.
var variableForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

func (c *checks) environments(s *Settings) {
	for _, name := range slices.Sorted(maps.Keys(s.Environments)) {
		at := "environments." + name
		if _, _, found := schema.ControlCharacter(name, false); found || name == "" ||
			len(name) > schema.MaxEnvironment {
			c.bad(at, ": want a name of 1 to %d characters", schema.MaxEnvironment)
		}

		e := s.Environments[name]
		if strings.HasPrefix(e.DockerImage, "-") {
			c.bad(at+".dockerImage", " %q is not an image", e.DockerImage)
		}

		for i, r := range e.Repositories {
			repo := forge.Repository{Forge: r.CodeForge, Owner: r.Owner, Name: r.Name}
			if err := repo.Check(); err != nil {
				c.bad(fmt.Sprintf("%s.repositories[%d]", at, i), ": %w", err)
			}
		}

		for i, command := range e.SetupCommands {
			if strings.TrimSpace(command) == "" || strings.Contains(command, "\x00") {
				c.bad(fmt.Sprintf("%s.setupCommands[%d]", at, i), " is empty")
			}
		}

		for _, variable := range slices.Sorted(maps.Keys(e.Env)) {
			if !variableForm.MatchString(variable) {
				c.bad(at+".env."+variable, ": %q is not the name of a variable", variable)
			}
		}

		for i, secret := range e.Secrets {
			if !variableForm.MatchString(secret) {
				c.bad(fmt.Sprintf("%s.secrets[%d]", at, i), " %q is not the name of a secret", secret)
			}
		}
	}
}
