package runs

import (
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"millwright/api"
)

// sourceSchedule is the source of the runs that a schedule starts.
const sourceSchedule = "SCHEDULED_AGENT"

// runSources returns the sources that filters know: those of this server, and those of others with this API.
func runSources() []string {
	return []string{
		"API", "AUTOFIX", "AZURE_DEVOPS_WEBHOOK", "BENCHMARK_TRIAL", "CLI", "CLOUD_MODE", "CREATE_BENCHMARK_TASK",
		"CUSTOM_WEBHOOK", "GITHUB_ACTION", "GITHUB_WEBHOOK", "GITLAB_WEBHOOK", "JIRA", "LINEAR", "LOCAL", "MCP",
		"ORCHESTRATION", "RUN_SCORER", sourceSchedule, "SELF_IMPROVEMENT", "SLACK", "TEAMS", "WEB_APP",
	}
}

// sources reads the values of the parameter source.
func sources(given []string) ([]string, error) {
	var all []string
	for _, v := range given {
		name := strings.ToUpper(v)
		if !slices.Contains(runSources(), name) {
			known := strings.Join(runSources(), ", ")
			return nil, api.InvalidField("source", "%q is not a source: want one of %s", v, known)
		}

		all = append(all, name)
	}

	return all, nil
}

// timeOf reads a time of a parameter; nil for none. Without a zone it is UTC.
func timeOf(name, text string) (*time.Time, error) {
	if text == "" {
		return nil, nil
	}

	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05", time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return &t, nil
		}
	}

	return nil, api.InvalidField(name, "want a time such as 2026-01-02T15:04:05Z (RFC 3339), not %q", text)
}

// describeTimes has the document call the times of a list what they are. What is read takes more forms.
func (s *service) describeTimes(path string) {
	for _, p := range s.api.Huma().OpenAPI().Paths[path].Get.Parameters {
		if strings.HasSuffix(p.Name, "_after") || strings.HasSuffix(p.Name, "_before") {
			p.Schema = &huma.Schema{Type: huma.TypeString, Format: "date-time", Description: p.Schema.Description}
		}
	}
}
