// Package docs holds the documents that the program shows itself.
package docs

import _ "embed"

//go:embed checks.md
var checks string

// Checks returns checks.md, the page with a section for every rule of a definition.
func Checks() string { return checks }
