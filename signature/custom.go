package signature

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

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
