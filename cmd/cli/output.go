package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// output is the form in which a listing command prints.
type output string

// addOutputFlag gives cmd --output. --format, which reports have, is taken for it.
func addOutputFlag(cmd *cobra.Command, o *output) {
	*o = "table"
	cmd.Flags().VarP(o, "output", "o", "print as `table|json|yaml`; json is exactly the API's")
	AddAlias(cmd, "output", "format", "f")
}

// AddAlias gives a flag of cmd another name, which the help does not show, and a letter unless it is taken.
func AddAlias(cmd *cobra.Command, flag, name, letter string) {
	alias := *cmd.Flags().Lookup(flag)
	alias.Name, alias.Shorthand, alias.Hidden = name, "", true
	if letter != "" && cmd.Flags().ShorthandLookup(letter) == nil {
		alias.Shorthand = letter
	}
	cmd.Flags().AddFlag(&alias)
}

func (o *output) String() string { return string(*o) }
func (o *output) Type() string   { return "table|json|yaml" }

// Set is called with what the user gave.
func (o *output) Set(v string) error {
	switch v {
	case "table", "json", "yaml":
		*o = output(v)
		return nil
	}
	return fmt.Errorf("want table, json or yaml")
}

// print writes body, an answer of the API, as the user asked; table is called for a table.
func (o output) print(w io.Writer, body []byte, table func() error) error {
	switch o {
	case "json":
		var out bytes.Buffer
		if err := json.Indent(&out, body, "", "  "); err != nil {
			return err
		}

		out.WriteByte('\n')
		_, err := out.WriteTo(w)
		return err
	case "yaml":
		out, err := yaml.JSONToYAML(body)
		if err != nil {
			return err
		}

		_, err = w.Write(out)
		return err
	}

	return table()
}

// rows prints a table whose first row is its header.
func rows(w io.Writer, header string, lines [][]string) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, strings.ReplaceAll(header, " ", "\t"))
	for _, line := range lines {
		for i := range line {
			line[i] = clean(line[i])
			if line[i] == "" {
				line[i] = "-"
			}
		}

		fmt.Fprintln(t, strings.Join(line, "\t"))
	}

	return t.Flush()
}

// clean makes text from outside harmless on a terminal: one line, no control or direction characters.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == unicode.ReplacementChar ||
			unicode.Is(unicode.Zl, r) ||
			unicode.Is(unicode.Zp, r) {
			return '\uFFFD'
		}
		return r
	}, s)
}

// cleanText is clean for text of several lines.
func cleanText(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = clean(strings.TrimSuffix(strings.ReplaceAll(lines[i], "\t", "    "), "\r"))
	}
	return strings.Join(lines, "\n")
}

// ago says how long ago an RFC 3339 time was.
func ago(text string) string {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return text
	}

	d := time.Since(t)
	switch {
	case d < 0:
		return t.Format(time.RFC3339)
	case d < time.Minute:
		return fmt.Sprintf("%ds ago", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh ago", int(d.Hours()))
	}

	return fmt.Sprintf("%dd ago", int(d.Hours()/24))
}
