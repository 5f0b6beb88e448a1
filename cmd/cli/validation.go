package cli

import (
	"bytes"
	"fmt"
	"time"

	"millwright/schema/report"
)

// validation is one run of validate.
type validation struct {
	Streams
	checker
	targets    []target
	secrets    string // a file; none when empty
	fix, watch bool
}

// print writes the report to every target, and to standard error how long it took, with the summary where
// standard output has no text.
func (v *validation) print(rep *report.Report, took time.Duration) error {
	err := v.write(v.targets, func(format string, color bool) ([]byte, error) {
		rep.Color = color
		var b bytes.Buffer
		err := report.Write(&b, format, rep)
		return b.Bytes(), err
	})
	if err != nil {
		return err
	}

	line := ""
	if !v.speaks() {
		line = rep.Summary() + "; "
		for _, n := range rep.Notices {
			fmt.Fprintf(v.Err, "note: %s\n", clean(n))
		}
	}

	fmt.Fprintf(v.Err, "%stook %s\n", line, took.Round(100*time.Microsecond))
	switch rep.Outcome() {
	case report.Good:
		return nil
	case report.Bad:
		return &Exit{ExitProblem, nil}
	}

	return &Exit{ExitUnreachable, nil}
}

// speaks reports whether standard output gets text for people.
func (v *validation) speaks() bool {
	for _, t := range v.targets {
		if t.stdout() && t.format == "text" {
			return true
		}
	}
	return false
}
