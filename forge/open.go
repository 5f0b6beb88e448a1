package forge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Open returns the forges of a configuration. It reaches none of them. Its error is a *ConfigError.
func Open(cfg Config) (*Set, error) {
	set := &Set{}
	return set, set.Reload(cfg)
}

// Reload replaces the configuration, or changes nothing and returns the first *ConfigError.
func (s *Set) Reload(cfg Config) error {
	next, wrong := cfg.open()
	if len(wrong) > 0 {
		return wrong[0]
	}

	s.current.Store(next)
	return nil
}

// Check returns all errors of the configuration.
func (c Config) Check() []*ConfigError {
	_, wrong := c.open()
	return wrong
}

func (c Config) open() (*opened, []*ConfigError) {
	var wrong []*ConfigError
	bad := func(err error) {
		if e := (*ConfigError)(nil); errors.As(err, &e) {
			wrong = append(wrong, e)
		}
	}

	all := &opened{forges: map[string]Forge{}, allowed: map[string][]pattern{}}
	for _, name := range slices.Sorted(maps.Keys(c.Forges)) {
		f, err := open(name, c.Forges[name], c.Secret)
		bad(err)
		all.forges[name] = f
	}

	var err error
	all.fallback, err = c.fallback()
	bad(err)

	for _, factory := range slices.Sorted(maps.Keys(c.Allowed)) {
		list := c.Allowed[factory]
		if list != nil {
			all.allowed[factory] = []pattern{}
		} else {
			all.allowed[factory] = nil
		}

		for i, text := range list {
			p, err := c.pattern(text)
			if err != nil {
				bad(&ConfigError{fmt.Sprintf("allowed.%s[%d]", factory, i), fmt.Errorf("%q: %w", text, err)})
			}

			all.allowed[factory] = append(all.allowed[factory], p)
		}
	}

	return all, wrong
}

// defaults returns the settings with the addresses of public hosts.
func (s Settings) defaults(name string) Settings {
	s.Kind = s.kind(name)
	if s.URL == "" {
		s.URL = map[string]string{GitHub: "https://github.com", GitLab: "https://gitlab.com"}[s.Kind]
	}

	if s.API == "" {
		s.API = strings.TrimSuffix(s.URL, "/")
		switch s.Kind {
		case GitHub:
			s.API += "/api/v3"
		case GitLab:
			s.API += "/api/v4"
		}
		if s.API == "https://github.com/api/v3" {
			s.API = "https://api.github.com"
		}
	}

	return s
}

// open returns the forge of a name. Its error is a *ConfigError.
func open(name string, s Settings, secret func(context.Context, string) ([]byte, error)) (Forge, error) {
	at := "forges." + name
	if !nameForm.MatchString(name) {
		return nil, &ConfigError{
			"forges",
			fmt.Errorf("%q: want 1 to 64 letters, digits, '.', '_' or '-'", name),
		}
	}

	given := s
	s = s.defaults(name)
	switch {
	case given.Kind == "" && !slices.Contains(Kinds(), name):
		return nil, &ConfigError{at, fmt.Errorf("kind is missing: want %s", kindList())}
	case !slices.Contains(Kinds(), s.Kind):
		return nil, &ConfigError{at + ".kind", fmt.Errorf("%q: want %s", s.Kind, kindList())}
	case s.URL == "":
		return nil, &ConfigError{at, errors.New("url is missing: the address of the forge")}
	case s.App != nil && s.Kind != GitHub:
		return nil, &ConfigError{at + ".app", errors.New("only forges of kind github have apps")}
	case s.App != nil && s.TokenSecret != "":
		return nil, &ConfigError{at, errors.New("give tokenSecret or app, not both")}
	case s.App != nil && s.App.ID <= 0:
		return nil, &ConfigError{at + ".app.id", errors.New("want the number of the app")}
	case s.App != nil && s.App.PrivateKeySecret == "":
		return nil, &ConfigError{
			at + ".app",
			errors.New("privateKeySecret is missing: the team secret with the app's private key"),
		}
	case s.Kind == Git && given.API != "":
		return nil, &ConfigError{at + ".api", errors.New("a forge of kind git has no API")}
	case s.Kind != Git && s.Username != "":
		return nil, &ConfigError{at + ".username", errors.New("only forges of kind git have one")}
	}

	h := host{name: name, kind: s.Kind, secret: namedSecret(secret, s.TokenSecret)}
	h.known = s.TokenSecret != "" || s.App != nil
	if s.Kind == Git {
		return openGit(h, at, s)
	}

	var err error
	withToken := s.TokenSecret != "" || s.App != nil
	if h.url, err = checkOrigin(s.URL, withToken); err != nil {
		return nil, &ConfigError{at + ".url", fmt.Errorf("%q: %w", withoutUser(s.URL), err)}
	}

	api, err := checkOrigin(s.API, withToken)
	if err != nil {
		return nil, &ConfigError{at + ".api", fmt.Errorf("%q: %w", withoutUser(s.API), err)}
	}

	switch s.Kind {
	case GitHub:
		return openGitHub(h, api, s.App, secret)
	case GitLab:
		return openGitLab(h, api)
	}

	return openGitea(h, api)
}

func kindList() string { return "github, gitlab, gitea or git" }
