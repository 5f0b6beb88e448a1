package signature

import (
	"net/textproto"
	"slices"
	"strings"
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

// CustomName is the value of signatureScheme that goes with a customScheme.
const CustomName = "custom"
