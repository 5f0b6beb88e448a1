package schema

import "slices"

// Match reports whether the body of a delivery matches. It never panics; what
// cannot be evaluated does not match. It evaluates over the text of the body,
// and what it allocates does not depend on how many values the body holds.
func (f *Filter) Match(p Payload) bool {
	if f == nil {
		return true
	}
	if p.body == nil {
		return false
	}

	s := scanner{text: p.body}
	if s.kind() != kindObject {
		return len(f.root.fields) == 0
	}

	at := p.places(&s, &f.root)
	for i := range f.root.fields {
		if field := &f.root.fields[i]; s.passed(field, at[i]) < field.leaves() {
			return false
		}
	}

	return true
}

// places are where the values of an object begin, by the fields of a pattern. An absent field has none.
type places [MaxFilterLeaves]int32

const absent = -1

// placesOf gives all fields of p one place.
func placesOf(p *pattern, place int32) (at places) {
	for i := range p.fields {
		at[i] = place
	}
	return at
}

// places finds the fields of p in the body, which is an object.
func (p *Payload) places(s *scanner, pattern *pattern) (at places) {
	if p.members == nil {
		s.at = 0
		s.space()
		return s.places(pattern)
	}
	for i := range pattern.fields {
		at[i] = p.member(s, pattern.fields[i].key())
	}
	return at
}

// member finds the last member of the body that has a key.
func (p *Payload) member(s *scanner, key string) int32 {
	for i := len(p.members) - 1; i >= 0; i-- {
		m := p.members[i]
		text := p.body[m.key:m.end]
		if string(text) == key {
			return m.value
		}

		if len(text) > len(key) && slices.Contains(text, '\\') {
			s.room = appendUnescaped(s.room[:0], text)
			if string(s.room) == key {
				return m.value
			}
		}
	}

	return absent
}

// places finds the fields of p in the object at s, the last of each key, and moves past the object.
func (s *scanner) places(p *pattern) (at places) {
	at = placesOf(p, absent)
	for s.enter(); s.more(); s.skip() {
		if i := p.field(s.key()); i >= 0 {
			at[i] = int32(s.at)
		}
	}
	return at
}

// field returns the place of the field that has a key, or -1.
func (p *pattern) field(key []byte) int {
	for i := range p.fields {
		if p.fields[i].key() == string(key) {
			return i
		}
	}
	return -1
}

// leaves counts the leaf fields of f.
func (f *field) leaves() int {
	if f.ops != nil {
		return 1
	}
	return f.nested.leaves
}

// passed counts the leaf fields of f that hold on the value at a place, or where there is none.
func (s *scanner) passed(f *field, at int32) int {
	if at >= 0 {
		s.at = int(at)
	}

	switch {
	case f.ops != nil:
		if at >= 0 && s.holds(f.ops) || at == absent && f.ops.holdsAbsent() {
			return 1
		}
	case at < 0:
	case s.kind() == kindObject:
		return s.passedAll(f.nested)
	case s.kind() == kindArray:
		return s.closest(f.nested).passed
	}

	return 0
}

// passedAll counts the leaf fields of p that hold on the object at s, and moves past the object.
func (s *scanner) passedAll(p *pattern) (n int) {
	at := s.places(p)
	end := s.at
	for i := range p.fields {
		n += s.passed(&p.fields[i], at[i])
	}
	s.at = end
	return n
}

// element is an object in an array: the leaf fields that hold on it, its index, and where it begins.
type element struct{ passed, index, at int }

// closest returns the first object of the array at s on which the most leaf fields of p hold. Without an
// object the index is -1.
func (s *scanner) closest(p *pattern) element {
	best := element{index: -1}
	s.enter()
	for i := 0; s.more(); i++ {
		if s.kind() != kindObject {
			s.skip()
			continue
		}

		at := s.at
		if n := s.passedAll(p); best.index < 0 || n > best.passed {
			best = element{n, i, at}
		}
		if best.passed == p.leaves {
			break
		}
	}

	return best
}

// holdsAbsent reports whether the operators hold on a field that is absent.
func (o *operators) holdsAbsent() bool {
	return o.in == nil && (o.exists == nil || !*o.exists)
}

// holds reports whether the operators hold on the value at s.
func (s *scanner) holds(o *operators) bool {
	if o.exists != nil && !*o.exists {
		return false
	}
	if o.in == nil && o.notIn == nil {
		return true
	}

	if k := s.kind(); k != kindArray {
		in, notIn := s.among(o, k)
		return (o.in == nil || in) && !notIn
	}

	in, notIn := false, false
	kinds := o.kinds()
	for s.enter(); s.more(); {
		k := s.kind()
		if !kinds[k] {
			s.skip()
			continue
		}

		isIn, isNotIn := s.among(o, k)
		in, notIn = in || isIn, notIn || isNotIn
	}

	return (o.in == nil || in) && !notIn
}

// among reports whether the value at s, which is of kind k, equals one of each set, and moves past it unless
// it is an object.
func (s *scanner) among(o *operators, k kind) (in, notIn bool) {
	if k == kindObject {
		return false, false
	}
	text := s.scalar(k)
	equal := func(v value) bool { return v.kind == k && v.text == string(text) }
	return slices.ContainsFunc(o.in, equal), slices.ContainsFunc(o.notIn, equal)
}

// kinds tells of which kinds the values of both sets are.
func (o *operators) kinds() (kinds [kindObject + 1]bool) {
	for _, set := range [][]value{o.in, o.notIn} {
		for i := range set {
			kinds[set[i].kind] = true
		}
	}
	return kinds
}
