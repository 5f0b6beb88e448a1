package signature

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"time"
)

// Explain verifies m step by step and describes each step in a line of text: the headers, the time and its
// age, the signed bytes, and the result. After a mismatch it tries the usual causes (a changed line end, a
// secret with a line end, another scheme) and names the one that fits. The text is for the owner of the
// secret; it contains neither the secret nor a signature.
func (s *Scheme) Explain(secret []byte, m Message, now time.Time) []string {
	var lines []string
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	say("scheme: %s", s.row.name)
	v, err := s.Verifier(secret)
	switch {
	case err != nil:
		say("secret: %d bytes, not usable: %s", len(secret), err)
		say("result: refused")
		return lines
	case len(v.forms) == 0:
		say("secret: empty or pending, so every request is refused")
		say("result: refused")
		return lines
	}

	f := v.forms[pick(v.forms, m.Header)]
	say("secret: %d bytes, read as %s", len(secret), f.d.Key)
	f.explainHeaders(&m, now, say)
	if f.d.Alg == AlgToken {
		say("signed: nothing; %s must equal the secret", f.d.Header)
	} else {
		say("signed: %s of %q, body of %d bytes", f.d.Alg, f.d.Template, len(m.Body))
	}

	p, err := v.Verify(m, now)
	if err == nil {
		say("result: accepted")
		if p.DeliveryID != "" {
			say("delivery: %s from %s, signed: %t", preview(p.DeliveryID), p.DeliveryHeader, p.DeliveryIDSigned)
		}

		return lines
	}

	say("result: refused, %s", err)
	var r *Refusal
	if errors.As(err, &r) && (r.Code == CodeMismatch || r.Code == CodeMissingHeader || r.Code == CodeMalformed) {
		for _, hint := range s.hints(secret, m, now) {
			say("hint: %s", hint)
		}
	}

	return lines
}

func (f *keyedForm) explainHeaders(m *Message, now time.Time, say func(string, ...any)) {
	for _, name := range f.headers {
		values := m.Header[name]
		switch {
		case len(values) > 1:
			say("header %s: %d times", name, len(values))
		case len(values) == 1:
			say("header %s: %d characters", name, len(values[0]))
		case f.d.Numbered == 0:
			say("header %s: missing", name)
		}
	}

	req, _ := f.read(m.Header, now, nil)
	if ts := f.d.Timestamp; ts != nil && req.ts != "" {
		if at, ok := parseTime(ts.Unit, req.ts); ok {
			say(
				"time: %s is %s, %d s ago; accepted are %d s either way",
				preview(req.ts),
				at.UTC().Format(time.RFC3339),
				now.Unix()-at.Unix(),
				f.tolerance,
			)
		} else {
			say("time: %s is not %s", preview(req.ts), unitText(ts.Unit))
		}
	}

	if f.sep != 0 {
		say("list: %d elements begin with %s", len(req.candidates), preview(f.d.Prefix))
	}
}

// hints tries common mistakes.
func (s *Scheme) hints(secret []byte, m Message, now time.Time) (hints []string) {
	accepts := func(s *Scheme, secret []byte, m Message) bool {
		if len(secret) == 0 {
			return false
		}

		v, err := s.Verifier(secret)
		if err != nil {
			return false
		}

		_, err = v.Verify(m, now)
		return err == nil
	}

	bodies := []struct {
		what string
		body []byte
	}{
		{"without the line end at its end", bytes.TrimRight(m.Body, "\r\n")},
		{"with a line end (LF) at its end", append(bytes.Clone(m.Body), '\n')},
		{"with a line end (CRLF) at its end", append(bytes.Clone(m.Body), '\r', '\n')},
		{"with LF in place of CRLF", bytes.ReplaceAll(m.Body, []byte("\r\n"), []byte("\n"))},
		{"when it is empty", nil},
	}

	for _, b := range bodies {
		changed := m
		changed.Body = b.body
		if !bytes.Equal(b.body, m.Body) && accepts(s, secret, changed) {
			hints = append(hints, "the signature fits the body "+b.what+": something changed it on the way")
		}
	}

	secrets := []struct {
		what   string
		secret []byte
	}{
		{"without white space around it", bytes.TrimSpace(secret)},
		{"without its first word up to the underscore", cutWord(secret)},
		{"decoded from base64", fromBase64(bytes.TrimPrefix(secret, []byte(whsec)))},
	}

	for _, c := range secrets {
		if !bytes.Equal(c.secret, secret) && accepts(s, c.secret, m) {
			hints = append(hints, "the signature fits the secret "+c.what)
		}
	}

	for _, other := range table().sorted {
		if other != s && accepts(other, secret, m) {
			hints = append(hints, "the request is signed as scheme "+other.row.name+" would")
		}
	}

	return hints
}

func cutWord(secret []byte) []byte {
	if _, rest, ok := bytes.Cut(secret, []byte("_")); ok {
		return rest
	}
	return nil
}

func fromBase64(text []byte) []byte {
	raw, err := base64.StdEncoding.DecodeString(string(text))
	if err != nil {
		return nil
	}
	return raw
}
