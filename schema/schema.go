// Package schema reads a factory's definition tree and reports what is wrong
// with it. It is pure: it reads an fs.FS and nothing else, so that the command
// line, the API, the plan and the apply all decide with the same code.
//
// Load reads a whole tree and reports every problem in one pass, each with its
// exact place in the file. A Factory comes out only when no problem is an error.
package schema

import "slices"

// SchemaVersion is the version of the definition files this package reads, the
// value of schemaVersion in factory.yaml.
const SchemaVersion = "v1alpha1"

// Result is what Load found. It holds the bytes of the files for excerpts: keep
// the Factory and the Problems of a tree, not its Result.
type Result struct {
	// Factory is the loaded tree, nil when a problem is an error or Err is set.
	Factory *Factory
	// Problems is sorted by path and position; never nil.
	Problems []Problem
	// NotChecked names, sorted, the rules that need state and did not run.
	NotChecked []string
	// Files counts the files at resource paths that were read.
	Files int
	// Err is set when the tree could not be read in full (its root is missing, a
	// file cannot be opened). Such a tree is neither valid nor invalid; Problems
	// has the places. Callers that can wait try again.
	Err error

	tree    *Factory  // what was understood, also of a tree with errors
	base    []Problem // those that need no state
	entries []entry
	sources map[string][]byte
}

// Valid reports whether the tree was read in full and no problem is an error.
func (r *Result) Valid() bool {
	return r.Err == nil &&
		!slices.ContainsFunc(r.Problems, func(p Problem) bool { return p.Severity == SeverityError })
}

// Source returns the bytes of a file that has a problem, as they were read, and
// nil for any other path. Files over the size limits are not kept, so all
// sources together are bounded by the limits of a tree.
func (r *Result) Source(path string) []byte { return r.sources[path] }

// WebhookNames returns the names of all webhook files of the tree, sorted, also
// of files that have errors, so that their UIDs can be planned.
func (r *Result) WebhookNames() []string {
	if r.tree == nil {
		return nil
	}
	return r.tree.webhookNames
}

// WebhookIDs returns the entries of webhook_ids of all automations, also of files
// that have errors, sorted, each once.
func (r *Result) WebhookIDs() []string {
	if r.tree == nil {
		return nil
	}

	ids := map[string]bool{}
	for i := range r.tree.facts {
		if f := &r.tree.facts[i]; f.kind == factWebhookID {
			ids[f.value] = true
		}
	}

	return sortedKeys(ids)
}
