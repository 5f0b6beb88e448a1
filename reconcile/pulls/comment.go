package pulls

import (
	"fmt"
	"path"
	"strings"
	"unicode"

	"millwright/reconcile/plan"
	"millwright/schema"
	"millwright/state/checks"
)

// Report is what a check of a pull request found.
type Report struct {
	Factory    string // its name
	Head       string // commit
	Plan       plan.Plan
	Public     bool   // the plan leaves out what only holders of keys may learn
	Quiet      bool   // the pull request does not touch the definition
	Unreadable string // why the commit holds no definition
	Broken     bool   // the check could not be made
}

// counts are the numbers of changes in one line; empty without any.
func (r Report) counts() string {
	n := map[string]int{}
	for _, c := range r.Plan.Changes {
		n[c.Action]++
	}
	n[plan.ActionCreate] += n[plan.ActionRestore]

	var parts []string
	for _, action := range []string{plan.ActionCreate, plan.ActionUpdate, plan.ActionDelete} {
		if n[action] > 0 {
			parts = append(parts, fmt.Sprintf("%d to %s", n[action], action))
		}
	}

	return strings.Join(parts, ", ")
}

// Status returns the result and the description of the commit's status.
func (r Report) Status() (checks.Result, string) {
	counts := r.counts()
	switch {
	case r.Broken:
		return checks.Error, "the server could not check this commit; push again, or see its log"
	case r.Quiet:
		return checks.Success, "does not change the definition"
	case r.Unreadable != "":
		return checks.Failure, "would be refused: " + r.Unreadable
	case !r.Plan.WouldApply:
		return checks.Failure, "would be " + checks.Refusal(r.Plan.Problems, r.Public)
	case counts == "":
		return checks.Success, "would be applied: no changes"
	}
	return checks.Success, "would be applied: " + counts
}

// Bounds of a comment.
const (
	maxComment = 60_000 // bytes; GitHub takes 65,536 characters
	maxRows    = 100    // of each table
	maxCell    = 300    // characters
)

// Comment returns the text of the comment in Markdown. All text that comes from elsewhere is in code spans.
func (r Report) Comment() string {
	result, text := r.Status()
	title := map[checks.Result]string{
		checks.Success: "would be applied", checks.Failure: "would be refused", checks.Error: "not checked",
	}[result]
	if r.Quiet {
		title = "no change of the definition"
	}

	var b strings.Builder
	fmt.Fprintf(&b, "### millwright: %s\n\n", title)
	fmt.Fprintf(&b, "Factory %s, commit %s.\n", code(r.Factory), code(r.Head[:min(len(r.Head), 12)]))
	if r.Quiet || r.Broken || r.Unreadable != "" {
		b.WriteString("\n" + code(text) + "\n")
		return b.String()
	}

	r.changes(&b)
	r.uids(&b)
	r.secrets(&b)
	r.backtests(&b)
	r.problems(&b)
	b.WriteString("\nThe plan compares this commit, as it is, with the applied definition.\n")
	if r.Public {
		b.WriteString("Rules that need secrets or other facts of the server are not checked here.\n")
	}

	return b.String()
}

// table writes rows below a header, as far as there is room, and counts the others.
func table(b *strings.Builder, title string, header []string, rows [][]string) {
	if len(rows) == 0 {
		return
	}

	fmt.Fprintf(b, "\n%s\n\n| %s |\n|%s\n", title, strings.Join(header, " | "), strings.Repeat(" --- |", len(header)))
	for i, row := range rows {
		line := "| " + strings.Join(row, " | ") + " |\n"
		if i == maxRows || b.Len()+len(line) > maxComment {
			fmt.Fprintf(b, "\n… and %d more.\n", len(rows)-i)
			return
		}
		b.WriteString(line)
	}
}

func (r Report) changes(b *strings.Builder) {
	var rows [][]string
	for _, c := range r.Plan.Changes {
		if c.Action == plan.ActionUnchanged {
			continue
		}

		var fields []string
		for _, f := range c.Fields {
			fields = append(fields, f.Name)
		}
		changed := ""
		if len(fields) > 0 {
			changed = code(strings.Join(fields, ", "))
		}
		rows = append(rows, []string{c.Action, c.Kind, code(c.Name), changed, code(place(c.File, c.Line))})
	}

	if rows == nil && r.Plan.WouldApply {
		b.WriteString("\nNothing changes.\n")
	}
	table(b, "**Changes**", []string{"", "kind", "name", "keys", "file"}, rows)
}

func (r Report) uids(b *strings.Builder) {
	var rows [][]string
	for _, c := range r.Plan.Changes {
		if !r.Public && c.Kind == plan.KindWebhook && c.Action == plan.ActionCreate && c.UID != "" {
			rows = append(rows, []string{code(c.Name), code(c.UID)})
		}
	}
	table(b, "**UIDs of new webhooks**", []string{"webhook", "UID"}, rows)
}

func (r Report) secrets(b *strings.Builder) {
	if r.Public {
		return
	}

	var rows [][]string
	for _, s := range r.Plan.Secrets {
		rows = append(rows, []string{code(s.Name), code(strings.Join(s.Webhooks, ", "))})
	}
	table(b, "**Secrets whose new values would be used**", []string{"secret", "webhooks"}, rows)
}

func (r Report) backtests(b *strings.Builder) {
	if r.Public {
		return
	}

	var rows [][]string
	for _, t := range r.Plan.Backtests {
		rows = append(rows, []string{code(t.Automation), code(t.Summary())})
	}
	table(b, "**Backtest of changed triggers**", []string{"automation", "with stored deliveries"}, rows)
}

func (r Report) problems(b *strings.Builder) {
	var rows [][]string
	for _, p := range r.Plan.Problems {
		text := p.Message
		if p.Hint != "" {
			text += ": " + p.Hint
		}
		rows = append(rows, []string{string(p.Severity), code(place(p.Path, p.Line)), code(text), code(p.Code)})
	}
	table(b, "**Problems**", []string{"", "place", "problem", "rule"}, rows)
}

// places returns the problems that have a line, for annotations. below is the path of the definition in its
// repository.
func (r Report) places(below string) (all []checks.Problem) {
	if r.Quiet || r.Broken || r.Unreadable != "" {
		return nil
	}

	for _, p := range r.Plan.Problems {
		if p.Path == "" || p.Line <= 0 {
			continue
		}
		if len(all) == checks.MaxProblems {
			return all
		}

		text := p.Message
		if p.Hint != "" {
			text += ": " + p.Hint
		}
		all = append(all, checks.Problem{
			Path:    path.Join(below, p.Path),
			Line:    p.Line,
			Warning: p.Severity != schema.SeverityError,
			Code:    p.Code,
			Text:    unmentioned(plain(text)),
		})
	}

	return all
}

func place(file string, line int) string {
	if line <= 0 {
		return file
	}
	return fmt.Sprintf("%s:%d", file, line)
}

// code returns text from elsewhere as a code span of one line, also within a table. Nothing in it is markup, a
// mention, a reference, a link or an image, to any forge.
func code(text string) string {
	text = plain(strings.NewReplacer("`", "'", "|", "¦").Replace(text))
	if text == "" {
		return "–"
	}
	return "`" + unmentioned(text) + "`"
}

// plain returns text as one printable line of at most maxCell characters.
func plain(text string) string {
	text = strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return ' '
		}
		return c
	}, strings.ToValidUTF8(text, "\uFFFD"))

	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > maxCell {
		text = string(runes[:maxCell-1]) + "…"
	}
	return text
}

// unmentioned ends each mention with a space without width, for a forge that looks for them everywhere.
func unmentioned(text string) string { return strings.ReplaceAll(text, "@", "@\u200b") }
