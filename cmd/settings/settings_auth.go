package settings

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"millwright/api/identity"
	"millwright/state"
)

// LoginSecret is the variable with the client secret of auth.login, unless a file has it.
const LoginSecret = "MILLWRIGHT_LOGIN_CLIENT_SECRET"

// LoginConfig returns the configuration of the sign-in of people; nil if there is none. fromEnvironment is the
// value of LoginSecret.
func (s *Settings) LoginConfig(fromEnvironment string) (*identity.LoginConfig, error) {
	l := s.Auth.Login
	if l == nil {
		return nil, nil
	}

	cfg := &identity.LoginConfig{
		Issuer:       l.Issuer,
		ClientID:     l.ClientID,
		ClientSecret: fromEnvironment,
		Scopes:       l.Scopes,
		RedirectURL:  strings.TrimSuffix(s.PublicURL, "/") + "/login/callback",
	}
	if l.ClientSecretFile != "" {
		secret, err := os.ReadFile(l.ClientSecretFile)
		if err != nil {
			return nil, fmt.Errorf("auth.login.clientSecretFile: %w", err)
		}
		cfg.ClientSecret = strings.TrimSpace(string(secret))
	}

	for _, r := range l.Roles {
		cfg.Roles = append(cfg.Roles, identity.PersonRule{
			Claim:     r.Claim,
			Value:     r.Value,
			Role:      state.Role(r.Role),
			Factories: r.Factories,
		})
	}

	return cfg, nil
}

func (c *checks) login(s *Settings) {
	l := s.Auth.Login
	if l == nil {
		return
	}

	if err := identity.CheckIssuer(l.Issuer); err != nil {
		c.bad("auth.login.issuer", " %q: %w", l.Issuer, err)
	}
	if l.ClientID == "" {
		c.bad("auth.login", ".clientId is missing")
	}
	if len(l.Roles) == 0 {
		c.bad("auth.login", ".roles is missing: nobody could sign in")
	}

	for i, r := range l.Roles {
		at := fmt.Sprintf("auth.login.roles[%d]", i)
		if r.Claim == "" || r.Value == "" || strings.Contains(r.Value, identity.AnyValue) {
			c.bad(at, ": want a claim and one of its values, such as claim: groups, value: operators")
		}
		if !slices.Contains([]string{"viewer", "runner", "admin"}, r.Role) {
			c.bad(at+".role", " %q: want viewer, runner or admin", r.Role)
		}
		c.limit(at+".factories", r.Factories, s)
	}
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

// Issuers returns the issuers of accepted tokens, each once.
func (s *Settings) Issuers() []string {
	var all []string
	for _, o := range s.Auth.OIDC {
		all = append(all, o.Issuer)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// identityClaims are the claims of which one has to name whose tokens are accepted.
var identityClaims = []string{"repository_id", "project_id", "sub"}

func (c *checks) auth(s *Settings) {
	c.login(s)
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
