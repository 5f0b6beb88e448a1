package wire

import "encoding/json"

// MaxDepth is how many levels of lists and objects a value may have that others wrote and clients are to
// read: the readers of some languages give up at 64 levels, an answer's own included.
const MaxDepth = 32

// Deep reports whether a JSON value has more levels than MaxDepth.
func Deep(value json.RawMessage) bool {
	depth, quoted := 0, false
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			if depth++; depth > MaxDepth {
				return true
			}
		case c == ']' || c == '}':
			depth--
		}
	}

	return false
}
