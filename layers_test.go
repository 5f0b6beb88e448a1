package millwright_test

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestLayers draws which files of the rooms and of the measurements use which, and refuses circles.
func TestLayers(t *testing.T) {
	l := layers{set: token.NewFileSet(), checked: map[string]*types.Package{}, t: t}
	for dir := range rooms {
		l.check(dir)
	}

	measurements, _ := filepath.Glob("bench/*")
	for _, dir := range measurements {
		l.check(dir)
	}

	if l.uses < 500 {
		t.Errorf("found only %d uses between files", l.uses)
	}
}

// layers type-checks packages of this module from their source. Packages from outside are empty to it.
type layers struct {
	set     *token.FileSet
	checked map[string]*types.Package
	uses    int
	t       *testing.T
}

// Import implements [types.Importer].
func (l *layers) Import(name string) (*types.Package, error) {
	if own, ok := strings.CutPrefix(name, module+"/"); ok {
		return l.check(own), nil
	}
	p := types.NewPackage(name, path.Base(name))
	p.MarkComplete()
	return p, nil
}

func (l *layers) check(dir string) *types.Package {
	if p := l.checked[dir]; p != nil {
		return p
	}

	linux := build.Default
	linux.GOOS = "linux"

	var files []*ast.File
	names, _ := filepath.Glob(dir + "/*.go")
	for _, name := range names {
		ours, err := linux.MatchFile(filepath.Split(name))
		if err != nil {
			l.t.Fatal(err)
		}
		if !ours || strings.HasSuffix(name, "_test.go") {
			continue
		}

		file, err := parser.ParseFile(l.set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			l.t.Fatal(err)
		}
		files = append(files, file)
	}

	info := types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: l, FakeImportC: true, Error: func(error) {}}
	p, _ := config.Check(module+"/"+dir, l.set, files, &info)
	l.checked[dir] = p
	l.circle(dir, p, info.Uses)

	return p
}

// circle reports the files of a package that use one another in a circle.
func (l *layers) circle(dir string, p *types.Package, found map[*ast.Ident]types.Object) {
	uses := map[string][]string{}
	for id, o := range found {
		fn, _ := o.(*types.Func)
		method := fn != nil && fn.Signature().Recv() != nil
		if o.Pkg() != p || o.Parent() != p.Scope() && !method {
			continue
		}

		from, to := l.set.Position(id.Pos()).Filename, l.set.Position(o.Pos()).Filename
		if from != to && !slices.Contains(uses[from], to) {
			uses[from] = append(uses[from], to)
			l.uses++
		}
	}

	// Takes away the files that use no other, until nothing is left but circles and what uses them.
	for again := true; again; {
		again = false
		for from, all := range uses {
			uses[from] = slices.DeleteFunc(all, func(to string) bool { return len(uses[to]) == 0 })
			if len(uses[from]) == 0 {
				delete(uses, from)
				again = true
			}
		}
	}

	for from, all := range uses {
		slices.Sort(all)
		l.t.Errorf("%s: %s uses %s, in a circle or above one", dir, from, strings.Join(all, ", "))
	}
}
