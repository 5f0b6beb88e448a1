package forge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/plumbing/transport/file"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
)

const (
	// gitTime bounds a session of git.
	gitTime = 5 * time.Minute
	// idleTime bounds how long the connection of a session outlives it.
	idleTime = 5 * time.Second
	// maxRefs bounds a host's list of branches and tags, in bytes.
	maxRefs = 16 << 20
)

// connect returns what reaches a repository by git, with the credential for HTTP.
func connect(
	address string, c Credential,
) (transport.Transport, *transport.Endpoint, transport.AuthMethod, error) {
	ep, err := transport.NewEndpoint(address)
	if err != nil {
		return nil, nil, nil, err
	}
	if ep.Protocol == "file" {
		return file.DefaultClient, ep, nil, nil
	}

	origin, err := url.Parse(address)
	if err != nil {
		return nil, nil, nil, err
	}

	base := newBase()
	base.IdleConnTimeout = idleTime
	client := &http.Client{
		Transport:     &gitTransport{origin: origin, base: base},
		CheckRedirect: noRedirect,
		Timeout:       gitTime,
	}
	if c.Password == "" {
		return githttp.NewClient(client), ep, nil, nil
	}

	return githttp.NewClient(client), ep, &githttp.BasicAuth{Username: c.User, Password: c.Password}, nil
}

// noRedirect follows no redirect: the repository behind it may be one that a factory must not use.
func noRedirect(*http.Request, []*http.Request) error {
	return &Error{Kind: ErrRefused, Words: "the forge redirects: the repository has another name"}
}

// gitTransport sends requests to one origin only, and turns bad answers into an *Error.
type gitTransport struct {
	origin *url.URL
	base   http.RoundTripper
}

// RoundTrip sends one request.
func (t *gitTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if !isOrigin(req.URL, t.origin) {
		return nil, &Error{Kind: ErrRefused, Words: "the request is for another host"}
	}

	res, err := t.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}

	if res.StatusCode < 400 {
		res.Body = &bounded{ReadCloser: res.Body, left: maxRefs}
		return res, nil
	}
	defer res.Body.Close()

	authorization := req.Header.Get("Authorization")
	failed := judge(res, authorization)
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/plain") {
		body, _ := io.ReadAll(io.LimitReader(res.Body, maxErrorAnswer))
		failed.Words = cmp.Or(printable(without(string(body), authorization)), failed.Words)
	}

	return nil, failed
}

// advertised returns the references of a repository, and the name of its default branch.
func advertised(ctx context.Context, address string, c Credential) (map[string]plumbing.Hash, string, error) {
	client, ep, auth, err := connect(address, c)
	if err != nil {
		return nil, "", err
	}

	session, err := client.NewUploadPackSession(ep, auth)
	if err != nil {
		return nil, "", gitError(err)
	}
	defer session.Close()

	adv, err := session.AdvertisedReferencesContext(ctx)
	if err != nil {
		return nil, "", gitError(err)
	}

	return adv.References, defaultBranch(adv), nil
}

// defaultBranch returns the branch that HEAD is at.
func defaultBranch(adv *packp.AdvRefs) string {
	for _, link := range adv.Capabilities.Get(capability.SymRef) {
		if target, ok := strings.CutPrefix(link, "HEAD:refs/heads/"); ok {
			return target
		}
	}
	return ""
}

// gitError returns an *Error for an error of git.
func gitError(err error) error {
	if err == nil || errors.As(err, new(*Error)) {
		return err
	}

	var unexpected *plumbing.UnexpectedError
	if errors.As(err, &unexpected) && errors.As(unexpected.Err, new(*Error)) {
		return unexpected.Err
	}

	switch {
	case errors.Is(err, transport.ErrRepositoryNotFound):
		return &Error{
			Kind:  ErrNotFound,
			Words: "there is no such repository, or the credential may not read it",
		}
	case errors.Is(err, transport.ErrEmptyRemoteRepository):
		return &Error{Kind: ErrNotFound, Words: "the repository is empty"}
	case errors.Is(err, transport.ErrAuthenticationRequired),
		errors.Is(err, transport.ErrAuthorizationFailed):
		return &Error{Kind: ErrDenied, Words: "the forge does not accept the credential"}
	}

	return fmt.Errorf("git: %w", err)
}
