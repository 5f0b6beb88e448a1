package schema

import "strings"

// ShellWord quotes text as one word for a POSIX shell, which expands nothing in it. Text that means itself
// stays as it is.
func ShellWord(text string) string {
	special := func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') &&
			!strings.ContainsRune("%+,-./:=@_", r)
	}
	if text != "" && !strings.ContainsFunc(text, special) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
