package report

import (
	"fmt"
	"slices"
	"strings"

	"millwright/schema"
)

// MarkdownLimit is the most characters that a comment on a pull request may
// have on the code hosts that limit it most. It is counted in bytes here, of
// which a text has no fewer.
const MarkdownLimit = 65_536

// markdown is for a comment on a pull request or the summary of a job. Text
// from files stands in a fenced block, where nothing in it is markup, a mention
// or a link. It is cut, with count, to fit MarkdownLimit.
func (r *Report) markdown() []byte {
	var head strings.Builder
	fmt.Fprintf(&head, "### millwright validate: %s\n\n", r.verdict())
	var foot strings.Builder
	for _, n := range r.Notices {
		foot.WriteString("\n" + Fenced("text", []string{"note: " + schema.Printable(n)}, 4096))
	}

	foot.WriteString("\n" + Fenced("text", []string{r.Summary()}, 8192))
	var items []string
	for _, p := range r.Problems {
		items = append(items, schema.Text(p, r.source(p)))
	}

	body := ""
	if items != nil {
		body = Fenced("text", items, MarkdownLimit-head.Len()-foot.Len())
	}

	return []byte(head.String() + body + foot.String())
}

func (r *Report) verdict() string {
	switch r.Outcome() {
	case Incomplete:
		return "could not check everything"
	case Bad:
		return r.found()
	}
	if len(r.Problems) > 0 {
		return "good, with " + r.found()
	}
	return "good"
}

// Fenced returns items, each of one or more lines, as one fenced code block of
// Markdown that has at most limit bytes. Items that do not fit are left out and
// counted below the block; an item that does not fit alone is cut.
func Fenced(language string, items []string, limit int) string {
	longest := 2
	for _, item := range items {
		for _, run := range strings.FieldsFunc(item, func(c rune) bool { return c != '`' }) {
			longest = max(longest, len(run))
		}
	}

	if longest > 32 { // only text that is meant to break out has so many
		longest = 2
		items = slices.Clone(items)
		for i := range items {
			items[i] = strings.ReplaceAll(items[i], "`", "'")
		}
	}

	fence := strings.Repeat("`", longest+1)
	note := func(left int) string {
		if left == 0 {
			return ""
		}
		return fmt.Sprintf("\n… and %d more that did not fit here.\n", left)
	}

	room := limit - 2*len(fence) - len(language) - len("\n\n") - len(note(len(items)))
	var b strings.Builder
	shown := 0
	for _, item := range items {
		if len(item)+1 > room {
			break
		}

		b.WriteString(item + "\n")
		room -= len(item) + 1
		shown++
	}

	if shown == 0 && len(items) > 0 && room > 16 {
		b.WriteString(strings.ToValidUTF8(items[0][:room-8], "") + "…\n")
		shown = 1
	}

	return fence + language + "\n" + b.String() + fence + "\n" + note(len(items)-shown)
}
