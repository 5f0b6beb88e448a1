package state_test

import (
	"strings"
	"testing"

	"millwright/state"
)

// FuzzIdentity makes identities of foreign text: the preview is short and harmless to show, the same text
// is the same identity, and neither tier nor text can be confused with another.
func FuzzIdentity(f *testing.F) {
	f.Add("evt_1", "evt_2")
	f.Add("", "\x00")
	f.Add("a\tb\xff\x1b[31m<script>\u202e", strings.Repeat("ü", 200))
	f.Add(`\u0000"`, "header\x00evt_1")
	f.Fuzz(func(t *testing.T, one, other string) {
		sources := []state.IdentitySource{state.IdentityHeader, state.IdentityProvider, state.IdentityServiceHeader, state.IdentityBodyHash}
		seen := map[[16]byte]string{}
		for _, source := range sources {
			for _, value := range []string{one, other, string(source) + "\x00" + one} {
				id := state.IdentityOf(source, value)
				if again := state.IdentityOf(source, strings.Clone(value)); again != id {
					t.Fatalf("%q is not itself", value)
				}
				if len(id.Preview) > 128 || strings.ContainsFunc(id.Preview, func(r rune) bool { return r < ' ' || r > '~' }) {
					t.Fatalf("preview %q of %q", id.Preview, value)
				}
				what := string(source) + "/" + value
				if was, ok := seen[id.Hash]; ok && was != what {
					t.Fatalf("%q and %q are one", was, what)
				}
				seen[id.Hash] = what
			}
		}
	})
}
