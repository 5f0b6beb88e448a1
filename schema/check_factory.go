package schema

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

func (d *document) factoryFile() *FactoryFile {
	d.loose = true
	d.checkStructure("factory")
	f := &FactoryFile{
		SchemaVersion:      text(d.data, "schemaVersion"),
		Name:               text(d.data, "name"),
		Alias:              strings.TrimSpace(text(d.data, "alias")),
		Description:        text(d.data, "description"),
		CredentialStrategy: text(d.data, "credentialStrategy"),
		Secrets:            texts(d.data, "secrets"),
		MCPServers:         d.servers(d.value("mcpServers")),
	}

	d.grants(d.value("secrets"))
	if n := d.value("cloudProviders"); n != nil && !d.anyBad(n) {
		f.CloudProviders = nodeJSON(n)
	}

	f.Repositories = d.repositories()

	trackers := 0
	for i, m := range objects(d.data, "integrations") {
		in := Integration{Type: text(m, "type")}
		f.Integrations = append(f.Integrations, in)
		if in.Type == "linear" || in.Type == "jira" {
			if trackers++; trackers > 1 {
				if n := child(d.value("integrations"), fmt.Sprint(i)); n != nil {
					d.errorAt(
						n,
						ruleInvalidValue,
						"a second issue tracker; a factory has at most one of linear and jira",
						"keep one",
					)
				}
			}
		}
	}

	if n := d.value("agentDefaults"); n != nil && n.Kind == yaml.MappingNode {
		m, _ := d.data["agentDefaults"].(map[string]any)
		f.AgentDefaults = d.execution(n, m, true)
	}

	return f
}
