package cli

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"millwright/schema"
)

func newFilter(s Streams) *cobra.Command {
	var c Client
	cmd := &cobra.Command{
		Use: "filter", Short: "Test triggers and their filters", Args: noCommand,
		RunE: help,
	}
	addClientFlags(cmd, &c, true)
	cmd.AddCommand(filterTest(s, &c))
	return cmd
}

func filterTest(s Streams, c *Client) *cobra.Command {
	var given tested
	cmd := &cobra.Command{
		Use:   "test FILTER",
		Short: "Test whether a trigger matches a delivery, and why",
		Long: `FILTER is one of:
  an automation's file; one of the triggers that deliveries fire must match
  a file with a payload filter as YAML or JSON (- for standard input)
  the payload filter itself

A filter is the value of payload in an automation's file, or the value of filter with its
webhook_ids. The delivery is a file with its payload, the provider's example of an event, or
a stored delivery, which the server judges with its webhook and headers.

The event of GitHub and GitLab is in a header: give it with --header.

Exit status 0: it matches; 1: it does not.`,
		Example: `  millwright filter test '{"action": ["opened"]}' --payload body.json
  millwright filter test automations/triage/automation.md --payload body.json --header 'X-GitHub-Event: issues'
  millwright filter test automations/triage/automation.md --scheme github --event issue_created
  millwright filter test automations/triage/automation.md --webhook ci --delivery dlv_…`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			triggers, err := readTriggers(s, args[0])
			if err != nil {
				return err
			}

			explain, err := given.explainer(cmd, c)
			if err != nil {
				return err
			}

			matched := false
			for _, t := range triggers {
				e, err := explain(t)
				if err != nil {
					return err
				}

				if len(triggers) > 1 || t.Provider != "webhook" {
					fmt.Fprintf(s.Out, "%s/%s: ", clean(t.Provider), clean(t.Event))
				}
				printExplanation(s.Out, e)
				matched = matched || e.Matched
			}

			if !matched {
				return &Exit{ExitProblem, nil}
			}
			return nil
		},
	}

	f := cmd.Flags()
	f.StringVar(&given.payloadFile, "payload", "", "`FILE` with the payload as JSON")
	f.StringArrayVar(&given.headers, "header", nil, "with --payload: a header that it came with, as `'Name: value'`")
	f.StringVar(&given.scheme, "scheme", "",
		"signature `SCHEME` of the webhook (default that of the trigger's provider)")
	f.StringVar(&given.event, "event", "", "test with the provider's example of this `EVENT`")
	f.StringVar(&given.webhook, "webhook", "", "with --delivery: name or UID of the `WEBHOOK`")
	f.StringVar(&given.delivery, "delivery", "", "test with this stored `DELIVERY`")
	return cmd
}

// readTriggers returns the triggers of an automation's file that deliveries fire, or a webhook trigger with a
// filter.
func readTriggers(s Streams, arg string) ([]schema.Trigger, error) {
	if strings.HasSuffix(arg, ".md") {
		return automationTriggers(s, arg)
	}

	raw, err := readFilter(s, arg)
	if err != nil {
		return nil, err
	}

	parts := schema.FilterParts(raw)
	_, problems := schema.CompileFilter(parts.Payload)
	for _, p := range problems {
		fmt.Fprintf(s.Err, "filter %s: %s\n", clean(strings.Join(p.Path, ".")), clean(p.Message))
	}
	if len(problems) > 0 {
		return nil, &Exit{ExitUsage, fmt.Errorf("the filter has %d problem(s)", len(problems))}
	}

	return []schema.Trigger{{
		Provider: "webhook", Event: "received", WebhookIDs: parts.Webhooks,
		Headers: parts.Headers, Payload: parts.Payload,
	}}, nil
}

// automationTriggers returns the triggers of an automation's file. Other files of its tree are not read.
func automationTriggers(s Streams, name string) ([]schema.Trigger, error) {
	content, err := os.ReadFile(name)
	if err != nil {
		return nil, Usagef("filter: %w", err)
	}

	const at = "automations/x/automation.md"
	tree, err := schema.FilesFS([]schema.File{{Path: at, Content: string(content)}})
	if err != nil {
		return nil, Usagef("%s: %w", name, err)
	}

	loaded := schema.Load(tree, nil)
	for _, p := range loaded.Problems {
		if p.Severity == schema.SeverityError {
			fmt.Fprintf(s.Err, "%s:%d:%d: %s\n", clean(name), p.Line, p.Column, clean(p.Message))
		}
	}

	if loaded.Factory == nil || len(loaded.Factory.Automations) == 0 {
		return nil, Usagef("%s is no automation that can be read", name)
	}

	var all []schema.Trigger
	for _, t := range loaded.Factory.Automations[0].Triggers {
		if t.Fires() && t.Schedule == nil {
			all = append(all, t)
		}
	}
	if len(all) == 0 {
		return nil, Usagef("%s has no trigger that deliveries fire", name)
	}

	return all, nil
}

func readFilter(s Streams, arg string) ([]byte, error) {
	name, text := arg, []byte(arg)
	var err error
	switch {
	case arg == "-":
		name = "filter"
		text, err = io.ReadAll(io.LimitReader(s.In, 1<<20))
	case strings.HasPrefix(strings.TrimSpace(arg), "{"):
		name = "filter"
	default:
		text, err = os.ReadFile(arg)
	}

	if err != nil {
		return nil, Usagef("filter: %w", err)
	}

	raw, problems := schema.FilterText(name, text)
	for _, p := range problems {
		fmt.Fprintf(s.Err, "%s:%d:%d: %s\n", clean(p.Path), p.Line, p.Column, clean(p.Message))
	}

	if len(problems) > 0 {
		return nil, Usagef("the filter is neither JSON nor the YAML of a definition file")
	}

	return raw, nil
}

func printExplanation(w io.Writer, e schema.Explanation) {
	switch {
	case e.Matched:
		fmt.Fprintln(w, "Would trigger")
	case e.AsksForge:
		fmt.Fprintln(w, "Would ask the forge")
	default:
		fmt.Fprintln(w, "Would not trigger")
	}

	if e.Reason != "" {
		fmt.Fprintf(w, "  %s\n", clean(e.Reason))
	}

	printLeaves(w, e)
}

// printLeaves prints what each operator of a filter found.
func printLeaves(w io.Writer, e schema.Explanation) {
	for _, leaf := range e.Leaves {
		mark := "✗"
		if leaf.Passed {
			mark = "✓"
		}

		fmt.Fprintf(w, "  %s %s\n", mark, clean(leafText(leaf)))
	}
}

// leafText describes what one operator of a filter compared, and the result.
func leafText(l schema.LeafExplanation) string {
	found := "absent"
	if l.Present {
		found = l.Found
	}
	return fmt.Sprintf("%s %s %s: found %s", strings.Join(l.Path, "."), l.Operator, l.Expected, found)
}
