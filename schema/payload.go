package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// MaxJSONDepth is how deep the arrays and objects of a body may nest.
const MaxJSONDepth = 10_000

// ValidJSON returns nil when body is one JSON value (RFC 8259) in valid UTF-8
// without a byte-order mark, with nothing but white space after it, and nested
// at most MaxJSONDepth deep. Otherwise the error says what is wrong and where;
// it quotes at most one character of the body. Numbers of any size are valid.
func ValidJSON(body []byte) error {
	if bytes.HasPrefix(body, []byte("\xef\xbb\xbf")) {
		return errors.New("the body begins with a byte-order mark")
	}
	if !utf8.Valid(body) {
		return fmt.Errorf("the body is not valid UTF-8 at byte %d", invalidUTF8(body))
	}
	if at := tooDeep(body); at >= 0 {
		return fmt.Errorf("the body nests more than %d levels deep at byte %d", MaxJSONDepth, at)
	}
	if gjson.ValidBytes(body) {
		return nil
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return errors.New("the body is empty")
	}
	var syntax *json.SyntaxError
	var v json.RawMessage
	if errors.As(json.Unmarshal(body, &v), &syntax) {
		return fmt.Errorf("the body is not valid JSON at byte %d: %s", max(syntax.Offset-1, 0), syntax)
	}
	return errors.New("the body is not valid JSON")
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

// Payload is a body parsed once, for any number of filters. It is immutable and
// safe for concurrent use. The zero Payload matches no filter.
type Payload struct{ root *value }

// ParsePayload parses a body that passes ValidJSON, and returns its error
// otherwise. The body must not change while the Payload is in use. Numbers are
// kept exact; of a repeated key the last value counts.
func ParsePayload(body []byte) (Payload, error) {
	if err := ValidJSON(body); err != nil {
		return Payload{}, err
	}
	p := jsonReader{text: string(body)}
	v := p.value()
	return Payload{&v}, nil
}

type kind byte

const (
	kindNull kind = iota
	kindBool
	kindNumber
	kindString
	kindArray
	kindObject
)

// value is one JSON value. text is a string decoded, a number normalised, true
// or false; raw is the value as the body writes it.
type value struct {
	kind  kind
	text  string
	raw   string
	items []value        // of an array, and the members of an object in order
	keys  []string       // of an object, beside items
	index map[string]int // of a large object: the last place of each key
}

// indexFrom is the number of members from which an object gets an index.
const indexFrom = 16

func (v *value) member(key string) *value {
	if v.kind != kindObject {
		return nil
	}
	if v.index != nil {
		if i, ok := v.index[key]; ok {
			return &v.items[i]
		}
		return nil
	}
	for i := len(v.keys) - 1; i >= 0; i-- {
		if v.keys[i] == key {
			return &v.items[i]
		}
	}
	return nil
}

// equal says whether two scalars are the same JSON value.
func (v *value) equal(o *value) bool {
	return v.kind == o.kind && v.kind < kindArray && v.text == o.text
}

// jsonReader turns text that is known to be valid JSON into values, in one pass.
type jsonReader struct {
	text string
	at   int
}

func (p *jsonReader) space() {
	for p.at < len(p.text) {
		switch p.text[p.at] {
		case ' ', '\t', '\n', '\r':
			p.at++
		default:
			return
		}
	}
}

func (p *jsonReader) value() (v value) {
	p.space()
	start := p.at
	switch p.text[p.at] {
	case '{':
		v.kind = kindObject
		p.at++
		for p.space(); p.text[p.at] != '}'; p.space() {
			if p.text[p.at] == ',' {
				p.at++
				p.space()
			}
			v.keys = append(v.keys, p.string())
			p.space()
			p.at++ // the colon
			v.items = append(v.items, p.value())
		}
		p.at++
		if len(v.keys) >= indexFrom {
			v.index = make(map[string]int, len(v.keys))
			for i, k := range v.keys {
				v.index[k] = i
			}
		}
	case '[':
		v.kind = kindArray
		p.at++
		for p.space(); p.text[p.at] != ']'; p.space() {
			if p.text[p.at] == ',' {
				p.at++
			}
			v.items = append(v.items, p.value())
		}
		p.at++
	case '"':
		v.kind, v.text = kindString, p.string()
	case 't', 'f':
		v.kind = kindBool
		v.text = p.token()
	case 'n':
		p.token()
	default:
		v.kind, v.text = kindNumber, normalNumber(p.token())
	}
	v.raw = p.text[start:p.at]
	return v
}

func (p *jsonReader) token() string {
	start := p.at
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n,]}", p.text[p.at]) < 0 {
		p.at++
	}
	return p.text[start:p.at]
}

func (p *jsonReader) string() string {
	p.at++
	start := p.at
	for p.text[p.at] != '"' && p.text[p.at] != '\\' {
		p.at++
	}
	if p.text[p.at] == '"' {
		p.at++
		return p.text[start : p.at-1]
	}
	out := []byte(p.text[start:p.at])
	for p.text[p.at] != '"' {
		c := p.text[p.at]
		p.at++
		if c != '\\' {
			out = append(out, c)
			continue
		}
		c = p.text[p.at]
		p.at++
		switch c {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r := p.unit()
			if utf16.IsSurrogate(r) && strings.HasPrefix(p.text[p.at:], `\u`) {
				mark := p.at
				p.at += 2
				if pair := utf16.DecodeRune(r, p.unit()); pair != utf8.RuneError {
					r = pair
				} else {
					p.at = mark
				}
			}
			if utf16.IsSurrogate(r) { // a lone half equals only itself
				out = append(out, 0xe0|byte(r>>12), 0x80|byte(r>>6)&0x3f, 0x80|byte(r)&0x3f)
			} else {
				out = utf8.AppendRune(out, r)
			}
		default:
			out = append(out, c)
		}
	}
	p.at++
	return string(out)
}

// unit reads the four hexadecimal digits of an escape.
func (p *jsonReader) unit() rune {
	n, _ := strconv.ParseUint(p.text[p.at:p.at+4], 16, 32)
	p.at += 4
	return rune(n)
}

// normalNumber gives every JSON number of one mathematical value the same text:
// an optional minus sign, digits without zeros at either end, and an exponent
// when that is not zero. The work is linear in the length of the text, whatever
// the number's size.
func normalNumber(text string) string {
	sign := ""
	if text[0] == '-' {
		sign, text = "-", text[1:]
	}
	mantissa, exponent := text, ""
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		mantissa, exponent = text[:i], strings.TrimPrefix(text[i+1:], "+")
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return "0"
	}
	significant := strings.TrimRight(digits, "0")
	shift := len(digits) - len(significant) - len(fraction)
	if e := addExponent(exponent, shift); e != "0" {
		return sign + significant + "e" + e
	}
	return sign + significant
}

// addExponent adds shift to an exponent of any length.
func addExponent(exponent string, shift int) string {
	negative := strings.HasPrefix(exponent, "-")
	digits := strings.TrimLeft(strings.TrimPrefix(exponent, "-"), "0")
	if len(digits) <= 18 {
		n, _ := strconv.ParseInt("0"+digits, 10, 64)
		if negative {
			n = -n
		}
		return strconv.FormatInt(n+int64(shift), 10)
	}
	// The shift is below 10^9, so only the last digits and a carry can change;
	// leading digits are split off to keep the sum cheap.
	const tail = 18
	head, low := digits[:len(digits)-tail], digits[len(digits)-tail:]
	n, _ := strconv.ParseInt(low, 10, 64)
	if negative {
		n -= int64(shift)
	} else {
		n += int64(shift)
	}
	const unit = 1_000_000_000_000_000_000
	carry := int64(0)
	switch {
	case n < 0:
		n, carry = n+unit, -1
	case n >= unit:
		n, carry = n-unit, 1
	}
	if carry != 0 {
		h, _ := new(big.Int).SetString(head, 10)
		head = h.Add(h, big.NewInt(carry)).String()
	}
	out := strings.TrimLeft(head+fmt.Sprintf("%018d", n), "0")
	if negative {
		return "-" + out
	}
	return out
}
