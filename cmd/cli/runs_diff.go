package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fatih/color"
	"github.com/spf13/cobra"
)

func runDiff(s Streams, c *Client) *cobra.Command {
	var repository string
	cmd := &cobra.Command{
		Use:   "diff RUN",
		Short: "Print the changes that a run left",
		Long: `Prints what RUN changed in its checkouts, as git diff does. It prints control characters and bytes
that are not text as escapes, so that an agent's output cannot harm the terminal.
To use the changes, see millwright run apply.`,
		Example: `  millwright run diff 0197…
  millwright run diff 0197… --repository acme/shop | less`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			all, err := c.patches(cmd.Context(), args[0], repository)
			if err != nil {
				return err
			}

			for _, a := range all {
				if len(all) > 1 {
					fmt.Fprintf(s.Out, "── %s\n", clean(a.Data.Repository))
				}
				if err := c.printPatch(cmd.Context(), s.Out, a); err != nil {
					return err
				}
			}

			return nil
		},
	}

	addRepositoryFlag(cmd, &repository)
	return cmd
}

func addRepositoryFlag(cmd *cobra.Command, repository *string) {
	cmd.Flags().StringVar(repository, "repository", "", "only the changes of the repository `OWNER/NAME`")
}

// printPatch prints a patch as it is downloaded.
func (c *Client) printPatch(ctx context.Context, w io.Writer, a artifactItem) error {
	in, out := io.Pipe()
	go func() { out.CloseWithError(c.download(ctx, a, out)) }()
	defer in.Close()

	paint := map[byte]*color.Color{
		'+': color.New(color.FgGreen), '-': color.New(color.FgRed), '@': color.New(color.FgCyan),
	}
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if line == "" && errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}

		text := escaped(strings.TrimSuffix(line, "\n"))
		if p := paint[line[0]]; p != nil && colored(w) {
			p.EnableColor()
			text = p.Sprint(text)
		}
		if _, err := fmt.Fprintln(w, text); err != nil {
			return err
		}
	}
}

// escaped returns a line that is harmless on a terminal and still readable: control characters, characters
// of formatting and bytes that are not UTF-8 are escapes. Tabs stay.
func escaped(line string) string {
	var b strings.Builder
	for i, r := range line {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(line[i:], "\uFFFD"):
			fmt.Fprintf(&b, `\x%02x`, line[i])
		case r != '\t' && (unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)):
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		default:
			b.WriteRune(r)
		}
	}

	return b.String()
}

func runApply(s Streams, c *Client) *cobra.Command {
	var repository, dir string
	cmd := &cobra.Command{
		Use:   "apply RUN",
		Short: "Apply the changes that a run left to a local checkout",
		Long: `Applies what RUN changed to the checkout in the present directory, by git apply --index: the
changes are staged, and nothing is committed. The checkout must have no changes of its own, and
should be at the commit that the run began with. Changes that do not fit leave it as it is.
Read them first: millwright run diff.`,
		Example: `  millwright run apply 0197…
  millwright run apply 0197… --repository acme/shop -C ~/src/shop`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if err := mustBeClean(ctx, dir); err != nil {
				return err
			}

			all, err := c.patches(ctx, args[0], repository)
			if err != nil {
				return err
			}

			if len(all) > 1 {
				names := each(all, func(a artifactItem) string { return clean(a.Data.Repository) })
				return Usagef("the run changed %d repositories: name one with --repository, one of %s",
					len(all), strings.Join(names, ", "))
			}

			var patch bytes.Buffer
			if err := c.download(ctx, all[0], &patch); err != nil {
				return err
			}
			if _, err := git(ctx, dir, &patch, "apply", "--index", "--whitespace=nowarn", "-"); err != nil {
				return &Exit{ExitProblem, fmt.Errorf("the changes do not fit this checkout: %w", err)}
			}

			changed, err := git(ctx, dir, nil, "diff", "--cached", "--stat")
			if err != nil {
				return err
			}

			fmt.Fprintf(s.Out, "%s\nstaged: git commit keeps them, git reset --hard drops them\n", cleanText(changed))
			return nil
		},
	}

	addRepositoryFlag(cmd, &repository)
	cmd.Flags().StringVarP(&dir, "directory", "C", ".", "`DIRECTORY` of the checkout")
	return cmd
}

// mustBeClean returns an error unless a directory is a checkout without changes.
func mustBeClean(ctx context.Context, dir string) error {
	changes, err := git(ctx, dir, nil, "status", "--porcelain")
	if err != nil {
		return Usagef("%s is not a git checkout: %w", clean(dir), err)
	}
	if changes != "" {
		return Usagef("%s has changes of its own: commit or stash them first", clean(dir))
	}
	return nil
}

// git runs the git program in a directory, and returns its output.
func git(ctx context.Context, dir string, in io.Reader, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	var out, problem bytes.Buffer
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = dir, in, &out, &problem
	err := cmd.Run()
	if problem.Len() > 0 && err != nil {
		err = errors.New(cleanText(strings.TrimSpace(problem.String())))
	}
	return strings.TrimRight(out.String(), "\n"), err
}
