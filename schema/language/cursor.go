package language

import (
	"slices"
	"strings"

	"millwright/schema"
)

// cursor is where in the structure of a file an editor's cursor is.
type cursor struct {
	outline schema.Outline
	path    []*schema.Node // from the root to what is typed
	onKey   bool           // a key is typed, of the last mapping of the path
	colon   bool           // which has its colon already
	inline  bool           // a value is typed on the line of its key
	typed   string
	quote   byte
	start   int // of what is typed, in bytes of the file
	end     int
}

// mark stands for the cursor in a text that is read for the sake of its structure.
const mark = "xMillwrightCursorx"

// cursorIn finds the cursor at an offset of a file. A file that is being typed is mostly broken: the mark is
// read as a value and as a key, in the whole text and in the part before the cursor.
func cursorIn(path string, src []byte, offset int) (cursor, bool) {
	outline, ok := schema.ReadOutline(path, src)
	if !ok || offset < outline.Start || offset > outline.End {
		return cursor{}, false
	}

	before, after := string(src[:offset]), string(src[offset:])
	if inComment(before) {
		return cursor{}, false
	}

	closing := ""
	if outline.Markdown {
		closing = "\n---\n"
	}

	cut := openBrackets(before[outline.Start:])
	for i, text := range []string{
		before + mark + after,
		before + mark + ":" + after,
		before + mark + cut + closing,
		before + mark + ": x" + cut + closing,
	} {
		marked, ok := schema.ReadOutline(path, []byte(text))
		if !ok || marked.Root == nil {
			continue
		}

		c := cursor{outline: marked}
		if c.find(marked.Root) {
			if c.end = min(c.end, len(src)); i > 1 { // what closes the text is not in the file
				c.end = min(c.end, offset)
			}
			if c.start > offset || c.end < offset { // in a text of several lines, or in an anchor
				return cursor{}, false
			}

			c.typed = strings.Replace(c.typed, mark, "", 1)
			c.colon = i == 0 && c.onKey && colonFollows(after)
			last := c.path[len(c.path)-1]
			c.inline = !c.onKey && last.KeyEnd > 0 && !strings.Contains(text[last.KeyEnd:last.Start], "\n")
			return c, true
		}
	}

	if strings.TrimSpace(string(src[outline.Start:outline.End])) != strings.TrimSpace(lineOf(before)) {
		return cursor{}, false
	}

	// A word alone, or nothing, is no mapping yet.
	word := lineOf(before)
	c := cursor{outline: outline, onKey: true, typed: word, start: offset - len(word), end: offset}
	c.path = []*schema.Node{{Kind: schema.NodeMapping}}
	return c, true
}

// colonFollows reports whether the rest of the word at the beginning of a text ends with a colon.
func colonFollows(after string) bool {
	return strings.HasPrefix(strings.TrimLeft(strings.TrimLeft(after, wordCharacters), " "), ":")
}

const wordCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."

func lineOf(before string) string { return before[strings.LastIndexByte(before, '\n')+1:] }

// find goes to the mark below n, and reports whether it is there.
func (c *cursor) find(n *schema.Node) bool {
	c.path = append(c.path, n)
	if n.Kind == schema.NodeScalar && strings.Contains(n.Value, mark) {
		c.typed, c.quote = n.Value, n.Quote
		c.start, c.end = n.Start, n.End-len(mark)
		return true
	}

	for _, inner := range n.Items {
		if n.Kind == schema.NodeMapping && strings.Contains(inner.Key, mark) {
			c.typed, c.onKey = inner.Key, true
			c.start, c.end = inner.KeyStart, inner.KeyEnd-len(mark)
			return true
		}
		if c.find(inner) {
			return true
		}
	}

	c.path = c.path[:len(c.path)-1]
	return false
}

// names returns the steps of the path below the root: keys, and "[]" for items of lists.
func (c *cursor) names() (steps []string) {
	for i, n := range c.path {
		if i == 0 {
			continue
		}
		if c.path[i-1].Kind == schema.NodeList {
			steps = append(steps, "[]")
		} else {
			steps = append(steps, n.Key)
		}
	}
	return steps
}

// trigger returns the trigger of an automation that the cursor is in, or nil, and the steps from it.
func (c *cursor) trigger() (*schema.Node, []string) {
	steps := c.names()
	if c.outline.Document != "automation" || len(steps) < 2 || steps[0] != "triggers" || steps[1] != "[]" {
		return nil, nil
	}
	return c.path[2], steps[2:]
}

// inComment reports whether the end of a text is in a comment of YAML.
func inComment(before string) bool {
	line := lineOf(before)
	quote := byte(0)
	for i := range len(line) {
		switch c := line[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '#' && (i == 0 || line[i-1] == ' ' || line[i-1] == '\t'):
			return true
		}
	}
	return false
}

// openBrackets returns what closes the quotes and brackets that a text leaves open.
func openBrackets(text string) string {
	var open []byte
	quote := byte(0)
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case quote != 0:
			if c == '\\' && quote == '"' {
				i++
			} else if c == quote || c == '\n' {
				quote = 0
			}
		case c == '"' || c == '\'':
			if i == 0 || strings.IndexByte(" \t\n[{,:", text[i-1]) >= 0 {
				quote = c
			}
		case c == '[':
			open = append(open, ']')
		case c == '{':
			open = append(open, '}')
		case (c == ']' || c == '}') && len(open) > 0 && open[len(open)-1] == c:
			open = open[:len(open)-1]
		}
	}

	slices.Reverse(open)
	if quote != 0 {
		return string(quote) + string(open)
	}
	return string(open)
}
