package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/fatih/color"
	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	"millwright/reconcile/plan"
	"millwright/schema"
	"millwright/schema/agentconfig"
	"millwright/schema/report"
)

// planView is a plan with what is needed to show it.
type planView struct {
	*judgement
	root
	allow  allowances
	source func(schema.Problem) []byte
}

// ask plans the tree in dir.
func (v *planView) ask(cmd *cobra.Command, c *Client, dir string) error {
	all, err := roots([]string{dir})
	if err != nil {
		return err
	}

	v.root = all[0]
	if v.err != nil || v.only != nil {
		return fmt.Errorf("%s is a file: give the directory that holds webhooks/ and automations/", clean(dir))
	}

	note := newReading(v.dir, true)
	loaded := schema.Load(note, nil)
	if loaded.Err != nil {
		return fmt.Errorf("%s: %s", clean(v.show), cause(loaded))
	}

	v.judgement, err = c.judge(cmd.Context(), note, loaded, v.allow)
	if errors.Is(err, errNotAsked) && !loaded.Valid() { // it cannot be sent, and would be refused for all that
		refused := plan.Plan{
			Changes:    []plan.Change{},
			Secrets:    []plan.Secret{},
			Problems:   loaded.Problems,
			NotChecked: loaded.NotChecked,
		}

		v.judgement = &judgement{plan: refused, problems: loaded.Problems, notices: []string{err.Error()}}
		v.body, err = json.Marshal(refused)
	}

	v.source = func(p schema.Problem) []byte { return loaded.Source(p.Path) }
	return err
}

// changes counts the resources that would change.
func (v *planView) changes() int {
	n := 0
	for _, c := range v.plan.Changes {
		if c.Action != plan.ActionUnchanged {
			n++
		}
	}
	return n
}

func (v *planView) render(format string, colored bool) ([]byte, error) {
	switch format {
	case "json":
		text, err := v.json()
		if err != nil {
			return nil, err
		}

		var b bytes.Buffer
		err = json.Indent(&b, text, "", "  ")
		return append(b.Bytes(), '\n'), err
	case "markdown":
		return v.markdown(), nil
	}

	return v.text(colored), nil
}

// The marks of a change, of text and of a diff as code hosts colour it.
var (
	textMarks = map[string]string{
		plan.ActionCreate:  "+",
		plan.ActionRestore: "+",
		plan.ActionUpdate:  "~",
		plan.ActionDelete:  "-",
	}
	diffMarks = map[string]string{
		plan.ActionCreate:  "+",
		plan.ActionRestore: "+",
		plan.ActionUpdate:  "!",
		plan.ActionDelete:  "-",
	}
)

func (v *planView) text(colored bool) []byte {
	paint := map[string]*color.Color{
		plan.ActionCreate:  color.New(color.FgGreen),
		plan.ActionRestore: color.New(color.FgGreen),
		plan.ActionUpdate:  color.New(color.FgYellow),
		plan.ActionDelete:  color.New(color.FgRed),
	}
	var b bytes.Buffer
	for _, item := range v.items(textMarks) {
		line, rest, more := strings.Cut(item.text, "\n")
		if c := paint[item.action]; c != nil && colored {
			c.EnableColor()
			line = c.Sprint(line)
		}

		b.WriteString(line + "\n")
		if more {
			b.WriteString(rest + "\n")
		}
	}

	if len(v.problems) > 0 { // as validate prints them
		rep := &report.Report{Color: colored}
		sources := map[string][]byte{}
		for _, p := range v.problems {
			shown := v.shownProblem(p)
			sources[shown.Path] = v.source(p)
			rep.Problems = append(rep.Problems, shown)
		}

		rep.Source = func(p string) []byte { return sources[p] }
		b.Write(rep.ProblemText())
	}

	for _, t := range v.plan.Backtests {
		b.WriteString(backtestText(t, true) + "\n")
	}
	for _, n := range v.notices {
		b.WriteString("note: " + clean(n) + "\n")
	}

	b.WriteString(v.summary() + "\n")
	return b.Bytes()
}

// backtestText describes what changed triggers would have done with stored deliveries. Without details it
// holds counts alone, for text that others read.
func backtestText(t plan.Backtest, details bool) string {
	text := "backtest of automation " + clean(t.Automation) + ": " + t.Summary()
	if n := t.Never; n != nil {
		text += "\n    warning: the triggers match none of them"
		if details && n.Key != "" {
			text += fmt.Sprintf("; %s failed most often (%d)", clean(n.Key), n.Count)
		}
		if details && len(n.Seen) > 0 {
			text += "; seen there: " + clean(strings.Join(n.Seen, ", "))
		}
	}
	if !details {
		return text
	}

	for _, part := range []struct {
		name string
		ids  []string
	}{{"newly", t.Examples.Newly}, {"no longer", t.Examples.NoLonger}} {
		if len(part.ids) > 0 {
			text += fmt.Sprintf("\n    %s for example: %s", part.name,
				strings.Join(part.ids[:min(3, len(part.ids))], " "))
		}
	}
	return text
}

// shownProblem is a problem with the place of its file on this machine, as far as that has it.
func (v *planView) shownProblem(p schema.Problem) schema.Problem {
	if v.show != "" {
		p.Path = v.shown(p.Path)
	}
	return p
}

// markdown is for a comment on a pull request. All text from elsewhere stands in code blocks.
func (v *planView) markdown() []byte {
	head := "### millwright plan: " + v.verdict() + "\n\n"
	foot := "\n" + report.Fenced("text", []string{v.summary()}, 4096)
	for _, t := range v.plan.Backtests {
		foot += "\n" + report.Fenced("text", []string{backtestText(t, false)}, 4096)
	}
	for _, n := range v.notices {
		foot += "\n" + report.Fenced("text", []string{"note: " + clean(n)}, 4096)
	}

	room := report.MarkdownLimit - len(head) - len(foot)
	var problems, changes []string
	for _, p := range v.problems {
		problems = append(problems, schema.Text(v.shownProblem(p), v.source(p)))
	}

	for _, item := range v.items(diffMarks) {
		changes = append(changes, item.text)
	}

	body := ""
	if problems != nil {
		limit := room
		if changes != nil {
			limit = room / 2
		}

		body = report.Fenced("text", problems, limit)
	}

	if changes != nil {
		block := report.Fenced("diff", changes, room-len(body)-1)
		if body != "" {
			block += "\n"
		}

		body = block + body
	}

	return []byte(head + body + foot)
}

func (v *planView) verdict() string {
	switch {
	case !v.plan.WouldApply:
		return "would be refused"
	case v.changes() == 0 && len(v.plan.Secrets) == 0:
		return "nothing to do"
	}
	return "would be applied"
}

// summary says in one line what the plan comes to, and what was not checked.
func (v *planView) summary() string {
	counts := map[string]int{}
	for _, c := range v.plan.Changes {
		counts[c.Action]++
	}

	text := v.verdict()
	if v.plan.WouldApply {
		text += fmt.Sprintf(
			": %d to create, %d to update, %d to delete, %d unchanged",
			counts[plan.ActionCreate]+counts[plan.ActionRestore],
			counts[plan.ActionUpdate],
			counts[plan.ActionDelete],
			counts[plan.ActionUnchanged],
		)
		if n := len(v.plan.Secrets); n > 0 {
			text += fmt.Sprintf(", %d to pick up a new value of", n)
		}
	}

	severities := map[schema.Severity]int{}
	for _, p := range v.problems {
		severities[p.Severity]++
	}

	for _, s := range []schema.Severity{schema.SeverityError, schema.SeverityWarning, schema.SeverityInfo} {
		if n := severities[s]; n > 0 {
			text += fmt.Sprintf("; %d %s%s", n, s, map[bool]string{true: "s"}[n > 1])
		}
	}

	if v.plan.BaseRevision != "" {
		text += "; compared with revision " + clean(ShortRevision(v.plan.BaseRevision))
	}
	if len(v.plan.NotChecked) > 0 {
		text += "; not checked: " + clean(strings.Join(v.plan.NotChecked, ", "))
	}

	return text
}

// planItem is a change in one or more lines.
type planItem struct{ action, text string }

func (v *planView) items(marks map[string]string) []planItem {
	var out []planItem
	for _, c := range v.plan.Changes {
		if c.Action == plan.ActionUnchanged {
			continue
		}

		text := fmt.Sprintf("%s %s %s", marks[c.Action], clean(c.Kind), clean(c.Name))
		switch {
		case c.Kind == plan.KindWebhook && c.Action == plan.ActionCreate:
			text += ": will be " + clean(c.UID)
		case c.Action == plan.ActionRestore:
			text += ": restored, same URL, " + clean(c.UID)
		case c.Kind == plan.KindWebhook && c.Action == plan.ActionDelete:
			text += ": the URL of " + clean(c.UID) + " will answer 404"
		}

		for _, f := range c.Fields {
			text += "\n" + shownField(f, marks)
		}

		out = append(out, planItem{c.Action, text})
	}

	for _, s := range v.plan.Secrets {
		names := make([]string, len(s.Webhooks))
		for i, w := range s.Webhooks {
			names[i] = clean(w)
		}

		mark := marks[plan.ActionUpdate]
		out = append(
			out,
			planItem{
				plan.ActionUpdate,
				fmt.Sprintf(
					"%s secret %s: version %d is picked up by %s",
					mark,
					clean(s.Name),
					s.Version,
					strings.Join(names, ", "),
				),
			},
		)
	}

	return out
}

// shownField shows what becomes of a field: a text of several lines as a unified difference, which stands at
// the margin where a code host is to colour it.
func shownField(f plan.Field, marks map[string]string) string {
	old, wasText := f.Old.(string)
	now, isText := f.New.(string)
	if !wasText || !isText || !strings.Contains(old, "\n") && !strings.Contains(now, "\n") {
		before, after := shownValues(f)
		return fmt.Sprintf("    %s: %s → %s", clean(f.Name), before, after)
	}

	indent := "      "
	if marks[plan.ActionUpdate] == diffMarks[plan.ActionUpdate] {
		indent = ""
	}

	text := "    " + clean(f.Name) + ":"
	difference := string(diff.Diff("a", []byte(line(old)), "b", []byte(line(now))))
	for n, l := range strings.Split(strings.TrimSuffix(difference, "\n"), "\n") {
		if n < 3 { // diff a b, --- a, +++ b
			continue
		}
		if n == maxDifference {
			return text + "\n" + indent + "…"
		}
		text += "\n" + indent + strings.TrimRight(cleanText(l), "\n")
	}

	return text
}

// maxDifference is how many lines of a difference are shown.
const maxDifference = 200

// line is a text that ends with a line end, so that a difference does not speak of it.
func line(text string) string { return strings.TrimSuffix(text, "\n") + "\n" }

// shownValues are the old and new value of a field as JSON, cut to where they differ.
func shownValues(f plan.Field) (old, now string) {
	const most, lead = 120, 20
	texts := [2]string{}
	for i, v := range []any{f.Old, f.New} {
		if v == nil {
			texts[i] = "(none)"
			continue
		}

		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if e.Encode(agentconfig.MaskValue(v)) != nil {
			b.WriteString("?")
		}

		texts[i] = schema.Printable(strings.TrimSpace(b.String()))
	}

	if utf8.RuneCountInString(texts[0]) <= most && utf8.RuneCountInString(texts[1]) <= most {
		return texts[0], texts[1]
	}

	a, b := []rune(texts[0]), []rune(texts[1])
	same := 0
	for same < len(a) && same < len(b) && a[same] == b[same] {
		same++
	}

	from := max(0, same-lead)
	cut := func(r []rune) string {
		before, after, to := "", "", len(r)
		if from > 0 && from < len(r) {
			before = "…"
		}
		if to > from+most {
			to, after = from+most, "…"
		}

		return before + string(r[min(from, len(r)):to]) + after
	}

	return cut(a), cut(b)
}
