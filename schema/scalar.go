package schema

import (
	"regexp"
	"strings"
)

// scalarKind is what a plain (unquoted) scalar is to a reader of YAML 1.2, or,
// where readers differ, what makes it treacherous.
type scalarKind int

const (
	scalarString scalarKind = iota
	scalarNull
	scalarBool
	scalarNumber // written as JSON writes numbers
	scalarOdd    // a number to some readers, and not the same one to all
	scalarDate   // a date to some readers
)

var (
	jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)
	oddNumber  = regexp.MustCompile(`^[-+]?(` +
		`\.(inf|Inf|INF)|` + // infinity
		`0[xX][0-9a-fA-F_]+|0[oO]?[0-7_]+|0[bB][01_]+|` + // other bases
		`[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?|` + // base 60
		`(\.[0-9]+|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9]+)?)$|^\.(nan|NaN|NAN)$`)
	dateText = regexp.MustCompile(`^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt]|[ \t]+|$)`)
)

func classify(text string) scalarKind {
	if text == "" {
		return scalarNull
	}

	switch c := text[0]; {
	case c >= '0' && c <= '9', c == '-', c == '+', c == '.':
		switch {
		case jsonNumber.MatchString(text):
			return scalarNumber
		case oddNumber.MatchString(text):
			return scalarOdd
		case dateText.MatchString(text):
			return scalarDate
		}

		return scalarString
	}

	switch text {
	case "~", "null", "Null", "NULL":
		return scalarNull
	case "true", "True", "TRUE", "false", "False", "FALSE":
		return scalarBool
	}

	return scalarString
}

// yaml11Bool says whether older readers of YAML take the text for a boolean.
// Here it is a string.
func yaml11Bool(text string) (value string, ok bool) {
	switch strings.ToLower(text) {
	case "yes", "on", "y":
		return "true", true
	case "no", "off", "n":
		return "false", true
	}
	return "", false
}
