package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"millwright/schema"
)

func newPlan(s Streams) *cobra.Command {
	c := &Client{}
	var allow allowances
	cmd := &cobra.Command{
		Use:        "plan [DIR]",
		SuggestFor: []string{"diff", "preview"},
		Short:      "Show what applying a tree would change, and whether the server would accept it",
		Long: `Asks a server what applying the definition tree in DIR would create, update and delete,
which secrets it would pick up, and whether the server would accept it. Without DIR it
plans the head of the factory's source. It changes nothing.

--allow-prune and --allow-rename plan an apply that has the same flags.

Exit status 0: nothing to do; 1: the server would refuse it; 2: changes; 3: wrong usage, or
could not check.`,
		Example: `  millwright plan factory --server https://hooks.example.com --factory payments
  millwright plan . --format markdown=comment.md --format text   for a pull request`,
		SilenceUsage: true,
		Args: func(cmd *cobra.Command, args []string) error {
			return couldNotCheck(cobra.MaximumNArgs(1)(cmd, args))
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			status, err := runPlan(cmd, s, c, args, allow)
			if err != nil {
				return couldNotCheck(err)
			}

			return status
		},
	}

	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return couldNotCheck(flagError(cmd, err)) })
	addClientFlags(cmd, c, true)
	addFormatFlag(cmd, planFormats)
	cmd.Flags().BoolVar(&allow.prune, "allow-prune", false, "plan an apply that may delete all or most webhooks")
	cmd.Flags().BoolVar(
		&allow.rename,
		"allow-rename",
		false,
		"plan an apply that may replace a webhook by one with another name and a new URL",
	)
	return cmd
}

var planFormats = []string{"text", "json", "markdown"}

// runPlan asks for a plan and prints it. The first error holds the exit status that the plan itself has;
// the second is why there is none.
func runPlan(cmd *cobra.Command, s Streams, c *Client, args []string, allow allowances) (status, err error) {
	all, err := targets(cmd, planFormats)
	if err != nil {
		return nil, err
	}

	view := planView{allow: allow, source: func(schema.Problem) []byte { return nil }}
	switch {
	case len(args) > 0:
		err = view.ask(cmd, c, args[0])
	case allow != (allowances{}):
		view.judgement, err = c.plan(cmd.Context(), map[string]any{
			"allow_prune":  allow.prune,
			"allow_rename": allow.rename,
		})
	default:
		view.judgement, err = c.plan(cmd.Context(), nil)
	}

	if err != nil {
		return nil, err
	}

	err = s.write(all, view.render)
	if err != nil {
		return nil, err
	}

	if all[0].format == "json" || !all[0].stdout() {
		for _, n := range view.notices {
			fmt.Fprintf(s.Err, "note: %s\n", clean(n))
		}
	}

	switch p := view.plan; {
	case !p.WouldApply:
		return &Exit{ExitProblem, nil}, nil
	case view.changes() > 0 || len(p.Secrets) > 0:
		return &Exit{exitChanges, nil}, nil
	}

	return nil, nil
}

// exitChanges is the status of a plan that would change something.
const exitChanges = 2
