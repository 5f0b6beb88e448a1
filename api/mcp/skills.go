package mcp

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"millwright/schema"
)

//go:embed skills
var skillFiles embed.FS

// Skill is a skill that comes with the program: an agent reads it before it writes definition files, or works
// with a factory.
type Skill struct {
	Name, Description string
	// Text is its SKILL.md, front matter included.
	Text []byte
}

// Skills returns the skills, by name.
func Skills() ([]Skill, error) {
	var all []Skill
	for _, s := range schema.Load(skillFiles, nil).Factory.Skills {
		text, err := skillFiles.ReadFile(s.Path)
		if err != nil {
			return nil, err
		}
		all = append(all, Skill{s.Name, s.Description, text})
	}
	return all, nil
}

// skillURI is where clients read a skill, and skillIndex where they find all (the MCP extension for skills).
func skillURI(name string) string { return "skill://" + name + "/SKILL.md" }

const skillIndex = "skill://index.json"

const jsonText = "application/json"

// addSkills serves the skills, and the index by which clients find them.
func addSkills(s *sdk.Server, skills []Skill) {
	type listed struct {
		Name        string `json:"name"`
		Type        string `json:"type"`
		Description string `json:"description"`
		URL         string `json:"url"`
	}
	index := struct {
		Schema string   `json:"$schema"`
		Skills []listed `json:"skills"`
	}{Schema: "https://schemas.agentskills.io/discovery/0.2.0/schema.json"}

	serve := func(uri, name, description, mime string, text []byte) {
		s.AddResource(&sdk.Resource{
			URI: uri, Name: name, Description: description, MIMEType: mime, Size: int64(len(text)),
		}, func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			contents := &sdk.ResourceContents{URI: uri, MIMEType: mime, Text: string(text)}
			return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{contents}}, nil
		})
	}

	for _, skill := range skills {
		uri := skillURI(skill.Name)
		index.Skills = append(index.Skills, listed{skill.Name, "skill-md", skill.Description, uri})
		serve(uri, skill.Name, skill.Description, "text/markdown", skill.Text)
	}

	text, err := json.Marshal(index)
	if err != nil {
		panic(fmt.Sprintf("index of skills: %v", err)) // it has strings only
	}
	serve(skillIndex, "skills", "The skills of this server", jsonText, text)
}
