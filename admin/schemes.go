package admin

import "millwright/signature"

// SignatureSchemes returns the names of the schemes that a webhook's form offers, sorted. A custom scheme is
// written in the webhook's file.
func SignatureSchemes() []string {
	var names []string
	for _, name := range signature.Names() {
		if s, ok := signature.Lookup(name); ok && s.Name() == name && name != "custom" {
			names = append(names, name)
		}
	}
	return names
}
