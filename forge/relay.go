package forge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"
)

// Bounds of a relayed request.
const (
	maxWanted   = 32 << 20 // bytes of what git asks for
	maxRelayed  = 10 << 30 // bytes of the answer
	relayTime   = 30 * time.Minute
	relayAnswer = 2 * time.Minute // until the answer begins
)

// Relay sends requests that read repositories on to their hosts. A Relay is safe for concurrent use.
type Relay struct{ client *http.Client }

// NewRelay returns a Relay.
func NewRelay() *Relay {
	base := newBase()
	base.ResponseHeaderTimeout = relayAnswer
	return &Relay{&http.Client{
		Transport:     base,
		Timeout:       relayTime,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Serve answers a request of git's smart HTTP protocol as the host of a repository does, to whom it
// authenticates with the forge's credential. path is the part of the request's path below the repository. Of
// good answers it passes on the content, of others the status alone. Requests that do not read a repository
// get 404. The error is for logs.
func (l *Relay) Serve(w http.ResponseWriter, r *http.Request, f Forge, repo Repository, path string) error {
	kind, reads := reading(r, path)
	if !reads {
		http.NotFound(w, r)
		return nil
	}

	ctx, cancel := context.WithTimeout(r.Context(), relayTime)
	defer cancel()

	res, err := l.send(ctx, r, f, repo, path)
	if err != nil {
		err = explain(ctx, f.Name(), fmt.Sprintf("fetch %s", repo), err)
		refuse(w, err)
		return err
	}
	defer res.Body.Close()

	media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	switch {
	case res.StatusCode != http.StatusOK:
		answerStatus(w, res)
		return nil
	case media != "application/x-git-upload-pack-"+kind:
		w.Header().Set("Content-Type", "text/plain")
		fmt.Fprintln(w, "the forge's answer is not that of a git server")
		return nil
	}

	w.Header().Set("Content-Type", media)
	w.Header().Set("Cache-Control", "no-store")
	if err := passOn(w, res.Body); err != nil {
		return explain(ctx, f.Name(), fmt.Sprintf("fetch %s", repo), err)
	}
	return nil
}

// refuse answers a request that got no answer of the host.
func refuse(w http.ResponseWriter, err error) {
	status := http.StatusBadGateway
	switch {
	case errors.Is(err, ErrDenied):
		status = http.StatusForbidden
	case errors.Is(err, ErrNotFound), errors.Is(err, ErrUnsupported), errors.Is(err, ErrRefused):
		status = http.StatusNotFound
	}
	http.Error(w, "the forge cannot be asked", status)
}

// reading returns the kind of the answer to a request that reads a repository.
func reading(r *http.Request, path string) (kind string, ok bool) {
	switch {
	case r.Method == http.MethodGet && path == "info/refs" && r.URL.RawQuery == "service=git-upload-pack":
		return "advertisement", true
	case r.Method == http.MethodPost && path == "git-upload-pack" && r.URL.RawQuery == "":
		return "result", true
	}
	return "", false
}

// send sends a request on to the host.
func (l *Relay) send(
	ctx context.Context,
	r *http.Request,
	f Forge,
	repo Repository,
	path string,
) (*http.Response, error) {
	address, err := f.CloneURL(repo)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(address, "file:") {
		return nil, &Error{Kind: ErrUnsupported, Words: "it is a directory of the server"}
	}

	credential, err := f.Credential(ctx, repo)
	if err != nil {
		return nil, err
	}

	address += "/" + path
	body := io.Reader(http.NoBody)
	if r.Method == http.MethodGet {
		address += "?" + r.URL.RawQuery
	} else {
		body = io.LimitReader(r.Body, maxWanted)
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, address, body)
	if err != nil {
		return nil, err
	}

	if r.Method == http.MethodPost && r.ContentLength <= maxWanted {
		req.ContentLength = r.ContentLength
	}
	req.Header.Set("User-Agent", "git/2.0 (millwright)") // some hosts ask for git's
	for _, name := range []string{"Accept", "Content-Type", "Content-Encoding", "Git-Protocol"} {
		if value := r.Header.Get(name); value != "" && len(value) < 200 {
			req.Header.Set(name, value)
		}
	}
	if credential.Password != "" {
		req.SetBasicAuth(credential.User, credential.Password)
	}
	return l.client.Do(req)
}

// answerStatus answers as a host that has no good answer. A missing credential is the server's fault here.
func answerStatus(w http.ResponseWriter, res *http.Response) {
	status := res.StatusCode
	switch {
	case status == http.StatusUnauthorized:
		status = http.StatusForbidden
	case status < 300 || status >= 500:
		status = http.StatusBadGateway
	}

	if after := res.Header.Get("Retry-After"); len(after) < 40 && after != "" {
		w.Header().Set("Retry-After", after)
	}
	http.Error(w, "the forge answers "+http.StatusText(res.StatusCode), status)
}

// passOn copies an answer as it comes.
func passOn(w http.ResponseWriter, body io.Reader) error {
	control := http.NewResponseController(w)
	part := make([]byte, 64<<10)
	for left := int64(maxRelayed); left > 0; {
		n, err := body.Read(part)
		if left -= int64(n); n > 0 {
			if _, err := w.Write(part[:n]); err != nil {
				return err
			}
			if err := control.Flush(); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}

	return fmt.Errorf("the answer has more than %d bytes", int64(maxRelayed))
}
