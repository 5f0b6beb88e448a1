package api_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"millwright/api"
	"millwright/api/identity"
	"millwright/api/issuertest"
	"millwright/state"
	"millwright/state/statetest"
)

// tokenWorld is an API whose endpoint /who tells who calls it.
type tokenWorld struct {
	*testing.T
	tokens *identity.Tokens
	url    string
}

func newTokenWorld(t *testing.T, store *state.Store, refresh time.Duration, rules ...identity.Rule) *tokenWorld {
	t.Helper()
	w := &tokenWorld{T: t, tokens: identity.New(identity.Config{Refresh: refresh})}
	w.tokens.Configure(rules)

	a := api.New(api.Config{Store: store, Tokens: w.tokens})
	who := api.Filtered(api.Operation(http.MethodGet, "/who", "who", state.RolePlanner, "Tell who calls"))
	api.Handle(a, who, func(ctx context.Context, _ *struct{}) (string, error) {
		c := api.CallerOf(ctx)
		return fmt.Sprintf("%s %s as %s of %d factories", c.Kind, c.Name, c.Role, len(c.Factories)), nil
	})

	srv := httptest.NewServer(a)
	t.Cleanup(srv.Close)
	w.url = srv.URL + api.Base + "/who"
	return w
}

// call returns the status and the answer, of a problem its detail.
func (w *tokenWorld) call(token string) (int, string) {
	w.Helper()
	r, err := http.NewRequestWithContext(w.Context(), http.MethodGet, w.url, nil)
	if err != nil {
		w.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)

	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		w.Fatal(err)
	}
	defer resp.Body.Close()

	text, err := io.ReadAll(resp.Body)
	if err != nil {
		w.Fatal(err)
	}
	var problem struct{ Detail string }
	if json.Unmarshal(text, &problem) == nil && problem.Detail != "" {
		return resp.StatusCode, problem.Detail
	}
	return resp.StatusCode, strings.TrimSpace(string(text))
}

func (w *tokenWorld) want(token string, status int, text string) {
	w.Helper()
	got, detail := w.call(token)
	if got != status || !strings.Contains(detail, text) {
		w.Errorf("%d %q, want %d %q", got, detail, status, text)
	}
	if len(detail) > 1000 || token != "" && strings.Contains(detail, token) {
		w.Errorf("the answer has the token: %q", detail)
	}
}

func ruleOf(i *issuertest.Issuer) identity.Rule {
	return identity.Rule{
		Issuer:   i.URL,
		Audience: "millwright",
		Claims:   map[string]string{"repository_id": "74", "ref": "refs/heads/main", "actor": identity.AnyValue},
		Role:     state.RoleRunner,
	}
}

func good(more issuertest.Claims) issuertest.Claims {
	all := issuertest.Claims{"repository_id": "74", "ref": "refs/heads/main", "actor": "ada"}
	for name, value := range more {
		all[name] = value
	}
	return all
}

func TestTokens(t *testing.T) {
	store := statetest.Open(t, statetest.SQLite(t))
	f, err := store.EnsureFactory(t.Context(), "payments", state.Source{Kind: "managed"}, false)
	if err != nil {
		t.Fatal(err)
	}

	issuer, other := issuertest.New(t), issuertest.New(t)
	pulls := ruleOf(issuer)
	pulls.Role, pulls.Factories = state.RolePlanner, []string{f.Name, "not there yet"}
	pulls.Claims = map[string]string{"repository_id": "74", "event_name": "pull_request"}
	rules := []identity.Rule{ruleOf(issuer), pulls}

	public, id := issuer.Public()
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	pemKey := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	foreign, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}

	part := base64.RawURLEncoding
	claims, _ := json.Marshal(issuer.Claims(good(nil)))
	signed := issuer.Token(good(nil))
	header, rest, _ := strings.Cut(signed, ".")
	payload, signature, _ := strings.Cut(rest, ".")
	long := strings.Repeat("x", 300)

	for name, c := range map[string]struct {
		token  string
		status int
		text   string
	}{
		"good":               {signed, 200, "oidc repo:acme/factory:ref:refs/heads/main as runner of 0 factories"},
		"audiences":          {issuer.Token(good(issuertest.Claims{"aud": []string{"a", "millwright"}})), 200, "runner"},
		"numbers":            {issuer.Token(good(issuertest.Claims{"repository_id": 74})), 200, "runner"},
		"second entry":       {issuer.Token(good(issuertest.Claims{"ref": "x", "event_name": "pull_request"})), 200, "planner of 1 factories"},
		"another repository": {issuer.Token(good(issuertest.Claims{"repository_id": "75"})), 401, `claim "repository_id" is "75"`},
		"long claim":         {issuer.Token(good(issuertest.Claims{"ref": long})), 401, `claim "ref" is "xxx`},
		"another ref":        {issuer.Token(good(issuertest.Claims{"ref": "refs/heads/main2"})), 401, `claim "ref"`},
		"no claim":           {issuer.Token(good(issuertest.Claims{"actor": nil})), 401, `no claim "actor"`},
		"null claim":         {issuer.Token(good(issuertest.Claims{"actor": json.RawMessage("null")})), 401, `no claim "actor"`},
		"another audience":   {issuer.Token(good(issuertest.Claims{"aud": "elsewhere"})), 401, "audience"},
		"no audience":        {issuer.Token(good(issuertest.Claims{"aud": nil})), 401, "audience"},
		"another issuer":     {other.Token(good(nil)), 401, "no entry of auth.oidc"},
		"no issuer":          {issuer.Token(good(issuertest.Claims{"iss": nil})), 401, "no entry of auth.oidc"},
		"key of another":     {other.Token(good(issuertest.Claims{"iss": issuer.URL})), 401, "not signed with a key of its issuer"},
		"expired":            {issuer.Token(good(issuertest.Claims{"exp": time.Now().Add(-time.Second).Unix()})), 401, "expired"},
		"no expiry":          {issuer.Token(good(issuertest.Claims{"exp": nil})), 401, "expired"},
		"not yet":            {issuer.Token(good(issuertest.Claims{"nbf": time.Now().Add(2 * time.Minute).Unix()})), 401, "not valid yet"},
		"a claim twice":      {issuer.Token(good(issuertest.Claims{"SUB": "ada"})), 401, "but for upper case"},
		"alg none":           {part.EncodeToString([]byte(`{"alg":"none"}`)) + "." + part.EncodeToString(claims) + ".", 401, "malformed"},
		"HS256 by PEM":       {issuer.Sign(jose.HS256, pemKey, id, issuer.Claims(good(nil))), 401, "malformed"},
		"HS256 by modulus":   {issuer.Sign(jose.HS256, public.N.Bytes(), id, issuer.Claims(good(nil))), 401, "malformed"},
		"HS256 by its own":   {issuer.Sign(jose.HS256, []byte(strings.Repeat("secret", 6)), "shared", issuer.Claims(good(nil))), 401, "malformed"},
		"foreign key":        {issuer.Sign(jose.RS256, foreign, id, issuer.Claims(good(nil))), 401, "not signed"},
		"another algorithm":  {issuer.Sign(jose.PS256, foreign, id, issuer.Claims(good(nil))), 401, "not signed"},
		"changed":            {header + "." + part.EncodeToString(claims[:len(claims)-1]) + "." + signature, 401, ""},
		"no signature":       {header + "." + payload + ".", 401, ""},
		"four parts":         {signed + ".x", 401, ""},
		"no JSON":            {"eyJ." + payload[:9] + ".x", 401, "no ID token"},
		"huge":               {issuer.Token(good(issuertest.Claims{"x": strings.Repeat("x", 16<<10)})), 401, "longer than"},
	} {
		t.Run(name, func(t *testing.T) {
			// A world of its own, since refused tokens count like wrong keys.
			newTokenWorld(t, store, 0, rules...).want(c.token, c.status, c.text)
		})
	}
}

func TestTokensOfAKeyThatRotated(t *testing.T) {
	issuer := issuertest.New(t)
	w := newTokenWorld(t, statetest.Open(t, statetest.SQLite(t)), 0, ruleOf(issuer))
	old := issuer.Token(good(nil))
	w.want(old, 200, "runner")

	issuer.Rotate()
	w.want(issuer.Token(good(nil)), 200, "runner")
	w.want(old, 401, "not signed with a key of its issuer")

	// Within a minute no other unknown key makes the server ask again.
	foreign, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 100 {
		w.call(issuer.Sign(jose.RS256, foreign, fmt.Sprint("unknown-", n), issuer.Claims(good(nil))))
	}
	if n := issuer.Asked(); n != 2 {
		t.Errorf("the issuer was asked %d times, want 2", n)
	}

	// The flood is charged like wrong keys, and takes nothing from tokens that were right.
	w.want(issuer.Sign(jose.RS256, foreign, "unknown", issuer.Claims(good(nil))), 429, "too many wrong")
	w.want(issuer.Token(good(nil)), 200, "runner")

	// An entry that the settings no longer have ends at once.
	w.tokens.Configure(nil)
	w.want(issuer.Token(good(nil)), 429, "")
}

func TestIssuerIsAwayAtStart(t *testing.T) {
	port, err := statetest.FreePort()
	if err != nil {
		t.Fatal(err)
	}

	away := &issuertest.Issuer{URL: "http://127.0.0.1:" + port}
	w := newTokenWorld(t, statetest.Open(t, statetest.SQLite(t)), time.Millisecond, ruleOf(away))
	other := issuertest.New(t)
	token := other.Token(good(issuertest.Claims{"iss": away.URL}))
	w.want(token, 503, "cannot be fetched just now")

	back := issuertest.At(t, "127.0.0.1:"+port)
	statetest.Until(t, "the issuer's keys", func() bool {
		status, _ := w.call(back.Token(good(nil)))
		return status == http.StatusOK
	})
	w.want(token, 401, "not signed with a key of its issuer")
}

// TestIssuerLeadsInside has issuers that name or redirect to hosts inside: these are not asked.
func TestIssuerLeadsInside(t *testing.T) {
	asked := make(chan string, 10)
	inside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path
	}))
	t.Cleanup(inside.Close)
	redirects := httptest.NewServer(http.RedirectHandler(inside.URL, http.StatusFound))
	t.Cleanup(redirects.Close)

	store, issuer := statetest.Open(t, statetest.SQLite(t)), issuertest.New(t)
	port := inside.URL[strings.LastIndex(inside.URL, ":"):]
	for _, keys := range []string{
		"http://localhost" + port + "/keys", "http://127.0.0.2" + port + "/keys", "http://[::1]" + port + "/keys",
		"https://10.0.0.1/keys", "https://169.254.169.254/keys", "https://[::ffff:127.0.0.1]" + port + "/keys",
		redirects.URL + "/keys",
	} {
		issuer.Keys = keys
		w := newTokenWorld(t, store, 0, ruleOf(issuer))
		w.want(issuer.Token(good(nil)), 503, "cannot be fetched just now")
	}

	if len(asked) > 0 {
		t.Errorf("a host inside was asked for %s", <-asked)
	}
}
