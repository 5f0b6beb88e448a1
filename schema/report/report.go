// Package report prints what a check of definition trees found, in the forms
// that people and the tools around them read: text, json, sarif, github,
// gitlab, junit and markdown. Every form names the rules that were not checked,
// so that none of them passes for one that was. The same report gives the same
// bytes on every run.
package report

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"millwright/schema"
)

// Report is the outcome of checking one or more trees. The zero value is the
// report of nothing.
type Report struct {
	// Version is the program's.
	Version string
	Trees   []Tree
	// Problems has the problems of all trees in the order to show them, their
	// paths as they are to be shown: on the command line, relative to the
	// working directory.
	Problems []schema.Problem
	// NotChecked names, sorted, the rules that did not run on every tree.
	NotChecked []string
	// Notices say, a sentence each, what else whoever reads the report should
	// know of the check itself.
	Notices []string
	// Strict makes a warning count as an error in the outcome.
	Strict bool
	// Fixed counts the problems that were mended before the check.
	Fixed int
	// Source returns the text of a file by its shown path, nil where there is
	// none; it may be nil.
	Source func(path string) []byte
	// Color marks text for a terminal. Only the form "text" heeds it.
	Color bool
}

// Tree is one tree that was checked.
type Tree struct {
	// Path is where it was, as it is to be shown.
	Path string
	// Files counts the files at resource paths that were read.
	Files int
	// Err is the reason why the tree could not be checked in full; empty when it
	// could.
	Err string
}

// Outcome is what a check came to.
type Outcome string

// The three outcomes. A check that could not be made in full is incomplete
// whatever it found, because a pass or a full list of problems was asked for.
const (
	Good       Outcome = "good"       // no error; no warning either, if strict
	Bad        Outcome = "problems"   // at least one
	Incomplete Outcome = "incomplete" // not everything could be checked
)

// Outcome returns what the check came to.
func (r *Report) Outcome() Outcome {
	if slices.ContainsFunc(r.Trees, func(t Tree) bool { return t.Err != "" }) {
		return Incomplete
	}
	if slices.ContainsFunc(r.Problems, r.fails) {
		return Bad
	}
	return Good
}

func (r *Report) fails(p schema.Problem) bool {
	return p.Severity == schema.SeverityError ||
		r.Strict && p.Severity == schema.SeverityWarning && !schema.Tolerated(p.Code)
}

// Count returns how many problems have a severity.
func (r *Report) Count(s schema.Severity) int {
	n := 0
	for _, p := range r.Problems {
		if p.Severity == s {
			n++
		}
	}
	return n
}

// Files returns how many files at resource paths were read.
func (r *Report) Files() int {
	n := 0
	for _, t := range r.Trees {
		n += t.Files
	}
	return n
}

// Summary returns in one line what was checked, the result, and what was not
// checked.
func (r *Report) Summary() string {
	var b strings.Builder
	for _, t := range r.Trees {
		if t.Err != "" {
			fmt.Fprintf(&b, "could not check all of %s: %s; ", schema.Printable(t.Path), schema.Printable(t.Err))
		}
	}

	fmt.Fprintf(&b, "checked %s", plural(r.Files(), "file"))
	if len(r.Trees) != 1 {
		fmt.Fprintf(&b, " in %s", plural(len(r.Trees), "tree"))
	} else if r.Trees[0].Path != "." {
		fmt.Fprintf(&b, " in %s", schema.Printable(r.Trees[0].Path))
	}

	if r.Fixed > 0 {
		fmt.Fprintf(&b, ", fixed %s", plural(r.Fixed, "problem"))
	}
	if r.Outcome() != Incomplete || len(r.Problems) > 0 { // "no problems" would read as a pass
		b.WriteString(": " + r.found())
	}
	if len(r.NotChecked) > 0 {
		fmt.Fprintf(&b, "; not checked: %s", strings.Join(r.NotChecked, ", "))
	}

	return b.String()
}

// found counts the problems in words.
func (r *Report) found() string {
	var parts []string
	for _, s := range []schema.Severity{schema.SeverityError, schema.SeverityWarning, schema.SeverityInfo} {
		if n := r.Count(s); n > 0 {
			parts = append(parts, plural(n, string(s)))
		}
	}
	if parts == nil {
		return "no problems"
	}
	return strings.Join(parts, ", ")
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return strconv.Itoa(n) + " " + word + "s"
}

// source returns the text of a problem's file.
func (r *Report) source(p schema.Problem) []byte {
	if r.Source == nil {
		return nil
	}
	return r.Source(p.Path)
}

// fingerprints names each problem, in the order of r.Problems, by what it is
// and not by its line, so that a tool knows it again when lines were added
// above. Of problems that are alike, the first keeps the plain name.
func (r *Report) fingerprints() []string {
	seen := map[string]int{}
	out := make([]string, len(r.Problems))
	for i, p := range r.Problems {
		what := p.Code + "\x00" + p.Path + "\x00" + p.Message
		n := seen[what]
		seen[what]++
		if n > 0 {
			what += "\x00" + strconv.Itoa(n)
		}

		sum := sha256.Sum256([]byte(what))
		out[i] = hex.EncodeToString(sum[:16])
	}

	return out
}

// sentence is a problem's message with its hint.
func sentence(p schema.Problem, between string) string {
	if p.Hint == "" {
		return schema.Printable(p.Message)
	}
	return schema.Printable(p.Message) + between + "hint: " + schema.Printable(p.Hint)
}
