package schema

import (
	"bytes"
	"slices"
	"strings"
)

// Severity says how much a problem matters. Only an error keeps a tree from
// being applied.
type Severity string

// The three severities.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
	SeverityInfo    Severity = "info"
)

// Problem is one finding, a value with a place and the name of its rule.
//
// Path is relative to the root of the tree, with forward slashes. Line and
// Column are 1-based; a column counts Unicode code points, so a tab is one
// column and a byte-order mark is none. The end is exclusive: EndColumn is the
// column after the last character. A problem of a whole file or directory
// stands at 1:1 and ends there.
type Problem struct {
	Path      string   `json:"path"`
	Line      int      `json:"line"`
	Column    int      `json:"column"`
	EndLine   int      `json:"end_line"`
	EndColumn int      `json:"end_column"`
	Severity  Severity `json:"severity"`
	Code      string   `json:"code"`
	Message   string   `json:"message"`
	Hint      string   `json:"hint,omitempty"`

	// Excerpt is the source line with a caret line below it, as function
	// Excerpt makes it. A plan fills it in, so that what it found can be shown
	// when the source is not at hand any more; Load leaves it empty.
	Excerpt string `json:"excerpt,omitempty"`

	// Fix is a safe repair, nil if there is none. A fix is safe when there is
	// exactly one candidate: a misspelt key or value, or a webhook's file name
	// where its UID is meant.
	Fix *Fix `json:"-"`
}

// Fix replaces the bytes from Start up to End of the problem's file, offsets
// into the file as it is on disk, by Text.
type Fix struct {
	Start, End int
	Text       string
}

// ApplyFixes returns src with all fixes made. Of fixes that overlap, the first
// by position wins. Bytes outside the fixes stay as they are.
func ApplyFixes(src []byte, fixes []Fix) []byte {
	fixes = slices.Clone(fixes)
	slices.SortStableFunc(fixes, func(a, b Fix) int { return a.Start - b.Start })
	var out bytes.Buffer
	at := 0
	for _, f := range fixes {
		if f.Start < at || f.End < f.Start || f.End > len(src) {
			continue
		}

		out.Write(src[at:f.Start])
		out.WriteString(f.Text)
		at = f.End
	}

	out.Write(src[at:])
	return out.Bytes()
}

// SortProblems puts problems in their one order: by path, place, code and
// message.
func SortProblems(problems []Problem) {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		if c := strings.Compare(a.Path, b.Path); c != 0 {
			return c
		}
		if c := a.Line - b.Line; c != 0 {
			return c
		}
		if c := a.Column - b.Column; c != 0 {
			return c
		}
		if c := strings.Compare(a.Code, b.Code); c != 0 {
			return c
		}

		return strings.Compare(a.Message, b.Message)
	})
}

// span is a place in a file: 1-based, columns in code points, end exclusive.
type span struct{ line, col, endLine, endCol int }
