// Package definitions holds odd definition documents, each with the problems that everyone who checks it
// finds. A file of cases is a txtar archive: the files of a case are named "case: path" and its last one,
// "expect", has the problems. The text of a file named "case: path (escaped)" is written with Go's escapes.
package definitions

import (
	"embed"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"
)

//go:embed *.txtar
var archives embed.FS

// Case is a definition tree, most of one file, and the problems in it as schema.Text shows them.
type Case struct {
	Name   string
	Files  map[string]string
	Expect string
}

// Archives returns the archives by file name.
func Archives() (map[string]*txtar.Archive, error) {
	names, err := fs.Glob(archives, "*.txtar")
	if err != nil {
		return nil, err
	}

	all := map[string]*txtar.Archive{}
	for _, name := range names {
		text, err := archives.ReadFile(name)
		if err != nil {
			return nil, err
		}

		all[name] = txtar.Parse(text)
	}

	return all, nil
}

// Cases returns the cases of an archive in their order.
func Cases(archive *txtar.Archive) ([]Case, error) {
	var cases []Case
	files := map[string]string{}
	last := ""
	for _, f := range archive.Files {
		if f.Name == "expect" {
			cases = append(cases, Case{last, files, string(f.Data)})
			files = map[string]string{}
			continue
		}

		name, path, ok := strings.Cut(f.Name, ": ")
		if !ok {
			return nil, fmt.Errorf("%q: want case: path", f.Name)
		}

		text := string(f.Data)
		if plain, escaped := strings.CutSuffix(path, " (escaped)"); escaped {
			var err error
			if text, err = unescape(text); err != nil {
				return nil, fmt.Errorf("%q: %w", f.Name, err)
			}

			path = plain
		}

		files[path], last = text, name
	}

	return cases, nil
}

// unescape reads Go's escapes in text, whose lines end as they are.
func unescape(text string) (string, error) {
	quoted := strings.NewReplacer("\n", `\n`, `"`, `\"`).Replace(strings.TrimSuffix(text, "\n"))
	return strconv.Unquote(`"` + quoted + `"`)
}
