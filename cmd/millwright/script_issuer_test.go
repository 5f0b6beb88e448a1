package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"millwright/api/issuertest"
	"millwright/state/statetest"
)

// scriptTest is a script as a test.
type scriptTest struct{ *testscript.TestScript }

func (s scriptTest) Helper()           {}
func (s scriptTest) Fatal(args ...any) { s.Fatalf("%s", fmt.Sprint(args...)) }
func (s scriptTest) Cleanup(f func())  { s.Defer(f) }

// signInKey is the key of a script's signIn in its values.
const signInKey = "sign-in"

// signIn is the issuer of a script, and the browser of whoever signs in there.
type signIn struct {
	issuer  *issuertest.Issuer
	browser *http.Client
}

// issuerSecret is the client secret that the issuer of a script wants.
const issuerSecret = "client-secret-canary"

// cmdIssuer starts an OpenID Connect issuer at $ISSUER, unless it runs, and sets a variable to each token: issuer
// VARIABLE:CLAIM=VALUE,CLAIM=VALUE... Those of person are the claims of whoever signs in. issuer away sets $ISSUER
// alone.
func cmdIssuer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: issuer away | issuer VARIABLE:CLAIM=VALUE,CLAIM=VALUE...")
	}

	if ts.Getenv("ISSUER") == "" {
		port, err := statetest.FreePort()
		ts.Check(err)
		ts.Setenv("ISSUER", "http://127.0.0.1:"+port)
	}
	if args[0] == "away" {
		return
	}

	s := ts.Value(signInKey).(*signIn)
	if s.issuer == nil {
		s.issuer = issuertest.At(scriptTest{ts}, strings.TrimPrefix(ts.Getenv("ISSUER"), "http://"))
		s.issuer.Secret = issuerSecret
	}

	for _, arg := range args {
		variable, given, _ := strings.Cut(arg, ":")
		claims := issuertest.Claims{}
		for _, claim := range strings.Split(given, ",") {
			name, value, _ := strings.Cut(claim, "=")
			claims[name] = value
		}

		if variable == "person" {
			s.issuer.Person = claims
			continue
		}
		ts.Setenv(variable, s.issuer.Token(claims))
	}
}

// cmdVisit opens a page in the browser of the script, with its cookies, also at other servers that the page leads
// to: visit STATUS URL. The page is the command's output.
func cmdVisit(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: visit STATUS URL")
	}

	s := ts.Value(signInKey).(*signIn)
	if s.browser == nil {
		jar, err := cookiejar.New(nil)
		ts.Check(err)
		s.browser = &http.Client{Jar: jar, Timeout: statetest.Patience}
	}

	status, page, err := visit(s.browser, args[1], nil)
	ts.Check(err)
	fmt.Fprintln(ts.Stdout(), page)
	if strconv.Itoa(status) != args[0] {
		ts.Fatalf("status %d, want %s: %s", status, args[0], page)
	}
}

// visit opens a page, or sends a form to it.
func visit(browser *http.Client, address string, form url.Values) (status int, page string, err error) {
	r, err := http.NewRequest(http.MethodGet, address, nil)
	if form != nil && err == nil {
		r, err = http.NewRequest(http.MethodPost, address, strings.NewReader(form.Encode()))
	}
	if err != nil {
		return 0, "", err
	}

	r.Header.Set("Accept", "text/html")
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	resp, err := browser.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()

	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}
