package identity

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"golang.org/x/oauth2"

	"millwright/bounds/address"
)

const (
	askTime    = 10 * time.Second // to get an issuer's configuration and keys
	askAgain   = 10 * time.Second // after a first attempt that failed
	keysFresh  = 10 * time.Minute // then they are fetched again, so that a withdrawn key ends
	keysKept   = 24 * time.Hour   // while the issuer is away
	maxAnswer  = 1 << 20          // bytes of an issuer's answer
	maxKeys    = 64               // of an issuer
	maxWaiting = 64               // requests that wait for an issuer's keys
	minRSABits = 2048
	notBefore  = time.Minute // how far the issuer's clock may be ahead
)

// algorithms returns the signature algorithms that are accepted, all of them asymmetric.
func algorithms() []jose.SignatureAlgorithm {
	return []jose.SignatureAlgorithm{
		jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512,
		jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
	}
}

// CheckIssuer returns an error unless address may be that of an issuer: https, or http on this machine.
func CheckIssuer(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("want an address like https://token.actions.githubusercontent.com")
	}

	if !secure(address) {
		return errors.New("want https")
	}
	return nil
}

// secure reports whether an address is https, or http on this machine.
func secure(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}

	ip := net.ParseIP(u.Hostname())
	here := u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
	return u.Scheme == "https" || u.Scheme == "http" && here
}

// issuer is an OpenID Connect issuer with its keys.
type issuer struct {
	url     string
	client  *http.Client
	refresh time.Duration
	log     *slog.Logger
	waiting chan struct{} // places of requests that wait for keys
	asking  sync.Mutex    // held by the one that asks

	mu      sync.Mutex
	keys    []jose.JSONWebKey
	places  oauth2.Endpoint
	fetched time.Time // when keys were fetched; zero: never
	tried   time.Time // the last attempt to fetch them
	unknown time.Time // the last attempt because of an unknown key
}

func newIssuer(address string, refresh time.Duration, log *slog.Logger) *issuer {
	return &issuer{
		url:     address,
		client:  newClient(address),
		refresh: refresh,
		log:     log,
		waiting: make(chan struct{}, maxWaiting),
	}
}

// newClient returns a client of an issuer whose answers are bounded, and that follows no redirect. The settings name
// the host of the issuer, so it may be anywhere; other hosts, which the issuer's configuration names, are reached at
// public addresses alone.
func newClient(address string) *http.Client {
	guarded := http.DefaultTransport.(*http.Transport).Clone()
	guarded.Proxy = nil
	guarded.DialContext = (&net.Dialer{Timeout: askTime, Control: dialPublic}).DialContext

	return &http.Client{
		Transport:     boundedTransport{hostTransport{hostOf(address), http.DefaultTransport, guarded}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("the issuer redirects") },
		Timeout:       askTime,
	}
}

// hostOf returns the host of an address without its port.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Hostname())
}

// hostTransport sends requests to its host by one transport, and those to others by a guarded one. Where the
// environment names a proxy, the proxy decides which addresses it reaches.
type hostTransport struct {
	host    string
	own     http.RoundTripper
	guarded http.RoundTripper
}

// RoundTrip sends a request.
func (t hostTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	proxy, err := http.ProxyFromEnvironment(r)
	if err == nil && proxy == nil && strings.ToLower(r.URL.Hostname()) != t.host {
		return t.guarded.RoundTrip(r)
	}
	return t.own.RoundTrip(r)
}

// dialPublic refuses the addresses that are not public.
func dialPublic(_, dialled string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(dialled)
	if err != nil || !address.Public(at.Addr()) {
		return errors.New("the issuer names another host, whose address is not public")
	}
	return nil
}

// boundedTransport bounds the bodies of answers.
type boundedTransport struct{ http.RoundTripper }

// RoundTrip sends a request.
func (t boundedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.RoundTripper.RoundTrip(r)
	if err == nil {
		resp.Body = http.MaxBytesReader(nil, resp.Body, maxAnswer)
	}
	return resp, err
}

// verified is a token whose signature was verified already.
type verified struct{ payload []byte }

// VerifySignature returns the payload.
func (v verified) VerifySignature(context.Context, string) ([]byte, error) { return v.payload, nil }

// verify checks the signature, issuer and times of a token, and the audience unless cfg skips it.
func (i *issuer) verify(
	ctx context.Context,
	raw string,
	cfg *oidc.Config,
) (*oidc.IDToken, map[string]json.RawMessage, error) {
	payload, err := i.payload(ctx, raw)
	if err != nil {
		return nil, nil, err
	}

	for _, name := range algorithms() {
		cfg.SupportedSigningAlgs = append(cfg.SupportedSigningAlgs, string(name))
	}

	token, err := oidc.NewVerifier(i.url, verified{payload}, cfg).Verify(ctx, raw)
	var expired *oidc.TokenExpiredError
	switch {
	case errors.As(err, &expired):
		return nil, nil, refuse("the token has expired")
	case err != nil:
		return nil, nil, refuse("the issuer, audience or times of the token are wrong")
	}

	var claims map[string]json.RawMessage
	var times struct {
		NotBefore json.Number `json:"nbf"`
	}
	if token.Claims(&claims) != nil || token.Claims(&times) != nil {
		return nil, nil, refuse("the claims of the token cannot be read")
	}
	if name := misspelt(claims); name != "" {
		return nil, nil, refuse("the token has a claim that is %q but for upper case", name)
	}
	if at, err := times.NotBefore.Float64(); err == nil && at > float64(time.Now().Add(notBefore).Unix()) {
		return nil, nil, refuse("the token is not valid yet")
	}

	return token, claims, nil
}

// misspelt returns the name of a registered claim that another one equals but for upper case: decoders of JSON take
// one for the other.
func misspelt(claims map[string]json.RawMessage) string {
	for name := range claims {
		for _, registered := range []string{"iss", "aud", "sub", "exp", "iat", "nbf", "nonce"} {
			if name != registered && strings.EqualFold(name, registered) {
				return registered
			}
		}
	}
	return ""
}

// payload returns the payload of a token if a key of the issuer signed it.
func (i *issuer) payload(ctx context.Context, raw string) ([]byte, error) {
	jws, err := jose.ParseSignedCompact(raw, algorithms())
	if err != nil || len(jws.Signatures) != 1 {
		return nil, refuse("the token is malformed, or signed with an algorithm that is not accepted")
	}

	header := jws.Signatures[0].Header
	keys, err := i.keysOf(ctx, header.KeyID)
	if err != nil {
		return nil, err
	}

	for _, key := range keys {
		if key.Algorithm != "" && key.Algorithm != header.Algorithm {
			continue
		}
		if payload, err := jws.Verify(key.Key); err == nil {
			return payload, nil
		}
	}

	return nil, refuse("the token is not signed with a key of its issuer")
}

// keysOf returns the keys that may have signed a token: those of its key ID, and all for none.
func (i *issuer) keysOf(ctx context.Context, id string) ([]jose.JSONWebKey, error) {
	keys, ask := i.known(id)
	if !ask {
		return i.orUnavailable(keys)
	}

	select {
	case i.waiting <- struct{}{}:
		defer func() { <-i.waiting }()
	default:
		return i.orUnavailable(keys)
	}

	i.asking.Lock()
	defer i.asking.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}

	if keys, ask = i.known(id); ask { // nobody asked meanwhile
		i.ask(ctx, id, len(keys) == 0)
		keys, _ = i.known(id)
	}

	return i.orUnavailable(keys)
}

// orUnavailable returns keys, or ErrUnavailable if the issuer has never been reached.
func (i *issuer) orUnavailable(keys []jose.JSONWebKey) ([]jose.JSONWebKey, error) {
	i.mu.Lock()
	defer i.mu.Unlock()

	if i.fetched.IsZero() || time.Since(i.fetched) > keysKept {
		return nil, ErrUnavailable
	}
	return keys, nil
}

// known returns the known keys of a key ID, and whether to ask the issuer before they are used.
func (i *issuer) known(id string) (keys []jose.JSONWebKey, ask bool) {
	i.mu.Lock()
	defer i.mu.Unlock()

	for _, key := range i.keys {
		if id == "" || key.KeyID == id {
			keys = append(keys, key)
		}
	}

	switch {
	case i.fetched.IsZero():
		return nil, time.Since(i.tried) > min(askAgain, i.refresh)
	case len(keys) == 0:
		return nil, time.Since(i.unknown) > i.refresh
	}
	return keys, time.Since(i.fetched) > keysFresh && time.Since(i.tried) > i.refresh
}

// endpoints returns where people sign in. keysOf fetches it.
func (i *issuer) endpoints() oauth2.Endpoint {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.places
}

// ask fetches the keys. It does not end with ctx, since others wait for them, too.
func (i *issuer) ask(ctx context.Context, id string, unknown bool) {
	now := time.Now()
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), askTime)
	defer stop()

	keys, places, err := i.fetch(ctx)
	if err != nil {
		i.log.Warn("the keys of an OpenID Connect issuer cannot be fetched", "issuer", i.url, "error", err)
	}

	i.mu.Lock()
	defer i.mu.Unlock()

	i.tried = now
	if unknown && !i.fetched.IsZero() {
		i.unknown = now
	}
	if err == nil {
		i.keys, i.places, i.fetched = keys, places, now
	}
}

// fetch asks the issuer for its keys and endpoints.
func (i *issuer) fetch(ctx context.Context) ([]jose.JSONWebKey, oauth2.Endpoint, error) {
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, i.client), i.url)
	if err != nil {
		return nil, oauth2.Endpoint{}, errors.New(clip(err.Error()))
	}

	places := provider.Endpoint()
	for _, address := range []string{places.AuthURL, places.TokenURL} {
		if address != "" && !secure(address) {
			return nil, oauth2.Endpoint{}, errors.New("an endpoint of the issuer is not https")
		}
	}

	keys, err := i.fetchKeys(ctx, provider)
	return keys, places, err
}

func (i *issuer) fetchKeys(ctx context.Context, provider *oidc.Provider) ([]jose.JSONWebKey, error) {
	var doc struct {
		Keys string `json:"jwks_uri"`
	}
	if err := provider.Claims(&doc); err != nil {
		return nil, err
	}
	if err := CheckIssuer(doc.Keys); err != nil {
		return nil, fmt.Errorf("jwks_uri: %w", err)
	}

	r, err := http.NewRequestWithContext(ctx, http.MethodGet, doc.Keys, nil)
	if err != nil {
		return nil, err
	}

	resp, err := i.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()

	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("jwks_uri answers %d", resp.StatusCode)
	}

	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&set); err != nil {
		return nil, fmt.Errorf("jwks_uri: %w", err)
	}

	var keys []jose.JSONWebKey
	for _, text := range set.Keys[:min(len(set.Keys), maxKeys)] {
		var key jose.JSONWebKey
		if json.Unmarshal(text, &key) == nil && signs(key) {
			keys = append(keys, key)
		}
	}

	return keys, nil
}

// signs reports whether a key is a public key that signs tokens.
func signs(key jose.JSONWebKey) bool {
	if key.Use != "" && key.Use != "sig" {
		return false
	}
	if key.Algorithm != "" && !slices.Contains(algorithms(), jose.SignatureAlgorithm(key.Algorithm)) {
		return false
	}

	switch k := key.Key.(type) {
	case *rsa.PublicKey:
		return k.N.BitLen() >= minRSABits
	case *ecdsa.PublicKey, ed25519.PublicKey:
		return true
	}
	return false
}

// clip bounds the text of an error, which may have the answer of an issuer.
func clip(text string) string {
	if len(text) > 300 {
		text = text[:300] + "…"
	}
	return text
}
