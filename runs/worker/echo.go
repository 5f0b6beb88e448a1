//go:build unix

package worker

import (
	"context"
	"fmt"
	"os"
	"strings"

	"millwright/runs/wire"
)

// echo is the built-in harness: it shows what an agent would receive, and does nothing.
type echo struct{}

// How much of a text echo shows, in bytes.
const maxShown = 8 << 10

// Execute writes the contents of the working directory to the conversation.
func (echo) Execute(ctx context.Context, t Task) outcome {
	if o, stopped := stoppedBy(ctx); stopped {
		return o
	}

	show := func(place string) string {
		body, err := os.ReadFile(place)
		if err != nil {
			return ""
		}

		return shown(string(body))
	}
	read := func(name string) string { return show(t.own(name)) }

	t.out.text(
		"This is the echo harness. It runs no agent: it shows what one would receive. Configure a " +
			"harness to let an agent do the work.",
	)
	t.out.text("\nThe prompt, on standard input:\n\n" + read(wire.PromptFile))
	if base := read(wire.BasePromptFile); base != "" {
		t.out.text("\nThe base prompt, in " + wire.BasePromptFile + ":\n\n" + base)
	}

	for _, r := range t.repositories {
		t.out.text(fmt.Sprintf("\nThe repository %s, at %s.", r.FullName(), r.made.Commit))
	}

	var list strings.Builder
	for _, f := range t.Order.Files {
		if f.Attachment {
			fmt.Fprintf(&list, "\n- %s (%s, %d bytes)", f.Name, f.MimeType, f.Size)
		}
	}

	if list.Len() > 0 {
		t.out.text("\nThe attached files:\n" + list.String())
	}

	for _, f := range t.Order.Files {
		if f.Attachment && f.Name == wire.PayloadFile {
			t.out.text("\n" + f.Name + ":\n\n" + show(t.attached(f.Name)))
		}
	}

	return outcome{ended: true, state: wire.Succeeded}
}

// shown cuts a text and makes it valid UTF-8.
func shown(text string) string { return clean(cut(text, maxShown)) }
