package settings

import (
	"maps"
	"path/filepath"
	"reflect"
	"slices"

	"millwright/runs/worker"
	"millwright/state"
)

// HarnessTypes returns the names of the harnesses that a run may select.
func (cfg *Settings) HarnessTypes() []string {
	types := []string{"echo"}
	for name := range cfg.Harnesses {
		types = append(types, name)
	}
	return types
}

// Models returns the language models that harnesses list, and the first of the default harness, if it lists any.
func (cfg *Settings) Models() (byDefault string, all []string) {
	for name, h := range cfg.Harnesses {
		all = append(all, h.Models...)
		if name == cfg.Harness && len(h.Models) > 0 {
			byDefault = h.Models[0]
		}
	}
	return byDefault, all
}

// Changed returns the settings that are in force when next is asked for, and the names of those in which
// the two differ. Factories, shared secrets, forges, authentication, limits, retention, prices, outbound and what
// harnesses of known names do can change at once.
func (cfg *Settings) Changed(next Settings) (live Settings, waiting []string) {
	live = *cfg
	live.Factories, live.SharedSecrets = next.Factories, next.SharedSecrets
	live.Forges, live.DefaultForge = next.Forges, next.DefaultForge
	live.Limits, live.Retention, live.Environments = next.Limits, next.Retention, next.Environments
	live.Outbound = next.Outbound
	live.Prices, live.Auth = next.Prices, next.Auth
	live.Harnesses = maps.Clone(cfg.Harnesses)
	for _, name := range slices.Sorted(maps.Keys(cfg.Harnesses)) {
		if h, ok := next.Harnesses[name]; ok {
			live.Harnesses[name] = h
		} else {
			waiting = append(waiting, "harnesses."+name)
		}
	}

	for _, name := range slices.Sorted(maps.Keys(next.Harnesses)) {
		if _, ok := cfg.Harnesses[name]; !ok {
			waiting = append(waiting, "harnesses."+name)
		}
	}

	if _, ok := live.Harnesses[next.Harness]; ok || next.Harness == "" || next.Harness == worker.Echo {
		live.Harness = next.Harness
	}

	was, is := reflect.ValueOf(live), reflect.ValueOf(next)
	for i := range was.NumField() {
		name := was.Type().Field(i).Tag.Get("json")
		if name != "harnesses" && !reflect.DeepEqual(was.Field(i).Interface(), is.Field(i).Interface()) {
			waiting = append(waiting, name)
		}
	}

	slices.Sort(waiting)
	return live, waiting
}

// HarnessUpdate returns the harnesses of the settings.
func (cfg *Settings) HarnessUpdate() worker.Update {
	u := worker.Update{Default: cfg.Harness, Harnesses: make(map[string]worker.Harness, len(cfg.Harnesses))}
	for name, h := range cfg.Harnesses {
		u.Harnesses[name] = worker.Harness{
			Command:                 h.Command,
			Preset:                  h.Preset,
			Program:                 h.Program,
			Args:                    h.Args,
			TrustRepositorySettings: h.Trust,
			Adapter:                 h.Adapter, Env: h.Env, Timeout: h.Timeout.Or(0), Path: h.Path,
			User: h.User, Users: h.Users, UIDRange: h.UIDRange, SameUser: h.SameUser, Container: h.Container,
			Sandbox: h.Sandbox,
		}
	}

	return u
}

// OwnFiles returns the files and directories of the server, which no harness in a sandbox sees.
func (cfg *Settings) OwnFiles() (all []string) {
	places := []string{cfg.File, cfg.MasterKeyFile, cfg.TLS.Cert, cfg.TLS.Key, cfg.NATS.Credentials}
	if path, ok := state.SQLitePath(cfg.State); ok && path != "" {
		places = append(places, filepath.Dir(path)) // with its keys
	}
	if l := cfg.Auth.Login; l != nil {
		places = append(places, l.ClientSecretFile)
	}
	for _, f := range cfg.Factories {
		places = append(places, f.Source.Dir)
	}

	for _, place := range places {
		if abs, err := filepath.Abs(place); err == nil && place != "" {
			all = append(all, abs)
		}
	}
	return all
}
