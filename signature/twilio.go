package signature

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// bodyHashParam is the query parameter in which Twilio puts the body's SHA-256.
const bodyHashParam = "bodySHA256"

// matchTwilio checks the signature over the URL, with and without the default
// port, and that the URL's bodySHA256 is the body's. A form post has no such
// parameter: its fields are signed after the URL. It is verified too, so that
// its owner learns that the body is not JSON and not that the secret is wrong.
func (f *keyedForm) matchTwilio(req *request, m *Message) *Refusal {
	_, inURL := bodyHash(m.URL)
	if inURL {
		if err := checkBodyHash(m); err != nil {
			return refuse(CodeMismatch, "%s", err.Error())
		}
	} else if !formBody(m.Body) {
		return refuse(CodeMalformed, "the URL has no %s, so %s does not cover this body", bodyHashParam, f.d.Header)
	}

	s := f.scratch()
	defer f.release(s)

	var refusal *Refusal
	for _, signed := range ports(m.URL) {
		variant := *m
		variant.URL = signed
		if !inURL {
			fields, ok := sortedFields(m.Body)
			if !ok {
				return refuse(CodeMalformed, "the body is not a form")
			}

			variant.URL += fields
		}

		if refusal = f.matchMAC(req, &variant, s); refusal == nil {
			return nil
		}
	}

	return refusal
}

func bodyHash(raw string) (value string, ok bool) {
	u, err := url.Parse(raw)
	if err != nil {
		return "", false
	}
	values := u.Query()[bodyHashParam]
	if len(values) != 1 {
		return "", false
	}
	return values[0], true
}

func checkBodyHash(m *Message) error {
	sum := sha256.Sum256(m.Body)
	value, ok := bodyHash(m.URL)
	if !ok {
		return fmt.Errorf("the URL needs %s=%s", bodyHashParam, hex.EncodeToString(sum[:]))
	}
	got, err := hex.DecodeString(value)
	if err != nil || subtle.ConstantTimeCompare(got, sum[:]) != 1 {
		return fmt.Errorf("%s in the URL is not the SHA-256 of the body", bodyHashParam)
	}
	return nil
}

// formBody reports whether a body may be a Twilio form: its fields begin with a capital letter, which no
// JSON value does. So a form's signature never fits a JSON body.
func formBody(body []byte) bool { return len(body) > 0 && 'A' <= body[0] && body[0] <= 'Z' }

// maxFields bounds the fields of a form that are sorted.
const maxFields = 1000

func sortedFields(body []byte) (string, bool) {
	if strings.Count(string(body), "&") >= maxFields {
		return "", false
	}

	fields, err := url.ParseQuery(string(body))
	if err != nil {
		return "", false
	}

	var names []string
	for name := range fields {
		names = append(names, name)
	}

	slices.Sort(names)
	var b strings.Builder
	for _, name := range names {
		values := fields[name]
		slices.Sort(values)
		for _, value := range slices.Compact(values) {
			b.WriteString(name)
			b.WriteString(value)
		}
	}

	return b.String(), true
}

// ports returns a URL as configured, and with the default port added or removed: Twilio's products differ
// in which of them they sign.
func ports(raw string) []string {
	scheme, rest, ok := strings.Cut(raw, "://")
	port := map[string]string{"https": ":443", "http": ":80"}[scheme]
	if !ok || port == "" {
		return []string{raw}
	}

	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}

	host, path := rest[:end], rest[end:]
	if bare, had := strings.CutSuffix(host, port); had {
		return []string{raw, scheme + "://" + bare + path}
	}
	if strings.LastIndexByte(host, ':') > strings.LastIndexByte(host, ']') {
		return []string{raw} // another port, which is signed as it is
	}

	return []string{raw, scheme + "://" + host + port + path}
}
