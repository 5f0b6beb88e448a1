package schema

import (
	"fmt"
)

func (d *document) agent(name string) Agent {
	d.loose = true
	d.checkStructure("agent")
	a := Agent{
		Name: name, Path: d.path, Line: d.line(),
		Description:        text(d.data, "description"),
		AgentType:          text(d.data, "agentType"),
		CredentialStrategy: text(d.data, "credentialStrategy"),
		Execution:          d.execution(d.root, d.data, false),
		Prompt:             string(d.body),
	}
	if a.AgentType == "" {
		a.AgentType = AgentCustom
	}
	if a.IsForeman() {
		d.fact(factForeman, d.value("agentType"), a.AgentType)
	}

	return a
}

func (d *document) runner(name string) Runner {
	d.loose = true
	d.checkStructure("runner")
	r := Runner{
		Name:          name,
		Path:          d.path,
		Line:          d.line(),
		Description:   text(d.data, "description"),
		SetupCommands: texts(d.data, "setupCommands"),
	}
	if m, ok := d.data["instanceShape"].(map[string]any); ok {
		r.InstanceShape = &InstanceShape{VCPUs: number(m, "vcpus"), MemoryGB: number(m, "memoryGb")}
		shape := d.value("instanceShape")
		if k, _ := find(shape, "vcpus"); k != nil && child(shape, "memoryGb") == nil {
			d.missingKey(shape, []string{"instanceShape"}, "memoryGb")
		}
	}

	m, ok := d.data["platform"].(map[string]any)
	if !ok {
		return r
	}

	r.Platform = &Platform{OS: text(m, "os"), Arch: text(m, "arch")}
	if l, ok := m["linux"].(map[string]any); ok {
		r.Platform.Linux = &LinuxPlatform{DockerImage: text(l, "dockerImage")}
	}
	if l, ok := m["mac"].(map[string]any); ok {
		r.Platform.Mac = &MacPlatform{Version: text(l, "version")}
	}

	platform := d.value("platform")
	if l, _ := find(platform, "linux"); l == nil && r.Platform.OS == "linux" {
		d.missingKey(platform, []string{"platform"}, "linux")
	}

	for os, key := range map[string]string{"linux": "mac", "macos": "linux"} {
		if k, _ := find(platform, key); k != nil && r.Platform.OS == os {
			d.errorAt(
				k,
				ruleInvalidValue,
				fmt.Sprintf("platform.%s does not go with os: %s", key, os),
				"delete this key, or change os",
			)
		}
	}

	return r
}

func (d *document) skill(name, agent string) Skill {
	d.loose = true
	d.checkStructure("skill")
	return Skill{
		Name:        name,
		Path:        d.path,
		Line:        d.line(),
		Agent:       agent,
		Description: text(d.data, "description"),
		Body:        string(d.body),
	}
}
