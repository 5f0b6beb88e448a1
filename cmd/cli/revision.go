package cli

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"
)

func newRevision(s Streams) *cobra.Command {
	var c Client
	cmd := &cobra.Command{
		Use:   "revision",
		Short: "List, show and restore revisions of a managed definition",
		Args:  noCommand,
		RunE:  help,
	}

	addClientFlags(cmd, &c, true)
	cmd.AddCommand(revisionList(s, &c), revisionShow(s, &c), revisionRestore(s, &c))
	return cmd
}

// revisionItem is what the program shows of a revision.
type revisionItem struct {
	Revision, Author, Subject string
	CreatedAt                 string `json:"created_at"`
	FilesChanged              int    `json:"files_changed"`
	Files                     []struct{ Path, Action, Difference string }
}

func revisionPath(f factoryRef, id string) string {
	return "/factory/" + f.UID + "/revisions/" + url.PathEscape(id)
}

func revisionList(s Streams, c *Client) *cobra.Command {
	var out output
	var show listing
	cmd := &cobra.Command{
		Use: "list", Short: "List the revisions, newest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f, err := c.one(cmd.Context())
			if err != nil {
				return err
			}

			body, left, err := c.list(cmd.Context(), "/factory/"+f.UID+"/revisions", "revisions", nil, show)
			if err != nil {
				return err
			}

			return out.print(s.Out, body, func() error {
				defer left.note(s)

				var list struct{ Revisions []revisionItem }
				if err := c.Decode(body, &list); err != nil {
					return err
				}

				var lines [][]string
				for _, r := range list.Revisions {
					lines = append(
						lines,
						[]string{r.Revision, ago(r.CreatedAt), r.Author, fmt.Sprint(r.FilesChanged), r.Subject},
					)
				}

				return rows(s.Out, "REVISION MADE BY FILES SUBJECT", lines)
			})
		},
	}

	addOutputFlag(cmd, &out)
	show.add(cmd)
	return cmd
}

func revisionShow(s Streams, c *Client) *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:     "show REVISION",
		Aliases: []string{"get", "diff"},
		Short:   "Show a revision and the lines that it changed",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := c.one(cmd.Context())
			if err != nil {
				return err
			}

			body, err := c.call(cmd.Context(), http.MethodGet, revisionPath(f, args[0]), nil)
			if err != nil {
				return err
			}

			return out.print(s.Out, body, func() error {
				var r revisionItem
				if err := c.Decode(body, &r); err != nil {
					return err
				}

				head := fmt.Sprintf("%s by %s, %s: %s", r.Revision, r.Author, r.CreatedAt, r.Subject)
				fmt.Fprintln(s.Out, clean(head))
				for _, file := range r.Files {
					fmt.Fprintf(s.Out, "\n%s", cleanText(file.Difference))
					if file.Difference == "" {
						fmt.Fprintf(s.Out, "%s %s: too long to show\n", clean(file.Action), clean(file.Path))
					}
				}

				return nil
			})
		},
	}

	addOutputFlag(cmd, &out)
	return cmd
}

func revisionRestore(s Streams, c *Client) *cobra.Command {
	var e edits
	var ask confirmation
	cmd := &cobra.Command{
		Use:   "restore REVISION",
		Short: "Make a new revision with the files of an earlier one",
		Example: `  millwright revision show r12
  millwright revision restore r12`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := c.one(cmd.Context())
			if err != nil {
				return err
			}
			if err := ask.of(s, "restore the files of %s in factory %s", args[0], f.Name); err != nil {
				return err
			}

			path := revisionPath(f, args[0]) + "/restore" + e.query()
			return c.edit(cmd.Context(), s, http.MethodPost, path, nil)
		},
	}

	e.add(cmd, true)
	ask.add(cmd)
	return cmd
}
