package schema

import (
	"bytes"
	"slices"
	"strconv"
)

// appendNumber appends the normal form of a JSON number, which all numbers of its mathematical value share:
// an optional minus sign, digits without zeros at either end, and "e" and an exponent unless that is zero.
// The work is linear in the length of the text, not in the number's size.
func appendNumber(out, text []byte) []byte {
	start := len(out)
	if text[0] == '-' {
		out, text = append(out, '-'), text[1:]
	}

	first := len(out)
	mantissa, exponent := text, []byte(nil)
	if i := bytes.IndexAny(text, "eE"); i >= 0 {
		mantissa, exponent = text[:i], bytes.TrimPrefix(text[i+1:], []byte("+"))
	}

	whole, fraction, _ := bytes.Cut(mantissa, []byte("."))
	shift := -len(fraction)
	if whole = bytes.TrimLeft(whole, "0"); len(whole) == 0 {
		fraction = bytes.TrimLeft(fraction, "0")
	}

	out = append(append(out, whole...), fraction...)
	if len(out) == first {
		return append(out[:start], '0')
	}

	digits := len(out)
	out = bytes.TrimRight(out, "0")
	return appendExponent(out, exponent, shift+digits-len(out))
}

// appendExponent appends "e" and the sum of an exponent of any length and a shift, unless that is zero.
func appendExponent(out, exponent []byte, shift int) []byte {
	digits := bytes.TrimPrefix(exponent, []byte("-"))
	negative := len(digits) < len(exponent)
	digits = bytes.TrimLeft(digits, "0")

	if len(digits) <= 18 {
		n, _ := strconv.ParseInt("0"+string(digits), 10, 64)
		if negative {
			n = -n
		}
		if n += int64(shift); n == 0 {
			return out
		}

		return strconv.AppendInt(append(out, 'e'), n, 10)
	}

	// The shift is less than the exponent, and so changes no sign.
	out = append(out, 'e')
	if negative {
		out, shift = append(out, '-'), -shift
	}

	first := len(out)
	out = append(out, digits...)
	for i := len(out) - 1; shift != 0; i-- {
		if i < first {
			out, i = slices.Insert(out, first, '0'), first
		}

		sum := int(out[i]-'0') + shift
		digit := (sum%10 + 10) % 10
		out[i], shift = byte('0'+digit), (sum-digit)/10
	}

	return append(out[:first], bytes.TrimLeft(out[first:], "0")...)
}
