package main

import (
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/oauth2"

	"millwright/cmd/cli"
	"millwright/state/statetest"
)

// realIssuer is a certified OpenID Connect provider on loopback, with a new key at each start.
type realIssuer struct {
	t             *testing.T
	program, port string
	url           string
}

// newRealIssuer builds the provider. It does not start it.
func newRealIssuer(t *testing.T) *realIssuer {
	t.Helper()
	i := &realIssuer{t: t, program: filepath.Join(t.TempDir(), "issuer"), port: mustPort(t)}
	i.url = "http://localhost:" + i.port
	build := exec.Command("go", "build", "-o", i.program, ".")
	build.Dir = "../../testdata/issuer"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the issuer: %v\n%s", err, out)
	}
	return i
}

// start starts the provider for clients at these addresses, and waits until it answers.
func (i *realIssuer) start(redirects ...string) *exec.Cmd {
	i.t.Helper()
	p := exec.Command(i.program, append([]string{i.port}, redirects...)...)
	if err := p.Start(); err != nil {
		i.t.Fatal(err)
	}
	i.t.Cleanup(func() {
		p.Process.Kill()
		p.Wait()
	})

	statetest.Until(i.t, "the issuer answers", func() bool {
		status, _, _ := visit(http.DefaultClient, i.url+"/.well-known/openid-configuration", nil)
		return status == http.StatusOK
	})
	return p
}

var requestOfForm = regexp.MustCompile(`name="id" value="([^"]+)"`)

// signIn fills in the form of the provider that an address leads to, and returns the page behind it.
func (i *realIssuer) signIn(browser *http.Client, address, user string) (status int, page string) {
	i.t.Helper()
	_, form, err := visit(browser, address, nil)
	id := requestOfForm.FindStringSubmatch(form)
	if err != nil || id == nil {
		i.t.Fatalf("no form to sign in: %v %s", err, form)
	}

	fields := url.Values{"id": {id[1]}, "username": {user}, "password": {"verysecure"}}
	status, page, err = visit(browser, i.url+"/login/username", fields)
	if err != nil {
		i.t.Fatal(err)
	}
	return status, page
}

// token returns an ID token of a user for a client.
func (i *realIssuer) token(client, user, redirect string) string {
	i.t.Helper()
	cfg := oauth2.Config{
		ClientID: client, ClientSecret: "secret", RedirectURL: redirect, Scopes: []string{"openid"},
		Endpoint: oauth2.Endpoint{AuthURL: i.url + "/auth", TokenURL: i.url + "/oauth/token"},
	}

	code := ""
	browser := newVisitor(i.t)
	browser.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		if strings.HasPrefix(r.URL.String(), redirect) {
			code = r.URL.Query().Get("code")
			return http.ErrUseLastResponse
		}
		return nil
	}
	i.signIn(browser, cfg.AuthCodeURL("state"), user)

	token, err := cfg.Exchange(i.t.Context(), code)
	if err != nil {
		i.t.Fatal(err)
	}
	return token.Extra("id_token").(string)
}

func newVisitor(t *testing.T) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Jar: jar, Timeout: statetest.Patience}
}

// TestAcceptanceIssuer has people and tokens of a real issuer come to the real server. The issuer is away at the start,
// and its key rotates.
func TestAcceptanceIssuer(t *testing.T) {
	issuer := newRealIssuer(t)
	dir, port := t.TempDir(), mustPort(t)
	base, settings := "http://127.0.0.1:"+port, filepath.Join(dir, "millwright.yaml")
	callback := base + "/login/callback"
	secret := filepath.Join(dir, "client-secret")
	for file, text := range map[string]string{
		secret: "secret\n",
		settings: `
listen: 127.0.0.1:` + port + `
publicUrl: ` + base + `
factories: [{name: ops, source: {managed: {}}}]
auth:
  oidc:
    - {issuer: "` + issuer.url + `", audience: api, claims: {sub: id1}, role: planner}
  login:
    issuer: ` + issuer.url + `
    clientId: web
    clientSecretFile: ` + secret + `
    roles: [{claim: sub, value: id1, role: admin}]
`,
	} {
		if err := cli.WriteNew(file, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}

	log := &lockedLog{}
	p := exec.Command(os.Args[0], "serve", "--config", settings, "--state", filepath.Join(dir, "state.db"))
	p.Env, p.Stdout, p.Stderr = append(os.Environ(), runMain+"=1"), log, log
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Process.Kill()
		p.Wait()
		if t.Failed() {
			t.Logf("the server said:\n%.4000s", log.Bytes())
		}
	})
	statetest.Until(t, "the server answers", func() bool {
		status, _, _ := visit(http.DefaultClient, base+"/readyz", nil)
		return status == http.StatusOK
	})

	call := func(what, token string, want int) {
		t.Helper()
		if got := statusOf(t, authorised(t, http.MethodGet, base+"/api/v1/factory", token, "")); got != want {
			t.Errorf("%s: %d, want %d", what, got, want)
		}
	}
	if status, page, err := visit(newVisitor(t), base+"/login/start", nil); err != nil || status != 503 {
		t.Errorf("a sign-in without the issuer: %d %s %v", status, page, err)
	}

	running := issuer.start(callback)
	token := issuer.token("api", "test-user@localhost", callback)
	statetest.Until(t, "the issuer's keys are fetched", func() bool {
		return statusOf(t, authorised(t, http.MethodGet, base+"/api/v1/factory", token, "")) == http.StatusOK
	})
	call("another subject", issuer.token("api", "test-user2", callback), http.StatusUnauthorized)
	call("another audience", issuer.token("web", "test-user@localhost", callback), http.StatusUnauthorized)
	call("changed", token[:len(token)-8]+"AAAAAAAA", http.StatusUnauthorized)

	ada := newVisitor(t)
	statetest.Until(t, "people can sign in", func() bool {
		status, _, _ := visit(ada, base+"/login/start", nil)
		return status == http.StatusOK
	})
	if status, page := issuer.signIn(ada, base+"/login/start?next=/keys", "test-user@localhost"); status != 200 ||
		!strings.Contains(page, "id1") || !strings.Contains(page, "API keys") {
		t.Errorf("after the sign-in: %d %s", status, page)
	}
	if status, page := issuer.signIn(newVisitor(t), base+"/login/start", "test-user2"); status != 403 ||
		!strings.Contains(page, "no entry of auth.login.roles fits you") {
		t.Errorf("a person without a role: %d %s", status, page)
	}

	// The issuer starts again with another key. Tokens of the one before end with the first of the new one.
	running.Process.Kill()
	running.Wait()
	issuer.start(callback)
	call("before a new token", token, http.StatusOK)
	call("of the new key", issuer.token("api", "test-user@localhost", callback), http.StatusOK)
	call("of the old key", token, http.StatusUnauthorized)
	if status, page := issuer.signIn(newVisitor(t), base+"/login/start", "test-user@localhost"); status != 200 {
		t.Errorf("a sign-in with the new key: %d %s", status, page)
	}
	if text := string(log.Bytes()); strings.Contains(text, token) || strings.Contains(text, token[len(token)-40:]) {
		t.Error("the log has a token")
	}
}

// statusOf sends a request and returns the status of its answer, 0 without one.
func statusOf(t *testing.T, r *http.Request) int {
	t.Helper()
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0
	}
	resp.Body.Close()
	return resp.StatusCode
}
