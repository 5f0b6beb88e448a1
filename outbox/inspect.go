package outbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"millwright/forge/bundle"
	"millwright/outbox/request"
	"millwright/state"
	"millwright/state/outputs"
)

// builtIn are the files and folders that decide what CI does with its secrets, who reviews, and what other agents
// are told. A change of one leaves only after a person agreed.
func builtIn() []string {
	return []string{
		".github/", ".gitea/", ".forgejo/", ".gitlab/", ".gitlab-ci.yml", ".circleci/", ".woodpecker/",
		".woodpecker.yml", ".woodpecker.yaml", ".buildkite/", ".drone.yml", ".travis.yml", "azure-pipelines.yml",
		".azure-pipelines/", ".cirrus.yml", ".appveyor.yml", "appveyor.yml", ".semaphore/", ".tekton/", ".teamcity/",
		".builds/", ".build.yml", "bitbucket-pipelines.yml", "buildspec.yml", "cloudbuild.yaml", "Jenkinsfile",
		".pre-commit-config.yaml", ".devcontainer", ".devcontainer.json", ".vscode", ".husky", ".mergify.yml",
		"CODEOWNERS", ".gitmodules", ".gitattributes",
		".agents", ".aider.conf.yml", ".amp", ".claude", ".clinerules", ".codex", ".continue",
		".cursor", ".cursorrules",
		".factory", ".gemini", ".goosehints", ".junie", ".kiro", ".opencode", "opencode.json", ".qwen", ".roo",
		".windsurf", ".windsurfrules", ".mcp.json", "AGENTS.md", "AGENT.md", "CLAUDE.md", "CLAUDE.local.md",
		"GEMINI.md",
		"QWEN.md",
	}
}

// inspect reads the changes of a pull request. It stops those that need a person, and those with a secret.
func (j *job) inspect(ctx context.Context, a state.Artifact) error {
	if a.RunID != j.row.RunID || a.Facts.Head != j.act.Head || a.Facts.Base != j.act.BaseCommit {
		return errors.New("the stored changes are not those that were asked for")
	}

	changes, err := bundle.Open(j.cfg.Store.ArtifactContent(ctx, a), j.act.BaseCommit)
	if err != nil {
		return err
	}
	defer changes.Close()
	if changes.Head != j.act.Head {
		return errors.New("the stored changes end at another commit")
	}

	secret, err := changes.Contains(func(text []byte) bool { return j.secrets.In(string(text)) })
	if err != nil {
		return err
	}
	if secret {
		return decision{outputs.Refused, "a changed file, or the message of a commit, has the value of a secret"}
	}

	if j.row.DecidedBy != "" { // a person has seen the changes
		return nil
	}

	patterns := builtIn()
	if j.applied != nil {
		patterns = append(patterns, j.applied.Outputs.Protect...)
	}
	for _, p := range changes.Paths() {
		if slices.ContainsFunc(patterns, func(pattern string) bool { return protects(pattern, p) }) {
			reason := fmt.Sprintf("the changes touch %s, which is protected", request.Printable(p))
			return decision{outputs.Staged, reason}
		}
	}

	return nil
}

// protects reports whether a pattern protects a file. A pattern without a slash is a name in any folder, another
// one a path from the root. Case does not matter, since some file systems ignore it.
func protects(pattern, file string) bool {
	pattern, file = strings.ToLower(pattern), strings.ToLower(file)
	if !strings.Contains(pattern, "/") {
		return slices.Contains(strings.Split(file, "/"), pattern)
	}
	return strings.HasPrefix(file+"/", strings.TrimSuffix(pattern, "/")+"/")
}
