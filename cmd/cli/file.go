package cli

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

func newFile(s Streams) *cobra.Command {
	var c Client
	cmd := &cobra.Command{
		Use:   "file",
		Short: "Read and edit the definition files of a managed factory",
		Long: `Edits the definition of a managed factory, whose files the server stores. An edit is in
force when the command returns. An edit that is not valid changes nothing, and the command
prints the problems.`,
		Args: noCommand,
		RunE: help,
	}

	addClientFlags(cmd, &c, true)
	cmd.AddCommand(
		fileList(s, &c),
		fileShow(s, &c),
		filePut(s, &c),
		fileEdit(s, &c),
		fileDelete(s, &c),
		fileImport(s, &c),
		fileExport(s, &c),
	)

	return cmd
}

// filePath is where the API has a definition file.
func filePath(f factoryRef, name string) string {
	return "/factory/" + f.UID + "/files/" + url.PathEscape(name)
}

func fileList(s Streams, c *Client) *cobra.Command {
	var out output
	var revision string
	cmd := &cobra.Command{
		Use: "list", Short: "List the files of a definition", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f, err := c.one(cmd.Context())
			if err != nil {
				return err
			}

			q := url.Values{"revision": {revision}}
			body, _, err := c.list(cmd.Context(), "/factory/"+f.UID+"/files", "files", q, whole)
			if err != nil {
				return err
			}

			return out.print(s.Out, body, func() error {
				var list struct {
					Files []struct {
						Path string
						Size int
					}
				}
				if err := c.Decode(body, &list); err != nil {
					return err
				}

				var lines [][]string
				for _, file := range list.Files {
					lines = append(lines, []string{file.Path, fmt.Sprint(file.Size)})
				}

				return rows(s.Out, "PATH BYTES", lines)
			})
		},
	}

	addOutputFlag(cmd, &out)
	addRevisionFlag(cmd, &revision)
	return cmd
}

func addRevisionFlag(cmd *cobra.Command, revision *string) {
	cmd.Flags().StringVar(revision, "revision", "", "`REVISION` to read, such as r12 (default the newest)")
}

func fileShow(s Streams, c *Client) *cobra.Command {
	var revision string
	cmd := &cobra.Command{
		Use:     "show PATH",
		Aliases: []string{"get", "cat"},
		Short:   "Print a definition file",
		Example: `  millwright file show webhooks/alerts.yaml
  millwright file show webhooks/alerts.yaml --revision r12`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeManaged,
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := c.one(cmd.Context())
			if err != nil {
				return err
			}

			file, err := c.file(cmd.Context(), f, args[0], revision)
			if err != nil {
				return err
			}

			_, err = io.WriteString(s.Out, file.Content)
			return err
		},
	}

	addRevisionFlag(cmd, &revision)
	return cmd
}

// managedFile is a file of a managed definition.
type managedFile struct{ Revision, Content string }

func (c *Client) file(ctx context.Context, f factoryRef, name, revision string) (managedFile, error) {
	var file managedFile
	q := url.Values{"revision": {revision}}
	return file, c.Get(ctx, filePath(f, name)+"?"+q.Encode(), &file)
}

func filePut(s Streams, c *Client) *cobra.Command {
	var e edits
	cmd := &cobra.Command{
		Use:   "put PATH [FILE]",
		Short: "Write a definition file, from FILE or standard input",
		Example: `  millwright file put webhooks/alerts.yaml alerts.yaml
  millwright file put automations/triage/automation.md < automation.md`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: completeManaged,
		RunE: func(cmd *cobra.Command, args []string) error {
			var content []byte
			var err error
			if len(args) == 2 && args[1] != "-" {
				content, err = os.ReadFile(args[1])
			} else {
				content, err = io.ReadAll(io.LimitReader(s.In, maxSentBytes))
			}

			if err != nil {
				return Usagef("%w", err)
			}

			f, err := c.one(cmd.Context())
			if err != nil {
				return err
			}

			return putFile(cmd.Context(), s, c, f, args[0], string(content), e)
		},
	}

	e.add(cmd, false)
	return cmd
}

// completeManaged completes the path of a file of a managed definition, and then a file of this machine.
func completeManaged(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return complete(cmd, "HELD", args)
}

func putFile(ctx context.Context, s Streams, c *Client, f factoryRef, name, content string, e edits) error {
	return c.edit(ctx, s, http.MethodPut, filePath(f, name)+e.query(), map[string]string{"content": content})
}

func fileEdit(s Streams, c *Client) *cobra.Command {
	return &cobra.Command{
		Use:   "edit PATH",
		Short: "Edit a definition file with the editor of VISUAL or EDITOR",
		Long: `Opens a definition file in your editor, and writes it when the editor exits. A new file
starts empty. If the server refuses the edit, the message names the file that has your
text.`,
		Example:           `  millwright file edit webhooks/alerts.yaml`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeManaged,
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := c.one(cmd.Context())
			if err != nil {
				return err
			}

			file, err := c.file(cmd.Context(), f, args[0], "")
			if no, ok := errors.AsType[*refusal](err); ok && no.status == http.StatusNotFound {
				err = nil
			}
			if err != nil {
				return err
			}

			draft, text, err := edited(cmd.Context(), s, path.Base(args[0]), file.Content)
			if err != nil {
				return err
			}
			if text == file.Content {
				fmt.Fprintln(s.Out, "nothing changed")
				return os.RemoveAll(filepath.Dir(draft))
			}

			if err := putFile(cmd.Context(), s, c, f, args[0], text, edits{base: file.Revision}); err != nil {
				status := ExitProblem
				if e, ok := errors.AsType[*Exit](err); ok {
					status = e.Status
				}

				return &Exit{status, fmt.Errorf("%w\nyour text is in %s", err, draft)}
			}

			return os.RemoveAll(filepath.Dir(draft))
		},
	}
}

// edited lets the user edit a text, and returns it with the file that holds it.
func edited(ctx context.Context, s Streams, name, text string) (draft, after string, err error) {
	dir, err := os.MkdirTemp("", "millwright-edit-")
	if err != nil {
		return "", "", err
	}

	draft = filepath.Join(dir, filepath.Base(name))
	if err := os.WriteFile(draft, []byte(text), 0o600); err != nil {
		return "", "", err
	}

	editor := EnvOr("VISUAL", EnvOr("EDITOR", "vi"))
	run := exec.CommandContext(ctx, "sh", "-c", editor+` "$1"`, "sh", draft)
	run.Stdin, run.Stdout, run.Stderr = s.In, s.Out, s.Err
	if err := run.Run(); err != nil {
		return "", "", fmt.Errorf("the editor (%s): %w", clean(editor), err)
	}

	out, err := os.ReadFile(draft)
	return draft, string(out), err
}

func fileDelete(s Streams, c *Client) *cobra.Command {
	var e edits
	var ask confirmation
	cmd := &cobra.Command{
		Use: "delete PATH", Short: "Delete a definition file", Args: cobra.ExactArgs(1),
		ValidArgsFunction: completeManaged,
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := c.one(cmd.Context())
			if err != nil {
				return err
			}
			if err := ask.of(s, "delete %s of factory %s", args[0], f.Name); err != nil {
				return err
			}

			return c.edit(cmd.Context(), s, http.MethodDelete, filePath(f, args[0])+e.query(), nil)
		},
	}

	e.add(cmd, false)
	ask.add(cmd)
	return cmd
}

func fileImport(s Streams, c *Client) *cobra.Command {
	var e edits
	var ask confirmation
	cmd := &cobra.Command{
		Use:   "import DIR",
		Short: "Replace the definition with the files of a directory",
		Long: `Replaces the whole definition, and deletes the files that DIR does not have. To see the
changes first, run millwright plan DIR. It skips .git.`,
		Example: `  millwright plan factory --factory ops && millwright file import factory --factory ops`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := treeFiles(args[0])
			if err != nil {
				return Usagef("%w", err)
			}

			f, err := c.one(cmd.Context())
			if err != nil {
				return err
			}
			if err := ask.of(s, "replace the definition of factory %s by %d files", f.Name, len(files)); err != nil {
				return err
			}

			path := "/factory/" + f.UID + "/files" + e.query()
			return c.edit(cmd.Context(), s, http.MethodPut, path, map[string]any{"files": files})
		},
	}

	e.add(cmd, true)
	ask.add(cmd)
	return cmd
}

func fileExport(s Streams, c *Client) *cobra.Command {
	var revision string
	cmd := &cobra.Command{
		Use:   "export DIR",
		Short: "Write the definition to a new directory, or as a tar to standard output (-)",
		Example: `  millwright file export factory
  millwright file export - > factory.tar`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := c.one(cmd.Context())
			if err != nil {
				return err
			}

			q := url.Values{"revision": {revision}}
			archive, err := c.call(cmd.Context(), http.MethodGet, "/factory/"+f.UID+"/files.tar?"+q.Encode(), nil)
			if err != nil {
				return err
			}
			if args[0] == "-" {
				_, err = s.Out.Write(archive)
				return err
			}

			n, err := unpack(archive, args[0])
			if err != nil {
				return err
			}

			fmt.Fprintf(s.Out, "wrote %d files to %s\n", n, args[0])
			return nil
		},
	}

	addRevisionFlag(cmd, &revision)
	return cmd
}

// unpack writes the files of a tar to a directory that is new or empty.
func unpack(archive []byte, dir string) (n int, err error) {
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return 0, &Exit{ExitProblem, fmt.Errorf("%s is not empty: nothing was changed", dir)}
	}

	for r := tar.NewReader(bytes.NewReader(archive)); ; n++ {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, &Exit{ExitUnreachable, fmt.Errorf("the server's tar: %w", err)}
		}

		name := filepath.FromSlash(h.Name)
		if h.Typeflag != tar.TypeReg || !filepath.IsLocal(name) {
			return n, &Exit{ExitUnreachable, fmt.Errorf("the server's tar: %q is not a file of a definition", h.Name)}
		}

		content, err := io.ReadAll(r)
		if err != nil {
			return n, &Exit{ExitUnreachable, fmt.Errorf("the server's tar: %w", err)}
		}
		if err := WriteNew(filepath.Join(dir, name), content); err != nil {
			return n, err
		}
	}
}

// held is a file as the API takes it.
type held struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

// treeFiles reads all files below a directory but those of git.
func treeFiles(dir string) ([]held, error) {
	files := []held{}
	size := 0
	err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == ".git":
			return filepath.SkipDir
		case d.IsDir():
			return nil
		case !d.Type().IsRegular():
			return fmt.Errorf("%s is not a regular file: a definition has no links", name)
		}

		info, err := d.Info()
		if err != nil {
			return err
		}
		if size += int(info.Size()); size > maxSentBytes || len(files) == MaxSentFiles {
			return fmt.Errorf(
				"%s is too large for a definition: a server takes %d files and %d bytes",
				dir,
				MaxSentFiles,
				maxSentBytes,
			)
		}

		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if !utf8.Valid(content) {
			return fmt.Errorf("%s is not text in UTF-8: leave it out", name)
		}

		rel, err := filepath.Rel(dir, name)
		files = append(files, held{filepath.ToSlash(rel), string(content)})
		return err
	})

	return files, err
}
