package signature

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
	"time"
)

// request has the parsed headers of a message.
type request struct {
	candidates []string // encoded signatures, prefix removed
	ts         string   // exactly as received
	signedAt   time.Time
	id         string // exactly as received
	idHeader   string // canonical name
	headers    string // the names and values of further signed headers
	digest     [sha256.Size]byte
}

// Bounds on foreign text. A header value beyond maxValue is not looked at.
const (
	maxValue   = 16 << 10
	maxNamed   = 32  // headers that a signature covers by name
	maxEncoded = 160 // longest signature: ECDSA in DER (72 bytes), Ed25519 and SHA-512 (64), in hex
	maxDecoded = 120 // of maxEncoded in base64
)

// read parses the headers and checks everything but the signature.
func (f *form) read(header map[string][]string, now time.Time, room []string) (req request, r *Refusal) {
	req.candidates = room
	present := false
	for i, name := range f.sigs {
		value, r := single(header, name)
		if r != nil {
			return req, r
		}
		if value == "" {
			continue
		}

		present = true
		if len(value) > maxValue {
			return req, refuse(CodeMalformed, "%s has %d bytes; %d are read", f.sigs[i], len(value), maxValue)
		}
		if r := f.split(&req, value); r != nil {
			return req, r
		}
	}

	if !present {
		return req, f.missing(header)
	}

	if f.tsHeader != "" {
		if req.ts, r = single(header, f.tsHeader); r != nil {
			return req, r
		}
	}

	if f.d.Timestamp != nil {
		if r := f.checkTime(&req, now); r != nil {
			return req, r
		}
	}

	if r := f.readID(&req, header); r != nil {
		return req, r
	}

	if f.d.HeaderNames != "" {
		if r := f.readNamed(&req, header); r != nil {
			return req, r
		}
	}

	if len(req.candidates) == 0 {
		return req, refuse(CodeMalformed, "%s has nothing that begins with %s (its value has %d bytes)",
			f.d.Header, preview(f.d.Prefix), f.valueLength(header))
	}

	return req, nil
}

// single returns the only value of a header. Identical repeats count as one, and an absent header as empty.
func single(header map[string][]string, name string) (string, *Refusal) {
	values := header[name]
	if len(values) == 0 {
		return "", nil
	}
	for _, other := range values[1:] {
		if other != values[0] {
			return "", refuse(CodeDuplicateHeader, "%s is there %d times with different values", name, len(values))
		}
	}
	return values[0], nil
}

// split collects the signatures, and the time, of one signature header.
func (f *form) split(req *request, value string) *Refusal {
	if f.sep == 0 {
		if text, ok := strings.CutPrefix(value, f.d.Prefix); ok && len(req.candidates) < f.candidates {
			req.candidates = append(req.candidates, text)
		}
		return nil
	}

	named := f.d.HeaderNames == ""
	for more := true; more; {
		var element string
		element, value, more = strings.Cut(value, string(f.sep))
		element = strings.Trim(element, " \t")
		if f.tsElement != "" {
			if ts, ok := strings.CutPrefix(element, f.tsElement); ok {
				if req.ts != "" {
					return refuse(CodeDuplicateHeader, "%s has more than one element %s", f.d.Header, f.tsElement)
				}
				if ts == "" {
					return refuse(CodeMalformed, "%s has an empty element %s", f.d.Header, f.tsElement)
				}

				req.ts = ts
				continue
			}
		}

		if f.d.HeaderNames != "" {
			if names, ok := strings.CutPrefix(element, f.d.HeaderNames); ok {
				if named {
					return refuse(CodeDuplicateHeader, "%s has more than one element %s", f.d.Header, f.d.HeaderNames)
				}

				named, req.headers = true, names
				continue
			}
		}

		if text, ok := strings.CutPrefix(element, f.d.Prefix); ok && len(req.candidates) < f.candidates {
			req.candidates = append(req.candidates, text)
		}
	}

	if !named {
		return refuse(
			CodeMalformed,
			"%s has no element %s, which is part of what is signed",
			f.d.Header,
			f.d.HeaderNames,
		)
	}

	return nil
}

// hasElement reports whether a list has an element that may be a signature.
func (f *form) hasElement(value string) bool {
	for element := range strings.SplitSeq(value, string(f.sep)) {
		if strings.HasPrefix(strings.Trim(element, " \t"), f.d.Prefix) {
			return true
		}
	}
	return false
}

// readNamed adds the values of the headers that the signature covers too.
func (f *form) readNamed(req *request, header map[string][]string) *Refusal {
	names := strings.Fields(req.headers)
	if len(names) > maxNamed {
		return refuse(CodeMalformed, "%s names %d headers; %d are read", f.d.Header, len(names), maxNamed)
	}

	values := make([]string, len(names))
	for i, name := range names {
		if !validName(name) {
			return refuse(CodeMalformed, "%s names %s, which is not a header", f.d.Header, preview(name))
		}

		var r *Refusal
		if values[i], r = single(header, canonical(name)); r != nil {
			return r
		}
	}

	req.headers += "." + strings.Join(values, ".")
	return nil
}

// readID finds the delivery ID. A signed one must be there, once.
func (f *form) readID(req *request, header map[string][]string) *Refusal {
	if f.signsID {
		id, r := single(header, f.deliveries[0])
		if r != nil {
			return r
		}

		if id == "" {
			return refuse(
				CodeMissingHeader,
				"%s is missing or empty; it is part of what is signed",
				f.d.DeliveryHeader,
			)
		}

		req.id, req.idHeader = id, f.deliveries[0]
		return nil
	}

	for _, name := range f.deliveries {
		values := header[name]
		if len(values) == 0 {
			continue
		}

		id := values[0]
		if len(values) > 1 {
			id = strings.Join(values, ", ")
		}
		if id != "" {
			req.id, req.idHeader = id, name
			return nil
		}
	}

	return nil
}

// missing returns the refusal for a missing header; it names another scheme whose header is present.
func (f *form) missing(header map[string][]string) *Refusal {
	var seen []string
	for name := range header {
		if Reserved(name) && !slices.Contains(f.headers, name) {
			seen = append(seen, name)
		}
	}

	name := f.d.Header
	if f.d.Numbered > 0 {
		name += "-1"
	}
	if len(seen) == 0 {
		return refuse(CodeMissingHeader, "%s is missing or empty", name)
	}

	slices.Sort(seen)
	seen = seen[:min(len(seen), 3)]
	return refuse(
		CodeMissingHeader,
		"%s is missing or empty; the request has %s, which this scheme does not use",
		name,
		strings.Join(seen, ", "),
	)
}

func (f *form) valueLength(header map[string][]string) (n int) {
	for _, name := range f.sigs {
		if values := header[name]; len(values) > 0 {
			n += len(values[0])
		}
	}
	return n
}

// checkTime checks the time of signing, in whole seconds, inclusive, in both directions.
func (f *form) checkTime(req *request, now time.Time) *Refusal {
	name := f.d.Timestamp.Header
	if f.tsElement != "" {
		name = "element " + f.tsElement + " of " + f.d.Header
	}
	if req.ts == "" {
		return refuse(CodeMissingHeader, "%s is missing or empty; it is part of what is signed", name)
	}

	at, ok := parseTime(f.d.Timestamp.Unit, req.ts)
	if !ok {
		return refuse(CodeMalformed, "%s is %s, not %s", name, preview(req.ts), unitText(f.d.Timestamp.Unit))
	}

	req.signedAt = at
	age := now.Unix() - at.Unix()
	switch {
	case age > f.tolerance:
		return refuse(
			CodeStale,
			"%s %s is %d s old; at most %d s are accepted",
			name,
			preview(req.ts),
			age,
			f.tolerance,
		)
	case age < -f.tolerance:
		return refuse(
			CodeFuture,
			"%s %s is %d s in the future; at most %d s are accepted",
			name,
			preview(req.ts),
			-age,
			f.tolerance,
		)
	}

	return nil
}

func unitText(unit string) string {
	switch unit {
	case UnitMillis:
		return "1 to 20 ASCII digits (milliseconds since 1970) without leading zeros"
	case UnitRFC3339:
		return "a time as in RFC 3339"
	case UnitHTTPDate:
		return "an HTTP date"
	}
	return "1 to 20 ASCII digits (seconds since 1970) without leading zeros"
}

// farFuture stands for every time that no clock will show: year 10000.
const farFuture = 253402300800

// parseTime parses a timestamp strictly: it refuses text that would print differently.
func parseTime(unit, text string) (time.Time, bool) {
	switch unit {
	case UnitRFC3339:
		at, err := time.Parse(time.RFC3339, text[:min(len(text), 64)])
		return at, err == nil && len(text) <= 64
	case UnitHTTPDate:
		at, err := time.Parse("Mon, 02 Jan 2006 15:04:05 GMT", text[:min(len(text), 64)])
		return at, err == nil
	}

	if len(text) == 0 || len(text) > 20 || text[0] == '0' && len(text) > 1 {
		return time.Time{}, false
	}

	perSecond := int64(1)
	if unit == UnitMillis {
		perSecond = 1000
	}

	n, most := int64(0), farFuture*perSecond
	for i := 0; i < len(text); i++ {
		if text[i] < '0' || text[i] > '9' {
			return time.Time{}, false
		}
		n = min(n*10+int64(text[i]-'0'), most)
	}

	return time.Unix(n/perSecond, n%perSecond*int64(time.Second)/perSecond), true
}

var (
	strictStd = base64.StdEncoding.Strict()
	strictURL = base64.RawURLEncoding.Strict()
)

// decodeSignature decodes text into dst strictly, and returns the number of bytes, or -1. Each signature
// has exactly one accepted base64 text.
func decodeSignature(encoding, text string, dst []byte) int {
	var src [maxEncoded]byte
	if len(text) == 0 || len(text) > len(src) {
		return -1
	}

	n := copy(src[:], text)
	var err error
	switch encoding {
	case EncodingHex:
		n, err = hex.Decode(dst, src[:n])
	case EncodingBase64:
		n, err = decodeBase64(strictStd, dst, src[:n])
	default:
		n, err = decodeBase64(strictURL, dst, src[:n])
	}

	if err != nil {
		return -1
	}

	return n
}

// decodeBase64 also refuses line ends, and bits after the last byte, which the standard decoder ignores.
func decodeBase64(enc *base64.Encoding, dst, src []byte) (int, error) {
	for i, c := range src {
		if c == '\r' || c == '\n' {
			return 0, base64.CorruptInputError(i)
		}
	}
	return enc.Decode(dst, src)
}

// Message is a request as it was received.
type Message struct {
	// Method is the request's method; a webhook's is POST.
	Method string
	// URL is the URL that the provider posts to: the server's configured public origin, the raw path, and
	// the query as received. It is never built from a Host or X-Forwarded-Host header. Only schemes with
	// {url} in their template read it.
	URL string
	// Header has canonical keys, as net/http gives them.
	Header map[string][]string
	// Body is the raw body, before any decoding.
	Body []byte
}
