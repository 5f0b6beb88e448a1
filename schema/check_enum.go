package schema

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"millwright/signature"
)

// enumWords are the values of an enumeration as a file writes them.
func enumWords(list []any) (words []string) {
	for _, v := range list {
		if v != nil {
			words = append(words, fmt.Sprint(v))
		}
	}
	return words
}

// oneOf is the hint to use one of a few words.
func oneOf(words []string) string {
	if len(words) == 1 {
		return "write " + words[0]
	}

	return "one of " + listed(words)
}

// typeOfEnum reports a value of another type where one of a few words belongs: quotes would not mend it.
func (d *document) typeOfEnum(n *yaml.Node, rule RuleID, what string, list []any) {
	words := enumWords(list)
	hint := oneOf(words)
	if slices.Contains(words, n.Value) {
		hint = "put it in quotes: " + doubleQuoted(n.Value)
		if _, number := list[0].(float64); number {
			hint = "write it without quotes: " + n.Value
		}
	} else if rule == ruleSignatureScheme {
		hint = schemeHint(n.Value, len(words)-1)
	}

	d.errorAt(
		n,
		ruleTypeMismatch,
		fmt.Sprintf("%s cannot be %s, which is %s", what, shown(n), nodeArticle(n)),
		hint,
	)
}

// unshipped explains why a provider has no scheme, if known.
func unshipped(name string) string {
	for _, u := range signature.NotShipped() {
		for provider := range strings.SplitSeq(u.Provider, ", ") {
			if fold(provider) == fold(name) {
				return fmt.Sprintf("%s is not shipped: %s Use instead: %s", provider, u.Reason, u.Instead)
			}
		}
	}
	return ""
}

// schemeHint names an alternative to an unknown scheme.
func schemeHint(name string, known int) string {
	hint := fmt.Sprintf("millwright webhook schemes lists all %d; ", known)
	if why := unshipped(name); why != "" {
		return hint + why
	}
	return hint + "describe any other with signatureScheme: custom and customScheme"
}

func (d *document) notOneOf(n *yaml.Node, rule RuleID, what string, values []string) {
	if n == nil || n.Kind != yaml.ScalarNode || d.bad[n] {
		return
	}

	near := suggest(n.Value, values)
	rest := oneOf(values)
	if rule == ruleAuthMode {
		switch fold(n.Value) {
		case "bearer", "bearertoken", "header", "apikey":
			near = "token"
		case "hmac", "hmacsha256", "sha256", "signed":
			rest = "a sender that signs its requests is authMode: signature, with signatureScheme"
		case "none", "null", "false":
			rest = "a webhook always authenticates its sender: " + rest
		}
	}

	if near == "" && rule == ruleSignatureScheme {
		rest = didYouMean(within(n.Value, values), schemeHint(n.Value, len(values)-1))
	}

	if other := d.lookalike(n); near != "" && other != "" {
		near, rest = "", other
	}

	p := d.errorAt(n, rule, fmt.Sprintf("%s cannot be %s", what, shown(n)), didYouMean(near, rest))
	if near != "" && p != nil {
		p.Fix = d.replace(n, near)
	}
}
