package forge

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/bradleyfalzon/ghinstallation/v2"
	"github.com/google/go-github/v88/github"
)

// maxInstallations bounds the remembered tokens of a GitHub App. When there are more, all are asked for anew.
const maxInstallations = 1000

// gitHubApp authenticates as a GitHub App. Each repository has tokens of its own, which are good for it
// alone and expire within an hour.
type gitHubApp struct {
	api  *url.URL
	id   int64
	key  source
	base http.RoundTripper

	mu     sync.Mutex
	pem    []byte // the key that the tokens were asked for with
	tokens map[grant]*appToken
}

// grant is what a token is good for.
type grant struct {
	owner, name string
	contents    string // read or write; empty: all that the app may do
}

// appToken is a token and what refreshes it.
type appToken struct {
	mu        sync.Mutex
	refreshed *ghinstallation.Transport
}

func newGitHubApp(api *url.URL, app App, secret func(context.Context, string) ([]byte, error)) *gitHubApp {
	return &gitHubApp{
		api:    api,
		id:     app.ID,
		key:    namedSecret(secret, app.PrivateKeySecret),
		base:   newBase(),
		tokens: map[grant]*appToken{},
	}
}

// repositoryKey is the key of the repository that a request is for, in its context.
type repositoryKey struct{}

// inRepository notes the repository of a request. The token of a GitHub App depends on it.
func inRepository(ctx context.Context, repo Repository) context.Context {
	return context.WithValue(ctx, repositoryKey{}, repo)
}

// bearer returns the token for the repository of a request.
func (a *gitHubApp) bearer(req *http.Request) (string, error) {
	repo, known := req.Context().Value(repositoryKey{}).(Repository)
	if !known {
		return "", &Error{Kind: ErrUnsupported, Words: "a GitHub App has no token without a repository"}
	}

	value, _, err := a.token(req.Context(), grant{owner: repo.Owner, name: repo.Name})
	return "Bearer " + value, err
}

// rejected forgets the token of a request that the forge did not accept: somebody revoked it, or installed
// the app anew.
func (a *gitHubApp) rejected(req *http.Request) {
	if repo, known := req.Context().Value(repositoryKey{}).(Repository); known {
		a.forget(grant{owner: repo.Owner, name: repo.Name})
	}
}

// credential returns a token for git, with the permission to read or to write contents.
func (a *gitHubApp) credential(ctx context.Context, repo Repository, contents string) (Credential, error) {
	value, expires, err := a.token(ctx, grant{repo.Owner, repo.Name, contents})
	if err != nil {
		return Credential{}, err
	}

	return Credential{User: gitUser, Password: value, Expires: expires, Short: contents == "read"}, nil
}

// token returns a token of the installation that has the repository.
func (a *gitHubApp) token(ctx context.Context, g grant) (string, time.Time, error) {
	t, err := a.installed(ctx, g)
	if err != nil {
		return "", time.Time{}, err
	}

	t.mu.Lock()
	defer t.mu.Unlock()

	value, err := t.refreshed.Token(ctx)
	if err != nil {
		a.forget(g)
		return "", time.Time{}, err
	}

	expires, _, err := t.refreshed.Expiry()
	return value, expires, err
}

// installed returns the token of a grant, after looking up the installation that has the repository.
func (a *gitHubApp) installed(ctx context.Context, g grant) (*appToken, error) {
	if err := a.readKey(ctx); err != nil {
		return nil, err
	}

	a.mu.Lock()
	known := a.tokens[g]
	a.mu.Unlock()
	if known != nil {
		return known, nil
	}

	asApp, client, err := a.client()
	if err != nil {
		return nil, err
	}

	found, _, err := client.Apps.GetRepositoryInstallation(ctx, g.owner, g.name)
	if err != nil {
		return nil, err
	}

	t := ghinstallation.NewFromAppsTransport(asApp, found.GetID())
	t.InstallationTokenOptions = &github.InstallationTokenOptions{Repositories: []string{g.name}}
	if g.contents != "" {
		t.InstallationTokenOptions.Permissions = &github.InstallationPermissions{Contents: &g.contents}
	}

	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.tokens) >= maxInstallations {
		clear(a.tokens)
	}
	a.tokens[g] = &appToken{refreshed: t}

	return a.tokens[g], nil
}

// forget drops the token of a grant.
func (a *gitHubApp) forget(g grant) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.tokens, g)
}

// readKey reads the private key. With a new one, all tokens are asked for anew.
func (a *gitHubApp) readKey(ctx context.Context) error {
	value, err := a.key(ctx)
	if err != nil {
		return denied(err)
	}

	a.mu.Lock()
	defer a.mu.Unlock()
	if !bytes.Equal(a.pem, value) {
		a.pem = bytes.Clone(value)
		clear(a.tokens)
	}

	return nil
}

// client returns a client that signs its requests with the private key. Each has a transport of its own,
// which the refreshing of tokens changes.
func (a *gitHubApp) client() (*ghinstallation.AppsTransport, *github.Client, error) {
	a.mu.Lock()
	pem := a.pem
	a.mu.Unlock()

	base := &apiTransport{origin: a.api, base: a.base, bearer: keep}
	asApp, err := ghinstallation.NewAppsTransport(base, a.id, pem)
	if err != nil {
		return nil, nil, denied(
			errors.New("the private key of the app cannot be read: want an RSA key in PEM form"),
		)
	}

	asApp.BaseURL = strings.TrimSuffix(a.api.String(), "/")
	client, err := gitHubClient(a.api, &http.Client{
		Transport:     asApp,
		CheckRedirect: sameOrigin,
		Timeout:       answerTime,
	})
	return asApp, client, err
}

// gitHubClient returns a client that leaves limits of requests to the caller.
func gitHubClient(api *url.URL, client *http.Client) (*github.Client, error) {
	base := strings.TrimSuffix(api.String(), "/") + "/"
	return github.NewClient(
		github.WithHTTPClient(client),
		github.WithURLs(&base, &base),
		github.WithDisableRateLimitCheck(),
		github.WithUserAgent(agent),
	)
}

// keep sends the credential that a request has already.
func keep(req *http.Request) (string, error) { return req.Header.Get("Authorization"), nil }

// slug returns the name of the app, which is the login of its account without [bot].
func (a *gitHubApp) slug(ctx context.Context) (string, error) {
	if err := a.readKey(ctx); err != nil {
		return "", err
	}

	_, client, err := a.client()
	if err != nil {
		return "", err
	}

	app, _, err := client.Apps.Get(ctx, "")
	return app.GetSlug(), err
}
