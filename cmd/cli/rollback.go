package cli

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"millwright/reconcile/plan"
	"millwright/schema"
)

func newRollback(s Streams) *cobra.Command {
	var c Client
	var ask confirmation
	var dry, prune, rename bool
	cmd := &cobra.Command{
		Use:   "rollback [REVISION]",
		Short: "Serve an earlier applied revision, and stay there until resume",
		Long: `Shows what serving an earlier applied revision would change, asks, and applies it. Without
REVISION it takes the applied revision before the present one. Secrets keep their present
values. The factory is then suspended: the server checks newer revisions of its source, and
applies none until millwright resume.

The files of a revision are kept for 30 days after another one took its place.`,
		Example: `  millwright rollback --dry-run
  millwright rollback 3f9c2d1 --factory payments --yes
  millwright resume --factory payments`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := c.one(cmd.Context())
			if err != nil {
				return err
			}

			in := map[string]any{"dry_run": true, "allow_prune": prune, "allow_rename": rename}
			if len(args) > 0 {
				in["revision"] = args[0]
			}

			path := "/factory/" + f.UID + "/rollback"
			body, err := c.call(cmd.Context(), http.MethodPost, path, in)
			if err != nil {
				return err
			}

			var to struct {
				Revision string
				Plan     plan.Plan
			}
			if err := c.Decode(body, &to); err != nil {
				return err
			}

			v := planView{
				judgement: &judgement{plan: to.Plan, problems: to.Plan.Problems},
				source:    func(schema.Problem) []byte { return nil },
			}
			if v.body, err = json.Marshal(to.Plan); err != nil {
				return err
			}

			fmt.Fprintf(s.Out, "to revision %s:\n", clean(ShortRevision(to.Revision)))
			s.Out.Write(v.text(colored(s.Out)))
			if dry || !to.Plan.WouldApply {
				if !to.Plan.WouldApply {
					return &Exit{ExitProblem, nil}
				}
				return nil
			}

			if err := ask.of(s, "roll factory %s back to %s", f.Name, ShortRevision(to.Revision)); err != nil {
				return err
			}

			in["revision"], in["dry_run"] = to.Revision, false
			if _, err := c.call(cmd.Context(), http.MethodPost, path, in); err != nil {
				return err
			}

			fmt.Fprintf(s.Out, "%s serves %s, and is suspended until millwright resume\n",
				clean(f.Name), clean(ShortRevision(to.Revision)))
			return nil
		},
	}

	addClientFlags(cmd, &c, true)
	ask.add(cmd)
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only show the plan")
	cmd.Flags().BoolVar(&prune, "allow-prune", false, "allow the rollback to delete all or most webhooks")
	cmd.Flags().BoolVar(
		&rename,
		"allow-rename",
		false,
		"allow the rollback to replace a webhook by one with another name and a new URL",
	)
	return cmd
}

func newResume(s Streams) *cobra.Command {
	var c Client
	cmd := &cobra.Command{
		Use:     "resume",
		Short:   "Have a factory follow its source again after a rollback",
		Example: `  millwright resume --factory payments`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f, err := c.one(cmd.Context())
			if err != nil {
				return err
			}
			if _, err := c.call(cmd.Context(), http.MethodPost, "/factory/"+f.UID+"/resume", nil); err != nil {
				return err
			}

			fmt.Fprintf(s.Out, "%s follows its source again\n", clean(f.Name))
			return nil
		},
	}

	addClientFlags(cmd, &c, true)
	return cmd
}
