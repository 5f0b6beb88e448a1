package forge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
)

// Config describes the forges of a server, as its settings name them.
type Config struct {
	// Forges by name.
	Forges map[string]Settings
	// Default is the name of the forge of repositories that name none. It may be empty with one forge.
	Default string
	// Allowed lists the repositories of each factory, by the factory's name, as owner/name or owner/*, for
	// other forges than the default one as forge:owner/name. A factory that is not in it may use none, one
	// with a nil list may use all.
	Allowed map[string][]string
	// Secret returns the current value of a team secret.
	Secret func(ctx context.Context, name string) ([]byte, error)
}

// Settings describe one forge.
type Settings struct {
	// Kind is github, gitlab, gitea or git. Empty: the forge's name, if it is one of these.
	Kind string
	// URL is the address of the forge's pages, and of its repositories. For kind git it is a template with
	// {owner} and {name}. Empty: the public GitHub or GitLab.
	URL string
	// API is the address of the API; empty: the usual one below URL.
	API string
	// TokenSecret names the team secret with an access token; empty: public access.
	TokenSecret string
	// Username goes with the token, for kind git; empty: x-access-token.
	Username string
	// App is the GitHub App to authenticate as, in place of a token.
	App *App
}

// App is a GitHub App.
type App struct {
	ID               int64
	PrivateKeySecret string // names the team secret with the private key, in PEM form
}

// Kinds of forges.
const (
	GitHub = "github"
	GitLab = "gitlab"
	Gitea  = "gitea"
	Git    = "git"
)

// Kinds lists the kinds of forges.
func Kinds() []string { return []string{GitHub, GitLab, Gitea, Git} }

// A ConfigError is an error of the settings.
type ConfigError struct {
	At  string // the setting, as forges.acme.url or allowed.payments[1]
	Err error
}

func (e *ConfigError) Error() string { return e.At + ": " + e.Err.Error() }

// Unwrap returns the reason.
func (e *ConfigError) Unwrap() error { return e.Err }

// nameForm is the form of a forge's name.
var nameForm = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$`)

// Set is the forges of a server. It is safe for concurrent use.
type Set struct{ current atomic.Pointer[opened] }

type opened struct {
	forges   map[string]Forge
	fallback string
	allowed  map[string][]pattern // nil value: all
}

func (c Config) fallback() (string, error) {
	names := strings.Join(slices.Sorted(maps.Keys(c.Forges)), ", ")
	switch _, known := c.Forges[c.Default]; {
	case known:
		return c.Default, nil
	case c.Default != "" && len(c.Forges) == 0:
		return "", &ConfigError{
			"defaultForge",
			fmt.Errorf("%q is not one of forges: there are none", c.Default),
		}
	case c.Default != "":
		return "", &ConfigError{"defaultForge", fmt.Errorf("%q is not one of forges: %s", c.Default, names)}
	case len(c.Forges) > 1:
		return "", &ConfigError{"defaultForge", fmt.Errorf("it is missing: name one of %s", names)}
	}

	return names, nil
}

// Of returns the forge of a repository, after checking the repository's name.
func (s *Set) Of(repo Repository) (Forge, error) {
	now := s.current.Load()
	name := cmp.Or(repo.Forge, now.fallback)
	f := now.forges[name]
	switch {
	case name == "":
		return nil, &Error{
			Kind: ErrUnsupported, Doing: "use repository " + printable(repo.String()),
			Words: "the server's settings have no forges",
		}
	case f == nil:
		return nil, &Error{
			Kind: ErrUnsupported, Forge: printable(name), Doing: "use repository " + printable(repo.String()),
			Words: "the server's settings have no forge of this name",
		}
	}

	return f, checkName(f.Name(), f.Kind(), repo)
}

// checkName checks the names of a repository before they are part of an address.
func checkName(forge, kind string, repo Repository) error {
	err := repo.Check()
	if err == nil && kind != GitLab && strings.Contains(repo.Owner, "/") {
		err = errors.New("owner: it has a slash, which only GitLab allows")
	}
	if err != nil {
		return &Error{
			Kind: ErrRefused, Forge: forge, Doing: "use repository " + printable(repo.String()),
			Words: printable(err.Error()),
		}
	}

	return nil
}

// kind returns the kind of the forge of a name, or text that is none.
func (s Settings) kind(name string) string { return cmp.Or(s.Kind, name) }

// Kinds returns the kinds of the forges, sorted. It is never nil.
func (s *Set) Kinds() []string {
	kinds := []string{}
	for _, f := range s.current.Load().forges {
		kinds = append(kinds, f.Kind())
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// OfKind returns the name of the default forge if it is of a kind, else that of the only one that is.
func (s *Set) OfKind(kind string) (name string, err error) {
	now := s.current.Load()
	if f := now.forges[now.fallback]; f != nil && f.Kind() == kind {
		return now.fallback, nil
	}

	var names []string
	for name, f := range now.forges {
		if f.Kind() == kind {
			names = append(names, name)
		}
	}

	switch len(names) {
	case 0:
		return "", fmt.Errorf("the server's settings have no forge of kind %s", kind)
	case 1:
		return names[0], nil
	}
	return "", fmt.Errorf(
		"the server's settings have several forges of kind %s, and none of them is the default", kind)
}

// Allowed reports whether the operator allows a factory to use a repository.
func (s *Set) Allowed(factory string, repo Repository) bool {
	now := s.current.Load()
	list, known := now.allowed[factory]
	if !known || repo.Check() != nil {
		return false
	}
	if list == nil {
		return true
	}

	repo.Forge = cmp.Or(repo.Forge, now.fallback)
	return slices.ContainsFunc(list, func(p pattern) bool { return p.matches(repo) })
}

// pattern is an entry of an allow list. Its Name may be *.
type pattern Repository

// matches ignores case, as the hosts do.
func (p pattern) matches(repo Repository) bool {
	return p.Forge == repo.Forge && strings.EqualFold(p.Owner, repo.Owner) &&
		(p.Name == "*" || strings.EqualFold(p.Name, repo.Name))
}

func (c Config) pattern(text string) (pattern, error) {
	forge, rest, named := strings.Cut(text, ":")
	if !named {
		rest = text
		forge, _ = c.fallback()
	}

	f, known := c.Forges[forge]
	if named && !known {
		return pattern{}, fmt.Errorf("%q is not one of forges", forge)
	}

	slash := strings.LastIndexByte(rest, '/')
	if slash < 0 {
		return pattern{}, errors.New("want owner/name or owner/*")
	}

	p := pattern{Forge: forge, Owner: rest[:slash], Name: rest[slash+1:]}
	repo := Repository(p)
	if p.Name == "*" {
		repo.Name = "x"
	}

	err := repo.Check()
	if err == nil && known && f.kind(forge) != GitLab && strings.Contains(p.Owner, "/") {
		err = errors.New("owner: it has a slash, which only GitLab allows")
	}

	return p, err
}

// Empty reports whether there are no forges.
func (s *Set) Empty() bool { return len(s.current.Load().forges) == 0 }
