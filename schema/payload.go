package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// MaxJSONDepth is how deep the arrays and objects of a body may nest.
const MaxJSONDepth = 10_000

// ValidJSON returns nil when body is one JSON value (RFC 8259) in valid UTF-8
// without a byte-order mark, with nothing but white space after it, and nested
// at most MaxJSONDepth deep. Otherwise the error describes the problem and its place;
// it quotes at most one character of the body. Numbers of any size are valid.
func ValidJSON(body []byte) error {
	if wrong := NotJSON(body); wrong != "" {
		return errors.New("the body " + wrong)
	}
	return nil
}

// NotJSON returns how a text breaks the rules of ValidJSON, such as "is empty"; empty for valid text.
func NotJSON(text []byte) string {
	if bytes.HasPrefix(text, []byte("\xef\xbb\xbf")) {
		return "begins with a byte-order mark"
	}
	if !utf8.Valid(text) {
		return fmt.Sprintf("is not valid UTF-8 at byte %d", invalidUTF8(text))
	}
	if at := tooDeep(text); at >= 0 {
		return fmt.Sprintf("nests more than %d levels deep at byte %d", MaxJSONDepth, at)
	}
	if gjson.ValidBytes(text) {
		return ""
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return "is empty"
	}

	var syntax *json.SyntaxError
	var v json.RawMessage
	if errors.As(json.Unmarshal(text, &v), &syntax) {
		return fmt.Sprintf("is not valid JSON at byte %d: %s", max(syntax.Offset-1, 0), syntax)
	}

	return "is not valid JSON"
}

func invalidUTF8(b []byte) int {
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return len(b)
}

// tooDeep returns the offset of the bracket that opens level MaxJSONDepth+1,
// or -1. It needs no valid JSON: it runs before the recursive validator.
func tooDeep(body []byte) int {
	if bytes.Count(body, []byte{'['})+bytes.Count(body, []byte{'{'}) <= MaxJSONDepth {
		return -1
	}

	depth, quoted := 0, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case quoted:
			if c == '\\' {
				i++
			} else if c == '"' {
				quoted = false
			}

		case c == '"':
			quoted = true
		case c == '[' || c == '{':
			if depth++; depth > MaxJSONDepth {
				return i
			}
		case c == ']' || c == '}':
			depth--
		}
	}

	return -1
}

// Payload is a valid body, for any number of filters. It refers to the body and is little else, whatever the
// body holds. It is immutable and safe for concurrent use. The zero Payload matches no filter.
type Payload struct {
	body    []byte
	members []member // of a body that is an object with at most maxMembers members
}

// member is one member of an object: where its key begins behind the quotation mark and ends, and where its
// value begins.
type member struct{ key, end, value int32 }

// maxMembers bounds the members that ParsePayload looks up once for all filters.
const maxMembers = 128

// ParsePayload checks a body as ValidJSON does, and returns its error. The body must not change while the
// Payload is in use. Numbers are kept exact; of a repeated key the last value counts.
func ParsePayload(body []byte) (Payload, error) {
	if err := ValidJSON(body); err != nil {
		return Payload{}, err
	}

	p := Payload{body: body}
	s := scanner{text: body}
	if s.kind() != kindObject {
		return p, nil
	}

	members := make([]member, 0, 16)
	for s.enter(); s.more(); s.skip() {
		if len(members) == maxMembers {
			return p, nil
		}

		m := member{key: int32(s.at + 1)}
		s.skipString()
		m.end = int32(s.at - 1)
		s.space()
		s.at++ // the colon
		s.space()
		m.value = int32(s.at)
		members = append(members, m)
	}

	p.members = members
	return p, nil
}
