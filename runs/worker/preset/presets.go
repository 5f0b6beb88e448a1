package preset

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// table has the presets in the order of their names.
var table = []Preset{claudePreset, codexPreset, geminiPreset, opencodePreset}

// Find returns the preset of this name.
func Find(name string) (Preset, bool) {
	if name == ACP {
		return acpPreset, true
	}

	i := slices.IndexFunc(table, func(p Preset) bool { return p.Name == name })
	if i < 0 {
		return Preset{}, false
	}
	return table[i], true
}

// Names returns the names of the presets of one agent each, in their order.
func Names() []string {
	var names []string
	for _, p := range table {
		names = append(names, p.Name)
	}
	return names
}

// OnPath returns the names of the presets whose program is in a PATH, in their order.
func OnPath(lookUp func(program string) bool) []string {
	var names []string
	for _, p := range table {
		if lookUp(p.Program) {
			names = append(names, p.Name)
		}
	}
	return names
}

// Of returns the preset for a program of the operator. An agent of the table that speaks the Agent Client
// Protocol finds its skills where it looks for them, and signs in by its own variables.
func (p Preset) Of(program string) Preset {
	if known, ok := Find(path.Base(program)); ok && p.Name == ACP {
		p.Skills, p.SignIn = known.Skills, known.SignIn
	}
	return p
}

// AdapterOf returns what makes the adapters of this name: those of presets, and lines for the protocol of
// docs/contract.md.
func AdapterOf(name string) (func(Task) Adapter, error) {
	if name == "" || name == "lines" {
		return func(Task) Adapter { return Lines{} }, nil
	}
	if p, ok := Find(name); ok && p.Program != "" {
		return p.adapter, nil
	}

	names := Names()
	last := len(names) - 1
	return nil, fmt.Errorf(
		"adapter %q does not exist: want lines, %s or %s", name, strings.Join(names[:last], ", "), names[last])
}
