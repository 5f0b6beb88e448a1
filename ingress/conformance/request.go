package conformance

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"millwright/signature"
)

// Target is a webhook of the receiver under test.
type Target struct {
	// URL is where it receives, without the token of a webhook that has one in its URL.
	URL string `json:"url"`
	// Secret is its credential; empty for one that has none yet.
	Secret string `json:"secret,omitempty"`
	// Mode is token, url_token or signature.
	Mode string `json:"mode"`
	// Scheme is the scheme of the mode signature.
	Scheme string `json:"scheme,omitempty"`
}

// Problem returns the error of a target, or "".
func (t Target) Problem() string {
	u, err := url.Parse(t.URL)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return "the URL is not an http or https URL"
	case t.Mode == "token" || t.Mode == "url_token":
		return ""
	case t.Mode != "signature":
		return fmt.Sprintf("the mode is %q, not token, url_token or signature", t.Mode)
	}

	if _, ok := signature.Lookup(t.Scheme); !ok {
		return fmt.Sprintf("the mode signature needs a scheme, and there is no scheme %q", t.Scheme)
	}

	return ""
}

// request is a step made ready to be sent.
type request struct {
	head, body []byte
}

// build writes a step's request. unique is a text that no other case or run has.
func (s *Step) build(t Target, unique, sender string, now time.Time) (request, error) {
	u, err := url.Parse(t.URL)
	if err != nil {
		return request{}, fmt.Errorf("target: %w", err)
	}

	fill := filler(t, u, unique)
	if s.Raw != "" {
		return request{head: []byte(fill(s.Raw))}, nil
	}

	body := s.body(fill)
	target := fill(s.Target)
	if target == "" {
		target = u.EscapedPath()
		if t.Mode == "url_token" && s.Auth != "none" {
			target += "/" + t.Secret
		}
	}

	headers := []string{"Host: " + u.Host}
	if sender != "" {
		headers = append(headers, "X-Forwarded-For: "+sender)
	}

	credential, err := s.credential(t, u, body, fill, unique, now)
	if err != nil {
		return request{}, err
	}

	headers = append(headers, credential...)
	for _, h := range s.Headers {
		headers = append(headers, fill(h))
	}

	framed, framing := s.frame(body)
	headers = append(headers, framing...)
	head := orElse(
		s.Method,
		"POST",
	) + " " + target + " HTTP/" + orElse(
		s.Version,
		"1.1",
	) + "\r\n" + strings.Join(
		headers,
		"\r\n",
	) + "\r\n\r\n"

	return request{head: []byte(head), body: framed}, nil
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// filler replaces what the data leaves open: {path}, {secret}, {host}, {unique}, {hex:00ff} (bytes) and
// {repeat:text:count}.
func filler(t Target, u *url.URL, unique string) func(string) string {
	known := strings.NewReplacer(
		"{path}",
		u.EscapedPath(),
		"{secret}",
		t.Secret,
		"{host}",
		u.Host,
		"{unique}",
		unique,
	)
	return func(text string) string {
		text = replace(text, "{hex:", func(arg string) string {
			raw, _ := hex.DecodeString(arg)
			return string(raw)
		})
		text = replace(text, "{repeat:", func(arg string) string {
			colon := strings.LastIndexByte(arg, ':')
			count, _ := strconv.Atoi(arg[colon+1:])
			return strings.Repeat(arg[:max(colon, 0)], min(count, 1<<20))
		})
		return known.Replace(text)
	}
}

// replace replaces every open…} by what with makes of the text between.
func replace(text, open string, with func(string) string) string {
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(text, open)
		arg, after, closed := strings.Cut(rest, "}")
		if !ok || !closed {
			b.WriteString(text)
			return b.String()
		}

		b.WriteString(before + with(arg))
		text = after
	}
}

func (s *Step) body(fill func(string) string) []byte {
	switch {
	case s.Repeat != nil:
		return []byte(fill(s.Repeat.Before) + strings.Repeat(s.Repeat.Unit, s.Repeat.Count) + fill(s.Repeat.After))
	case s.Base64 != "":
		raw, _ := base64.StdEncoding.DecodeString(s.Base64)
		return raw
	}
	return []byte(fill(s.Body))
}

// credential returns the header lines that show who sends.
func (s *Step) credential(
	t Target,
	u *url.URL,
	body []byte,
	fill func(string) string,
	unique string,
	now time.Time,
) ([]string, error) {
	if s.Auth == "none" || t.Mode == "url_token" && s.Sign == nil {
		return nil, nil
	}
	if t.Mode == "token" && s.Sign == nil {
		return []string{"Authorization: Bearer " + t.Secret}, nil
	}

	sign := Sign{}
	if s.Sign != nil {
		sign = *s.Sign
	}

	name := orElse(sign.Scheme, t.Scheme)
	scheme, ok := signature.Lookup(name)
	if !ok {
		return nil, fmt.Errorf("unknown scheme %q", name)
	}

	m := signature.Message{
		Method: orElse(s.Method, "POST"),
		URL:    u.String(),
		Body:   body,
		Header: map[string][]string{},
	}
	if sign.Body != "" {
		m.Body = []byte(fill(sign.Body))
	}

	made, err := scheme.Sign(
		[]byte(orElse(fill(sign.Secret), t.Secret)),
		m,
		orElse(fill(sign.ID), unique),
		now.Add(-time.Duration(sign.Age)*time.Second),
	)
	if err != nil {
		return nil, err
	}

	var lines []string
	for name, value := range made {
		for key, set := range sign.Set {
			if strings.EqualFold(key, name) {
				value = fill(strings.ReplaceAll(set, "{value}", value))
			}
		}

		if value != "" {
			lines = append(lines, name+": "+value)
		}
	}

	slices.Sort(lines)
	return lines, nil
}

// frame returns the body as it is sent, and the header lines that say how.
func (s *Step) frame(body []byte) (framed []byte, headers []string) {
	switch {
	case s.Announce != "":
		return body, []string{"Content-Length: " + s.Announce}
	case s.Framing == "none":
		return body, nil
	case s.Framing == "chunked" || s.Framing == "bytes":
		size := 16 << 10
		if s.Framing == "bytes" {
			size = 1
		}

		for chunk := range slices.Chunk(body, size) {
			framed = append(framed, strconv.FormatInt(int64(len(chunk)), 16)+"\r\n"...)
			framed = append(append(framed, chunk...), "\r\n"...)
		}

		return append(framed, "0\r\n\r\n"...), []string{"Transfer-Encoding: chunked"}
	}

	return body, []string{"Content-Length: " + strconv.Itoa(len(body))}
}
