package cli

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"
)

func runFollowup(s Streams, c *Client) *cobra.Command {
	return &cobra.Command{
		Use: "followup RUN MESSAGE", Short: "Send a message to a run", Args: cobra.ExactArgs(2),
		Example: `  millwright run followup 0197… "also update the changelog"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			body, err := c.call(
				cmd.Context(),
				http.MethodPost,
				runPath(args[0])+"/followups",
				map[string]string{"message": args[1]},
			)
			if err != nil {
				return err
			}

			var answer struct{ Outcome string }
			if err := c.Decode(body, &answer); err != nil {
				return err
			}

			said := map[string]string{
				"queued_prompt":     "the run is queued: the message joins its prompt",
				"queue_pending":     "the run is in progress: the message follows when the execution ends",
				"handoff_execution": "the run had ended: it continues with the message",
				"live_session":      "the agent gets the message when its present turn ends",
			}[answer.Outcome]
			if said == "" {
				said = clean(answer.Outcome)
			}

			fmt.Fprintln(s.Out, said)
			return nil
		},
	}
}

func runCancel(s Streams, c *Client) *cobra.Command {
	return &cobra.Command{
		Use: "cancel RUN", Short: "Cancel a run", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			body, err := c.call(cmd.Context(), http.MethodPost, runPath(args[0])+"/cancel", nil)
			if err != nil {
				return err
			}

			var id string
			if err := c.Decode(body, &id); err != nil {
				return err
			}

			var r runItem
			if err := c.Get(cmd.Context(), runPath(id), &r); err != nil {
				return err
			}

			if r.State == "CANCELLED" {
				fmt.Fprintf(s.Out, "run %s is cancelled\n", id)
			} else {
				fmt.Fprintf(s.Out, "run %s was asked to stop (it is %s)\n", id, r.State)
			}

			return nil
		},
	}
}

func runDrop(s Streams, c *Client) *cobra.Command {
	return &cobra.Command{
		Use:   "drop AUTOMATION",
		Short: "Cancel the runs of an automation that wait",
		Long: `Cancels the runs of an automation that wait for others of it, for the end of a burst of
deliveries, or for their next attempt, and prints their IDs. It does not cancel runs that a
worker may take or already executes. AUTOMATION is the automation's name or UID.`,
		Example: `  millwright run list --waiting
  millwright run drop triage`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := c.one(cmd.Context())
			if err != nil {
				return err
			}

			path := "/factory/" + f.UID + "/automations/" + url.PathEscape(args[0]) + "/waiting"
			body, err := c.call(cmd.Context(), http.MethodDelete, path, nil)
			if err != nil {
				return err
			}

			var dropped struct {
				RunIDs []string `json:"run_ids"`
			}
			if err := c.Decode(body, &dropped); err != nil {
				return err
			}

			for _, id := range dropped.RunIDs {
				fmt.Fprintln(s.Out, id)
			}
			return nil
		},
	}
}

func runRetry(s Streams, c *Client) *cobra.Command {
	var follow bool
	cmd := &cobra.Command{
		Use:   "retry RUN",
		Short: "Start a run that has ended again, as a new run",
		Long: `Starts a new run with the prompt, configuration and attachments of RUN, including the
payload of its delivery, and prints its ID. It does not repeat the follow-ups to RUN. The
metadata of the new run has retry_of.`,
		Example: `  millwright run retry 0197… --follow`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			path := runPath(args[0]) + "/retry"
			body, err := c.call(cmd.Context(), http.MethodPost, path, nil, "X-Millwright-Client", "cli")
			if err != nil {
				return err
			}

			return started(cmd.Context(), s, c, body, follow)
		},
	}

	addFollowFlag(cmd, &follow)
	return cmd
}

// runQuestion is what the agent of a run asks.
type runQuestion struct {
	QuestionID string `json:"question_id"`
	Title      string
	Choices    []struct{ ID, Name, Kind string }
}

func runAnswer(s Streams, c *Client) *cobra.Command {
	var question, message string
	cmd := &cobra.Command{
		Use:   "answer RUN [CHOICE]",
		Short: "Answer what the agent of a run asks",
		Long: `Some agents ask before they act. Their question makes the run BLOCKED, and the answer makes it
continue. CHOICE is the ID of a choice, or approve or deny. Without CHOICE the command prints the
questions.`,
		Example: `  millwright run answer 0197…
  millwright run answer 0197… approve
  millwright run answer 0197… deny --message "use the staging database"`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			var r struct{ Questions []runQuestion }
			if err := c.Get(cmd.Context(), runPath(args[0]), &r); err != nil {
				return err
			}
			if len(args) == 1 {
				printQuestions(s, r.Questions)
				return nil
			}

			if question == "" && len(r.Questions) != 1 {
				printQuestions(s, r.Questions)
				return fmt.Errorf("the run has %d questions: name one with --question", len(r.Questions))
			}
			if question == "" {
				question = r.Questions[0].QuestionID
			}
			return answer(cmd, s, c, args[0], map[string]string{
				"question_id": question, "choice": args[1], "message": message,
			})
		},
	}

	cmd.Flags().StringVar(&question, "question", "", "`ID` of the question; needed if the agent asks several")
	cmd.Flags().StringVar(&message, "message", "", "`TEXT` for the agent")
	return cmd
}

func printQuestions(s Streams, all []runQuestion) {
	if len(all) == 0 {
		fmt.Fprintln(s.Out, "the agent asks nothing")
	}
	for _, q := range all {
		fmt.Fprintf(s.Out, "%s  %s\n", q.QuestionID, clean(q.Title))
		for _, choice := range q.Choices {
			fmt.Fprintf(s.Out, "  %-20s %s\n", clean(choice.ID), clean(choice.Name))
		}
	}
}

func answer(cmd *cobra.Command, s Streams, c *Client, run string, in map[string]string) error {
	body, err := c.call(cmd.Context(), http.MethodPost, runPath(run)+"/answers", in)
	if err != nil {
		return err
	}

	var done struct{ Outcome, State string }
	if err := c.Decode(body, &done); err != nil {
		return err
	}

	said := "answered: the agent goes on"
	if done.Outcome == "handoff_execution" {
		said = "answered: the agent's session had ended, and the run resumes it"
	}
	if done.State == "BLOCKED" {
		said = "answered: the agent waits for another answer"
	}
	fmt.Fprintln(s.Out, said)
	return nil
}
