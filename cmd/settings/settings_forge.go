package settings

import (
	"context"
	"fmt"
	"strings"

	"millwright/forge"
)

// ForgeConfig returns the configuration of the forges. secret returns the value of a team secret.
func (s *Settings) ForgeConfig(secret func(context.Context, string) ([]byte, error)) forge.Config {
	cfg := forge.Config{
		Forges:  map[string]forge.Settings{},
		Default: s.DefaultForge,
		Allowed: map[string][]string{},
		Secret:  secret,
	}

	for name, f := range s.Forges {
		one := forge.Settings{
			Kind:        f.Kind,
			URL:         f.URL,
			API:         f.API,
			TokenSecret: f.TokenSecret,
			Username:    f.Username,
		}
		if f.App != nil {
			one.App = &forge.App{ID: int64(f.App.ID), PrivateKeySecret: f.App.PrivateKeySecret}
		}

		cfg.Forges[name] = one
	}

	for _, f := range s.Factories {
		cfg.Allowed[f.Name] = f.Repositories
		if f.Repositories == nil && len(s.Factories) > 1 {
			cfg.Allowed[f.Name] = []string{}
		}
	}

	return cfg
}

func (c *checks) forges(s *Settings) {
	for i, f := range s.Factories {
		if f.Repositories == nil && len(s.Factories) > 1 && len(s.Forges) > 0 {
			c.bad(fmt.Sprintf("factories[%d]", i), ": repositories is missing: with forges and several "+
				"factories, list what each may use, as [acme/*]")
		}
	}

	for _, wrong := range s.ForgeConfig(nil).Check() {
		c.bad(s.settingOf(wrong.At), ": %w", wrong.Err)
	}
}

// settingOf returns the setting that a place in the configuration of forges comes from.
func (s *Settings) settingOf(at string) string {
	for i, f := range s.Factories {
		if rest, ok := strings.CutPrefix(at, "allowed."+f.Name+"["); ok {
			return fmt.Sprintf("factories[%d].repositories[%s", i, rest)
		}
	}
	return at
}
