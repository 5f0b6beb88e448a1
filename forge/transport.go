package forge

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"
)

const (
	// answerTime bounds one request to an API, with its answer.
	answerTime = 30 * time.Second
	// maxAnswer bounds the body of an answer, in bytes.
	maxAnswer = 8 << 20
	// maxErrorAnswer bounds the body of an error answer, in bytes.
	maxErrorAnswer = 64 << 10
	// maxRedirects bounds the redirects of one request, as from the old name of a repository.
	maxRedirects = 3
	// maxWait bounds the waiting time that a forge can ask for.
	maxWait = time.Hour
)

// A source returns the current value of a secret.
type source func(context.Context) ([]byte, error)

// bearer returns the value of the Authorization header for a request; empty: none.
type bearer func(*http.Request) (string, error)

// token returns the bearer that sends the value of a secret. A nil source sends none.
func token(secret source) bearer {
	return func(req *http.Request) (string, error) {
		if secret == nil {
			return "", nil
		}

		value, err := secret(req.Context())
		if err != nil {
			return "", denied(err)
		}

		return "Bearer " + strings.TrimSpace(string(value)), nil
	}
}

// denied is the error of a credential that the server itself cannot read.
func denied(err error) error {
	return &Error{Kind: ErrDenied, Words: printable(err.Error()), cause: err}
}

// apiTransport sends requests to one origin only, with the credential. It turns every answer but a good one
// in JSON into an *Error, so that all clients of APIs fail alike.
type apiTransport struct {
	origin   *url.URL
	bearer   bearer
	rejected func(*http.Request) // called when the forge does not accept the credential; may be nil
	base     http.RoundTripper
}

// newClient returns a client for the API below origin.
func newClient(origin *url.URL, bearer bearer, rejected func(*http.Request)) *http.Client {
	return &http.Client{
		Transport:     &apiTransport{origin: origin, bearer: bearer, rejected: rejected, base: newBase()},
		CheckRedirect: sameOrigin,
		Timeout:       answerTime,
	}
}

// newBase returns the transport below. Each client has its own connections.
func newBase() *http.Transport {
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.ResponseHeaderTimeout = answerTime
	base.MaxResponseHeaderBytes = maxErrorAnswer
	return base
}

// sameOrigin follows redirects that change neither scheme, host and port nor the method.
func sameOrigin(req *http.Request, via []*http.Request) error {
	first := via[0]
	switch {
	case !isOrigin(req.URL, first.URL):
		return &Error{Kind: ErrRefused, Words: "the forge redirects to another host"}
	case req.Method != first.Method:
		return &Error{Kind: ErrRefused, Words: "the forge redirects: the repository has another name"}
	case len(via) > maxRedirects:
		return &Error{Kind: ErrRefused, Words: "the forge redirects too often"}
	}

	return nil
}

func isOrigin(u, origin *url.URL) bool {
	return u.Scheme == origin.Scheme && strings.EqualFold(u.Host, origin.Host)
}

// RoundTrip sends one request.
func (t *apiTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if !isOrigin(req.URL, t.origin) {
		return nil, &Error{Kind: ErrRefused, Words: "the request is for another host"}
	}

	value, err := t.bearer(req)
	if err != nil {
		return nil, err
	}

	req = req.Clone(req.Context())
	req.Header.Del("Authorization")
	if value != "" {
		req.Header.Set("Authorization", value)
	}

	memory := memoryOf(req)
	memory.ask(req)
	res, err := t.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}

	memory.recall(res)
	if failed := judge(res, value); failed != nil {
		res.Body.Close()
		if res.StatusCode == http.StatusUnauthorized && t.rejected != nil {
			t.rejected(req)
		}
		return nil, failed
	}

	res.Body = &bounded{ReadCloser: res.Body, left: maxAnswer}
	if res.StatusCode < 300 && res.StatusCode != http.StatusNoContent && req.Method != http.MethodDelete {
		if err := checkJSON(res); err != nil {
			return nil, err
		}
		memory.keep(res)
	}

	return res, nil
}

// checkJSON reads the body of an answer. It returns an error for anything but an object, or a list without
// null, on which the libraries panic.
func checkJSON(res *http.Response) error {
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}

	value := gjson.ParseBytes(body)
	switch {
	case len(bytes.TrimSpace(body)) == 0:
		return &Error{Kind: ErrLater, Words: "the answer is empty"}
	case !gjson.ValidBytes(body), !value.IsObject() && !value.IsArray():
		return &Error{Kind: ErrLater, Words: notDocumented}
	}

	if value.IsArray() {
		for _, entry := range value.Array() {
			if entry.Type == gjson.Null {
				return &Error{Kind: ErrLater, Words: notDocumented}
			}
		}
	}

	res.Body = io.NopCloser(bytes.NewReader(body))
	return nil
}

// without removes a credential, as the Authorization header of a request has it, from the words of its
// answer.
func without(words, authorization string) string {
	scheme, secret, _ := strings.Cut(authorization, " ")
	if secret == "" {
		return words
	}

	words = strings.ReplaceAll(words, secret, "***")
	if user, err := base64.StdEncoding.DecodeString(secret); err == nil && scheme == "Basic" {
		_, password, _ := strings.Cut(string(user), ":")
		words = strings.ReplaceAll(words, cmp.Or(password, secret), "***")
	}

	return words
}

// bounded is a body that ends with an error after too many bytes.
type bounded struct {
	io.ReadCloser
	left int64
}

// Read reads the next part of the body.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, &Error{
			Kind:  ErrRefused,
			Words: fmt.Sprintf("the answer has more than %d MiB", maxAnswer>>20),
		}
	}

	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// judge returns the error that an answer means, or nil for one that a client can read. The error does not
// have the credential of the request, as its Authorization header has it.
func judge(res *http.Response, authorization string) *Error {
	media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	isJSON := media == "application/json" || strings.HasSuffix(media, "+json")
	switch {
	case res.StatusCode == http.StatusNoContent, res.StatusCode >= 300 && res.StatusCode < 400:
		return nil
	case res.StatusCode < 300 && isJSON:
		return nil
	case res.StatusCode < 300 && res.Request.Method == http.MethodDelete:
		return nil
	case res.StatusCode < 300:
		words := fmt.Sprintf(
			"the answer is %s, not JSON: check the forge's url, or a proxy before it", cmp.Or(media, "empty"),
		)
		return &Error{Kind: ErrLater, Status: res.StatusCode, Words: printable(words)}
	}

	failed := &Error{
		Kind:       kindOf(res.StatusCode),
		Status:     res.StatusCode,
		RetryAfter: wait(res.Header, time.Now()),
	}
	failed.Words = http.StatusText(res.StatusCode)
	if isJSON {
		body, _ := io.ReadAll(io.LimitReader(res.Body, maxErrorAnswer))
		failed.Words = cmp.Or(message(body), failed.Words)
	}

	if rateLimited(res, failed.Words) {
		failed.Kind = ErrLater
	}
	if conflicts(res.StatusCode, failed.Words) {
		failed.Kind = ErrConflict
	}

	failed.Words = cmp.Or(printable(without(failed.Words, authorization)), "no reason given")
	return failed
}

func kindOf(status int) error {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusUnavailableForLegalReasons:
		return ErrDenied
	case http.StatusNotFound, http.StatusGone:
		return ErrNotFound
	case http.StatusConflict:
		return ErrConflict
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests, http.StatusLocked:
		return ErrLater
	}
	if status >= 500 {
		return ErrLater
	}

	return ErrRefused
}

// rateLimited reports whether an answer refuses a request for its time only. GitHub does so with 403.
func rateLimited(res *http.Response, words string) bool {
	if res.StatusCode != http.StatusForbidden {
		return false
	}
	return res.Header.Get("X-Ratelimit-Remaining") == "0" || res.Header.Get("Retry-After") != "" ||
		strings.Contains(strings.ToLower(words), "rate limit")
}

// conflicts reports whether an answer refuses what exists already. GitHub does so with 422.
func conflicts(status int, words string) bool {
	return status == http.StatusUnprocessableEntity && strings.Contains(words, "already exists")
}

// wait returns the time that the headers of an answer ask to wait.
func wait(h http.Header, now time.Time) time.Duration {
	var d time.Duration
	if text := h.Get("Retry-After"); text != "" {
		if seconds, err := strconv.ParseInt(text, 10, 32); err == nil {
			d = time.Duration(seconds) * time.Second
		} else if at, err := http.ParseTime(text); err == nil {
			d = at.Sub(now)
		}
	} else if h.Get("X-Ratelimit-Remaining") == "0" || h.Get("Ratelimit-Remaining") == "0" {
		text := cmp.Or(h.Get("X-Ratelimit-Reset"), h.Get("Ratelimit-Reset"))
		if at, err := strconv.ParseInt(text, 10, 64); err == nil {
			d = time.Unix(at, 0).Sub(now)
		}
	}

	return min(max(d, 0), maxWait)
}

// message returns the reason in the body of an error answer, as GitHub, GitLab and Gitea write it.
func message(body []byte) string {
	var said struct {
		Message json.RawMessage
		Error   json.RawMessage
		Errors  json.RawMessage
	}
	if json.Unmarshal(body, &said) != nil {
		return ""
	}

	var all []string
	for _, part := range []json.RawMessage{said.Message, said.Error, said.Errors} {
		if text := flat(part); text != "" {
			all = append(all, text)
		}
	}

	return strings.Join(all, ": ")
}

// flat returns a JSON value as text: a string as it is, other values compact.
func flat(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}

	var compact bytes.Buffer
	if len(value) == 0 || json.Compact(&compact, value) != nil {
		return ""
	}

	return compact.String()
}

// checkOrigin returns an error if text is not an address that a forge may have: https, or http to this
// machine. withToken says that a token goes there.
func checkOrigin(text string, withToken bool) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return nil, errors.New("want an address like https://git.example.com")
	case u.User != nil:
		return nil, errors.New(
			"it holds a credential: put that into a team secret, and name it as tokenSecret",
		)
	case u.RawQuery != "" || u.Fragment != "" || u.Opaque != "":
		return nil, errors.New("it has a query or a fragment")
	case u.Scheme == "http" && withToken && !IsLoopback(u.Hostname()):
		return nil, errors.New("a token is not sent over http: use https")
	}

	return u, nil
}

// IsLoopback reports whether a host is this machine.
func IsLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
