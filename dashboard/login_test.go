package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"millwright/api/identity"
	"millwright/api/issuertest"
	"millwright/state"
	"millwright/state/audit"
	"millwright/state/statetest"
)

// loginWorld is a world whose people sign in at an issuer.
func loginWorld(t *testing.T, store *state.Store) (*world, *issuertest.Issuer) {
	t.Helper()
	w := newWorld(t, store, "")
	w.furnish()
	issuer := issuertest.New(t)
	issuer.Secret = "client-secret-0123"
	w.login = identity.NewLogin(identity.LoginConfig{
		Issuer:       issuer.URL,
		ClientID:     "millwright",
		ClientSecret: issuer.Secret,
		RedirectURL:  w.server.URL + "/login/callback",
		Roles: []identity.PersonRule{
			{Claim: "groups", Value: "ops", Role: state.RoleAdmin},
			{Claim: "groups", Value: "held", Role: state.RoleViewer, Factories: []string{"held"}},
		},
	})
	return w, issuer
}

// atIssuer begins a sign-in, and returns where the issuer sends the browser back to.
func (b *browser) atIssuer(next string) string {
	b.w.t.Helper()
	a := b.get("/login/start?next=" + url.QueryEscape(next))
	if a.StatusCode != http.StatusSeeOther {
		b.w.t.Fatalf("starting: %d %s", a.StatusCode, plain(a.Text))
	}

	r, err := http.NewRequestWithContext(b.w.t.Context(), http.MethodGet, a.Header.Get("Location"), nil)
	if err != nil {
		b.w.t.Fatal(err)
	}
	back := b.do(r)
	u, err := url.Parse(back.Header.Get("Location"))
	if err != nil || u.Path != "/login/callback" {
		b.w.t.Fatalf("the issuer: %d to %q", back.StatusCode, back.Header.Get("Location"))
	}
	return u.RequestURI()
}

func TestSignInAtAnIssuer(t *testing.T) {
	statetest.Each(t, func(t *testing.T, store *state.Store) {
		w, issuer := loginWorld(t, store)
		issuer.Person = issuertest.Claims{"sub": "ada", "email": "ada@example.com", "groups": []string{"x", "ops"}}
		b := w.browser()
		says(t, b.page("/login"), "Sign in with 127.0.0.1")
		if a := b.get(b.atIssuer("/keys")); a.StatusCode != http.StatusSeeOther || a.Header.Get("Location") != "/keys" {
			t.Fatalf("back: %d to %q %s", a.StatusCode, a.Header.Get("Location"), plain(a.Text))
		}
		says(t, b.page("/keys"), "ada (ada@example.com)", "person")

		// Nothing that is known of a person is a key.
		stranger := w.browser()
		stranger.get("/login")
		if a := stranger.post("/login", "key", "person\n"+issuer.URL+"\nada"); a.StatusCode != http.StatusUnauthorized {
			t.Errorf("a person's name as a key: %d", a.StatusCode)
		}

		// Another sign-in has the present role; the same person is no second key.
		issuer.Person = issuertest.Claims{"sub": "ada", "email": "ada@example.com", "groups": "held"}
		other := w.browser()
		if a := other.get(other.atIssuer("/")); a.StatusCode != http.StatusSeeOther {
			t.Fatalf("back: %d %s", a.StatusCode, plain(a.Text))
		}
		for _, of := range []*browser{b, other} {
			page := of.page("/factories")
			says(t, page, "held")
			saysNot(t, page, ">repo<")
		}

		// Another auth.login ends the sessions.
		if err := store.EndPersonSessions(t.Context()); err != nil {
			t.Fatal(err)
		}
		if a := b.get("/factories"); a.StatusCode != http.StatusSeeOther {
			t.Errorf("a session after its end: %d", a.StatusCode)
		}
		issuer.Person["email_verified"] = true
		if a := b.get(b.atIssuer("/")); a.StatusCode != http.StatusSeeOther {
			t.Fatalf("back: %d %s", a.StatusCode, plain(a.Text))
		}

		keys, err := store.Keys(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		people := 0
		for _, k := range keys {
			if k.Person {
				people++
				if k.Name != "ada@example.com" {
					t.Errorf("with a verified address the name is %q", k.Name)
				}
				if err := store.RevokeKey(t.Context(), k.UID); err != nil {
					t.Fatal(err)
				}
			}
		}
		if people != 1 {
			t.Errorf("%d people", people)
		}
		made, err := store.Audit().List(t.Context(), audit.Filter{Action: audit.KeyCreate}, audit.Position{}, 10)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(made); n == 0 || made[0].Detail != "ada (ada@example.com), role admin" || made[0].Actor.Source == "" {
			t.Errorf("the audit log has %+v", made)
		}

		// Revoked: the sessions end, and no other begins.
		if a := b.get("/factories"); a.StatusCode != http.StatusSeeOther {
			t.Errorf("a session after revoking: %d", a.StatusCode)
		}
		if a := b.get(b.atIssuer("/")); a.StatusCode != http.StatusForbidden || !strings.Contains(a.Text, "revoked") {
			t.Errorf("signing in after revoking: %d %s", a.StatusCode, plain(a.Text))
		}
		if strings.Contains(w.log.String(), issuer.Secret) {
			t.Error("the log has the client secret")
		}
	})
}

func TestForgedSignInsAtAnIssuer(t *testing.T) {
	ops := issuertest.Claims{"sub": "ada", "groups": []string{"ops"}}
	for name, c := range map[string]struct {
		person issuertest.Claims
		back   func(w *world, b *browser, back string) string
		want   string
	}{
		"state":         {ops, func(_ *world, _ *browser, back string) string { return strings.Replace(back, "state=", "state=x", 1) }, "did not begin in this browser"},
		"no state":      {ops, func(_ *world, _ *browser, back string) string { return back[:strings.Index(back, "&state=")] }, "did not begin in this browser"},
		"code":          {ops, func(_ *world, _ *browser, back string) string { return strings.Replace(back, "code=", "code=x", 1) }, "does not accept the code"},
		"other browser": {ops, func(w *world, _ *browser, _ string) string { return w.browser().atIssuer("/") }, "did not begin in this browser"},
		"code of another": {ops, func(w *world, _ *browser, back string) string {
			theirs, _ := url.Parse(w.browser().atIssuer("/"))
			ours, _ := url.Parse(back)
			return "/login/callback?code=" + theirs.Query().Get("code") + "&state=" + ours.Query().Get("state")
		}, "does not accept the code"},
		"replayed": {ops, func(_ *world, b *browser, back string) string {
			b.get(back)
			b.client.Jar.SetCookies(mustURL(b.w.server.URL), []*http.Cookie{{Name: "millwright", Value: "", MaxAge: -1, Path: "/"}})
			return back
		}, "too old, or began in another browser"},
		"refused by the issuer": {ops, func(_ *world, _ *browser, back string) string {
			u, _ := url.Parse(back)
			return "/login/callback?error=access_denied&state=" + u.Query().Get("state")
		}, "does not accept the code"},
		"nonce":            {issuertest.Claims{"sub": "ada", "groups": "ops", "nonce": "x"}, nil, "not of this sign-in"},
		"audience":         {issuertest.Claims{"sub": "ada", "groups": "ops", "aud": "elsewhere"}, nil, "audience"},
		"authorised party": {issuertest.Claims{"sub": "ada", "groups": "ops", "azp": "elsewhere"}, nil, "of another client"},
		"issuer":           {issuertest.Claims{"sub": "ada", "groups": "ops", "iss": "https://elsewhere"}, nil, "issuer"},
		"expired":          {issuertest.Claims{"sub": "ada", "groups": "ops", "exp": 1}, nil, "expired"},
		"no group":         {issuertest.Claims{"sub": "ada", "groups": []string{"other"}}, nil, "no entry of auth.login.roles fits"},
		"no subject":       {issuertest.Claims{"sub": nil, "groups": "ops"}, nil, "no subject"},
	} {
		t.Run(name, func(t *testing.T) {
			w, issuer := loginWorld(t, statetest.Open(t, statetest.SQLite(t)))
			issuer.Person = c.person
			b := w.browser()
			back := b.atIssuer("/")
			if c.back != nil {
				back = c.back(w, b, back)
			}

			if a := b.get(back); a.StatusCode != http.StatusForbidden || !strings.Contains(plain(a.Text), c.want) {
				t.Errorf("%d %s, want %q", a.StatusCode, plain(a.Text), c.want)
			}
			if a := b.get("/factories"); a.StatusCode != http.StatusSeeOther {
				t.Errorf("signed in: %d", a.StatusCode)
			}
		})
	}
}

func TestSignInAtAnIssuerStaysOnThisSite(t *testing.T) {
	w, issuer := loginWorld(t, statetest.Open(t, statetest.SQLite(t)))
	issuer.Person = issuertest.Claims{"sub": "ada", "groups": "ops"}
	for _, next := range []string{"https://evil.example", "//evil.example", `/\evil.example`, "/" + strings.Repeat("x", 4000)} {
		b := w.browser()
		if a := b.get(b.atIssuer(next)); a.Header.Get("Location") != "/" {
			t.Errorf("%.30s leads to %q", next, a.Header.Get("Location"))
		}
	}
}

func mustURL(text string) *url.URL {
	u, err := url.Parse(text)
	if err != nil {
		panic(err)
	}
	return u
}
