package report

import (
	"bytes"
	"fmt"
	"strings"

	"millwright/schema"
)

// github is for the log of a GitHub Actions job: a workflow command for each
// problem, which becomes an annotation at its place, then the summary.
func (r *Report) github() []byte {
	var b bytes.Buffer
	for _, p := range r.Problems {
		command := string(p.Severity)
		if p.Severity == schema.SeverityInfo {
			command = "notice"
		}

		fmt.Fprintf(&b, "::%s file=%s,line=%d,endLine=%d", command, commandProperty(p.Path), p.Line, p.EndLine)
		if p.EndLine == p.Line { // columns count only within one line
			fmt.Fprintf(&b, ",col=%d,endColumn=%d", p.Column, p.EndColumn)
		}

		fmt.Fprintf(&b, ",title=%s::%s\n", commandProperty("millwright "+p.Code), commandData(sentence(p, "\n")))
	}

	for _, t := range r.Trees {
		if t.Err != "" {
			fmt.Fprintf(&b, "::error title=could not check::%s\n", commandData(schema.Printable(t.Path+": "+t.Err)))
		}
	}

	for _, n := range r.Notices {
		fmt.Fprintf(&b, "::notice title=millwright::%s\n", commandData(schema.Printable(n)))
	}

	b.WriteString("millwright: " + r.Summary() + "\n")
	return b.Bytes()
}

// commandData escapes the text of a workflow command as the runner reads it.
func commandData(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(s)
}

// commandProperty escapes the value of a workflow command's property.
func commandProperty(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C").Replace(s)
}
