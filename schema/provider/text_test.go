package provider

import (
	"regexp"
	"strings"
	"testing"
)

// TestMentions holds which words of a text mention somebody.
func TestMentions(t *testing.T) {
	for text, want := range map[string]string{
		"@ann":                             "ann",
		"Hi @ann, and (@bob)!":             "ann bob",
		"@ann.":                            "ann",
		"**@ann-b** _@bob_":                "ann-b bob",
		"mail ann@example.com or x/@ann":   "",
		"\\@ann":                           "",
		"@ @@ @-a @":                       "",
		"`@ann` @bob":                      "bob",
		"``@ann ` @x`` @bob":               "bob",
		"`@ann":                            "ann",
		"` `` @ann ` @bob":                 "bob",
		"```\n@ann\n```\n@bob":             "bob",
		"~~~go\n@ann\n```\n~~~\n@bob":      "bob",
		"```@ann``` @bob":                  "bob",
		"```\n@ann":                        "",
		"> @ann\n\n@bob":                   "bob",
		"text\n> @ann\nmore @bob":          "bob",
		"<!-- @ann -->@bob":                "",
		"see <!-- @ann --> @bob":           "bob",
		"<!--\n@ann\n\n@carol\n-->\n@bob":  "bob",
		"@acme/team and @acme/":            "acme/team acme",
		"a `span\n@ann` goes on @bob":      "bob",
		"`unclosed\n\n@ann`":               "ann",
		"@" + strings.Repeat("a", 300):     strings.Repeat("a", 255),
		"ünï @ann ö@bob":                   "ann bob",
		"- @ann\n- [ ] @bob\n    - @carol": "ann bob carol",
		"@ann.b":                           "ann",
	} {
		b := &body{text: `{"x":` + quote(text) + `}`}
		var got []string
		mentions(false, "x")(b, func(name string) bool {
			got = append(got, name)
			return true
		})
		if strings.Join(got, " ") != want {
			t.Errorf("%q mentions %q, want %q", text, got, want)
		}
	}

	b := &body{text: `{"x":"@ann.b_c."}`}
	mentions(true, "x")(b, func(name string) bool {
		if name != "ann.b_c" {
			t.Errorf("dotted: %q", name)
		}
		return true
	})
}

func quote(s string) string {
	return `"` + strings.NewReplacer("\\", `\\`, "\n", `\n`, `"`, `\"`).Replace(s) + `"`
}

// TestGlobs holds which paths a glob matches.
func TestGlobs(t *testing.T) {
	for glob, paths := range map[string]string{
		"*.go":           "a.go .go ! a/b.go a.gox",
		"**/*.go":        "a.go a/b.go a/b/c.go ! a/b.gox",
		"**.go":          "a.go a/b.go ! a.js",
		"docs/**":        "docs/a docs/a/b ! docs adocs/a",
		"docs/":          "docs/a docs/a/b ! doc/a",
		"guides/**/*.md": "guides/a.md guides/b/a.md guides/b/c/a.md ! guides/a.txt a/guides/a.md",
		"./a/b":          "a/b ! a/b/c",
		"/a":             "a ! b/a",
		"a/?":            "a/b ! a/bc a/",
		"a/**/b/**/c":    "a/b/c a/x/b/y/z/c ! a/c a/b/x",
		"**":             "a a/b ! ",
		"a/*/c":          "a/b/c ! a/c a/b/d/c",
		"[ab].{go}":      "[ab].{go} ! a.go",
		"**/a*b*c":       "x/abc axbxc x/y/aabbcc ! x/ab/c",
	} {
		hit, miss, _ := strings.Cut(paths, "!")
		for _, path := range strings.Fields(hit) {
			if !compileGlob(glob).match(path) {
				t.Errorf("%s does not match %s", glob, path)
			}
		}
		for _, path := range strings.Fields(miss) {
			if compileGlob(glob).match(path) {
				t.Errorf("%s matches %s", glob, path)
			}
		}
	}
	if compileGlob("**").match(strings.Repeat("a", maxPath+1)) {
		t.Error("a path that no file system has matches")
	}
}

// FuzzGlob compares globs with regular expressions.
func FuzzGlob(f *testing.F) {
	f.Add("a/**/b*", "a/x/bc")
	f.Add("**a?*", "x/yazz")
	f.Fuzz(func(t *testing.T, glob, path string) {
		if len(glob) > 40 || len(path) > 200 || strings.HasPrefix(glob, "/") || strings.HasPrefix(glob, "./") {
			return
		}
		for _, c := range glob + path {
			if c > '~' || c < ' ' {
				return
			}
		}
		if got, want := compileGlob(glob).match(path), asRegexp(glob).MatchString(path); got != want {
			t.Fatalf("%q on %q: %v, want %v", glob, path, got, want)
		}
	})
}

func asRegexp(glob string) *regexp.Regexp {
	if strings.HasSuffix(glob, "/") {
		glob += "**"
	}
	text := regexp.MustCompile(`\*\*+`).ReplaceAllString(glob, "**")
	whole := regexp.MustCompile(`(^|/)\*\*/`)
	for whole.MatchString(text) {
		text = whole.ReplaceAllString(text, "${1}\x01")
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\x01':
			b.WriteString(`(?:.*/)?`)
		case strings.HasPrefix(text[i:], "**"):
			b.WriteString(`.*`)
			i++
		case text[i] == '*':
			b.WriteString(`[^/]*`)
		case text[i] == '?':
			b.WriteString(`[^/]`)
		default:
			b.WriteString(regexp.QuoteMeta(text[i : i+1]))
		}
	}
	return regexp.MustCompile("^" + b.String() + "$")
}
