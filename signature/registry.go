package signature

import (
	"cmp"
	"maps"
	"slices"
	"sync"
)

// registry is the compiled table.
type registry struct {
	sorted   []*Scheme
	byName   map[string]*Scheme // aliases too
	reserved map[string]bool    // canonical names
}

var table = sync.OnceValue(func() registry {
	reg := registry{byName: map[string]*Scheme{}, reserved: map[string]bool{}}
	for _, r := range rows() {
		s := compile(r)
		reg.sorted = append(reg.sorted, s)
		reg.byName[r.name] = s
		for _, alias := range r.aliases {
			reg.byName[alias] = s
		}
		for _, name := range s.SignatureHeaders() {
			reg.reserved[name] = true
		}
	}
	slices.SortFunc(reg.sorted, func(a, b *Scheme) int { return cmp.Compare(a.row.name, b.row.name) })
	return reg
})

// Lookup finds a scheme by its key or by one of its aliases. CustomName is not
// among them: Custom makes such a scheme.
func Lookup(name string) (*Scheme, bool) {
	s, ok := table().byName[name]
	return s, ok
}

// Schemes are all built-in schemes, sorted by name.
func Schemes() []*Scheme { return slices.Clone(table().sorted) }

// Names are all values that signatureScheme may have: keys, aliases and
// CustomName, sorted.
func Names() []string {
	names := append(slices.Collect(maps.Keys(table().byName)), CustomName)
	slices.Sort(names)
	return names
}

// ReservedHeaders are the canonical names of every built-in scheme's signature
// and timestamp headers, sorted. None of them can name a delivery.
func ReservedHeaders() []string { return slices.Sorted(maps.Keys(table().reserved)) }

// Reserved reports whether a header, in any case, is among ReservedHeaders.
func Reserved(header string) bool { return table().reserved[canonical(header)] }
