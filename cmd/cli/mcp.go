package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"millwright/api"
	"millwright/api/mcp"
	"millwright/state"
)

func newMCP(s Streams) *cobra.Command {
	c := &Client{}
	var keyFile string
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Serve agents: tools for tasks, runs, deliveries and definition files",
		Long: `Speaks the Model Context Protocol over standard input and output. Agents start it; docs/mcp.md
has their settings. A server has the same tools at /api/v1/mcp.

Each tool calls the server's API with the key of this command, and may do what the key's
role may do. Tools that the role does not allow are not listed: with a viewer's key all are
read-only. With --factory they see that factory only.`,
		Example: `  millwright mcp --server https://hooks.example.com --key-file ~/.config/millwright.key
  claude mcp add millwright -- millwright mcp --factory payments`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.readKey(keyFile); err != nil {
				return err
			}

			role, err := c.role(cmd.Context())
			if err != nil {
				return err
			}
			if _, err := c.chosen(cmd.Context()); err != nil {
				return err
			}

			err = mcp.Serve(cmd.Context(), s.In, s.Out, mcp.Config{
				Call: c.call, Role: role, Factory: c.factory, Version: Version(),
			})
			if err != nil && !errors.Is(err, context.Canceled) {
				return &Exit{ExitProblem, err}
			}
			return nil
		},
	}

	addClientFlags(cmd, c, true)
	cmd.Flags().StringVar(&keyFile, "key-file", "",
		"`FILE` with the API key (default MILLWRIGHT_API_KEY, then that of the login)")
	return cmd
}

// readKey takes the key from a file, if one is named.
func (c *Client) readKey(file string) error {
	if file == "" {
		return nil
	}

	text, err := os.ReadFile(file)
	if err != nil {
		return couldNotCheck(fmt.Errorf("--key-file: %w", err))
	}
	c.Key = strings.TrimSpace(string(text))
	return nil
}

// role returns the role of the client's key.
func (c *Client) role(ctx context.Context) (state.Role, error) {
	resp, err := c.send(ctx, http.MethodGet, "/factory?limit=1", nil)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()

	role := state.Role(resp.Header.Get(api.RoleHeader))
	if !role.Allows(state.RolePlanner) { // of an older server
		role = state.RoleViewer
	}
	return role, nil
}
