package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"millwright/schema"
	"millwright/schema/report"
)

// checker checks trees with what is known of the state.
type checker struct {
	roots   []root
	known   *schema.Known // of a file of secrets; nil without one
	server  *Client       // to ask; nil for none
	strict  bool
	hosted  bool       // warn of what the hosted service does not know
	noting  bool       // keep the readings
	reading []*reading // of the last check
	result  []loadedAt // of the last check, beside reading
}

// loadedAt is a loaded tree and where it is.
type loadedAt struct {
	root
	*schema.Result
}

// check loads and checks all trees.
func (c *checker) check(ctx context.Context) (*report.Report, error) {
	defer thrift()()

	rep := &report.Report{Version: Version(), Strict: c.strict}
	sources := map[string][]byte{}
	rep.Source = func(p string) []byte { return sources[p] }
	notChecked := map[string]bool{}
	c.reading, c.result = nil, nil
	for _, r := range c.roots {
		if r.err != nil {
			rep.Trees = append(rep.Trees, report.Tree{Path: r.show, Err: r.err.Error()})
			continue
		}

		note := newReading(r.dir, c.noting || c.server != nil)
		loaded := schema.LoadContext(ctx, note, c.known)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}

		c.reading, c.result = append(c.reading, note), append(c.result, loadedAt{r, loaded})
		tree := report.Tree{Path: r.show, Files: loaded.Files}
		if r.only != nil {
			tree.Files = len(
				slices.DeleteFunc(slices.Clone(r.only), func(p string) bool { return loaded.Source(p) == nil }),
			)
		}

		if loaded.Err != nil {
			tree.Err = cause(loaded)
		}

		found, unchecked := loaded.Problems, loaded.NotChecked
		empty := !loaded.Checked()
		if r.only != nil {
			read := func(p schema.Problem) bool { return slices.Contains(r.only, p.Path) }
			empty = tree.Files == 0 && tree.Err == "" && !slices.ContainsFunc(loaded.Problems, read)
		}
		if c.server != nil {
			answer, err := c.server.judge(ctx, note, loaded, allowances{})
			switch {
			case errors.Is(err, errNotAsked):
				rep.Notices = append(rep.Notices, err.Error())
				if loaded.Valid() {
					tree.Err = err.Error()
				}
			case err != nil:
				var e *Exit
				if errors.As(err, &e) && e.Status == ExitUsage || ctx.Err() != nil {
					return nil, err
				}

				tree.Err = "the server was not asked: " + err.Error()

			default:
				found, unchecked = answer.problems, answer.plan.NotChecked
				rep.Notices = append(rep.Notices, answer.notices...)
				for _, t := range answer.plan.Backtests { // counts alone: reports go to places that others read
					rep.Notices = append(rep.Notices, backtestText(t, false))
				}
			}
		}

		if c.hosted {
			found = append(slices.Clone(found), loaded.Hosted()...)
			schema.SortProblems(found)
		}
		if empty {
			found = append(slices.Clone(found), r.noDefinition())
		}

		for _, p := range found {
			if !r.wants(p.Path) {
				continue
			}

			src := loaded.Source(p.Path)
			p.Path = r.shown(p.Path)
			if src != nil {
				sources[p.Path] = src
			}

			rep.Problems = append(rep.Problems, p)
		}

		for _, code := range unchecked {
			notChecked[code] = true
		}

		rep.Trees = append(rep.Trees, tree)
	}

	rep.NotChecked = slices.Sorted(maps.Keys(notChecked))
	return rep, nil
}

// readSecrets reads a file of the secrets that exist: a name a line, or NAME=value, of which only whether
// the value can be part of a URL and of a header is kept. No error holds any of the file's text.
func readSecrets(file string) (*schema.Known, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, &Exit{ExitUnreachable, fmt.Errorf("--secrets: %w", err)}
	}

	known := &schema.Known{Secrets: map[string]schema.SecretFact{}}
	n := 0
	for line := range strings.Lines(strings.TrimPrefix(string(text), "\ufeff")) {
		n++
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		if trimmed := strings.TrimSpace(line); trimmed == "" || trimmed[0] == '#' {
			continue
		}

		name, value, given := strings.Cut(line, "=")
		name = strings.TrimSpace(name)
		switch {
		case !isSecretName(name):
			return nil, Usagef(
				"--secrets: %s:%d: want NAME or NAME=value; "+
					"a name is a letter or an underscore, then letters, digits and underscores",
				file,
				n,
			)

		case given && value == "":
			return nil, Usagef(
				"--secrets: %s:%d: the value is empty: write the name alone when the value is not known",
				file,
				n,
			)

		case given:
			known.Secrets[name] = schema.FactOf(value)
		default:
			known.Secrets[name] = schema.SecretFact{}
		}
	}

	return known, nil
}

func isSecretName(s string) bool {
	for i, c := range s {
		if c != '_' && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != "" && len(s) <= 128
}
