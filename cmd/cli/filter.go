package cli

import (
	"encoding/json"
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
		Use: "filter", Short: "Test a payload filter", Args: noCommand,
		RunE: help,
	}
	addClientFlags(cmd, &c, true)
	cmd.AddCommand(filterTest(s, &c))
	return cmd
}

func filterTest(s Streams, c *Client) *cobra.Command {
	var payloadFile, webhook, delivery string
	cmd := &cobra.Command{
		Use:   "test FILTER",
		Short: "Test whether a filter matches a payload, and why",
		Long: `FILTER is one of:
  a file with the filter as YAML or JSON (- for standard input)
  the filter itself
  an automation's file; one of its webhook triggers must match

A filter is the value of payload in an automation's file, or the value of filter with its
webhook_ids. The payload comes from a file or from a stored delivery.

Exit status 0: it matches; 1: it does not.`,
		Example: `  millwright filter test '{"action": ["opened"]}' --payload body.json
  millwright filter test automations/triage/automation.md --payload body.json
  millwright filter test filter.yaml --webhook ci --delivery dlv_…`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			filters, err := readFilters(s, args[0])
			if err != nil {
				return err
			}

			body, err := filterPayload(cmd, s, c, payloadFile, webhook, delivery)
			if err != nil {
				return err
			}

			payload, err := schema.ParsePayload(body)
			if err != nil {
				return &Exit{ExitUsage, fmt.Errorf("payload: %w", err)}
			}

			matched := false
			for _, filter := range filters {
				e := filter.Explain(payload)
				printExplanation(s.Out, e)
				matched = matched || e.Matched
			}

			if !matched {
				return &Exit{ExitProblem, nil}
			}

			return nil
		},
	}

	cmd.Flags().StringVar(&payloadFile, "payload", "", "`FILE` with the payload as JSON")
	cmd.Flags().StringVar(&webhook, "webhook", "", "with --delivery: name or UID of the `WEBHOOK`")
	cmd.Flags().StringVar(&delivery, "delivery", "", "test with the payload of this stored `DELIVERY`")
	return cmd
}

// readFilters reads a filter, or those of the webhook triggers of an automation's file.
func readFilters(s Streams, arg string) ([]*schema.Filter, error) {
	var texts []json.RawMessage
	var err error
	if strings.HasSuffix(arg, ".md") {
		texts, err = automationFilters(s, arg)
	} else {
		var raw json.RawMessage
		raw, err = readFilter(s, arg)
		payload, _ := schema.FilterParts(raw)
		texts = append(texts, payload)
	}

	if err != nil {
		return nil, err
	}

	var all []*schema.Filter
	for _, text := range texts {
		filter, problems := schema.CompileFilter(text)
		for _, p := range problems {
			fmt.Fprintf(s.Err, "filter %s: %s\n", clean(strings.Join(p.Path, ".")), clean(p.Message))
		}

		if len(problems) > 0 {
			return nil, &Exit{ExitUsage, fmt.Errorf("the filter has %d problem(s)", len(problems))}
		}

		all = append(all, filter)
	}

	return all, nil
}

// automationFilters returns the payload filters of an automation's file. Other files of its tree are not read.
func automationFilters(s Streams, name string) ([]json.RawMessage, error) {
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

	var all []json.RawMessage
	for _, t := range loaded.Factory.Automations[0].Triggers {
		if t.Provider == "webhook" {
			all = append(all, t.Payload)
		}
	}

	if len(all) == 0 {
		return nil, Usagef("%s has no webhook trigger", name)
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

func filterPayload(cmd *cobra.Command, s Streams, c *Client, file, webhook, delivery string) ([]byte, error) {
	switch {
	case file == "" && delivery == "" || file != "" && delivery != "":
		return nil, Usagef("give the payload: --payload FILE, or --webhook NAME --delivery UID")
	case file != "":
		body, err := os.ReadFile(file)
		if err != nil {
			return nil, Usagef("--payload: %w", err)
		}

		return body, nil
	}

	f, w, err := c.webhook(cmd.Context(), webhook)
	if err != nil {
		return nil, err
	}

	var d struct {
		Payload json.RawMessage
	}
	if err := c.Get(cmd.Context(), "/factory/"+f.UID+"/webhooks/"+w.UID+"/deliveries/"+delivery, &d); err != nil {
		return nil, err
	}
	if len(d.Payload) == 0 {
		return nil, fmt.Errorf("delivery %s has no stored payload", clean(delivery))
	}

	return d.Payload, nil
}

func printExplanation(w io.Writer, e schema.Explanation) {
	if e.Matched {
		fmt.Fprintln(w, "Would trigger")
	} else {
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
