package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"millwright/schema/language"
)

func newLSP(s Streams) *cobra.Command {
	c := &Client{foreign: true}
	var keyFile string
	cmd := &cobra.Command{
		Use:   "lsp",
		Short: "Serve editors: problems, repairs and completion while definition files are typed",
		Long: `Speaks the Language Server Protocol over standard input and output. Editors start it; see
docs/editors.md.

It checks the definition trees in the editor's folders with the texts of open files, saved
or not, by the rules of validate. It needs no server. With one it also knows UIDs and the
names of secrets. The server and its key come from the flags, from the environment
(MILLWRIGHT_SERVER, MILLWRIGHT_API_KEY, MILLWRIGHT_STATE) and from millwright login, never
from the settings of a workspace.`,
		Example: `  millwright lsp
  millwright lsp --server https://hooks.example.com --key-file ~/.config/millwright.key`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config := language.Config{Version: Version()}
			named := c.Server != ""
			if !named {
				all, err := readLogins()
				if err != nil {
					fmt.Fprintf(s.Err, "millwright: %s; going on without a server\n", err)
				}
				named = all.Current != ""
			}

			if err := c.readKey(keyFile); err != nil {
				return err
			}

			if named {
				if err := c.prepare(); err != nil {
					return err
				}
				config.Lookup = lookup{*c}
			} else if keyFile != "" || c.factory != "" {
				return Usagef("--key-file and --factory go with --server, MILLWRIGHT_SERVER or millwright login")
			}

			if err := language.Serve(cmd.Context(), s.In, s.Out, config); err != nil {
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
