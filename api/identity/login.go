package identity

import (
	"cmp"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"millwright/state"
)

// LoginConfig configures the sign-in of people at an issuer.
type LoginConfig struct {
	Issuer       string
	ClientID     string
	ClientSecret string // empty for a public client
	Scopes       []string
	RedirectURL  string
	Roles        []PersonRule
	Log          *slog.Logger
}

// PersonRule grants a role to the people whose ID tokens have a value of a claim, such as a group.
type PersonRule struct {
	Claim, Value string
	Role         state.Role
	Factories    []string // names; nil: the role is not limited
}

// Login signs people in by the authorization code flow with PKCE.
type Login struct {
	LoginConfig
	issuer *issuer
}

// Attempt is what a browser keeps while its user signs in at the issuer.
type Attempt struct{ State, Nonce, Verifier string }

// Person is who signed in, and what the first rule that fits grants.
type Person struct {
	Grant
	DisplayName string
}

// NewLogin returns a Login. It does not ask the issuer.
func NewLogin(cfg LoginConfig) *Login {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Login{cfg, newIssuer(cfg.Issuer, time.Minute, cfg.Log)}
}

// nameOf returns the name of a person for logs: an address that the issuer has verified, else the subject with what
// the person may have chosen.
func nameOf(subject string, claims map[string]json.RawMessage) string {
	email := textOf(claims["email"])
	if email != "" && textOf(claims["email_verified"]) == "true" {
		return Grant{Subject: email}.Name()
	}

	chosen := cmp.Or(email, textOf(claims["preferred_username"]), textOf(claims["name"]))
	if chosen == "" {
		return Grant{Subject: subject}.Name()
	}
	return Grant{Subject: subject + " (" + chosen + ")"}.Name()
}

func (l *Login) client(ctx context.Context) (oauth2.Config, error) {
	if _, err := l.issuer.keysOf(ctx, ""); err != nil {
		return oauth2.Config{}, err
	}

	return oauth2.Config{
		ClientID:     l.ClientID,
		ClientSecret: l.ClientSecret,
		Endpoint:     l.issuer.endpoints(),
		RedirectURL:  l.RedirectURL,
		Scopes:       append([]string{oidc.ScopeOpenID}, l.Scopes...),
	}, nil
}

// Begin returns the address at which a person signs in, and the attempt that Finish needs.
func (l *Login) Begin(ctx context.Context) (string, Attempt, error) {
	client, err := l.client(ctx)
	if err != nil {
		return "", Attempt{}, err
	}

	a := Attempt{state.NewToken(""), state.NewToken(""), oauth2.GenerateVerifier()}
	return client.AuthCodeURL(a.State, oidc.Nonce(a.Nonce), oauth2.S256ChallengeOption(a.Verifier)), a, nil
}

// Finish returns the person to whom the issuer gave a code in an attempt. The error is a *Refusal, ErrUnavailable,
// or that of ctx.
func (l *Login) Finish(ctx context.Context, a Attempt, given, code string) (Person, error) {
	if a.State == "" || subtle.ConstantTimeCompare([]byte(given), []byte(a.State)) != 1 {
		return Person{}, refuse("this sign-in did not begin in this browser")
	}

	client, err := l.client(ctx)
	if err != nil {
		return Person{}, err
	}

	token, err := client.Exchange(oidc.ClientContext(ctx, l.issuer.client), code, oauth2.VerifierOption(a.Verifier))
	var refused *oauth2.RetrieveError
	switch {
	case errors.As(err, &refused):
		l.Log.Warn("the issuer refused a sign-in", "issuer", l.Issuer, "code", clip(refused.ErrorCode))
		return Person{}, refuse("the issuer does not accept the code of this sign-in")
	case err != nil:
		return Person{}, ErrUnavailable
	}

	raw, _ := token.Extra("id_token").(string)
	if raw == "" || len(raw) > maxToken {
		return Person{}, refuse("the issuer gave no ID token")
	}

	id, claims, err := l.issuer.verify(ctx, raw, &oidc.Config{ClientID: l.ClientID})
	if err != nil {
		return Person{}, err
	}
	if subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(a.Nonce)) != 1 {
		return Person{}, refuse("the ID token is not of this sign-in")
	}
	if azp := textOf(claims["azp"]); azp != "" && azp != l.ClientID {
		return Person{}, refuse("the ID token is of another client")
	}

	return l.person(id, claims)
}

// person returns what the first rule that fits grants.
func (l *Login) person(id *oidc.IDToken, claims map[string]json.RawMessage) (Person, error) {
	if id.Subject == "" {
		return Person{}, refuse("the ID token has no subject")
	}

	for _, r := range l.Roles {
		if !slices.Contains(texts(claims[r.Claim]), r.Value) {
			continue
		}

		p := Person{Grant: Grant{l.Issuer, id.Subject, r.Role, r.Factories, id.Expiry}}
		p.DisplayName = nameOf(id.Subject, claims)
		return p, nil
	}

	return Person{}, refuse("no entry of auth.login.roles fits you: your claims are %s",
		shown(slices.Sorted(maps.Keys(claims))))
}
