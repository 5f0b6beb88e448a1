package settings

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"millwright/api/identity"
	"millwright/state"
)

// Auth configures who may use the server beside the holders of API keys.
type Auth struct {
	OIDC []OIDC `json:"oidc"`
}

// OIDC grants a role to the ID tokens of an OpenID Connect issuer.
type OIDC struct {
	Issuer    string            `json:"issuer"`
	Audience  string            `json:"audience"`
	Claims    map[string]string `json:"claims"`
	Role      string            `json:"role"`
	Factories []string          `json:"factories"`
}

// TokenRules returns the rules for ID tokens.
func (s *Settings) TokenRules() []identity.Rule {
	var all []identity.Rule
	for _, o := range s.Auth.OIDC {
		all = append(all, identity.Rule{
			Issuer:    o.Issuer,
			Audience:  o.Audience,
			Claims:    o.Claims,
			Role:      state.Role(o.Role),
			Factories: o.Factories,
		})
	}
	return all
}

// identityClaims are the claims of which one has to name whose tokens are accepted.
var identityClaims = []string{"repository_id", "project_id", "sub"}

func (c *checks) auth(s *Settings) {
	for i, o := range s.Auth.OIDC {
		at := fmt.Sprintf("auth.oidc[%d]", i)
		if err := identity.CheckIssuer(o.Issuer); err != nil {
			c.bad(at+".issuer", " %q: %w", o.Issuer, err)
		}
		if o.Audience == "" || strings.Contains(o.Audience, identity.AnyValue) {
			c.bad(at+".audience", " %q: want the audience of the tokens, such as millwright", o.Audience)
		}
		if !slices.Contains([]string{"planner", "viewer", "runner"}, o.Role) {
			c.bad(at+".role", " %q: want planner, viewer or runner", o.Role)
		}

		c.claims(at+".claims", o.Claims)
		c.limit(at+".factories", o.Factories, s)
	}
}

// claims checks the claims of an entry.
func (c *checks) claims(at string, claims map[string]string) {
	identified := false
	for _, name := range slices.Sorted(maps.Keys(claims)) {
		value := claims[name]
		switch {
		case value == "":
			c.bad(at+"."+name, " is empty: want the value, or * for any")
		case value != identity.AnyValue && strings.Contains(value, identity.AnyValue):
			c.bad(at+"."+name, " %q: * stands for any value only alone", value)
		}
		identified = identified || value != identity.AnyValue && slices.Contains(identityClaims, name)
	}

	if !identified {
		c.bad(at, ": give a value to one of %s, so that not everybody's tokens are accepted",
			strings.Join(identityClaims, ", "))
	}
}

// limit checks the factories that an entry is limited to.
func (c *checks) limit(at string, names []string, s *Settings) {
	if names != nil && len(names) == 0 {
		c.bad(at, ": name at least one, or leave it out for all")
	}
	for i, name := range names {
		named := slices.ContainsFunc(s.Factories, func(f Factory) bool { return f.Name == name })
		if !named && len(s.Factories) > 0 {
			c.bad(fmt.Sprintf("%s[%d]", at, i), " %q is not one of factories", name)
		}
	}
}
