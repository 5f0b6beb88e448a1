package forge_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"millwright/forge"
)

func TestOpenRefuses(t *testing.T) {
	gitHub := forge.Settings{TokenSecret: "T"}
	for want, cfg := range map[string]forge.Config{
		`forges: "ac/me": want 1 to 64 letters, digits, '.', '_' or '-'`:                                                        one1("ac/me", forge.Settings{Kind: "gitea", URL: "https://x.example"}),
		`forges.acme: kind is missing: want github, gitlab, gitea or git`:                                                       one1("acme", forge.Settings{URL: "https://x.example"}),
		`forges.acme.kind: "hub": want github, gitlab, gitea or git`:                                                            one1("acme", forge.Settings{Kind: "hub"}),
		`forges.gitea: url is missing: the address of the forge`:                                                                one1("gitea", forge.Settings{}),
		`forges.gitea.url: "http://x.example": a token is not sent over http: use https`:                                        one1("gitea", forge.Settings{URL: "http://x.example", TokenSecret: "T"}),
		`forges.gitea.url: "https://x.example": it holds a credential: put that into a team secret, and name it as tokenSecret`: one1("gitea", forge.Settings{URL: "https://me:" + testToken + "@x.example"}),
		`forges.gitea.url: "ssh://x.example": want an address like https://git.example.com`:                                     one1("gitea", forge.Settings{URL: "ssh://x.example"}),
		`forges.gitea.url: "https://x.example?a=b": it has a query or a fragment`:                                               one1("gitea", forge.Settings{URL: "https://x.example?a=b"}),
		`forges.github.api: "http://x.example": a token is not sent over http: use https`:                                       one1("github", forge.Settings{API: "http://x.example", TokenSecret: "T"}),
		`forges.gitlab.app: only forges of kind github have apps`:                                                               one1("gitlab", forge.Settings{App: &forge.App{ID: 1, PrivateKeySecret: "K"}}),
		`forges.github: give tokenSecret or app, not both`:                                                                      one1("github", forge.Settings{TokenSecret: "T", App: &forge.App{ID: 1, PrivateKeySecret: "K"}}),
		`forges.github.app.id: want the number of the app`:                                                                      one1("github", forge.Settings{App: &forge.App{PrivateKeySecret: "K"}}),
		`forges.github.username: only forges of kind git have one`:                                                              one1("github", forge.Settings{Username: "me"}),
		`forges.git.url: "https://x.example/r.git": want a template like https://git.example.com/{owner}/{name}.git`:            one1("git", forge.Settings{URL: "https://x.example/r.git"}),
		`forges.git.url: "https://{name}.example/r.git": want {owner} and {name} in the path only`:                              one1("git", forge.Settings{URL: "https://{name}.example/r.git"}),
		`forges.git.url: "file://host/{name}": a file URL is file:// and an absolute path`:                                      one1("git", forge.Settings{URL: "file://host/{name}"}),
		`forges.git.url: "file:///srv/{name}": a file URL has no token`:                                                         one1("git", forge.Settings{URL: "file:///srv/{name}", TokenSecret: "T"}),
		`forges.git.url: "ext::sh -c x {name}": want an address like https://git.example.com`:                                   one1("git", forge.Settings{URL: "ext::sh -c x {name}"}),
		`defaultForge: "hub" is not one of forges: github`:                                                                      {Forges: map[string]forge.Settings{"github": gitHub}, Default: "hub"},
		`defaultForge: "hub" is not one of forges: there are none`:                                                              {Default: "hub"},
		`defaultForge: it is missing: name one of github, gitlab`:                                                               {Forges: map[string]forge.Settings{"github": gitHub, "gitlab": {}}},
		`allowed.f[1]: "tool": want owner/name or owner/*`:                                                                      listed("acme/*", "tool"),
		`allowed.f[0]: "hub:acme/*": "hub" is not one of forges`:                                                                listed("hub:acme/*"),
		`allowed.f[0]: "a/b/c": owner: it has a slash, which only GitLab allows`:                                                listed("a/b/c"),
		`allowed.f[0]: "../x": owner "..": want letters, digits, '.', '_' and '-', beginning with a letter, digit or '_'`:       listed("../x"),
		`allowed.f[0]: "*/*": owner "*": want letters, digits, '.', '_' and '-', beginning with a letter, digit or '_'`:         listed("*/*"),
	} {
		all := cfg.Check()
		if len(all) != 1 || all[0].Error() != want {
			t.Errorf("errors %v\nwant   %s", all, want)
			continue
		}
		withoutToken(t, all[0])
	}
}

func one1(name string, s forge.Settings) forge.Config {
	return forge.Config{Forges: map[string]forge.Settings{name: s}}
}

func listed(repositories ...string) forge.Config {
	cfg := one1("github", forge.Settings{TokenSecret: "T"})
	cfg.Allowed = map[string][]string{"f": repositories}
	return cfg
}

func TestAllowed(t *testing.T) {
	set, err := forge.Open(forge.Config{
		Forges: map[string]forge.Settings{
			"github": {}, "gitlab": {}, "local": {Kind: forge.Git, URL: "file:///srv/{owner}/{name}"},
		},
		Default: "github",
		Allowed: map[string][]string{
			"listed": {"acme/*", "other/tool", "gitlab:group/sub/*", "local:me/x"},
			"none":   {},
			"all":    nil,
		},
	})
	must(t, err)

	for text, want := range map[string]bool{
		"listed acme/shop": true, "listed ACME/Shop": true, "listed github:acme/shop": true, "listed other/tool": true,
		"listed gitlab:group/sub/x": true, "listed local:me/x": true,
		"listed other/tools": false, "listed acme2/shop": false, "listed gitlab:acme/shop": false,
		"listed gitlab:group/x": false, "listed local:acme/shop": false, "listed acme/sub/shop": false,
		"listed acme/..": false, "listed acme/*": false, "listed acme/-x": false, "listed acme/a b": false,
		"none acme/shop": false, "all acme/shop": true, "all acme/.git": false, "unknown acme/shop": false,
	} {
		factory, rest, _ := strings.Cut(text, " ")
		repo := forge.Repository{}
		if name, path, ok := strings.Cut(rest, ":"); ok {
			repo.Forge, rest = name, path
		}

		slash := strings.LastIndexByte(rest, '/')
		repo.Owner, repo.Name = rest[:slash], rest[slash+1:]
		if got := set.Allowed(factory, repo); got != want {
			t.Errorf("%s: allowed %v", text, got)
		}
	}
}

func TestCloneURL(t *testing.T) {
	set, err := forge.Open(forge.Config{
		Forges: map[string]forge.Settings{
			"github": {}, "gitlab": {},
			"acme":  {Kind: forge.Gitea, URL: "https://git.acme.example/deep/"},
			"local": {Kind: forge.Git, URL: "file:///srv/git/{owner}/{name}.git"},
		},
		Default: "github",
	})
	must(t, err)

	for repo, want := range map[forge.Repository]string{
		{Owner: "acme", Name: "tool"}:                 "https://github.com/acme/tool.git",
		{Forge: "gitlab", Owner: "a/b", Name: "tool"}: "https://gitlab.com/a/b/tool.git",
		{Forge: "acme", Owner: "a", Name: "tool"}:     "https://git.acme.example/deep/a/tool.git",
		{Forge: "local", Owner: "a", Name: "tool"}:    "file:///srv/git/a/tool.git",
		{Forge: "local", Owner: "..", Name: "tool"}:   `forge "local": use repository ../tool: owner "..": want`,
		{Forge: "local", Owner: "a/b", Name: "tool"}:  "only GitLab allows",
		{Forge: "acme", Owner: "a", Name: "x\n"}:      "want letters",
		{Forge: "hub", Owner: "a", Name: "tool"}:      `forge "hub": use repository a/tool: the server's settings have no forge of this name`,
		{Owner: "", Name: "tool"}:                     "owner is empty",
		{Owner: "a", Name: strings.Repeat("x", 101)}:  "more than 100 characters",
	} {
		f, err := set.Of(repo)
		got := fmt.Sprint(err)
		if err == nil {
			got, err = f.CloneURL(repo)
			must(t, err)
		}
		if !strings.Contains(got, want) {
			t.Errorf("%v: %s, want %s", repo, got, want)
		}
	}

	none, err := forge.Open(forge.Config{})
	must(t, err)
	_, err = none.Of(tool)
	is(t, err, forge.ErrUnsupported)
}

// TestReload replaces the forges, or leaves them as they are.
func TestReload(t *testing.T) {
	set := one(t, forge.Settings{Kind: forge.Gitea, URL: "https://git.example.com", TokenSecret: "TOKEN"})
	if err := set.Reload(one1("acme", forge.Settings{})); err == nil {
		t.Error("no error")
	}
	_, err := set.Of(tool)
	must(t, err)

	must(t, set.Reload(forge.Config{}))
	_, err = set.Of(tool)
	is(t, err, forge.ErrUnsupported)
}

// TestMissingSecret names a secret that cannot be read, and sends nothing.
func TestMissingSecret(t *testing.T) {
	cause := errors.New("no row")
	for _, kind := range []string{forge.GitHub, forge.GitLab, forge.Gitea, forge.Git} {
		s := forge.Settings{Kind: kind, URL: "https://127.0.0.1:1", TokenSecret: "TOKEN"}
		if kind == forge.Git {
			s.URL += "/{name}"
		}

		set, err := forge.Open(forge.Config{
			Forges: map[string]forge.Settings{"acme": s},
			Secret: func(_ context.Context, name string) ([]byte, error) {
				return nil, fmt.Errorf("the secret %q does not exist: %w", name, cause)
			},
		})
		must(t, err)

		f, err := set.Of(tool)
		must(t, err)
		_, err = f.Branch(t.Context(), tool, "main")
		is(t, err, forge.ErrDenied)
		_, err = f.Credential(t.Context(), tool)
		is(t, err, forge.ErrDenied)
		is(t, err, cause)
		if want := `the secret "TOKEN" does not exist`; !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}
