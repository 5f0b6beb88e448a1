package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"millwright/schema"
)

func newValidate(s streams) *cobra.Command {
	return &cobra.Command{
		Use: "validate [DIR]", Short: "Check definition files; needs no server", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := "."
			if len(args) == 1 {
				dir = args[0]
			}
			if _, err := os.Stat(dir); err != nil {
				return &exit{exitUnreachable, err}
			}
			r := schema.Load(os.DirFS(dir), nil)
			for _, p := range r.Problems {
				fmt.Fprint(s.out, schema.Text(p, r.Source(p.Path)))
			}
			fmt.Fprintf(s.out, "%d file(s) checked; not checked: %s\n", r.Files, strings.Join(r.NotChecked, ", "))
			if !r.Valid() {
				return &exit{exitProblem, nil}
			}
			return nil
		},
	}
}

func newPlan(s streams) *cobra.Command {
	var c client
	cmd := &cobra.Command{
		Use: "plan", Short: "Show what applying a tree would change, and whether it would be accepted", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f, err := c.one(cmd.Context())
			if err != nil {
				return err
			}
			body, err := c.call(cmd.Context(), "POST", "/factory/"+f.UID+"/plan", nil)
			if err != nil {
				return err
			}
			return output("json").print(s.out, json.RawMessage(body), nil)
		},
	}
	addClientFlags(cmd, &c, true)
	return cmd
}

func newSchema(s streams) *cobra.Command {
	return &cobra.Command{
		Use: "schema DOCUMENT", Short: "Print the JSON Schema of a definition file", Args: cobra.ExactArgs(1), ValidArgs: schema.JSONSchemaNames(),
		RunE: func(_ *cobra.Command, args []string) error {
			doc, ok := schema.JSONSchema(args[0])
			if !ok {
				return usage("no schema %q: there is %s", args[0], strings.Join(schema.JSONSchemaNames(), ", "))
			}
			_, err := s.out.Write(doc)
			return err
		},
	}
}

func newExplain(s streams) *cobra.Command {
	return &cobra.Command{
		Use: "explain RULE", Short: "Say what a diagnostic rule means and how to mend it", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			doc, ok := schema.RuleDoc(args[0])
			if !ok {
				return usage("no rule %q: did you mean %q?", args[0], schema.Nearest(args[0], schema.RuleCodes()))
			}
			_, err := fmt.Fprintln(s.out, doc)
			return err
		},
	}
}
