package forge

import (
	"context"
	"errors"
	"fmt"
	"net/url"
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

// agent names this program to the forges.
const agent = "millwright"

// gitUser is the user name that goes with a token where the host accepts any.
const gitUser = "x-access-token"
