package main

import (
	"fmt"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"millwright/api/issuertest"
)

// scriptTest is a script as a test.
type scriptTest struct{ *testscript.TestScript }

func (s scriptTest) Helper()           {}
func (s scriptTest) Fatal(args ...any) { s.Fatalf("%s", fmt.Sprint(args...)) }
func (s scriptTest) Cleanup(f func())  { s.Defer(f) }

// cmdIssuer starts an OpenID Connect issuer at $ISSUER, and sets a variable to each token: issuer
// VARIABLE:CLAIM=VALUE,CLAIM=VALUE...
func cmdIssuer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: issuer VARIABLE:CLAIM=VALUE,CLAIM=VALUE...")
	}

	issuer := issuertest.New(scriptTest{ts})
	ts.Setenv("ISSUER", issuer.URL)
	for _, arg := range args {
		variable, given, _ := strings.Cut(arg, ":")
		claims := issuertest.Claims{}
		for _, claim := range strings.Split(given, ",") {
			name, value, _ := strings.Cut(claim, "=")
			claims[name] = value
		}
		ts.Setenv(variable, issuer.Token(claims))
	}
}
