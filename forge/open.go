package forge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// host is the parts that all kinds of forges share.
type host struct {
	name   string
	kind   string
	url    *url.URL // of pages and repositories
	secret source   // the token; nil: none
	known  bool     // it has a token or an app
}

// Name returns the forge's name in the settings.
func (h *host) Name() string { return h.name }

// Kind returns github, gitlab, gitea or git.
func (h *host) Kind() string { return h.kind }

// CloneURL returns the address of a repository.
func (h *host) CloneURL(repo Repository) (string, error) {
	if err := checkName(h.name, h.kind, repo); err != nil {
		return "", err
	}
	return h.url.JoinPath(repo.Owner, repo.Name+".git").String(), nil
}

// fail returns the error of a request; nil for nil.
func (h *host) fail(ctx context.Context, err error, doing string, args ...any) error {
	return explain(ctx, h.name, fmt.Sprintf(doing, args...), err)
}

// credential returns the token as a credential for git.
func (h *host) credential(ctx context.Context, user, doing string) (Credential, error) {
	if h.secret == nil {
		return Credential{}, nil
	}

	value, err := h.secret(ctx)
	if err != nil {
		return Credential{}, h.fail(ctx, denied(err), "%s", doing)
	}

	return Credential{User: user, Password: strings.TrimSpace(string(value))}, nil
}

// kind returns the kind of the forge of a name, or text that is none.
func (s Settings) kind(name string) string { return cmp.Or(s.Kind, name) }

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

// withoutUser returns an address without the credential that it may hold.
func withoutUser(text string) string {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		return text
	}
	return scheme + "://" + rest[strings.LastIndexByte(rest, '@')+1:]
}

// namedSecret returns the source of a secret, or nil without a name.
func namedSecret(secret func(context.Context, string) ([]byte, error), name string) source {
	if name == "" {
		return nil
	}
	return func(ctx context.Context) ([]byte, error) {
		if secret == nil {
			return nil, errors.New("the server has no secrets")
		}

		value, err := secret(ctx, name)
		if err == nil && strings.TrimSpace(string(value)) == "" {
			err = fmt.Errorf("the secret %s is empty", name)
		}

		return value, err
	}
}
