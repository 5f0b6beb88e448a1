package report

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/fatih/color"

	"millwright/schema"
)

// text is for people: each problem with its line of source and a caret, then
// the notices and the summary.
func (r *Report) text() []byte {
	var b bytes.Buffer
	b.Write(r.ProblemText())
	paint := newPainter(r.Color)
	for _, n := range r.Notices {
		b.WriteString(paint.note.Sprint("note: ") + schema.Printable(n) + "\n")
	}

	summary := r.Summary()
	switch r.Outcome() {
	case Good:
		summary = paint.good.Sprint(summary)
	default:
		summary = paint.severity[schema.SeverityError].Sprint(summary)
	}

	b.WriteString(summary + "\n")
	return b.Bytes()
}

// ProblemText is the part of the form "text" that shows the problems.
func (r *Report) ProblemText() []byte {
	var b bytes.Buffer
	paint := newPainter(r.Color)
	for _, p := range r.Problems {
		b.WriteString(paint.problem(p, schema.Text(p, r.source(p))))
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// painter colours text for a terminal, or leaves it unchanged.
type painter struct {
	place, code, hint, note, good *color.Color
	severity                      map[schema.Severity]*color.Color
}

func newPainter(on bool) painter {
	c := func(attributes ...color.Attribute) *color.Color {
		col := color.New(attributes...)
		if on {
			col.EnableColor()
		} else {
			col.DisableColor()
		}

		return col
	}
	return painter{
		place: c(
			color.Bold,
		), code: c(color.Faint), hint: c(color.FgCyan), note: c(color.FgCyan), good: c(color.FgGreen),
		severity: map[schema.Severity]*color.Color{
			schema.SeverityError: c(
				color.FgRed,
				color.Bold,
			), schema.SeverityWarning: c(color.FgYellow, color.Bold), schema.SeverityInfo: c(color.FgBlue, color.Bold),
		},
	}
}

// problem colours what schema.Text made of p.
func (c painter) problem(p schema.Problem, text string) string {
	lines := strings.Split(text, "\n")
	head := fmt.Sprintf(":%d:%d: ", p.Line, p.Column)
	tail := " [" + p.Code + "]"
	if place, rest, ok := strings.Cut(lines[0], head+string(p.Severity)+": "); ok && strings.HasSuffix(rest, tail) {
		lines[0] = c.place.Sprint(
			place+strings.TrimSuffix(head, " "),
		) + " " + c.severity[p.Severity].Sprint(
			string(p.Severity)+":",
		) + " " +
			strings.TrimSuffix(
				rest,
				tail,
			) + " " + c.code.Sprint(
			strings.TrimSpace(tail),
		)
	}

	for i := 1; i < len(lines); i++ {
		if margin, hint, ok := strings.Cut(lines[i], "hint: "); ok && i == len(lines)-1 && margin == "  " {
			lines[i] = margin + c.hint.Sprint("hint:") + " " + hint
		} else if at := strings.IndexByte(lines[i], '^'); i == 2 && at >= 0 {
			lines[i] = lines[i][:at] + c.severity[p.Severity].Sprint(lines[i][at:])
		}
	}

	return strings.Join(lines, "\n")
}
