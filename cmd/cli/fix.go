package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"millwright/schema"
)

// maxFixes bounds how often a tree is mended and checked again: a repair can bring the next one to light.
const maxFixes = 5

// mend makes the safe repairs of the last check's problems in the files, tells of each, and returns how
// many there were. A file that has changed since it was read is left alone.
func (v *validation) mend() (int, error) {
	n := 0
	for _, at := range v.result {
		byFile := map[string][]schema.Problem{}
		var files []string
		for _, p := range at.Problems {
			if p.Fix != nil && at.wants(p.Path) {
				if byFile[p.Path] == nil {
					files = append(files, p.Path)
				}
				byFile[p.Path] = append(byFile[p.Path], p)
			}
		}

		for _, file := range files {
			made, err := v.mendFile(at, file, byFile[file])
			if err != nil {
				return n, &Exit{ExitUnreachable, fmt.Errorf("fixing %s: %w", clean(at.shown(file)), err)}
			}

			n += made
		}
	}

	return n, nil
}

func (v *validation) mendFile(at loadedAt, file string, problems []schema.Problem) (int, error) {
	name := filepath.Join(at.dir, filepath.FromSlash(file))
	src := at.Source(file)
	now, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	if !bytes.Equal(src, now) {
		return 0, errors.New("it has changed meanwhile: run the command again")
	}

	text, mended := schema.Mend(file, src, problems)
	for _, p := range mended {
		fmt.Fprintf(
			v.Err,
			"fixed %s:%d:%d: %s → %s [%s]\n",
			clean(at.shown(file)),
			p.Line,
			p.Column,
			clean(string(src[p.Fix.Start:p.Fix.End])),
			clean(p.Fix.Text),
			p.Code,
		)
	}

	if len(mended) == 0 {
		return 0, nil
	}

	return len(mended), replaceFile(name, text)
}
