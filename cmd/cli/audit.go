package cli

import (
	"net/url"

	"github.com/spf13/cobra"
)

func newAudit(s Streams) *cobra.Command {
	var c Client
	var out output
	var show listing
	var actor, action, after, before string
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "List who changed what, newest first",
		Long: `Lists the audit log: sign-ins, keys, secrets, applies, webhooks, cancelled runs and
decisions on outputs, each with its actor and address. The log has no secrets. With --factory,
the list has the changes of that factory alone. Needs a key of role admin.`,
		Example: `  millwright audit
  millwright audit --action webhook --factory shop
  millwright audit --actor ci --after 2026-01-31T00:00:00Z --output json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			q := url.Values{}
			for name, value := range map[string]string{
				"actor": actor, "action": action, "after": after, "before": before,
			} {
				if value != "" {
					q.Set(name, value)
				}
			}

			if c.factory != "" {
				f, err := c.one(cmd.Context())
				if err != nil {
					return err
				}
				q.Set("factory_uid", f.UID)
			}

			body, left, err := c.list(cmd.Context(), "/audit", "entries", q, show)
			if err != nil {
				return err
			}

			return out.print(s.Out, body, func() error {
				defer left.note(s)

				var list struct{ Entries []auditItem }
				if err := c.Decode(body, &list); err != nil {
					return err
				}

				var lines [][]string
				for _, e := range list.Entries {
					lines = append(lines, []string{e.At, e.Actor, e.Source, e.Action, e.Subject, e.Detail})
				}

				return rows(s.Out, "AT ACTOR SOURCE ACTION SUBJECT DETAIL", lines)
			})
		},
	}

	f := cmd.Flags()
	f.StringVar(&actor, "actor", "", "only changes by the actor of this `NAME` or UID")
	f.StringVar(&action, "action", "", "only this `ACTION`, such as webhook.disable, or a kind such as webhook")
	f.StringVar(&after, "after", "", "only changes at this `TIME` or later, such as 2026-01-31T08:30:00Z")
	f.StringVar(&before, "before", "", "only changes before this `TIME`")
	addClientFlags(cmd, &c, true)
	addOutputFlag(cmd, &out)
	show.add(cmd)
	return cmd
}

// auditItem is what the program shows of a change.
type auditItem struct{ At, Actor, Source, Action, Subject, Detail string }
