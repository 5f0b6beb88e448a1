package reconcile

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/plumbing/transport/file"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
	gitssh "github.com/go-git/go-git/v5/plumbing/transport/ssh"
	"golang.org/x/crypto/ssh"
)

const (
	// advertLimit bounds a host's list of branches and tags.
	advertLimit = 16 << 20
	// errorLimit bounds the body of an error answer.
	errorLimit = 4 << 10
	// connectTimeout bounds the wait for a connection, and for a host's first answer.
	connectTimeout = 30 * time.Second
)

func newRemote(cfg GitConfig) (*remote, error) {
	ep, err := endpoint(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("git URL: %w", err)
	}

	r := &remote{endpoint: ep, cfg: cfg, dialing: make(chan struct{}, 1)}
	switch ep.Protocol {
	case "https", "http":
		if cfg.Token != nil && !private(ep) {
			return nil, errors.New("git URL: a token is not sent over http: use https")
		}

		base := http.DefaultTransport.(*http.Transport).Clone()
		base.ResponseHeaderTimeout = connectTimeout
		r.transport = githttp.NewClient(&http.Client{Transport: &meter{base, r}, CheckRedirect: sameOrigin})

	case "ssh":
		if cfg.SSHKey == nil || cfg.KnownHosts == "" {
			return nil, errors.New(
				"git over ssh needs a key (sshKeySecret) and the host's key (knownHosts: a file, or a " +
					"line of one)",
			)
		}

		r.transport = gitssh.NewClient(nil)

	case "file":
		r.transport = file.DefaultClient
	}

	return r, nil
}

// sameOrigin follows a redirect only to the same scheme, host and port, so that credentials stay there.
func sameOrigin(req *http.Request, via []*http.Request) error {
	if from := via[0].URL; req.URL.Scheme != from.Scheme || !strings.EqualFold(req.URL.Host, from.Host) {
		return errors.New(
			"the host redirects to another one: use the address of that in the settings, if it is right",
		)
	}
	return nil
}

// meter counts and bounds received bytes.
type meter struct {
	base http.RoundTripper
	to   *remote
}

func (m *meter) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := m.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}

	limit := int64(advertLimit)
	switch {
	case res.StatusCode >= 300:
		limit = errorLimit
	case req.Method == http.MethodPost:
		limit = m.to.cfg.MaxFetchBytes
	}

	res.Body = &metered{res.Body, m.to, limit, res.StatusCode >= 300}
	return res, nil
}

// metered is the body of an answer. If it is too large, it ends early if cut is set, or else returns an
// error.
type metered struct {
	io.ReadCloser
	to   *remote
	left int64
	cut  bool
}

func (b *metered) Read(p []byte) (int, error) {
	if b.left <= 0 {
		if b.cut {
			return 0, io.EOF
		}
		return 0, errTooMuch
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	b.to.received.Add(int64(n))
	return n, err
}

var errTooMuch = tooLarge("the host sends more than the limit of a fetch")

// session connects to the host and lists its branches and tags.
func (r *remote) session(ctx context.Context) (transport.UploadPackSession, error) {
	auth, err := r.auth(ctx)
	if err != nil {
		return nil, err
	}

	type connected struct {
		session transport.UploadPackSession
		err     error
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}

	select {
	case r.dialing <- struct{}{}:
	default:
		return nil, errors.New("the host still does not answer the last attempt to connect")
	}

	result := make(chan connected, 1)
	go func() { // ssh connects without a context
		ep := *r.endpoint
		s, err := r.transport.NewUploadPackSession(&ep, auth)
		if err == nil && ctx.Err() != nil {
			err = errors.Join(ctx.Err(), s.Close())
		}

		<-r.dialing // before the caller continues, since it may reconnect at once
		result <- connected{s, err}
	}()

	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case c := <-result:
		return c.session, c.err
	}
}

func (r *remote) auth(ctx context.Context) (transport.AuthMethod, error) {
	switch r.endpoint.Protocol {
	case "https", "http":
		if r.cfg.Token == nil {
			return nil, nil
		}

		token, err := r.cfg.Token(ctx)
		if err != nil {
			return nil, fmt.Errorf("the token: %w", err)
		}

		return &githttp.BasicAuth{Username: r.cfg.Username, Password: strings.TrimSpace(string(token))}, nil
	case "ssh":
		return r.sshAuth(ctx)
	}

	return nil, nil
}

// sshAuth is a gitssh.AuthMethod for one host.
type sshAuth struct {
	*gitssh.PublicKeys
	algorithms []string
}

// ClientConfig allows only the known kinds of host keys of the host.
func (a *sshAuth) ClientConfig() (*ssh.ClientConfig, error) {
	cfg, err := a.PublicKeys.ClientConfig()
	if err != nil {
		return nil, err
	}
	cfg.Timeout, cfg.HostKeyAlgorithms = connectTimeout, a.algorithms
	return cfg, nil
}

func (r *remote) sshAuth(ctx context.Context) (transport.AuthMethod, error) {
	key, err := r.cfg.SSHKey(ctx)
	if err != nil {
		return nil, fmt.Errorf("the ssh key: %w", err)
	}

	user := r.endpoint.User
	if user == "" {
		user = gitssh.DefaultUsername
	}

	keys, err := gitssh.NewPublicKeys(user, key, "")
	if err != nil {
		return nil, errors.New("the ssh key cannot be read: want a private key in PEM form without a passphrase")
	}

	known := r.cfg.KnownHosts
	if strings.ContainsAny(known, " \n") {
		known = filepath.Join(r.cfg.CloneDir, "known_hosts")
		if err := os.WriteFile(known, []byte(strings.TrimSpace(r.cfg.KnownHosts)+"\n"), 0o600); err != nil {
			return nil, fmt.Errorf("known hosts: %w", err)
		}
	}

	db, err := gitssh.NewKnownHostsDb(known)
	if err != nil {
		return nil, fmt.Errorf("known hosts: %w", err)
	}

	port := r.endpoint.Port
	if port <= 0 {
		port = gitssh.DefaultPort
	}

	host := net.JoinHostPort(strings.Trim(r.endpoint.Host, "[]"), strconv.Itoa(port))
	algorithms := db.HostKeyAlgorithms(host)
	if len(algorithms) == 0 {
		return nil, fmt.Errorf(
			"no key of host %s is in knownHosts: compare the key that ssh-keyscan prints, and add it",
			host,
		)
	}

	keys.HostKeyCallback = db.HostKeyCallback()
	return &sshAuth{keys, algorithms}, nil
}

// explain describes an error of reaching a repository in one line, without credentials.
func (r *remote) explain(ctx context.Context, err error) error {
	if ended := ctx.Err(); errors.Is(ended, context.Canceled) {
		return ended
	}

	var text string
	switch said := err.Error(); {
	case errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil:
		text = fmt.Sprintf("not done in %v", r.cfg.Timeout)
	case errors.Is(err, transport.ErrAuthenticationRequired):
		text = "the host wants a credential, or did not accept the one it got: check tokenSecret"
	case errors.Is(err, transport.ErrAuthorizationFailed):
		text = "the credential may not read this repository"
	case errors.Is(err, transport.ErrRepositoryNotFound):
		text = "there is no such repository, or the credential may not read it"
	case errors.Is(err, transport.ErrEmptyRemoteRepository):
		text = "the repository has no commits"
	case strings.Contains(said, "dubious ownership"):
		text = "git does not trust a repository of another user: as the user that runs millwright, run " +
			"git config --global --add safe.directory " + r.endpoint.Path
	case strings.Contains(said, "knownhosts: key mismatch"):
		text = "the host's key is not the one in knownHosts: someone may be between, or the host has a " +
			"new key"
	case strings.Contains(said, "unable to authenticate"):
		text = "the host did not accept the ssh key"
	default:
		text = r.scrub(ctx, said)
	}

	return fmt.Errorf("git %s: %s", r.cfg.URL, text)
}

// scrub removes credentials from a text, and makes it one short line.
func (r *remote) scrub(ctx context.Context, text string) string {
	if r.cfg.Token != nil {
		if token, err := r.cfg.Token(context.WithoutCancel(ctx)); err == nil && len(token) > 0 {
			secret := strings.TrimSpace(string(token))
			basic := base64.StdEncoding.EncodeToString([]byte(r.cfg.Username + ":" + secret))
			for _, form := range []string{secret, basic} {
				text = strings.ReplaceAll(text, form, "***")
			}
		}
	}
	return oneLine(text, 300)
}

// oneLine fits foreign text into one line of a log or page: at most max bytes, without control characters.
func oneLine(text string, max int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	text = strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return ' '
		}
		return r
	}, text)

	text = strings.TrimSpace(text)
	if len(text) > max {
		text = strings.ToValidUTF8(text[:max], "") + "…"
	}

	return text
}
