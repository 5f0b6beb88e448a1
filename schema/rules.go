package schema

import (
	"slices"
	"strings"

	"millwright/docs"
)

// Rule returns the rule's entry: its code, severity, title and explanation.
func (id RuleID) Rule() Rule { return rules[id] }

// Code returns the rule's code.
func (id RuleID) Code() string { return rules[id].Code }

// Rules returns every rule in the order of the documentation.
func Rules() []Rule { return slices.Clone(rules[1:]) }

// LookupRule returns the rule of a code.
func LookupRule(code string) (Rule, bool) {
	i := slices.IndexFunc(rules[1:], func(r Rule) bool { return r.Code == code })
	if i < 0 {
		return Rule{}, false
	}
	return rules[1+i], true
}

// Tolerated reports whether problems of a rule pass a strict check: those that every definition of a hosted
// service has.
func Tolerated(code string) bool { return code == ruleTriggerNoSource.Code() }

// RuleCodes returns the codes of all rules, sorted.
func RuleCodes() []string {
	codes := make([]string, 0, len(rules)-1)
	for _, r := range rules[1:] {
		codes = append(codes, r.Code)
	}
	slices.Sort(codes)
	return codes
}

// RuleDoc returns the section of a rule in docs/checks.md, in Markdown: its meaning, a broken definition,
// the exact output for it, and the mended definition.
func RuleDoc(code string) (string, bool) {
	checks := docs.Checks()
	start := strings.Index(checks, "\n## "+code+"\n")
	if start < 0 {
		return "", false
	}

	page := checks[start+1:]
	if end := strings.Index(page, "\n## "); end >= 0 {
		page = page[:end+1]
	}

	return strings.TrimRight(page, "\n") + "\n", true
}
