package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"millwright/schema"
	"millwright/schema/report"
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

// once checks, prints, and returns the report with an error that holds the exit status.
func (v *validation) once(ctx context.Context) (*report.Report, error) {
	began := time.Now()
	rep, err := v.judge(ctx)
	if err != nil {
		return nil, err
	}
	return rep, v.print(rep, time.Since(began))
}

// judge checks, after it has mended what it may.
func (v *validation) judge(ctx context.Context) (*report.Report, error) {
	v.known = nil
	if v.secrets != "" {
		var err error
		if v.known, err = readSecrets(v.secrets); err != nil {
			return nil, err
		}
	}

	v.noting = v.watch
	fixed := 0
	for range maxFixes {
		rep, err := v.check(ctx)
		if err != nil || !v.fix {
			return rep, err
		}

		n, err := v.mend()
		if err != nil {
			return nil, err
		}

		fixed += n
		if rep.Fixed = fixed; n == 0 {
			return rep, nil
		}
	}

	rep, err := v.check(ctx)
	if err == nil {
		rep.Fixed = fixed
	}

	return rep, err
}
