package schema

import (
	"fmt"
	"regexp"

	"go.yaml.in/yaml/v3"
)

// The patterns of values that well-known services issue, and of digests and random values. A digest has at least
// 32 digits.
const (
	secretPattern = `^(gh[pousr]_|github_pat_|glpat-|xox[bpars]-|xapp-|whsec_|sk-|` +
		`[sr]k_(live|test)_|AKIA|ASIA|lin_(api|wh)_|` +
		`npm_|pypi-|shp(ss|at)_|eyJ|SG\.).{12,}$`
	digestPattern = `^([a-f]*[0-9][0-9a-f]*|[A-F]*[0-9][0-9A-F]*)$`
	digestDigits  = 32
)

var secretText, digestText = regexp.MustCompile(secretPattern), regexp.MustCompile(digestPattern)

// looksLikeSecret reports whether a text looks like the value of a secret and not like its name.
func looksLikeSecret(text string) bool {
	return secretText.MatchString(text) || len(text) >= digestDigits && digestText.MatchString(text)
}

// secretValue reports a value where the name of a secret belongs, and does not show it.
func (d *document) secretValue(n *yaml.Node) {
	start := n.Value[:min(4, len(n.Value))]
	d.errorAt(
		n,
		ruleSecretName,
		fmt.Sprintf("a text that begins with %s looks like the value of a secret", quoted(start)),
		"write the name of a team secret, make it with millwright secret set, and replace the value, "+
			"which is in the repository now",
	)
}
