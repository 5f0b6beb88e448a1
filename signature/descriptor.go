package signature

import (
	"cmp"
	"fmt"
	"net/textproto"
	"slices"
	"strings"
	"unicode/utf8"
)

// Descriptor describes how a provider signs a request. It is a row of the table, and the value of
// customScheme in a webhook file. Fields without a file key are for the table only.
type Descriptor struct {
	// Alg is how the signature is made: one of the Alg constants.
	Alg string `json:"alg" yaml:"alg"`
	// Key is how the secret's text becomes a key: one of the Key constants.
	// Empty means KeyUTF8.
	Key string `json:"key,omitempty" yaml:"key,omitempty"`
	// Header is the request header with the signature.
	Header string `json:"header" yaml:"header"`
	// Parse is how the header's value is split: one of the Parse constants. Empty means ParseWhole.
	Parse string `json:"parse,omitempty" yaml:"parse,omitempty"`
	// Encoding is how the signature is written: one of the Encoding constants.
	// AlgToken has none.
	Encoding string `json:"encoding,omitempty" yaml:"encoding,omitempty"`
	// Prefix stands before the signature: a literal ("sha256=") or, in a list,
	// the key of the elements that are signatures ("v1="). Case-sensitive.
	Prefix string `json:"prefix,omitempty" yaml:"prefix,omitempty"`
	// Timestamp is the place of the signing time, and its tolerance. It must be part of Template.
	Timestamp *Timestamp `json:"timestamp,omitempty" yaml:"timestamp,omitempty"`
	// Template is the signed text: literal text and the placeholders {body}, {ts}, {id}, {url} and
	// {method}, each at most once. {ts} and {id} stand for the header's text as received; {id} is that of
	// DeliveryHeader.
	Template string `json:"template,omitempty" yaml:"template,omitempty"`
	// DeliveryHeader names the delivery. It may be empty.
	DeliveryHeader string `json:"deliveryHeader,omitempty" yaml:"deliveryHeader,omitempty"`

	// AlsoHeaders may carry the signature instead of Header.
	AlsoHeaders []string `json:"-" yaml:"-"`
	// AlsoDelivery name the delivery if DeliveryHeader is absent, in order.
	AlsoDelivery []string `json:"-" yaml:"-"`
	// Numbered, when above 0, means that the signature headers are Header with
	// "-1" to "-Numbered" appended.
	Numbered int `json:"-" yaml:"-"`
	// SecretPrefixes, when set, restrict the row to secrets that begin with one of them. A row without them
	// accepts the secrets that no other row of the scheme claims.
	SecretPrefixes []string `json:"-" yaml:"-"`
	// HeaderNames, when set, is the key of the element of the signature header
	// that names further signed headers, separated by spaces. {headers} in
	// Template stands for that element and the headers' values, joined by
	// dots. The row applies only where the signature header has an element
	// that begins with Prefix.
	HeaderNames string `json:"-" yaml:"-"`
	// BodyHashInURL means that the body is covered by the SHA-256 in the
	// signed URL's query (Twilio) and not by {body}.
	BodyHashInURL bool `json:"-" yaml:"-"`
}

// Signs reports whether a header, in any case, carries the signature or the
// time of signing.
func (d *Descriptor) Signs(header string) bool {
	return strings.EqualFold(d.Header, header) || d.Timestamp != nil && strings.EqualFold(d.Timestamp.Header, header)
}

// Timestamp is the place of a scheme's signed time.
type Timestamp struct {
	// Header is the header that carries the time. A value that ends in "="
	// ("t=") is instead the key of an element of the signature header.
	Header string `json:"header" yaml:"header"`
	// Unit is one of the Unit constants. Empty means UnitSeconds.
	Unit string `json:"unit,omitempty" yaml:"unit,omitempty"`
	// Tolerance is the maximum distance from now, in whole seconds, in both directions. 0 means
	// DefaultTolerance.
	Tolerance int `json:"tolerance,omitempty" yaml:"tolerance,omitempty"`
}

// The algorithms.
const (
	AlgHMACSHA1   = "hmac-sha1"
	AlgHMACSHA256 = "hmac-sha256"
	AlgHMACSHA512 = "hmac-sha512"
	AlgEd25519    = "ed25519"
	AlgECDSAP256  = "ecdsa-p256" // over SHA-256, signature in ASN.1 DER
	AlgToken      = "token"      // the header carries the secret itself; nothing is signed
)

// The forms of a secret.
const (
	KeyUTF8   = "utf8"   // the text's bytes, verbatim
	KeyBase64 = "base64" // standard alphabet, padded or not
	KeyHex    = "hex"
	KeyWhsec  = "whsec" // base64 of 24 to 64 bytes, with or without "whsec_" before it
	KeyWhpk   = "whpk"  // "whpk_" and the base64 of an Ed25519 public key
	KeySPKI   = "spki"  // base64 of a public key as SubjectPublicKeyInfo in DER
)

// The ways to read the signature header.
const (
	ParseWhole     = "whole"
	ParseSpace     = "space"     // list split at spaces
	ParseComma     = "comma"     // list split at commas
	ParseSemicolon = "semicolon" // list split at semicolons
)

// The encodings of a signature.
const (
	EncodingHex       = "hex"       // upper or lower case
	EncodingBase64    = "base64"    // standard alphabet, padded
	EncodingBase64URL = "base64url" // URL alphabet, not padded
)

// The units of a timestamp.
const (
	UnitSeconds  = "s"
	UnitMillis   = "ms"
	UnitRFC3339  = "rfc3339"
	UnitHTTPDate = "http-date" // RFC 9110, IMF-fixdate
)

// DefaultTolerance is the default tolerance, in seconds.
const DefaultTolerance = 300

const (
	maxTolerance = 24 * 60 * 60
	maxTemplate  = 256
	maxPrefix    = 64
	maxName      = 128
)

// DescriptorError is an error of a descriptor. Field is the path of the key, as written in a file
// ("timestamp.header"). Hint may be empty.
type DescriptorError struct{ Field, Message, Hint string }

func (e DescriptorError) Error() string { return e.Field + ": " + e.Message }

// DescriptorErrors are all errors of a descriptor, in the order of its fields. Custom returns it.
type DescriptorErrors []DescriptorError

func (e DescriptorErrors) Error() string {
	texts := make([]string, len(e))
	for i := range e {
		texts[i] = e[i].Error()
	}
	return strings.Join(texts, "; ")
}

// Unwrap gives each problem as an error.
func (e DescriptorErrors) Unwrap() []error {
	errs := make([]error, len(e))
	for i := range e {
		errs[i] = e[i]
	}
	return errs
}

// CustomName is the value of signatureScheme that goes with a customScheme.
const CustomName = "custom"

// Custom returns a scheme for a user's descriptor. It refuses descriptors that verify less than they seem
// to: without {body} in the template, or with a timestamp that is checked but not signed. The error is
// DescriptorErrors.
func Custom(d Descriptor) (*Scheme, error) {
	if errs := check(&d); len(errs) > 0 {
		return nil, errs
	}
	return compile(row{
		name:       CustomName,
		descriptor: d,
		doc:        "Described by the webhook's own file.",
	}), nil
}

func check(d *Descriptor) (errs DescriptorErrors) {
	// Headers that never reach a verifier as sent, and headers that must not become a delivery ID, which is
	// logged.
	unreadable := []string{"Host", "Content-Length", "Transfer-Encoding", "Connection", "Cookie", "Trailer"}
	secret := append([]string{"Authorization", "Proxy-Authorization"}, unreadable...)
	add := func(field, format string, args ...any) {
		errs = append(errs, DescriptorError{Field: field, Message: fmt.Sprintf(format, args...)})
	}
	oneOf := func(field, value string, allowed ...string) {
		switch {
		case slices.Contains(allowed, value):
		case value == "":
			add(field, "is required: %s", strings.Join(allowed, ", "))
		default:
			add(field, "%s is not one of %s", preview(value), strings.Join(allowed, ", "))
		}
	}

	header := func(field, name string, forbidden ...string) {
		switch {
		case !validName(name):
			add(field, "%s is not an HTTP header name", preview(name))
		case slices.ContainsFunc(forbidden, func(f string) bool { return strings.EqualFold(f, name) }):
			add(field, "%s cannot be used here", preview(name))
		}
	}

	oneOf("alg", d.Alg, AlgHMACSHA1, AlgHMACSHA256, AlgHMACSHA512, AlgEd25519, AlgECDSAP256, AlgToken)
	switch d.Alg {
	case AlgToken:
		oneOf("key", cmp.Or(d.Key, KeyUTF8), KeyUTF8)
	case AlgEd25519:
		oneOf("key", d.Key, KeyHex, KeyBase64, KeyWhpk, KeySPKI)
	case AlgECDSAP256:
		oneOf("key", d.Key, KeySPKI)
	default:
		oneOf("key", cmp.Or(d.Key, KeyUTF8), KeyUTF8, KeyBase64, KeyHex, KeyWhsec)
	}

	header("header", d.Header, unreadable...)
	oneOf("parse", cmp.Or(d.Parse, ParseWhole), ParseWhole, ParseSpace, ParseComma, ParseSemicolon)
	if d.Alg == AlgToken {
		if d.Encoding != "" {
			add("encoding", "alg token compares the header's text: leave encoding out")
		}
	} else {
		oneOf("encoding", d.Encoding, EncodingHex, EncodingBase64, EncodingBase64URL)
	}

	checkPrefix(d, add)
	checkTimestamp(d, add, func(field, name string) { header(field, name, secret...) })
	checkTemplate(d, add)
	if parts, problem := parseTemplate(d.Template); problem == "" {
		errs = append(errs, checkBesideID(parts)...)
	}

	if d.DeliveryHeader != "" {
		header("deliveryHeader", d.DeliveryHeader, secret...)
		if d.Signs(d.DeliveryHeader) || Reserved(d.DeliveryHeader) {
			add(
				"deliveryHeader",
				"%s carries a signature, a token or a time, which is no name for a delivery",
				preview(d.DeliveryHeader),
			)
		}
	}

	return errs
}

type adder = func(field, format string, args ...any)

func checkPrefix(d *Descriptor, add adder) {
	sep, list := separator(d.Parse)
	switch {
	case len(d.Prefix) > maxPrefix:
		add("prefix", "is longer than %d bytes", maxPrefix)
	case strings.ContainsFunc(d.Prefix, func(r rune) bool { return r < ' ' || r > '~' }):
		add("prefix", "may consist of visible ASCII characters and spaces only")
	case strings.HasPrefix(d.Prefix, " "):
		add("prefix", "begins with a space, and neither the value of a header nor an element of a list does")
	case list && d.Prefix == "":
		add(
			"prefix",
			`is required with parse %s: the key of the elements that are signatures, such as "v1="`,
			d.Parse,
		)

	case list && strings.IndexByte(d.Prefix, sep) >= 0:
		add("prefix", "contains the character at which parse %s splits", d.Parse)
	}
}

func checkTimestamp(d *Descriptor, add adder, header func(field, name string)) {
	ts := d.Timestamp
	if ts == nil {
		return
	}

	if strings.HasSuffix(ts.Header, "=") {
		sep, list := separator(d.Parse)
		switch {
		case !list:
			add(
				"timestamp.header",
				"%s names an element of the signature header, which needs parse space, comma or semicolon",
				preview(ts.Header),
			)

		case ts.Header == d.Prefix:
			add("timestamp.header", "is also the prefix of the signatures")
		case len(ts.Header) < 2 || len(ts.Header) > maxPrefix || strings.IndexByte(ts.Header, sep) >= 0,
			!validName(ts.Header[:len(ts.Header)-1]):
			add("timestamp.header", "%s is not the key of an element", preview(ts.Header))
		}
	} else {
		header("timestamp.header", ts.Header)
		if strings.EqualFold(ts.Header, d.Header) {
			add("timestamp.header",
				`is also the signature header; name the element of it that carries the time, such as "t="`)
		}
	}

	units := []string{UnitSeconds, UnitMillis, UnitRFC3339, UnitHTTPDate}
	if unit := cmp.Or(ts.Unit, UnitSeconds); !slices.Contains(units, unit) {
		add("timestamp.unit", "%s is not one of %s", preview(unit), strings.Join(units, ", "))
	}
	if ts.Tolerance < 0 || ts.Tolerance > maxTolerance {
		add("timestamp.tolerance", "%d is not a number of seconds from 1 to %d", ts.Tolerance, maxTolerance)
	}

	if d.Alg == AlgToken {
		add("timestamp", "alg token signs nothing, so anybody could write the timestamp")
	} else if !strings.Contains(d.Template, "{ts}") {
		add("timestamp", "is checked, so {ts} must be in the template: otherwise anybody could write it")
	}
}

func checkTemplate(d *Descriptor, add adder) {
	if d.Alg == AlgToken {
		if d.Template != "" {
			add("template", "alg token signs nothing: leave template out")
		}
		return
	}

	if len(d.Template) > maxTemplate || !utf8.ValidString(d.Template) {
		add("template", "is longer than %d bytes, or not UTF-8", maxTemplate)
		return
	}

	parts, problem := parseTemplate(d.Template)
	if problem != "" {
		add("template", "%s", problem)
		return
	}

	has := func(k partKind) bool {
		return slices.ContainsFunc(parts, func(p part) bool { return p.kind == k })
	}
	if !has(partBody) && !d.BodyHashInURL {
		add("template", "must contain {body}: otherwise the payload is not authenticated")
	}
	if has(partHeaders) && d.HeaderNames == "" {
		add("template", "{headers} is for built-in schemes only")
	}
	if has(partTime) && d.Timestamp == nil {
		add("template", "contains {ts}, and timestamp does not say where it comes from")
	}
	if has(partID) && d.DeliveryHeader == "" {
		add("template", "contains {id}, which is the value of deliveryHeader, and there is none")
	}
}

// checkBesideID refuses templates under which one signature fits several deliveries. {id} is any text, so
// the template must delimit it. The other placeholders are unambiguous: a time has one form, a body is
// JSON, and the URL's beginning is known.
func checkBesideID(parts []part) (errs DescriptorErrors) {
	for i, a := range parts {
		between, rest := "", parts[i+1:]
		if len(rest) > 0 && rest[0].kind == partText {
			between, rest = rest[0].text, rest[1:]
		}
		if len(rest) == 0 || a.kind == partText || a.kind != partID && rest[0].kind != partID {
			continue
		}

		b := rest[0]
		e := DescriptorError{
			Field: "template",
			Hint:  "write the separator that the sender signs; without one it cannot be verified safely",
		}
		switch url := a.kind == partURL || b.kind == partURL; {
		case between == "":
			e.Message = fmt.Sprintf("has %s directly beside %s", a.text, b.text)
		case url && !strings.ContainsAny(between, " \n"):
			e.Message = fmt.Sprintf(
				"has only %s between %s and %s, which a URL may hold",
				preview(between),
				a.text,
				b.text,
			)

		default:
			continue
		}

		e.Message += ": bytes could be moved from one to the other under the same signature"
		errs = append(errs, e)
	}

	return errs
}

type partKind uint8

const (
	partText partKind = iota
	partBody
	partTime
	partID
	partURL
	partMethod
	partHeaders
)

// part is one piece of a template.
type part struct {
	kind partKind
	text string // as the template writes it
}

// parseTemplate splits a template. The second result describes its error.
func parseTemplate(template string) (parts []part, problem string) {
	kinds := map[string]partKind{
		"body":    partBody,
		"ts":      partTime,
		"id":      partID,
		"url":     partURL,
		"method":  partMethod,
		"headers": partHeaders,
	}

	for rest := template; rest != ""; {
		open := strings.IndexAny(rest, "{}")
		if open < 0 {
			return append(parts, part{text: rest}), ""
		}
		if open > 0 {
			parts = append(parts, part{text: rest[:open]})
		}

		end := strings.IndexByte(rest[open:], '}')
		if rest[open] == '}' || end < 0 {
			return nil, "has a brace without its partner"
		}

		name := rest[open+1 : open+end]
		kind, ok := kinds[name]
		if !ok {
			return nil, preview("{"+name+"}") + " is not one of {body}, {ts}, {id}, {url}, {method}"
		}
		if slices.ContainsFunc(parts, func(p part) bool { return p.kind == kind }) {
			return nil, "contains {" + name + "} twice"
		}

		parts = append(parts, part{kind, "{" + name + "}"})
		rest = rest[open+end+1:]
	}

	return parts, ""
}

// separator tells at which byte a list is split, and whether parse is a list.
func separator(parse string) (sep byte, list bool) {
	switch parse {
	case ParseSpace:
		return ' ', true
	case ParseComma:
		return ',', true
	case ParseSemicolon:
		return ';', true
	}
	return 0, false
}

// validName says whether name is a token of RFC 9110, section 5.6.2, and of
// bearable length.
func validName(name string) bool {
	if name == "" || len(name) > maxName {
		return false
	}

	for i := 0; i < len(name); i++ {
		c := name[i]
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' {
			continue
		}
		if strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}

	return true
}

func canonical(name string) string { return textproto.CanonicalMIMEHeaderKey(name) }
