package schema

import (
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// The bounds of a search for definitions.
const (
	searchLevels      = 5
	searchDirectories = 2000
)

// FindDefinition returns a directory below the root of fsys that holds a definition, the nearest one in the
// order of paths; empty if there is none nearby. The root itself does not count.
func FindDefinition(fsys fs.FS) string {
	level := []string{"."}
	looked := 0
	for depth := 0; depth < searchLevels && len(level) > 0; depth++ {
		var next []string
		for _, dir := range level {
			entries, err := fs.ReadDir(fsys, dir)
			if looked++; err != nil || looked > searchDirectories {
				continue
			}

			for _, e := range entries {
				name := e.Name()
				if e.IsDir() && !strings.HasPrefix(name, ".") && name != "node_modules" && fs.ValidPath(name) {
					next = append(next, path.Join(dir, name))
				}
			}
		}

		for _, dir := range next {
			if HoldsDefinition(fsys, dir) {
				return dir
			}
		}

		level = next
	}

	return ""
}

// HoldsDefinition reports whether a directory looks like the root of a tree.
func HoldsDefinition(fsys fs.FS, dir string) bool {
	for _, pattern := range []string{"factory.yaml", "webhooks/*.yaml", "automations/*/automation.md"} {
		if found, _ := fs.Glob(fsys, path.Join(escapeGlob(dir), pattern)); len(found) > 0 {
			return true
		}
	}
	return false
}

// LooksLikeRoot reports whether the root of fsys looks like the root of a tree. Other software has files like
// notifications/*.yaml and secrets/*.age too: these alone count where no directory but those of a tree is
// beside them.
func LooksLikeRoot(fsys fs.FS) bool {
	if HoldsDefinition(fsys, ".") {
		return true
	}

	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return false
	}
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() && !strings.HasPrefix(name, ".") && !slices.Contains(directories, name) {
			return false
		}
	}

	for _, pattern := range []string{"notifications/*.yaml", "secrets/*.age"} {
		if found, _ := fs.Glob(fsys, pattern); len(found) > 0 {
			return true
		}
	}
	return false
}

func escapeGlob(dir string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(dir)
}

// RootOf returns the root of the tree that a definition file belongs to, by the file's absolute path, and the
// path of the file in that tree, with forward slashes. It reads nothing.
func RootOf(abs string) (dir, file string, ok bool) {
	if base := filepath.Base(abs); base == "factory.yaml" || base == "factory.yml" {
		return filepath.Dir(abs), base, true
	}

	for at := filepath.Dir(abs); at != filepath.Dir(at); at = filepath.Dir(at) {
		switch filepath.Base(at) {
		case "skills":
			if agents := filepath.Dir(filepath.Dir(at)); filepath.Base(agents) == "agents" { // of one agent
				at = agents
			}
		case "webhooks", "automations", "agents", "runners", "environments", "notifications", "secrets":
		default:
			continue
		}

		file, err := filepath.Rel(filepath.Dir(at), abs)
		return filepath.Dir(at), filepath.ToSlash(file), err == nil
	}

	return "", "", false
}

// NoDefinition returns the warning about a tree without any definition. The hint names a place that has one.
func NoDefinition(hint string) Problem {
	return FileProblem(
		".",
		ruleMissingPath,
		"no definition is here, so nothing was checked",
		hint,
	).as(SeverityWarning)
}

// Checked reports whether the tree holds a file that was read, or a problem has the reason.
func (r *Result) Checked() bool { return r.Files > 0 || len(r.Problems) > 0 || r.Err != nil }
