package wire

import "encoding/json"

// MaxDepth is the maximum nesting of foreign JSON values in answers: the parsers of some clients give up at
// 64 levels, including those of the answer itself.
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
