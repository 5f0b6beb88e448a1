package provider

import "strings"

// mentions returns a reader of the accounts that the Markdown texts at the paths mention with @, as a word and
// outside of code, quotes and comments. A team is its organization and name. dotted allows dots and
// underscores in names.
func mentions(dotted bool, paths ...string) reader {
	return func(b *body, yield func(string) bool) {
		more := true
		for _, path := range paths {
			if text := b.string(path); more && strings.Contains(text, "@") {
				eachParagraph(text, func(paragraph string) bool {
					more = eachMention(paragraph, dotted, yield)
					return more
				})
			}
		}
	}
}

// eachParagraph yields the paragraphs of a Markdown text, without fenced code, quotes and HTML comments that
// begin a line.
func eachParagraph(text string, yield func(string) bool) {
	fence, comment := "", false
	var paragraph strings.Builder
	flush := func() bool {
		more := paragraph.Len() == 0 || yield(paragraph.String())
		paragraph.Reset()
		return more
	}

	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		switch {
		case comment:
			comment = !strings.Contains(trimmed, "-->")
		case fence != "":
			if strings.HasPrefix(trimmed, fence) && strings.Trim(trimmed, fence[:1]) == "" {
				fence = ""
			}
		case strings.HasPrefix(trimmed, "<!--"):
			comment = !strings.Contains(trimmed, "-->")
		case strings.HasPrefix(trimmed, "```") || strings.HasPrefix(trimmed, "~~~"):
			rest := strings.TrimLeft(trimmed, trimmed[:1])
			if trimmed[0] == '`' && strings.Contains(rest, "`") { // a span of code in a line of its own
				paragraph.WriteString(line)
				continue
			}

			fence = trimmed[:len(trimmed)-len(rest)]

		case trimmed == "" || strings.HasPrefix(trimmed, ">"):
		default:
			paragraph.WriteString(line)
			continue
		}

		if !flush() {
			return
		}
	}

	flush()
}

// eachMention yields the accounts that a paragraph mentions, and reports whether yield wants more.
func eachMention(text string, dotted bool, yield func(string) bool) bool {
	open := map[int]bool{} // lengths of runs of backquotes that nothing closes
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '`':
			run := len(text[i:]) - len(strings.TrimLeft(text[i:], "`"))
			i += run
			if !open[run] {
				end := endOfCode(text[i:], run)
				open[run] = end < 0
				i += max(end, 0)
			}

			i--

		case c == '<' && strings.HasPrefix(text[i:], "<!--"):
			end := strings.Index(text[i:], "-->")
			if end < 0 {
				return true
			}

			i += end + 2

		case c == '\\':
			i++
		case c == '@' && !wordBefore(text[:i]):
			name := account(text[i+1:], dotted)
			if name != "" && !yield(name) {
				return false
			}

			i += len(name)
		}
	}

	return true
}

// endOfCode returns where a span of code ends that a run of so many backquotes began, or -1.
func endOfCode(text string, run int) int {
	for i := 0; i < len(text); {
		start := strings.IndexByte(text[i:], '`')
		if start < 0 {
			return -1
		}

		i += start
		length := len(text[i:]) - len(strings.TrimLeft(text[i:], "`"))
		i += length
		if length == run {
			return i
		}
	}

	return -1
}

// wordBefore reports whether an @ behind text is part of a longer word, such as an email address. Underscores
// are emphasis unless a word is before them.
func wordBefore(text string) bool {
	if text == "" {
		return false
	}
	if c := text[len(text)-1]; c != '_' {
		return alphanumeric(c) || strings.IndexByte("-.+/@", c) >= 0
	}

	text = strings.TrimRight(text, "_")
	return text != "" && alphanumeric(text[len(text)-1])
}

func alphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// maxAccount bounds the names of accounts and teams.
const maxAccount = 255

// account returns the name of the account or team that text begins with, or "".
func account(text string, dotted bool) string {
	end, slash := 0, false
	for end < len(text) && end < maxAccount {
		c := text[end]
		if c == '/' && !slash && end > 0 && end+1 < len(text) && alphanumeric(text[end+1]) {
			slash = true
		} else if !alphanumeric(c) && c != '-' && c != '_' && (c != '.' || !dotted) {
			break
		}

		end++
	}

	if end == 0 || !alphanumeric(text[0]) {
		return ""
	}

	return strings.TrimRight(text[:end], "-_.")
}
