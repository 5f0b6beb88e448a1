package cli

import (
	"bytes"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"millwright/reconcile/plan"
	"millwright/schema"
)

func webhookUIDs(s Streams, c *Client) *cobra.Command {
	var write bool
	cmd := &cobra.Command{
		Use:   "uids [DIR]",
		Short: "List the UIDs of a tree's webhooks, also of new ones, and write them into webhook_ids",
		Long: `Asks a server for the UIDs of the webhooks in the tree at DIR (default .), including those
that new webhooks will get when this factory applies the tree. So one commit can add a
webhook and the automation that selects it.

With --write it puts UIDs into webhook_ids in place of names of webhooks, and of UIDs of
deleted webhooks whose name another one has now. It changes no other byte.`,
		Example: `  millwright webhook uids
  millwright webhook uids --write factory --server https://hooks.example.com --factory payments`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := "."
			if len(args) == 1 {
				dir = args[0]
			}

			all, err := roots([]string{dir})
			if err != nil {
				return couldNotCheck(err)
			}

			tree := all[0]
			if tree.err != nil || tree.only != nil {
				return Usagef("%s is a file: give the directory that holds webhooks/ and automations/", clean(dir))
			}

			note := newReading(tree.dir, true)
			loaded := schema.Load(note, nil)
			if loaded.Err != nil {
				return couldNotCheck(fmt.Errorf("%s: %s", clean(tree.show), cause(loaded)))
			}

			j, err := c.judge(cmd.Context(), note, loaded, allowances{})
			if err != nil {
				return couldNotCheck(err)
			}

			return rewriteUIDs(s, j.plan, tree, loaded, note, write)
		},
	}

	cmd.Flags().BoolVar(&write, "write", false, "write the UIDs into the files")
	return cmd
}

// rewriteUIDs shows the webhooks' UIDs and, with write, puts them into the automations. It is an error
// when a file could not be read as an automation.
func rewriteUIDs(s Streams, p plan.Plan, tree root, loaded *schema.Result, note *reading, write bool) error {
	names := loaded.WebhookNames()
	lines := make([][]string, 0, len(names))
	ids := map[string]string{}
	for _, name := range names {
		uid := p.WebhookUIDs[name]
		if !schema.ParseUID(uid) {
			return &Exit{
				ExitUnreachable,
				fmt.Errorf("the server named no UID for webhook %q: is it older than this program?", clean(name)),
			}
		}

		ids[name] = uid
		for gone, of := range p.Gone {
			if of == name {
				ids[gone] = uid
			}
		}

		lines = append(lines, []string{name, uid})
	}

	if uid, ok := ids[scaffoldWebhook]; ok {
		ids[schema.StandInUID] = uid
	} else if len(names) == 1 {
		ids[schema.StandInUID] = ids[names[0]]
	}

	if err := rows(s.Out, "WEBHOOK UID", lines); err != nil {
		return err
	}

	changed, failed := 0, false
	for _, file := range automationFiles(note) {
		src := loaded.Source(file)
		out, err := schema.RewriteWebhookIDs(src, file, ids)
		switch {
		case err != nil:
			failed = true
			fmt.Fprintf(s.Err, "not changed: %s\n", err)
		case bytes.Equal(src, out):
		case !write:
			changed++
			fmt.Fprintf(s.Out, "to change: %s\n", clean(tree.shown(file)))
		default:
			if err := replaceFile(filepath.Join(tree.dir, filepath.FromSlash(file)), out); err != nil {
				return &Exit{ExitUnreachable, err}
			}

			changed++
			fmt.Fprintf(s.Out, "changed: %s\n", clean(tree.shown(file)))
		}
	}

	if changed > 0 && !write {
		fmt.Fprintln(s.Err, "nothing was written: run the command again with --write")
	}
	if failed {
		return &Exit{ExitProblem, nil}
	}

	return nil
}

// automationFiles are the files of automations that the loader read, sorted.
func automationFiles(note *reading) []string {
	var out []string
	for name := range note.opened {
		if _, dir := note.listed[name]; !dir && strings.HasPrefix(name, "automations/") && path.Ext(name) == ".md" {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
