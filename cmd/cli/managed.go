package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// confirmation asks before what cannot be undone, on a terminal alone.
type confirmation struct{ yes bool }

func (a *confirmation) add(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(
		&a.yes,
		"yes",
		"y",
		false,
		"do not ask for confirmation; without a terminal the command never asks",
	)
}

func (a *confirmation) of(s Streams, format string, args ...any) error {
	f, ok := s.In.(*os.File)
	if a.yes || !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}

	fmt.Fprintf(s.Err, "%s. Go on? [y/N] ", clean(fmt.Sprintf(format, args...)))
	answer, err := bufio.NewReader(s.In).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return &Exit{ExitProblem, errors.New("nothing was changed")}
	}

	return nil
}

// syncItem is what the program shows of an attempt to apply a definition.
type syncItem struct {
	Outcome, Revision string
	Counts            struct{ Created, Updated, Deleted int }
}

// printSync prints the result of an edit of a definition.
func printSync(s Streams, c *Client, body []byte) error {
	var x syncItem
	if err := c.Decode(body, &x); err != nil {
		return err
	}
	if x.Outcome == "unchanged" {
		fmt.Fprintf(s.Out, "nothing changed: %s serves\n", clean(x.Revision))
		return nil
	}

	fmt.Fprintf(
		s.Out,
		"%s serves: %d created, %d updated, %d deleted\n",
		clean(x.Revision), x.Counts.Created, x.Counts.Updated, x.Counts.Deleted,
	)
	return nil
}

// edit sends an edit of a definition, and prints what it came to.
func (c *Client) edit(ctx context.Context, s Streams, method, path string, in any) error {
	body, err := c.call(ctx, method, path, in)
	if err != nil {
		return err
	}
	return printSync(s, c, body)
}

// edits are the flags of commands that edit the files of a definition.
type edits struct {
	base          string
	prune, rename bool
}

func (e *edits) add(cmd *cobra.Command, whole bool) {
	f := cmd.Flags()
	f.StringVar(&e.base, "base", "", "refuse the edit if the same files have changed since this `REVISION`")
	if whole {
		f.BoolVar(&e.prune, "allow-prune", false, "allow the edit to delete all or most webhooks")
		f.BoolVar(
			&e.rename,
			"allow-rename",
			false,
			"allow the edit to replace a webhook by one with another name and a new URL",
		)
	}
}

func (e *edits) query() string {
	q := url.Values{}
	if e.base != "" {
		q.Set("base_revision", e.base)
	}
	if e.prune {
		q.Set("allow_prune", "true")
	}
	if e.rename {
		q.Set("allow_rename", "true")
	}
	if len(q) == 0 {
		return ""
	}

	return "?" + q.Encode()
}
