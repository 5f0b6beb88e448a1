package signature

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Scheme is a provider's way to sign. It is immutable and safe for concurrent use.
type Scheme struct {
	row    row
	forms  []*form
	events []string // canonical names of the event headers, by precedence
}

// row is a line of the table in schemes.go.
type row struct {
	name       string
	aliases    []string
	descriptor Descriptor
	others     []Descriptor // further ways, tried in order by the headers present
	event      string       // header that names the event
	alsoEvents []string     // headers that name it where that is missing
	eventField string       // path in the body that names it
	handshake  string       // one of the handshake constants
	confidence string       // A, B or C
	doc        string
}

// form is a descriptor made ready for use.
type form struct {
	d          Descriptor
	sigs       []string // canonical names of the headers that may carry the signature
	tsHeader   string   // canonical name; empty if there is none
	tsElement  string   // key of the element in the signature header, "=" included
	deliveries []string // canonical names
	headers    []string // signature, timestamp and signed ID
	decisive   []string // headers whose presence selects this form
	parts      []part
	signsID    bool
	signsTime  bool
	signsURL   bool
	sep        byte // 0: not a list
	tolerance  int64
	candidates int // how many signatures of one request are looked at
}

// maxCandidates bounds the signatures of one request that are checked; others are ignored. Numbered headers
// have their own bound.
const maxCandidates = 32

func compile(r row) *Scheme {
	s := &Scheme{row: r}
	if r.event != "" {
		s.events = append(s.events, canonical(r.event))
	}
	for _, name := range r.alsoEvents {
		s.events = append(s.events, canonical(name))
	}

	for _, d := range append([]Descriptor{r.descriptor}, r.others...) {
		s.forms = append(s.forms, compileForm(d))
	}

	for i, f := range s.forms {
		f.decisive = slices.DeleteFunc(slices.Clone(f.headers), func(name string) bool {
			return slices.ContainsFunc(s.forms[i+1:], func(later *form) bool {
				return slices.Contains(later.sigs, name) && slices.Equal(later.d.SecretPrefixes, f.d.SecretPrefixes)
			})
		})
	}

	return s
}

func compileForm(d Descriptor) *form {
	d.Key = cmp.Or(d.Key, KeyUTF8)
	d.Parse = cmp.Or(d.Parse, ParseWhole)
	f := &form{d: d, candidates: max(maxCandidates, d.Numbered)}
	f.sep, _ = separator(d.Parse)
	f.parts, _ = parseTemplate(d.Template)
	for _, p := range f.parts {
		f.signsID = f.signsID || p.kind == partID
		f.signsTime = f.signsTime || p.kind == partTime
		f.signsURL = f.signsURL || p.kind == partURL
	}

	if d.Numbered > 0 {
		for n := 1; n <= d.Numbered; n++ {
			f.sigs = append(f.sigs, canonical(d.Header+"-"+strconv.Itoa(n)))
		}
	} else {
		for _, name := range append([]string{d.Header}, d.AlsoHeaders...) {
			f.sigs = append(f.sigs, canonical(name))
		}
	}

	f.headers = slices.Clone(f.sigs)
	if ts := d.Timestamp; ts != nil {
		copied := *ts
		copied.Unit = cmp.Or(ts.Unit, UnitSeconds)
		copied.Tolerance = cmp.Or(ts.Tolerance, DefaultTolerance)
		f.d.Timestamp = &copied
		f.tolerance = int64(copied.Tolerance)
		if strings.HasSuffix(ts.Header, "=") {
			f.tsElement = ts.Header
		} else {
			f.tsHeader = canonical(ts.Header)
			f.headers = append(f.headers, f.tsHeader)
		}
	}

	if d.DeliveryHeader != "" {
		for _, name := range append([]string{d.DeliveryHeader}, d.AlsoDelivery...) {
			f.deliveries = append(f.deliveries, canonical(name))
		}
		if f.signsID {
			f.headers = append(f.headers, f.deliveries[0])
		}
	}

	return f
}

// Name is the scheme's key, as in signatureScheme.
func (s *Scheme) Name() string { return s.row.name }

// Aliases are other values of signatureScheme that mean this scheme.
func (s *Scheme) Aliases() []string { return slices.Clone(s.row.aliases) }

// Descriptors are the scheme's ways to sign, with every default filled in. Most
// schemes have one.
func (s *Scheme) Descriptors() []Descriptor {
	ds := make([]Descriptor, len(s.forms))
	for i, f := range s.forms {
		ds[i] = f.d
	}
	return ds
}

// DeliveryHeaders are the canonical names of the headers that name a delivery,
// in order of preference. There may be none.
func (s *Scheme) DeliveryHeaders() []string {
	return s.collect(func(f *form) []string { return f.deliveries })
}

// SignatureHeaders are the canonical names of the headers that carry a
// signature, a token or the time of signing.
func (s *Scheme) SignatureHeaders() []string {
	return s.collect(func(f *form) []string {
		if f.tsHeader == "" {
			return f.sigs
		}
		return append(slices.Clone(f.sigs), f.tsHeader)
	})
}

// SecretHeaders are the canonical names of the headers that carry the secret
// itself. Most schemes have none.
func (s *Scheme) SecretHeaders() []string {
	return s.collect(func(f *form) []string {
		if f.d.Alg == AlgToken {
			return f.sigs
		}
		return nil
	})
}

func (s *Scheme) collect(of func(*form) []string) (names []string) {
	for _, f := range s.forms {
		for _, name := range of(f) {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// EventHeader names the header that carries the kind of event, or is empty.
func (s *Scheme) EventHeader() string { return s.row.event }

// EventHeaders are the canonical names of the headers that carry the kind of event, in order of preference.
// There may be none.
func (s *Scheme) EventHeaders() []string { return slices.Clone(s.events) }

// EventField is the path, in the body, of the kind of event ("event.type"), or
// is empty. It is for display.
func (s *Scheme) EventField() string { return s.row.eventField }

// HasHandshake reports whether Handshake can answer the provider's set-up probe.
func (s *Scheme) HasHandshake() bool { return s.row.handshake != "" }

// Confidence is the evidence for the row. A: the provider's text or SDK, and a recomputed published vector.
// B: the provider's text or SDK. C: known practice. It is empty for a custom scheme.
func (s *Scheme) Confidence() string { return s.row.confidence }

// Doc is a note for users of the scheme, in a sentence or two.
func (s *Scheme) Doc() string { return s.row.doc }

const handshakeSlack = "slack"

// The handshakes that a row may have.
const (
	handshakeZoom    = "zoom"
	handshakeDiscord = "discord"
	handshakeTwitch  = "twitch"
)
