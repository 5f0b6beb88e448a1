package provider

import (
	"strconv"
	"strings"
)

// comparison is how the values of a key are compared.
type comparison struct {
	canon   func(string) string // the form in which values are compared; nil: as they are
	how     match
	valid   func(string) (problem, hint string)
	odd     func(string) (why, hint string) // a value that hardly anybody means
	words   []string                        // the values that the provider documents, if they are few
	integer bool
}

func (c *comparison) form(value string) string {
	if c.canon == nil {
		return value
	}
	return c.canon(value)
}

// match is how a wanted value is compared with one of a payload.
type match uint8

const (
	equals match = iota
	contains
	matchesGlob
)

// want is a value of a filter.
type want struct {
	written string // as the filter has it
	text    string // in the form in which it is compared
	glob    glob
}

func (c *comparison) want(written string) want {
	w := want{written: written, text: c.form(written)}
	if c.how == matchesGlob {
		w.glob = compileGlob(written)
	}
	return w
}

// match reports whether a value of a payload, in its form, is the wanted one.
func (c *comparison) match(w *want, have string) bool {
	switch c.how {
	case contains:
		return strings.Contains(have, w.text)
	case matchesGlob:
		return w.glob.match(have)
	}
	return w.text == have
}

func exact() comparison { return comparison{} }

// folded compares without case.
func folded() comparison { return comparison{canon: strings.ToLower} }

// among is folded, of a few known words.
func among(words ...string) comparison { return comparison{canon: strings.ToLower, words: words} }

// login compares names of accounts, which may be written with an @.
func login() comparison {
	return comparison{canon: func(s string) string { return strings.ToLower(strings.TrimPrefix(s, "@")) }}
}

// mention compares names of accounts as texts mention them: that of an app is without [bot].
func mention() comparison {
	return comparison{canon: func(s string) string {
		return strings.TrimSuffix(strings.ToLower(strings.TrimPrefix(s, "@")), "[bot]")
	}}
}

// identity compares IDs and names exactly, and email addresses without case.
func identity() comparison {
	return comparison{canon: func(s string) string {
		if strings.Contains(s, "@") {
			return strings.ToLower(s)
		}
		return s
	}}
}

// repository compares the full names of repositories.
func repository() comparison {
	return comparison{canon: strings.ToLower, odd: noPattern, valid: func(s string) (string, string) {
		owner, name, ok := strings.Cut(s, "/")
		if ok && owner != "" && name != "" && !strings.Contains(s, "://") && !strings.HasSuffix(s, "/") {
			return "", ""
		}
		return "is not the full name of a repository", "write owner/name"
	}}
}

// branch compares names of branches, which may be written as refs.
func branch() comparison {
	return comparison{canon: func(s string) string { return strings.TrimPrefix(s, heads) }, odd: noPattern}
}

// noPattern finds patterns where names without an asterisk are compared exactly.
func noPattern(s string) (why, hint string) {
	if strings.Contains(s, "*") {
		return "matches nothing: only paths takes patterns", "list each name"
	}
	return "", ""
}

const heads = "refs/heads/"

// number compares whole numbers.
func number() comparison { return comparison{integer: true} }

// keyword looks for a word or text in a longer one, without case.
func keyword() comparison { return comparison{canon: strings.ToLower, how: contains} }

// emoji compares names of emojis, without colons and skin tone.
func emoji() comparison {
	return comparison{canon: func(s string) string {
		s, _, _ = strings.Cut(strings.ToLower(s), "::skin-tone-")
		return strings.Trim(s, ":")
	}}
}

// globs compares paths with globs.
func globs() comparison {
	return comparison{how: matchesGlob, odd: func(s string) (why, hint string) {
		switch rest, not := strings.CutPrefix(s, "!"); {
		case not:
			return "does not exclude paths", "write {not_in: [" + strconv.Quote(cut(rest, 80)) + "]}"
		case braces(s):
			return "has braces that stand for themselves", "list each pattern"
		}
		return "", ""
	}}
}

func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// braces reports whether a pattern has alternatives in braces.
func braces(s string) bool {
	_, rest, _ := strings.Cut(s, "{")
	inner, _, closed := strings.Cut(rest, "}")
	return closed && strings.Contains(inner, ",")
}
