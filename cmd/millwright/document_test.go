package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/spf13/cobra"

	"millwright/admin"
	"millwright/api"
	"millwright/cmd/cli"
	"millwright/cmd/server"
	"millwright/runs"
	"millwright/state"
	"millwright/state/statetest"
)

var update = flag.Bool("update", false, "write api/openapi.yaml and docs/cli.md anew")

const documentFile = "../../api/openapi.yaml"

// registered returns an API with every endpoint.
func registered(store *state.Store) *api.API {
	a := api.New(api.Config{Store: store})
	runs.Register(a, runs.Config{Store: store})
	admin.Register(a, admin.Config{Store: store})
	return a
}

// TestDocument holds api/openapi.yaml against the endpoints, and against the OpenAPI specification.
func TestDocument(t *testing.T) {
	a := registered(statetest.Open(t, statetest.SQLite(t)))
	got, err := a.Document()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(documentFile, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(documentFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("api/openapi.yaml is stale: run make docs")
	}
	doc, err := openapi3.NewLoader().LoadFromData(want)
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context(), openapi3.AllowExtraSiblingFields("patternDescription")); err != nil {
		t.Error(err)
	}
	for _, name := range []string{
		"RunAgentRequest", "RunAgentResponse", "ListRunsResponse", "RunItem", "PageInfo", "RunStatusMessage", "RunCreatorInfo",
		"RunState", "RunSourceType", "RunFollowupRequest", "AmbientAgentConfig", "MCPServerConfig", "Error",
	} {
		if doc.Components.Schemas[name] == nil {
			t.Errorf("no model named %s", name)
		}
	}
}

const commandsFile = "../../docs/cli.md"

// TestCommandsDocument holds docs/cli.md against the commands.
func TestCommandsDocument(t *testing.T) {
	for _, name := range []string{"MILLWRIGHT_CONFIG", "MILLWRIGHT_STATE", "MILLWRIGHT_LISTEN", "MILLWRIGHT_SERVER"} {
		t.Setenv(name, "")
	}
	root := cli.Root(cli.Streams{}, server.NewServe, server.NewWorker, server.NewDemo)
	root.InitDefaultCompletionCmd()

	var b strings.Builder
	b.WriteString("# Commands\n\nGenerated from the program; `millwright COMMAND --help` prints the same.\n\n" +
		"| exit status | meaning |\n| --- | --- |\n" +
		"| 0 | good; for `plan`: nothing to do |\n" +
		"| 1 | at least one error, or a refused request |\n" +
		"| 2 | wrong usage; for `plan`: changes |\n" +
		"| 3 | could not check, or could not reach; for `plan` also wrong usage |\n")
	describeCommand(&b, root)
	got := b.String()

	if *update {
		if err := os.WriteFile(commandsFile, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(commandsFile)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("docs/cli.md is stale: run make docs")
	}
}

// describeCommand writes what the help of a command and of those below it tells.
func describeCommand(b *strings.Builder, c *cobra.Command) {
	for _, sub := range c.Commands() {
		if !sub.IsAvailableCommand() || sub.Name() == "help" || sub.Name() == "completion" {
			continue
		}

		fmt.Fprintf(b, "\n## %s\n\n%s.\n", sub.CommandPath(), sub.Short)
		if sub.Long != "" {
			fmt.Fprintf(b, "\n%s\n", sub.Long)
		}
		if sub.Runnable() && !sub.HasAvailableSubCommands() {
			fmt.Fprintf(b, "\n```\n%s\n```\n", sub.UseLine())
		}
		if sub.Example != "" {
			fmt.Fprintf(b, "\n```\n%s\n```\n", sub.Example)
		}
		if flags := sub.LocalFlags().FlagUsages(); flags != "" {
			fmt.Fprintf(b, "\n```\n%s```\n", flags)
		}
		describeCommand(b, sub)
	}
}
