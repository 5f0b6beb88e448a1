package events

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"

	"millwright/bounds/address"
	"millwright/schema"
	"millwright/signature"
	"millwright/state"
	"millwright/state/events"
)

// Bounds of one attempt.
const (
	attemptTime = 15 * time.Second // by default, from the name's resolution to the end of the answer
	maxHeader   = 16 << 10         // bytes of an answer's header
	maxRead     = 64 << 10         // bytes of an answer's body; events.MaxAnswer of them are kept
	maxPause    = events.GiveUp    // that Retry-After may ask for
)

// destination is where an event is sent to, and how.
type destination struct {
	url    *url.URL
	hidden bool           // the URL is a credential
	allow  []netip.Prefix // addresses that are not public and that the settings allow
	secret []byte         // signs; nil: nothing does
}

// answer is what a receiver answered.
type answer struct {
	status int
	text   string        // its beginning
	pause  time.Duration // that Retry-After asks for
}

// The errors of connections. None quotes an address of the receiver: its URL may be a credential.
var (
	errPrivate = errors.New("its address is not public: the operator lists such addresses in outbound.allow")
	errPlain   = errors.New("http is for addresses that the operator lists in outbound.allow: use https")
)

// post sends a body once. The error says why there is no answer.
func (s *Sender) post(ctx context.Context, d destination, id string, body []byte, now time.Time) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()

	r, err := http.NewRequestWithContext(ctx, http.MethodPost, d.url.String(), bytes.NewReader(body))
	if err != nil {
		return answer{}, errors.New("its URL cannot be used")
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "millwright")
	if err := sign(r, d.secret, id, body, now); err != nil {
		return answer{}, err
	}

	transport := &http.Transport{
		DialContext:            s.dialer(d).DialContext,
		TLSClientConfig:        &tls.Config{RootCAs: s.cfg.Roots, MinVersion: tls.VersionTLS12},
		DisableKeepAlives:      true, // every request is dialled, so that every address is judged
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeader,
	}
	defer transport.CloseIdleConnections()

	client := &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Do(r)
	if err != nil {
		return answer{}, s.unreached(err)
	}
	defer response.Body.Close()

	begun, _ := io.ReadAll(io.LimitReader(response.Body, events.MaxAnswer)) // the status alone counts
	_, _ = io.CopyN(io.Discard, response.Body, maxRead)
	return answer{
		status: response.StatusCode,
		text:   d.clean(begun),
		pause:  retryAfter(response.Header.Get("Retry-After"), now),
	}, nil
}

// sign sets the headers of Standard Webhooks. An event without a secret has its ID alone.
func sign(r *http.Request, secret []byte, id string, body []byte, now time.Time) error {
	if secret == nil {
		r.Header.Set("webhook-id", id)
		return nil
	}

	scheme, ok := signature.Lookup("standard_webhooks")
	if !ok {
		return errors.New("the scheme standard_webhooks is missing")
	}
	headers, err := scheme.Sign(secret, signature.Message{Method: r.Method, Body: body}, id, now)
	if err != nil {
		return fmt.Errorf("its secret cannot sign: %w", err)
	}
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	return nil
}

// value returns the value of a secret as the factory sees it.
func (s *Sender) value(ctx context.Context, factoryUID, name string) ([]byte, error) {
	value, err := s.cfg.Store.SecretValueFor(ctx, factoryUID, name)
	switch {
	case errors.Is(err, state.ErrNotFound):
		return nil, fmt.Errorf("the secret %s has no value", name)
	case err != nil:
		return nil, fmt.Errorf("the secret %s cannot be read", name)
	}
	return value, nil
}

// dialer returns a dialer that judges each address that it is about to connect to, after the name is resolved.
func (s *Sender) dialer(d destination) *net.Dialer {
	return &net.Dialer{
		Timeout:  s.cfg.Timeout,
		Resolver: s.cfg.Resolver,
		ControlContext: func(_ context.Context, _, dialled string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(dialled)
			if err != nil {
				return errPrivate
			}

			a := at.Addr()
			listed := a.Zone() == "" && slices.ContainsFunc(d.allow, func(p netip.Prefix) bool {
				return p.Contains(a.Unmap())
			})
			switch {
			case listed:
				return nil
			case !address.Public(a):
				return errPrivate
			case d.url.Scheme != "https":
				return errPlain
			}
			return nil
		},
	}
}

// unreached describes the error of a request that has no answer, without the address of the receiver.
func (s *Sender) unreached(err error) error {
	var unknown *net.DNSError
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	var handshake tls.RecordHeaderError
	var alert tls.AlertError
	var network net.Error

	switch {
	case errors.Is(err, errPrivate):
		return errPrivate
	case errors.Is(err, errPlain):
		return errPlain
	case errors.As(err, &unknown):
		return errors.New("its name cannot be resolved")
	case errors.Is(err, syscall.ECONNREFUSED):
		return errors.New("it refused the connection")
	case errors.As(err, &authority):
		return errors.New("its certificate is of an unknown authority")
	case errors.As(err, &host):
		return errors.New("its certificate is for another name")
	case errors.As(err, &invalid):
		return errors.New("its certificate is not valid")
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, &handshake), errors.As(err, &alert):
		return errors.New("it does not speak TLS")
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return fmt.Errorf("it did not answer within %s", s.cfg.Timeout)
	}
	return errors.New("the connection broke before it answered")
}

// repeated stands for an answer that repeats parts of a URL that is a credential.
const repeated = "[not kept: it repeats parts of the URL]"

// echo is how many letters and digits in a row an answer may share with a URL that is a credential.
const echo = 5

// clean returns the beginning of an answer as it is kept: nothing of one that repeats a URL that is a credential,
// in whatever spelling.
func (d destination) clean(begun []byte) string {
	text := strings.ToValidUTF8(string(begun), "\uFFFD")
	if !d.hidden {
		return text
	}

	spellings := []string{plainest(text), plainest(decoded(text))}
	for _, address := range []string{d.url.RequestURI(), d.url.Path + d.url.RawQuery, decoded(d.url.RequestURI())} {
		secret := plainest(address)
		for i := 0; i+echo < len(secret); i++ {
			part := secret[i : i+echo+1]
			if strings.Contains(spellings[0], part) || strings.Contains(spellings[1], part) {
				return repeated
			}
		}
	}

	return text
}

// plainest returns the letters and digits of a text, in lower case.
func plainest(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, text)
}

// decoded replaces the percent-encoded bytes of a text.
func decoded(text string) string {
	return percent.ReplaceAllStringFunc(text, func(code string) string {
		b, err := hex.DecodeString(code[1:])
		if err != nil {
			return code
		}
		return string(b)
	})
}

var percent = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)

// retryAfter returns the pause that a header asks for, in seconds or until a date; 0 without one.
func retryAfter(value string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseInt(value, 10, 64); err == nil {
		return time.Duration(min(max(seconds, 0), int64(maxPause/time.Second))) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return min(max(at.Sub(now), 0), maxPause)
	}
	return 0
}

// destination finds where a notification sends to at this moment. The error never quotes a secret.
func (s *Sender) destination(ctx context.Context, r events.Receiver) (destination, error) {
	n := r.Spec
	d := destination{hidden: n.URLSecretName != ""}
	if s.cfg.Allow != nil {
		d.allow = s.cfg.Allow(r.Factory)
	}

	text := n.URL
	if d.hidden {
		value, err := s.value(ctx, r.FactoryUID, n.URLSecretName)
		if err != nil {
			return d, err
		}
		text = strings.TrimSpace(string(value))
	}

	u, problem := schema.ReceiverURL(text)
	if problem != "" {
		what := "url"
		if d.hidden {
			what = fmt.Sprintf("the value of the secret %s", n.URLSecretName)
		}
		return d, fmt.Errorf("%s %s", what, problem)
	}
	d.url = u

	if n.SecretName == "" {
		return d, nil
	}
	value, err := s.value(ctx, r.FactoryUID, n.SecretName)
	d.secret = value
	return d, err
}
