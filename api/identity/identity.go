// Package identity takes the ID tokens of OpenID Connect issuers in place of API keys.
//
// A token is worth what the settings grant to its claims. Only issuers of the settings are asked for anything:
// their configuration and keys. These are bounded in size and kept, so tokens of strangers cannot make the server
// fetch or hold more.
package identity

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/coreos/go-oidc/v3/oidc"

	"millwright/state"
)

// AnyValue as the value of a claim in a Rule stands for every value.
const AnyValue = "*"

// maxToken bounds an ID token, in bytes.
const maxToken = 16 << 10

// Rule grants a role to the tokens of an issuer.
type Rule struct {
	Issuer   string
	Audience string
	// Claims are the values that claims of the token must have. AnyValue stands for every value.
	Claims map[string]string
	Role   state.Role
	// Factories are the names of the factories that the role is limited to; nil: it is not limited.
	Factories []string
}

// Grant is what a token is worth.
type Grant struct {
	Issuer    string
	Subject   string
	Role      state.Role
	Factories []string // as of the Rule
	Expires   time.Time
}

// Name returns the subject for people.
func (g Grant) Name() string {
	name := []rune(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, g.Subject))
	return string(name[:min(len(name), maxName)])
}

// maxName bounds the name of a grant, in characters.
const maxName = 200

// UID returns an identifier of the subject with what the grant allows it in these factories.
func (g Grant) UID(factories []string) string {
	facts, _ := json.Marshal([]any{g.Issuer, g.Subject, g.Role, factories}) // texts never fail
	sum := sha256.Sum256(facts)
	return "oidc_" + hex.EncodeToString(sum[:13])
}

// Tokens verifies ID tokens. It is safe for concurrent use.
type Tokens struct {
	refresh time.Duration
	log     *slog.Logger
	set     atomic.Pointer[ruleSet]
}

// Config configures Tokens. Its zero value works.
type Config struct {
	// Refresh is how often at most an issuer is asked for an unknown key; 0: once a minute.
	Refresh time.Duration
	// Log receives a line when an issuer cannot be asked; nil discards it.
	Log *slog.Logger
}

// ruleSet are the rules of one moment.
type ruleSet struct {
	rules   []Rule
	issuers map[string]*issuer
}

// New returns Tokens that refuse every token until Configure is called.
func New(cfg Config) *Tokens {
	t := &Tokens{refresh: cfg.Refresh, log: cfg.Log}
	if t.refresh == 0 {
		t.refresh = time.Minute
	}
	if t.log == nil {
		t.log = slog.New(slog.DiscardHandler)
	}

	t.set.Store(&ruleSet{})
	return t
}

// Configure replaces the rules. The keys of issuers that are in both are kept. It asks no issuer.
func (t *Tokens) Configure(rules []Rule) {
	next := &ruleSet{rules: rules, issuers: map[string]*issuer{}}
	known := t.set.Load().issuers
	for _, r := range rules {
		i := known[r.Issuer]
		if i == nil {
			i = newIssuer(r.Issuer, t.refresh, t.log)
		}
		next.issuers[r.Issuer] = i
	}

	t.set.Store(next)
}

// IsToken reports whether a bearer credential has the form of an ID token.
func IsToken(secret string) bool {
	return strings.Count(secret, ".") == 2 && strings.HasPrefix(secret, "ey")
}

// Verify returns what a token is worth by the first rule that it fits. The error is a *Refusal, ErrUnavailable, or
// that of ctx.
func (t *Tokens) Verify(ctx context.Context, raw string) (Grant, error) {
	if len(raw) > maxToken {
		return Grant{}, refuse("the token is longer than %d bytes", maxToken)
	}

	name, err := issuerOf(raw)
	if err != nil {
		return Grant{}, err
	}

	set := t.set.Load()
	i := set.issuers[name]
	if i == nil {
		return Grant{}, refuse("the settings have no entry of auth.oidc for the issuer of this token")
	}

	token, claims, err := i.verify(ctx, raw, &oidc.Config{SkipClientIDCheck: true})
	if err != nil {
		return Grant{}, err
	}

	var reasons []string
	for n, r := range set.rules {
		if r.Issuer != name {
			continue
		}

		why := r.mismatch(token.Audience, claims)
		if why == "" {
			return Grant{name, token.Subject, r.Role, r.Factories, token.Expiry}, nil
		}
		if len(reasons) < maxReasons {
			reasons = append(reasons, fmt.Sprintf("auth.oidc[%d]: %s", n, why))
		}
	}

	return Grant{}, refuse("the token fits no entry: %s", strings.Join(reasons, "; "))
}

// maxReasons is how many rules a Refusal explains.
const maxReasons = 5

// issuerOf returns the issuer that a token names, before anything of it is verified.
func issuerOf(raw string) (string, error) {
	parts := strings.Split(raw, ".")
	if len(parts) != 3 {
		return "", refuse("this is no ID token")
	}

	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return "", refuse("this is no ID token")
	}

	var claims struct {
		Issuer string `json:"iss"`
	}
	if err := json.Unmarshal(payload, &claims); err != nil {
		return "", refuse("this is no ID token")
	}

	return claims.Issuer, nil
}

// mismatch returns why a verified token does not fit the rule, or "".
func (r Rule) mismatch(audience []string, claims map[string]json.RawMessage) string {
	if !slices.Contains(audience, r.Audience) {
		return "the audience is another"
	}

	for _, name := range slices.Sorted(maps.Keys(r.Claims)) {
		values := texts(claims[name])
		switch want := r.Claims[name]; {
		case len(values) == 0:
			return fmt.Sprintf("the token has no claim %q", name)
		case want != AnyValue && !slices.Contains(values, want):
			return fmt.Sprintf("the claim %q is %s", name, shown(values))
		}
	}

	return ""
}

// texts returns the values of a claim as texts: of a list those of its items. null, an object and an empty text are
// no value.
func texts(claim json.RawMessage) []string {
	var list []json.RawMessage
	if bytes.HasPrefix(claim, []byte("[")) && json.Unmarshal(claim, &list) != nil {
		return nil
	}
	if list == nil {
		list = []json.RawMessage{claim}
	}

	var all []string
	for _, item := range list {
		if text := textOf(item); text != "" {
			all = append(all, text)
		}
	}
	return all
}

func textOf(claim json.RawMessage) string {
	var text string
	switch {
	case len(claim) == 0, bytes.ContainsAny(claim[:1], "{[n"):
		return ""
	case claim[0] != '"':
		return string(claim) // a number, true or false
	case json.Unmarshal(claim, &text) != nil:
		return ""
	}
	return text
}

// maxShown bounds the values of a claim in a Refusal, in characters.
const maxShown = 80

func shown(values []string) string {
	text := []rune(strings.Join(values, ", "))
	if len(text) > maxShown {
		text = append(text[:maxShown], '…')
	}
	return fmt.Sprintf("%q", string(text))
}
