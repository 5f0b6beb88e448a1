package schema

// maxFilterText bounds the fields, lists and values of a filter's text that are read. A filter with more is
// far over every limit.
const maxFilterText = 10_000

// value is one JSON value of a filter's text. text is a string decoded, a number in normal form, true or
// false; raw is the value as the filter writes it.
type value struct {
	kind  kind
	text  string
	raw   string
	items []value  // of an array, and the members of an object in order
	keys  []string // of an object, beside items
}

// equal reports whether two scalars are the same JSON value.
func (v *value) equal(o *value) bool {
	return v.kind == o.kind && v.kind < kindArray && v.text == o.text
}

// filterReader turns a filter's text into values, as many as maxFilterText allows.
type filterReader struct {
	scanner
	whole  string // the text
	values int
}

func (r *filterReader) value() (v value) {
	if r.values++; r.values > maxFilterText {
		return v
	}

	v.kind = r.kind()
	start := r.at

	switch v.kind {
	case kindObject:
		for r.enter(); r.values <= maxFilterText && r.more(); {
			v.keys = append(v.keys, string(r.key()))
			v.items = append(v.items, r.value())
		}
	case kindArray:
		for r.enter(); r.values <= maxFilterText && r.more(); {
			v.items = append(v.items, r.value())
		}
	default:
		v.text = string(r.scalar(v.kind))
	}

	v.raw = r.whole[start:r.at]
	return v
}
