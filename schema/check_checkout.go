package schema

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"millwright/schema/provider"
)

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

// headOnce reports a checkout: head that has no effect: the events of most providers name no commit, and the
// ref of the automation counts before any.
func (d *document) headOnce(triggers *yaml.Node, a Automation) {
	for i, t := range a.Triggers {
		key, n := find(triggers.Content[i], "checkout")
		if t.Checkout == "" || d.bad[n] {
			continue
		}

		switch {
		case !slices.Contains([]string{providerWebhook, provider.GitHub, provider.GitLab}, t.Provider):
			d.errorAt(
				key, ruleTrigger, "no event of "+quoted(t.Provider)+" names a commit", "delete this key")
		case a.Checkout != nil && a.Checkout.Ref != "":
			d.errorAt(key, ruleTrigger, "runs start at checkout.ref of the automation, whatever a delivery names",
				"delete this key, or checkout.ref")
		}
	}
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
