package runs

import (
	"context"
	"net/http"
	"reflect"

	"millwright/api"
	"millwright/state"
)

// BundledSkill is an entry of the catalog of skills that come with the service.
type BundledSkill struct {
	ID      string `json:"id" doc:"The skill's ID: input.bundled_skill_id of read_skill actions"`
	Purpose string `json:"purpose" doc:"Purpose"`
}

// BundledSkills is the catalog of bundled skills.
type BundledSkills struct {
	Skills []BundledSkill `json:"skills" nullable:"false" doc:"The catalog"`
	Note   string         `json:"note" doc:"Purpose of the catalog"`
}

func (s *service) registerSkills() {
	api.Handle(
		s.api,
		api.Explained(
			api.Filtered(api.Operation(
				http.MethodGet,
				"/agent/skills",
				"listBundledSkills",
				state.RoleViewer,
				"List the bundled skills",
			)),
			"A catalog for grouping the use of skills across conversations. The skills that a run had "+
				"are its advertised_skills.",
		),
		func(context.Context, *struct{}) (BundledSkills, error) {
			return BundledSkills{
				Skills: catalog(),
				Note: "These are the skills bundled with the agent platform whose runs API this server " +
					"implements, listed so that clients of that API can group the use of skills across " +
					"conversations. Agents of this server do not come with them; its MCP endpoint serves " +
					"factory-files and factory-mcp. It is not an availability manifest: a run's " +
					"advertised_skills tell what it had, its read_skill actions what it used. " +
					"Integrations can add IDs that are not listed.",
			}, nil
		},
	)
}

func catalog() []BundledSkill {
	return []BundledSkill{
		{"add-mcp-server", "Add an MCP server to the application configuration"},
		{"change-keybinding", "Change or remove keyboard shortcuts"},
		{"llm-sdk-api", "Build and maintain applications that use a language-model vendor SDK"},
		{"create-skill", "Create, improve and evaluate skills"},
		{"create-tab-config", "Create a tab configuration"},
		{"factory-files", "Create and validate file-based factory definitions"},
		{
			"factory-mcp",
			"Send work to a factory and collaborate through the factory MCP; appears only where that MCP " +
				"is available",
		},
		{"modify-settings", "View or change settings using the bundled settings schema"},
		{"service-platform", "Run, configure and inspect cloud agents through the API and command line"},
		{"pr-comments", "Fetch pull-request review comments for the current branch"},
		{"tab-configs", "Look up the tab configuration schema and validation rules"},
		{
			"tui-migrate-setup",
			"Migrate supported settings into the terminal agent command-line client; specific to that client",
		},
		{"update-tab-config", "Update an existing tab configuration"},
		{"appctl", "Control and inspect a running desktop application"},
	}
}

func typeOf[T any]() reflect.Type { return reflect.TypeFor[T]() }
