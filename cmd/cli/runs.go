package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

func runStart(s Streams, c *Client) *cobra.Command {
	var name, title, model, environment, basePrompt, skill, harness, mcp string
	var follow bool
	cmd := &cobra.Command{
		Use:   "start [PROMPT]",
		Short: "Start a run; the prompt may come on standard input",
		Example: `  millwright run start "Summarise the open pull requests" --follow
  millwright run start --skill acme/skills:triage
  millwright run start --name nightly --model large < prompt.md`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			in := map[string]any{}
			config := map[string]any{}
			for key, value := range map[string]string{
				"name":           name,
				"model_id":       model,
				"environment_id": environment,
				"base_prompt":    basePrompt,
				"skill_spec":     skill,
			} {
				if value != "" {
					config[key] = value
				}
			}

			if harness != "" {
				config["harness"] = map[string]string{"type": harness}
			}
			if title != "" {
				in["title"] = title
			}

			switch {
			case len(args) == 1:
				in["prompt"] = args[0]
			case skill == "":
				prompt, err := io.ReadAll(io.LimitReader(s.In, 8<<20))
				if err != nil {
					return err
				}
				if strings.TrimSpace(string(prompt)) == "" {
					return Usagef("no prompt: give it as an argument or on standard input, or give --skill")
				}

				in["prompt"] = string(prompt)
			}

			if mcp != "" {
				servers, err := os.ReadFile(mcp)
				if err != nil {
					return Usagef("--mcp: %w", err)
				}
				if !json.Valid(servers) {
					return Usagef("--mcp %s: not JSON", mcp)
				}

				config["mcp_servers"] = json.RawMessage(servers)
			}

			if len(config) > 0 {
				in["config"] = config
			}

			path := "/agent/runs"
			if c.factory != "" {
				f, err := c.one(cmd.Context())
				if err != nil {
					return err
				}

				path = "/factory/" + f.UID + "/runs"
			}

			body, err := c.call(cmd.Context(), http.MethodPost, path, in, "X-Millwright-Client", "cli")
			if err != nil {
				return err
			}

			return started(cmd.Context(), s, c, body, follow)
		},
	}

	f := cmd.Flags()
	f.StringVar(&name, "name", "", "label the run with `NAME`, for grouping and filtering")
	f.StringVar(&title, "title", "", "`TITLE` of the run (default the prompt's first line)")
	f.StringVar(&model, "model", "", "language `MODEL`")
	f.StringVar(&harness, "harness", "", "execute the run with this `HARNESS`")
	f.StringVar(&environment, "environment", "", "`ID` of the environment")
	f.StringVar(&basePrompt, "base-prompt", "", "`TEXT` that shapes the agent's behaviour")
	f.StringVar(&skill, "skill", "", "use the skill `owner/repo:name` as base prompt")
	f.StringVar(&mcp, "mcp", "", "JSON `FILE` with a map of MCP servers")
	addFollowFlag(cmd, &follow)
	return cmd
}

func addFollowFlag(cmd *cobra.Command, follow *bool) {
	cmd.Flags().BoolVarP(follow, "follow", "f", false, "print the conversation as it grows, and end with the run")
}

// started prints the ID of a run that was just started, and follows the run if asked to.
func started(ctx context.Context, s Streams, c *Client, body []byte, follow bool) error {
	var run struct {
		RunID string `json:"run_id"`
	}
	if err := c.Decode(body, &run); err != nil {
		return err
	}

	fmt.Fprintln(s.Out, run.RunID)
	if !follow {
		return nil
	}
	return followRun(ctx, s, c, run.RunID)
}

func runList(s Streams, c *Client) *cobra.Command {
	var out output
	var states []string
	var name, webhook, delivery, since string
	var waiting bool
	var show listing
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List runs, the latest first",
		Example: `  millwright run list --state FAILED --state ERROR
  millwright run list --since 2h --all
  millwright run list --delivery dlv_… -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			q := url.Values{"state": states}
			for key, value := range map[string]string{"name": name, "delivery_id": delivery} {
				if value != "" {
					q.Set(key, value)
				}
			}

			if since != "" {
				from, err := sinceTime(since, time.Now())
				if err != nil {
					return err
				}

				q.Set("created_after", from.UTC().Format(time.RFC3339Nano))
			}

			if c.factory != "" {
				f, err := c.one(cmd.Context())
				if err != nil {
					return err
				}

				q.Set("factory_uid", f.UID)
			}
			if webhook != "" {
				_, w, err := c.webhook(cmd.Context(), webhook)
				if err != nil {
					return err
				}

				q.Set("webhook_id", w.UID)
			}

			if waiting {
				q.Set("waiting", "true")
			}

			body, left, err := c.list(cmd.Context(), "/agent/runs", "runs", q, show)
			if err != nil {
				return err
			}

			return out.print(s.Out, body, func() error {
				defer left.note(s)

				var list struct{ Runs []runItem }
				if err := c.Decode(body, &list); err != nil {
					return err
				}

				var lines [][]string
				for _, r := range list.Runs {
					lines = append(
						lines,
						[]string{r.RunID, r.state(), r.Source, ago(r.UpdatedAt), shorten(r.Title, 60)},
					)
				}

				return rows(s.Out, "RUN STATE SOURCE UPDATED TITLE", lines)
			})
		},
	}

	addOutputFlag(cmd, &out)
	show.add(cmd)
	f := cmd.Flags()
	f.StringSliceVar(&states, "state", nil, "only runs in this `STATE`; may be repeated")
	f.StringVar(&name, "name", "", "only runs with this config `NAME`")
	f.StringVar(
		&since,
		"since",
		"",
		"only runs created in the last `DURATION`, such as 2h or 7d, or since a time (RFC 3339)",
	)
	f.StringVar(&webhook, "webhook", "", "only runs of this `WEBHOOK`, by name or UID")
	f.StringVar(&delivery, "delivery", "", "only runs of this `DELIVERY`")
	f.BoolVar(&waiting, "waiting", false, "only runs that wait for others of their automation, or for a time")
	return cmd
}

// sinceTime reads --since: how long before now, or a time.
func sinceTime(text string, now time.Time) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}

	whole, days := strings.CutSuffix(text, "d")
	if n, err := strconv.Atoi(whole); days && err == nil && n > 0 && n <= maxDays {
		return now.Add(-time.Duration(n) * 24 * time.Hour), nil
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return now.Add(-d), nil
	}

	return time.Time{}, Usagef(
		"--since %q: want a duration like 90m, 2h or 7d, or a time like 2026-01-02T15:04:05Z",
		clean(text),
	)
}

const maxDays = 36_500

func runGet(s Streams, c *Client) *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use: "get RUN", Aliases: []string{"show"}, Short: "Show one run in full", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			body, err := c.call(cmd.Context(), http.MethodGet, runPath(args[0]), nil)
			if err != nil {
				return err
			}

			return out.print(s.Out, body, func() error {
				var r runItem
				if err := c.Decode(body, &r); err != nil {
					return err
				}

				return r.print(s.Out)
			})
		},
	}

	addOutputFlag(cmd, &out)
	return cmd
}

func runLogs(s Streams, c *Client) *cobra.Command {
	var out output
	var follow bool
	cmd := &cobra.Command{
		Use: "logs RUN", Short: "Print a run's conversation", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if follow {
				return followRun(cmd.Context(), s, c, args[0])
			}

			body, err := c.call(cmd.Context(), http.MethodGet, runPath(args[0])+"/conversation", nil)
			if err != nil {
				return err
			}

			return out.print(s.Out, body, func() error {
				var conv struct {
					Steps []struct {
						Messages []struct {
							Role    string
							Content []json.RawMessage
						}
					}
				}
				if err := c.Decode(body, &conv); err != nil {
					return err
				}

				for _, step := range conv.Steps {
					for _, m := range step.Messages {
						printMessage(s.Out, m.Role, m.Content)
					}
				}

				return nil
			})
		},
	}

	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "continue until the run ends")
	addOutputFlag(cmd, &out)
	return cmd
}
