package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// artifactItem is what the program shows of a run's artifact.
type artifactItem struct {
	Type string `json:"artifact_type"`
	Data struct {
		UID           string `json:"artifact_uid"`
		Filepath      string `json:"filepath"`
		MimeType      string `json:"mime_type"`
		SizeBytes     int64  `json:"size_bytes"`
		Repository    string
		URL           string
		Status        string
		Title         string
		ReferenceType string `json:"reference_type"`
	}
}

// file reports whether the artifact has a content.
func (a artifactItem) file() bool { return a.Type == "FILE" || a.Type == "SCREENSHOT" }

// name returns what people call the artifact by: its path or URL.
func (a artifactItem) name() string {
	if a.file() {
		return a.Data.Filepath
	}
	return a.Data.URL
}

// artifacts returns what a run left, also as the server answered it.
func (c *Client) artifacts(ctx context.Context, run string) (all []artifactItem, body []byte, err error) {
	body, err = c.call(ctx, http.MethodGet, runPath(run), nil)
	if err != nil {
		return nil, nil, err
	}

	var r struct{ Artifacts json.RawMessage }
	if err := c.Decode(body, &r); err != nil {
		return nil, nil, err
	}
	return all, r.Artifacts, c.Decode(r.Artifacts, &all)
}

func runArtifacts(s Streams, c *Client) *cobra.Command {
	var out output
	var save string
	cmd := &cobra.Command{
		Use:   "artifacts RUN [ARTIFACT…]",
		Short: "List or download the files that a run left",
		Long: `Lists what RUN left: the files in .millwright/artifacts of its working directory, the
changes of its checkouts as changes.patch and changes.bundle, and links such as pull requests.
ARTIFACT is the path or UID of one of them.

With --save it downloads the files below DIRECTORY, which it makes if needed. It replaces no file.
Do not trust the files: an agent wrote them.`,
		Example: `  millwright run artifacts 0197…
  millwright run artifacts 0197… report.md --save .
  millwright run artifacts 0197… -o json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			all, body, err := c.artifacts(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if all, err = chosenArtifacts(all, args[1:]); err != nil {
				return err
			}
			if save != "" {
				return saveArtifacts(cmd.Context(), s, c, all, save)
			}

			return out.print(s.Out, body, func() error {
				var lines [][]string
				for _, a := range all {
					size := ""
					if a.file() {
						size = fmt.Sprint(a.Data.SizeBytes)
					}
					lines = append(lines, []string{a.Type, a.name(), size, a.Data.Repository, a.Data.UID})
				}
				return rows(s.Out, "TYPE ARTIFACT BYTES REPOSITORY UID", lines)
			})
		},
	}

	addOutputFlag(cmd, &out)
	cmd.Flags().StringVar(&save, "save", "", "download the files below this `DIRECTORY`")
	return cmd
}

// chosenArtifacts returns those that the names select; all when there are none.
func chosenArtifacts(all []artifactItem, names []string) ([]artifactItem, error) {
	if len(names) == 0 {
		return all, nil
	}

	var chosen []artifactItem
	for _, name := range names {
		found := slices.DeleteFunc(slices.Clone(all), func(a artifactItem) bool {
			return a.name() != name && a.Data.UID != name
		})
		if len(found) == 0 {
			return nil, Usagef("the run left no artifact %q", clean(name))
		}
		chosen = append(chosen, found...)
	}
	return chosen, nil
}

// saveArtifacts downloads files below a directory.
func saveArtifacts(ctx context.Context, s Streams, c *Client, all []artifactItem, dir string) error {
	all = slices.DeleteFunc(all, func(a artifactItem) bool { return !a.file() })
	if len(all) == 0 {
		return Usagef("there are no files to save")
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return Usagef("--save: %w", err)
	}

	root, err := os.OpenRoot(dir)
	if err != nil {
		return Usagef("--save: %w", err)
	}
	defer root.Close()

	for _, a := range all {
		name := a.Data.Filepath
		twice := func(b artifactItem) bool { return b.Data.UID != a.Data.UID && b.Data.Filepath == name }
		if slices.ContainsFunc(all, twice) {
			name = path.Join(a.Data.Repository, name)
		}
		if err := saveArtifact(ctx, c, a, root, filepath.FromSlash(name)); err != nil {
			return err
		}
		fmt.Fprintln(s.Out, clean(filepath.Join(dir, name)))
	}
	return nil
}

// saveArtifact downloads one file. A download that breaks off leaves none.
func saveArtifact(ctx context.Context, c *Client, a artifactItem, root *os.Root, name string) error {
	if !filepath.IsLocal(name) {
		return fmt.Errorf("the artifact %q has a path that leads elsewhere", clean(name))
	}
	if err := root.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return err
	}

	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return Usagef("%s exists already: name another --save", clean(filepath.Join(root.Name(), name)))
	}
	if err != nil {
		return err
	}

	err = c.download(ctx, a, file)
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, root.Remove(name))
	}
	return nil
}

// download writes the content of an artifact.
func (c *Client) download(ctx context.Context, a artifactItem, to io.Writer) error {
	resp, err := c.send(ctx, http.MethodGet, "/agent/artifacts/"+url.PathEscape(a.Data.UID)+"/download", nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()

	if _, err := io.Copy(to, resp.Body); err != nil {
		return &Exit{ExitUnreachable, fmt.Errorf("downloading %s: %w", clean(a.name()), err)}
	}
	return nil
}

// patches returns the artifacts with the changes of a run, of one repository when it is given.
func (c *Client) patches(ctx context.Context, run, repository string) ([]artifactItem, error) {
	all, _, err := c.artifacts(ctx, run)
	if err != nil {
		return nil, err
	}

	changes := slices.DeleteFunc(all, func(a artifactItem) bool {
		return a.Data.Repository == "" || !strings.HasSuffix(a.Data.Filepath, ".patch") ||
			repository != "" && a.Data.Repository != repository
	})
	switch {
	case len(changes) == 0 && repository != "":
		return nil, &Exit{ExitProblem, fmt.Errorf("the run left no changes of %s", clean(repository))}
	case len(changes) == 0:
		return nil, &Exit{ExitProblem, errors.New("the run left no changes: see millwright run artifacts")}
	}
	return changes, nil
}
