package forge_test

import (
	"context"
	"testing"

	"millwright/forge"
)

func TestOfSource(t *testing.T) {
	set, err := forge.Open(forge.Config{
		Forges: map[string]forge.Settings{
			"github": {TokenSecret: "T"},
			"gitlab": {TokenSecret: "T"},
			"ours":   {Kind: forge.Gitea, URL: "https://git.acme.example:3000/code", TokenSecret: "T"},
			"same":   {Kind: forge.Gitea, URL: "https://git.acme.example:3000/code", TokenSecret: "T"},
			"open":   {Kind: forge.Gitea, URL: "https://open.example"},
			"plain":  {Kind: forge.Git, URL: "https://plain.example/{owner}/{name}.git", TokenSecret: "T"},
		},
		Default: "same",
		Secret:  func(context.Context, string) ([]byte, error) { return []byte(testToken), nil },
	})
	must(t, err)

	for address, want := range map[string]string{
		"https://github.com/acme/factory.git":                  "github acme/factory",
		"https://GitHub.com/acme/factory/":                     "github acme/factory",
		"git@github.com:acme/factory.git":                      "github acme/factory",
		"ssh://git@github.com:22/acme/factory.git":             "github acme/factory",
		"https://gitlab.com/group/sub/factory.git":             "gitlab group/sub/factory",
		"https://git.acme.example:3000/code/acme/factory.git":  "same acme/factory",
		"ssh://git@git.acme.example:2222/acme/factory.git":     "same acme/factory",
		"http://github.com/acme/factory.git":                   "",
		"https://github.com.evil.example/acme/factory.git":     "",
		"https://evil.example/github.com/acme/factory":         "",
		"https://github.com/acme":                              "",
		"https://github.com/group/sub/factory.git":             "",
		"https://github.com/acme/../factory.git":               "",
		"https://git.acme.example/code/acme/factory.git":       "",
		"https://git.acme.example:3000/acme/factory.git":       "",
		"https://git.acme.example:3000/codes/acme/factory.git": "",
		"https://open.example/acme/factory.git":                "",
		"https://plain.example/acme/factory.git":               "",
		"file:///srv/github.com/acme/factory.git":              "",
		"github.com": "",
		"":           "",
		"https://github.com:443\\@evil.example/acme/factory.git": "",
	} {
		_, repo, ok := set.OfSource(address)
		got := ""
		if ok {
			got = repo.Forge + " " + repo.String()
		}
		if got != want {
			t.Errorf("%s is %q, want %q", address, got, want)
		}
	}
}
