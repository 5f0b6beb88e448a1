// Package issuertest has an OpenID Connect issuer for tests, on loopback.
package issuertest

import (
	"cmp"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Claims are the claims of a token.
type Claims map[string]any

// T is what an issuer needs of a test.
type T interface {
	Helper()
	Fatal(args ...any)
	Cleanup(f func())
}

// Issuer serves its configuration and keys, and signs tokens.
type Issuer struct {
	URL string

	// Person has the claims of whoever signs in.
	Person Claims
	// Secret is the client secret that the token endpoint wants.
	Secret string
	// Keys is the address of the keys that the configuration names; empty: that of the issuer.
	Keys string

	t      T
	codes  map[string]url.Values // requests for codes that were not used
	mu     sync.Mutex
	key    *rsa.PrivateKey
	number int // of the key
	asked  int
}

// New starts an issuer.
func New(t T) *Issuer {
	t.Helper()
	return At(t, "127.0.0.1:0")
}

// At starts an issuer on an address.
func At(t T, address string) *Issuer {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}

	i := &Issuer{t: t, codes: map[string]url.Values{}}
	i.Rotate()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", i.configuration)
	mux.HandleFunc("GET /keys", i.keys)
	mux.HandleFunc("GET /authorize", i.authorize)
	mux.HandleFunc("POST /token", i.token)
	srv := httptest.NewUnstartedServer(mux)
	srv.Listener.Close()
	srv.Listener = l
	srv.Start()
	t.Cleanup(srv.Close)
	i.URL = srv.URL
	return i
}

// Rotate replaces the key by a new one.
func (i *Issuer) Rotate() {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		i.t.Fatal(err)
	}

	i.mu.Lock()
	defer i.mu.Unlock()
	i.key, i.number = key, i.number+1
}

// Asked returns how often the keys were fetched.
func (i *Issuer) Asked() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.asked
}

// Public returns the public key and its ID.
func (i *Issuer) Public() (*rsa.PublicKey, string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return &i.key.PublicKey, fmt.Sprint("key-", i.number)
}

// Token returns a token that is good for five minutes, with more or other claims.
func (i *Issuer) Token(more Claims) string {
	i.t.Helper()
	_, id := i.Public()
	i.mu.Lock()
	key := i.key
	i.mu.Unlock()
	return i.Sign(jose.RS256, key, id, i.Claims(more))
}

// Claims returns the claims of a token, with more or other ones; nil removes one.
func (i *Issuer) Claims(more Claims) Claims {
	all := Claims{
		"iss": i.URL,
		"aud": "millwright",
		"sub": "repo:acme/factory:ref:refs/heads/main",
		"iat": time.Now().Unix(),
		"exp": time.Now().Add(5 * time.Minute).Unix(),
	}
	for name, value := range more {
		if value == nil {
			delete(all, name)
		} else {
			all[name] = value
		}
	}
	return all
}

// Sign returns a token that a key signed.
func (i *Issuer) Sign(alg jose.SignatureAlgorithm, key any, id string, claims Claims) string {
	i.t.Helper()
	payload, err := json.Marshal(claims)
	if err != nil {
		i.t.Fatal(err)
	}

	options := (&jose.SignerOptions{}).WithType("JWT").WithHeader("kid", id)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, options)
	if err != nil {
		i.t.Fatal(err)
	}

	signed, err := signer.Sign(payload)
	if err != nil {
		i.t.Fatal(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		i.t.Fatal(err)
	}
	return token
}

// authorize signs the person in, and sends the browser back with a code.
func (i *Issuer) authorize(w http.ResponseWriter, r *http.Request) {
	asked := r.URL.Query()
	if asked.Get("response_type") != "code" || asked.Get("code_challenge_method") != "S256" {
		http.Error(w, "want a code with PKCE", http.StatusBadRequest)
		return
	}

	code := rand.Text()
	i.mu.Lock()
	i.codes[code] = asked
	i.mu.Unlock()

	back := url.Values{"code": {code}, "state": {asked.Get("state")}}
	http.Redirect(w, r, asked.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

// token exchanges a code, once.
func (i *Issuer) token(w http.ResponseWriter, r *http.Request) {
	code := r.FormValue("code")
	i.mu.Lock()
	asked, known := i.codes[code]
	delete(i.codes, code)
	i.mu.Unlock()

	client, secret, basic := r.BasicAuth()
	if !basic {
		client, secret = r.FormValue("client_id"), r.FormValue("client_secret")
	}
	sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	challenge := base64.RawURLEncoding.EncodeToString(sum[:])
	w.Header().Set("Content-Type", "application/json")
	if !known || challenge != asked.Get("code_challenge") || client != asked.Get("client_id") || secret != i.Secret {
		w.WriteHeader(http.StatusBadRequest)
		json.NewEncoder(w).Encode(Claims{"error": "invalid_grant"})
		return
	}

	claims := Claims{"aud": client, "nonce": asked.Get("nonce")}
	for name, value := range i.Person {
		claims[name] = value
	}
	json.NewEncoder(w).Encode(Claims{"access_token": "x", "token_type": "Bearer", "id_token": i.Token(claims)})
}

func (i *Issuer) configuration(w http.ResponseWriter, _ *http.Request) {
	json.NewEncoder(w).Encode(Claims{
		"issuer":                                i.URL,
		"jwks_uri":                              cmp.Or(i.Keys, i.URL+"/keys"),
		"authorization_endpoint":                i.URL + "/authorize",
		"token_endpoint":                        i.URL + "/token",
		"id_token_signing_alg_values_supported": []string{"RS256"},
	})
}

func (i *Issuer) keys(w http.ResponseWriter, _ *http.Request) {
	public, id := i.Public()
	i.mu.Lock()
	i.asked++
	i.mu.Unlock()

	own, _ := json.Marshal(jose.JSONWebKey{Key: public, KeyID: id, Algorithm: "RS256", Use: "sig"})
	json.NewEncoder(w).Encode(map[string]any{"keys": []json.RawMessage{
		[]byte(`{"kty": "oct", "kid": "shared", "k": "c2VjcmV0"}`), // never used
		[]byte(`{"kty": "new", "kid": "unknown"}`),
		own,
	}})
}
