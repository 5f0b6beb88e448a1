package runs

import (
	"strings"
	"unicode/utf8"
)

func clean(value string) bool { return utf8.ValidString(value) && !strings.Contains(value, "\x00") }

func blank(text string) bool { return strings.TrimSpace(text) == "" }
