package schema

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Nearest returns the one of known that word was probably meant to be, or ""
// when none or more than one is close. It is what every "did you mean" asks.
func Nearest(word string, known []string) string { return suggest(word, known) }

// suggest returns the one candidate that text was probably meant to be, or "".
// It returns a candidate only when it is nearer than every other.
func suggest(text string, candidates []string) string {
	if text == "" || len(text) > 128 {
		return ""
	}

	folded := fold(text)
	length := utf8.RuneCountInString(folded)
	best, bestDistance, tie := "", 1+max(1, min(3, utf8.RuneCountInString(text)/3)), false
	for _, c := range candidates {
		if c == text || c == "" {
			continue
		}

		distance := 0
		if f := fold(c); f != folded {
			if d := utf8.RuneCountInString(f) - length; d > bestDistance || -d > bestDistance {
				continue
			}
			distance = editDistance(folded, f)
		}

		switch {
		case distance < bestDistance:
			best, bestDistance, tie = c, distance, false
		case distance == bestDistance && best != "" && c != best:
			tie = true
		}
	}

	if tie {
		return ""
	}

	return best
}

// within returns the longest candidate whose words a longer text holds, such as the name of a provider in its URL,
// or "".
func within(text string, candidates []string) (found string) {
	words := func(s string) string {
		return "_" + strings.Map(func(r rune) rune {
			if r < utf8.RuneSelf && !isAlnum(byte(r)) {
				return '_'
			}
			return r
		}, strings.ToLower(s)) + "_"
	}

	text = words(text)
	for _, c := range candidates {
		if len(c) > max(3, len(found)) && strings.Contains(text, words(c)) {
			found = c
		}
	}

	return found
}

// fold makes spellings alike that differ only in case or in separators.
func fold(s string) string {
	return strings.ToLower(strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == ' ' || r == '.' {
			return -1
		}
		return r
	}, s))
}

// editDistance counts the insertions, deletions, replacements and swaps of
// neighbours that turn a into b.
func editDistance(a, b string) int {
	x, y := []rune(a), []rune(b)
	before, last, row := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range last {
		last[j] = j
	}

	for i := 1; i <= len(x); i++ {
		row[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}

			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}

		before, last, row = last, row, before
	}

	return last[len(y)]
}

// didYouMean turns a suggestion into a hint; rest is what to say otherwise.
func didYouMean(suggestion, rest string) string {
	if suggestion == "" {
		return rest
	}
	return "did you mean " + quoted(suggestion) + "?"
}

// listed joins values for a message: a, b or c. Long lists are cut, with count.
func listed(values []string) string {
	const most = 12
	switch n := len(values); {
	case n == 0:
		return "nothing"
	case n == 1:
		return values[0]
	case n > most:
		return strings.Join(values[:most], ", ") + fmt.Sprintf(" and %d more", n-most)
	default:
		return strings.Join(values[:n-1], ", ") + " or " + values[n-1]
	}
}

// quoted shows foreign text in a message: in quotes, control characters
// escaped, cut when it is long.
func quoted(s string) string { return strconv.Quote(cut(s)) }

// clip is quoted without the quotes.
func clip(s string) string {
	q := strconv.Quote(cut(s))
	return strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`)
}

func cut(s string) string {
	const most = 80
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	r := []rune(s)
	return string(r[:most]) + "…"
}

// doubleQuoted writes text as a double-quoted YAML string, for hints.
func doubleQuoted(s string) string { return quoted(s) }

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// shown is a scalar as it stands in the file.
func shown(n *yaml.Node) string {
	if n.Style != 0 {
		return quoted(n.Value)
	}
	return clip(n.Value)
}
