package schema

// Environment is environments/<name>.yaml, or an entry of environments in the settings of a server: what runs that
// name it by environmentId execute in. It survives a round trip through JSON.
type Environment struct {
	Name          string            `json:"name,omitempty"`
	Path          string            `json:"path,omitempty"`
	Line          int               `json:"line,omitempty"` // of the first key in the file, from 1
	Description   string            `json:"description,omitempty"`
	DockerImage   string            `json:"dockerImage,omitempty"`
	Repositories  []Repository      `json:"repositories,omitempty"`
	SetupCommands []string          `json:"setupCommands,omitempty"`
	Env           map[string]string `json:"env,omitempty"`
	Secrets       []string          `json:"secrets,omitempty"`
}

func (d *document) environment(name string) Environment {
	d.loose = true
	d.checkStructure("environment")
	e := Environment{
		Name:          name,
		Path:          d.path,
		Line:          d.line(),
		Description:   text(d.data, "description"),
		DockerImage:   text(d.data, "dockerImage"),
		SetupCommands: texts(d.data, "setupCommands"),
		Secrets:       texts(d.data, "secrets"),
	}

	d.grants(d.value("secrets"))
	e.Repositories = d.repositories()
	if m, ok := d.data["env"].(map[string]any); ok {
		e.Env = map[string]string{}
		for name := range m {
			e.Env[name] = text(m, name)
		}
	}
	return e
}

// repositories reads the key repositories.
func (d *document) repositories() (all []Repository) {
	for _, m := range objects(d.data, "repositories") {
		all = append(all, Repository{Owner: text(m, "owner"), Name: text(m, "name"), CodeForge: text(m, "codeForge")})
	}
	d.distinctRepositories(all)
	return all
}
