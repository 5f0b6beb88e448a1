package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/spf13/cobra"

	"millwright/schema"
)

// FactoryItem is what the program shows of a Factory.
type FactoryItem struct {
	UID, Name string
	Source    struct{ Kind, URL, Branch, Path string }
	Sync      struct {
		State             string
		AttemptedRevision string  `json:"attempted_revision"`
		AppliedRevision   string  `json:"applied_revision"`
		AppliedSigner     string  `json:"applied_signer"`
		LastAppliedAt     *string `json:"last_applied_at"`
		LastAttemptedAt   *string `json:"last_attempted_at"`
		Message           string
		Problems          []schema.Problem
	}
	Suspended  bool
	Conditions []struct {
		Type, Status, Reason, Message string
		Since                         string `json:"last_transition_time"`
	}
	Counts       map[string]int
	Unregistered []struct{ Webhook, Repository, State, Reason string }
}

func newSync(s Streams) *cobra.Command {
	var c Client
	var prune, rename, wait bool
	var revision string
	cmd := &cobra.Command{
		Use:        "sync",
		SuggestFor: []string{"apply", "deploy", "reconcile"},
		Short:      "Apply now, and use new values of secrets",
		Long: `Asks the server to read and apply its sources now. Without --factory it applies all
factories. Exit status 0: each is applied; 1: one is refused.

--allow-prune and --allow-rename apply to one revision: that of --revision, or else the
one that was refused last. If the source has a newer one, nothing is applied (status 1).`,
		Example: `  millwright sync
  millwright sync --factory payments --allow-prune --revision 3f9c2d1`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !wait {
				return Usagef("--wait=false: sync always waits until the source is applied or refused")
			}

			factories, err := c.chosen(cmd.Context())
			if err != nil {
				return err
			}

			var refused error
			for _, f := range factories {
				if err := syncOne(cmd.Context(), s, &c, f, map[string]any{
					"allow_prune": prune, "allow_rename": rename, "revision": revision,
				}); err != nil {
					refused = err
				}
			}

			return refused
		},
	}

	addClientFlags(cmd, &c, true)
	cmd.Flags().BoolVar(&prune, "allow-prune", false, "allow this apply to delete all or most webhooks")
	cmd.Flags().
		BoolVar(
			&rename,
			"allow-rename",
			false,
			"allow this apply to replace a webhook by one with another name and a new URL",
		)
	cmd.Flags().StringVar(&revision, "revision", "", "apply this `REVISION`, and no other")
	cmd.Flags().BoolVar(&wait, "wait", true, "no effect: the command always waits until applied or refused")
	return cmd
}

func syncOne(ctx context.Context, s Streams, c *Client, f factoryRef, in any) error {
	_, err := c.call(ctx, http.MethodPost, "/factory/"+f.UID+"/sync", in)
	var r *refusal
	if err != nil && !errors.As(err, &r) {
		return err
	}

	var item FactoryItem
	if err := c.Get(ctx, "/factory/"+f.UID, &item); err != nil {
		return err
	}

	item.print(s.Out)
	if err != nil {
		return err
	}
	if item.Sync.State != "applied" {
		return &Exit{ExitProblem, nil}
	}

	return nil
}

// ShortRevision returns what people see of a revision: the first characters of a commit, anything else whole.
func ShortRevision(id string) string {
	if len(id) == 40 {
		return id[:12]
	}
	if len(id) > 19 {
		return id[:19]
	}
	return id
}

func (f FactoryItem) print(w io.Writer) {
	fmt.Fprintf(w, "%s: %s", clean(f.Name), clean(f.Sync.State))
	if f.Sync.AppliedRevision != "" {
		fmt.Fprintf(w, ", serving %s", clean(ShortRevision(f.Sync.AppliedRevision)))
	}
	if f.Sync.AppliedSigner != "" {
		fmt.Fprintf(w, " signed by %s", clean(f.Sync.AppliedSigner))
	}
	if f.Sync.AttemptedRevision != f.Sync.AppliedRevision && f.Sync.AttemptedRevision != "" {
		fmt.Fprintf(w, ", attempted %s", clean(ShortRevision(f.Sync.AttemptedRevision)))
	}
	if f.Sync.LastAppliedAt != nil {
		fmt.Fprintf(w, ", applied %s", ago(*f.Sync.LastAppliedAt))
	}

	fmt.Fprintln(w)
	said := ""
	for _, c := range f.Conditions {
		fmt.Fprintf(w, "  %-11s %-5s %s, %s", clean(c.Type), clean(c.Status), clean(c.Reason), ago(c.Since))
		if c.Message != said {
			said = c.Message
			fmt.Fprintf(w, ": %s", clean(said))
		}

		fmt.Fprintln(w)
	}

	for _, u := range f.Unregistered {
		line := fmt.Sprintf("webhook %s at %s: %s", u.Webhook, u.Repository, u.State)
		if u.Reason != "" {
			line += ": " + u.Reason
		}
		fmt.Fprintf(w, "  %s\n", clean(line))
	}

	for _, p := range f.Sync.Problems {
		fmt.Fprintf(
			w,
			"  %s:%d:%d: %s: %s [%s]\n",
			clean(p.Path),
			p.Line,
			p.Column,
			p.Severity,
			clean(p.Message),
			p.Code,
		)
		if p.Hint != "" {
			fmt.Fprintf(w, "    hint: %s\n", clean(p.Hint))
		}
	}
}
