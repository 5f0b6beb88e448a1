// Package schema reads a factory's definition tree and reports what is wrong
// with it. It is pure: it reads an fs.FS and nothing else, so that the command
// line, the API, the plan and the apply all decide with the same code.
//
// Load reads a whole tree and reports every problem in one pass, each with its
// exact place in the file. A Factory comes out only when no problem is an error.
package schema

import (
	"bytes"
	"slices"
	"strings"
)

// SchemaVersion is the version of the definition files this package reads, the
// value of schemaVersion in factory.yaml.
const SchemaVersion = "v1alpha1"

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

// Result is what Load found. It holds the bytes of the files for excerpts: keep
// the Factory and the Problems of a tree, not its Result.
type Result struct {
	// Factory is the loaded tree, nil when a problem is an error or Err is set.
	Factory *Factory
	// Problems is sorted by path and position; never nil.
	Problems []Problem
	// NotChecked names, sorted, the rules that need state and did not run.
	NotChecked []string
	// Files counts the files at resource paths that were read.
	Files int
	// Err is set when the tree could not be read in full (its root is missing, a
	// file cannot be opened). Such a tree is neither valid nor invalid; Problems
	// has the places. Callers that can wait try again.
	Err error

	tree    *Factory  // what was understood, also of a tree with errors
	base    []Problem // those that need no state
	entries []entry
	sources map[string][]byte
}

// Valid reports whether the tree was read in full and no problem is an error.
func (r *Result) Valid() bool {
	return r.Err == nil &&
		!slices.ContainsFunc(r.Problems, func(p Problem) bool { return p.Severity == SeverityError })
}

// Source returns the bytes of a file that has a problem, as they were read, and
// nil for any other path. Files over the size limits are not kept, so all
// sources together are bounded by the limits of a tree.
func (r *Result) Source(path string) []byte { return r.sources[path] }

// WebhookNames returns the names of all webhook files of the tree, sorted, also
// of files that have errors, so that their UIDs can be planned.
func (r *Result) WebhookNames() []string {
	if r.tree == nil {
		return nil
	}
	return r.tree.webhookNames
}

// WebhookIDs returns the entries of webhook_ids of all automations, also of files
// that have errors, sorted, each once.
func (r *Result) WebhookIDs() []string {
	if r.tree == nil {
		return nil
	}

	ids := map[string]bool{}
	for i := range r.tree.facts {
		if f := &r.tree.facts[i]; f.kind == factWebhookID {
			ids[f.value] = true
		}
	}

	return sortedKeys(ids)
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
