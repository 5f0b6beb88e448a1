package admin

import (
	"cmp"
	"slices"
	"strings"

	"millwright/signature"
)

// SignatureScheme is a scheme that a webhook can name, or another name of one.
type SignatureScheme struct {
	Name     string // in signatureScheme
	Provider string // as people write it
}

// Provider returns the name of the provider of a scheme, as people write it.
func Provider(scheme string) string { return signature.Provider(scheme) }

// SignatureSchemes returns what the form of a webhook offers, by provider. A custom scheme is written in the
// webhook's file.
func SignatureSchemes() (all []SignatureScheme) {
	for _, name := range signature.Names() {
		if name != signature.CustomName {
			all = append(all, SignatureScheme{name, signature.Provider(name)})
		}
	}

	slices.SortFunc(all, func(a, b SignatureScheme) int {
		return cmp.Compare(strings.ToLower(a.Provider), strings.ToLower(b.Provider))
	})
	return all
}
