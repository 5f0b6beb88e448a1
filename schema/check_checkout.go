package schema

import (
	"strings"
)

// Checkout says what runs of an automation start in.
type Checkout struct {
	Ref string `json:"ref,omitempty"` // a branch or tag of the first repository
}

// checkout reads the key checkout of an automation.
func (d *document) checkout() *Checkout {
	m, ok := d.data["checkout"].(map[string]any)
	if !ok {
		return nil
	}

	c := &Checkout{Ref: text(m, "ref")}
	if n := child(d.value("checkout"), "ref"); n != nil && c.Ref != "" && !d.bad[n] && !ValidRef(c.Ref) {
		d.errorAt(n, ruleInvalidValue, "checkout.ref: "+quoted(c.Ref)+" is not the name of a branch or tag",
			"write a name like main, release/1.2 or refs/tags/v1.2")
	}
	return c
}

// ValidRef reports whether a text can be the name of a branch or tag, by the rules of git check-ref-format.
func ValidRef(name string) bool {
	const forbidden = " ~^:?*[\\\x7f"
	switch {
	case name == "", len(name) > MaxRef, name == "@", strings.HasPrefix(name, "-"), strings.HasSuffix(name, "."),
		strings.Contains(name, ".."), strings.Contains(name, "@{"), strings.ContainsAny(name, forbidden),
		strings.ContainsFunc(name, func(r rune) bool { return r < ' ' }):
		return false
	}

	for part := range strings.SplitSeq(name, "/") {
		if part == "" || strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".lock") {
			return false
		}
	}
	return true
}
