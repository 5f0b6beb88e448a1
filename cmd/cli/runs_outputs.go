package cli

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"
)

// runOutput is what the program shows of a RunOutput.
type runOutput struct {
	OutputUID  string `json:"output_uid"`
	Kind       string
	State      string
	Repository string
	Number     int
	Branch     string
	Title      string
	Event      string
	URL        string
	Reason     string
}

// what describes an output in a few words.
func (o runOutput) what() string {
	text := o.Repository
	if o.Number > 0 {
		text += fmt.Sprintf("#%d", o.Number)
	}

	for _, more := range []string{o.Branch, o.Event} {
		if more != "" {
			text += " " + more
		}
	}

	if o.Kind == "reference" || o.Kind == "status" {
		text = o.Title + " " + o.Event
	}

	return strings.TrimSpace(text)
}

func runOutputs(s Streams, c *Client) *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:   "outputs RUN",
		Short: "List what the server performs for a run at a forge",
		Long: `Lists the pull requests, comments, labels, reviews and statuses that the server performs for
RUN, and what it refused. An output that is staged waits for "run approve" or "run reject".`,
		Example: `  millwright run outputs 0197…`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			body, err := c.call(cmd.Context(), http.MethodGet, runPath(args[0])+"/outputs", nil)
			if err != nil {
				return err
			}

			return out.print(s.Out, body, func() error {
				var list struct{ Outputs []runOutput }
				if err := c.Decode(body, &list); err != nil {
					return err
				}

				var lines [][]string
				for _, o := range list.Outputs {
					said := o.URL
					if said == "" {
						said = o.Reason
					}

					lines = append(lines, []string{o.OutputUID, o.Kind, o.State, o.what(), shorten(said, 90)})
				}

				return rows(s.Out, "OUTPUT KIND STATE ABOUT RESULT", lines)
			})
		},
	}

	addOutputFlag(cmd, &out)
	return cmd
}

// runDecide returns a command that changes outputs of a run: one of those named, or all that are in a state.
func runDecide(s Streams, c *Client, name, short, from, done string) *cobra.Command {
	return &cobra.Command{
		Use:   name + " RUN [OUTPUT…]",
		Short: short,
		Long: fmt.Sprintf(`Without OUTPUT, the command takes all outputs of RUN in the state %s.
"millwright run outputs" lists outputs with their IDs and states.`, from),
		Example: fmt.Sprintf("  millwright run %s 0197…\n  millwright run %s 0197… out_01…", name, name),
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			uids := args[1:]
			if len(uids) == 0 {
				var list struct{ Outputs []runOutput }
				if err := c.Get(cmd.Context(), runPath(args[0])+"/outputs", &list); err != nil {
					return err
				}

				for _, o := range list.Outputs {
					if o.State == from {
						uids = append(uids, o.OutputUID)
					}
				}
			}

			if len(uids) == 0 {
				return fmt.Errorf("run %s has no output that is %s", clean(args[0]), from)
			}

			for _, uid := range uids {
				path := runPath(args[0]) + "/outputs/" + url.PathEscape(uid) + "/" + strings.TrimSuffix(name, "-output")
				body, err := c.call(cmd.Context(), http.MethodPost, path, nil)
				if err != nil {
					return err
				}

				var o runOutput
				if err := c.Decode(body, &o); err != nil {
					return err
				}

				fmt.Fprintf(s.Out, "%s %s %s\n", clean(o.OutputUID), clean(o.Kind), done)
			}

			return nil
		},
	}
}

func runOpen(s Streams, c *Client) *cobra.Command {
	var repository, title string
	cmd := &cobra.Command{
		Use:   "open RUN",
		Short: "Open a pull request from the changes of a run",
		Long: `Opens a pull request from the changes of RUN, even if its automation has no outputs. The
server pushes the changes to a new branch.`,
		Example: `  millwright run open 0197… --title "Mend the flaky test"`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			in := map[string]string{"repository": repository, "title": title}
			body, err := c.call(cmd.Context(), http.MethodPost, runPath(args[0])+"/outputs", in)
			if err != nil {
				return err
			}

			var o runOutput
			if err := c.Decode(body, &o); err != nil {
				return err
			}

			fmt.Fprintf(s.Out, "%s %s is pending\n", clean(o.OutputUID), clean(o.Kind))
			return nil
		},
	}

	cmd.Flags().StringVar(&repository, "repository", "", "`OWNER/NAME` of the repository, if the run changed several")
	cmd.Flags().StringVar(&title, "title", "", "`TITLE` of the pull request (default that of the run)")
	return cmd
}
