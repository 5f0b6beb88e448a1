package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"millwright/schema"
)

func newSchema(s Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "schema [DOCUMENT]",
		Short: "Print the JSON Schema of a document, or list the documents",
		Long: `Prints the JSON Schema (2020-12) of a kind of definition file, of the settings file, or
of a JSON report. Schemas of Markdown files describe the front matter. Without DOCUMENT it
lists the documents.`,
		Example: `  millwright schema webhook > webhook.schema.json
  millwright schema settings`,
		Args: cobra.MaximumNArgs(1), ValidArgs: schema.JSONSchemaNames(),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				for _, name := range schema.JSONSchemaNames() {
					fmt.Fprintln(s.Out, name)
				}
				return nil
			}

			doc, ok := schema.JSONSchema(args[0])
			if !ok {
				return Usagef("no document %q: %s", clean(args[0]), meant(args[0], schema.JSONSchemaNames()))
			}

			_, err := s.Out.Write(doc)
			return err
		},
	}
}

func newExplain(s Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "explain [RULE]",
		Short: "Explain a diagnostic rule and how to repair what it finds, or list the rules",
		Example: `  millwright explain secret-missing
  millwright explain`,
		Args: cobra.MaximumNArgs(1), ValidArgs: schema.RuleCodes(),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				var lines [][]string
				for _, r := range schema.Rules() {
					lines = append(lines, []string{r.Code, string(r.Severity), r.Title})
				}

				return rows(s.Out, "RULE SEVERITY MEANING", lines)
			}

			code := strings.Trim(args[0], "[]") // as it stands in the output
			rule, known := schema.LookupRule(code)
			if !known {
				return Usagef("no rule %q: %s", clean(code), meant(code, schema.RuleCodes()))
			}

			doc, ok := schema.RuleDoc(code)
			if !ok {
				doc = fmt.Sprintf("## %s\n\n%s: %s.\n\n%s\n", rule.Code, rule.Severity, rule.Title, rule.Doc)
			}

			_, err := fmt.Fprint(s.Out, doc)
			return err
		},
	}
}

// meant is a "did you mean", or the list of known rules.
func meant(word string, known []string) string {
	if near := schema.Nearest(word, known); near != "" {
		return fmt.Sprintf("did you mean %s?", near)
	}
	return "there is " + strings.Join(known, ", ")
}
