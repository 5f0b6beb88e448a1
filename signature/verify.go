// Package signature verifies and makes the signatures with which webhook
// providers sign their requests.
//
// One verifier works on a table: schemes.go has a row for each provider. The
// package is pure: it reads no clock, opens no connection and keeps no state
// beyond buffers.
package signature

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/subtle"
	"time"
)

// Proof has the facts about a verified request.
type Proof struct {
	// DeliveryID is the provider's name for the delivery, exactly as received,
	// or empty. It is foreign text.
	DeliveryID string
	// DeliveryIDSigned reports whether the signature covers DeliveryID. If not, anybody with the request
	// could send it again under another ID.
	DeliveryIDSigned bool
	// DeliveryHeader is the canonical name of the header with DeliveryID.
	DeliveryHeader string
	// Event is the value of the scheme's event header, or empty. It is foreign
	// text, and signed by no scheme.
	Event string
	// SignedAt is the signed time; zero where the scheme signs none.
	SignedAt time.Time
	// Digest identifies the signed bytes: two requests that one Verifier accepted have equal digests if and
	// only if the provider signed the same bytes. It does not depend on an unsigned ID, so an equal digest
	// under a new ID is a replay. It is a hash of the authentication code (or of the message, if signatures
	// are not unique), so it reveals nothing about the payload without the key. For token schemes it is the
	// hash of the body.
	Digest [sha256.Size]byte
}

// Verifier checks requests against one scheme and one secret. Build it once and
// share it: it may be used by many goroutines. A nil Verifier refuses
// everything.
type Verifier struct {
	scheme *Scheme
	forms  []*keyedForm // none: the secret is empty
}

// Verifier parses the secret. The error describes how its form is wrong, without any of its text. An empty
// secret gives a Verifier that refuses everything, and no error.
func (s *Scheme) Verifier(secret []byte) (*Verifier, error) {
	v := &Verifier{scheme: s}
	if len(secret) == 0 {
		return v, nil
	}

	for _, f := range s.formsFor(secret) {
		k, err := f.verifyKey(secret)
		if err != nil {
			return nil, err
		}

		v.forms = append(v.forms, &keyedForm{form: f, key: k})
	}

	return v, nil
}

// formsFor returns the forms for a secret: those that claim its prefix, else those that claim none.
func (s *Scheme) formsFor(secret []byte) (claimed []*form) {
	var rest []*form
	for _, f := range s.forms {
		if len(f.d.SecretPrefixes) == 0 {
			rest = append(rest, f)
		}
		for _, prefix := range f.d.SecretPrefixes {
			if bytes.HasPrefix(secret, []byte(prefix)) {
				claimed = append(claimed, f)
				break
			}
		}
	}

	if claimed != nil {
		return claimed
	}

	return rest
}

// Scheme is the scheme that the verifier checks.
func (v *Verifier) Scheme() *Scheme { return v.scheme }

// Verify checks that m was signed with the secret, at a time near now. The error is always a *Refusal.
func (v *Verifier) Verify(m Message, now time.Time) (Proof, error) {
	if v == nil || len(v.forms) == 0 {
		return Proof{}, refuse(
			CodeNoSecret,
			"the webhook's secret is empty or pending: every request is refused",
		)
	}

	var room [maxCandidates]string
	f := v.forms[pick(v.forms, m.Header)]
	req, refusal := f.read(m.Header, now, room[:0])
	if refusal == nil {
		refusal = f.match(&req, &m)
	}
	if refusal != nil {
		return Proof{}, refusal
	}

	p := Proof{
		DeliveryID:       req.id,
		DeliveryIDSigned: f.signsID,
		DeliveryHeader:   req.idHeader,
		SignedAt:         req.signedAt,
		Digest:           req.digest,
	}

	for _, name := range v.scheme.events {
		if values := m.Header[name]; len(values) > 0 {
			p.Event = values[0]
			break
		}
	}

	return p, nil
}

// pick returns the first form of the secret that applies to the request. So a request with a signed time is
// never verified by a form without it. If none applies, it returns the first form.
func pick(forms []*keyedForm, header map[string][]string) int {
	if len(forms) == 1 {
		return 0
	}
	for i, f := range forms {
		if f.applies(header) {
			return i
		}
	}
	return 0
}

// applies reports whether a request has one of the form's own headers.
func (f *form) applies(header map[string][]string) bool {
	if f.d.HeaderNames != "" {
		value, _ := single(header, f.sigs[0])
		return f.hasElement(value)
	}
	for _, name := range f.decisive {
		if len(header[name]) > 0 {
			return true
		}
	}
	return false
}

// match compares the signatures of the request with the right one.
func (f *keyedForm) match(req *request, m *Message) *Refusal {
	if f.signsURL && m.URL == "" {
		return refuse(CodeMalformed, "%s signs the URL, and the server's public URL is not set", f.d.Header)
	}

	switch f.d.Alg {
	case AlgToken:
		return f.matchToken(req, m)
	case AlgEd25519, AlgECDSAP256:
		return f.matchPublicKey(req, m)
	}

	if f.d.BodyHashInURL {
		return f.matchTwilio(req, m)
	}

	s := f.scratch()
	defer f.release(s)

	return f.matchMAC(req, m, s)
}

// matchToken compares hashes, so that its duration reveals neither content nor length.
func (f *keyedForm) matchToken(req *request, m *Message) *Refusal {
	for _, text := range req.candidates {
		sum := sha256.Sum256([]byte(text))
		if subtle.ConstantTimeCompare(sum[:], f.key.token[:]) == 1 {
			req.digest = sha256.Sum256(m.Body)
			return nil
		}
	}
	return refuse(CodeMismatch, "the token in %s is not this webhook's secret", f.d.Header)
}

func (f *keyedForm) matchPublicKey(req *request, m *Message) *Refusal {
	var signed []byte
	for _, p := range f.parts {
		signed = appendPart(signed, p, req, m)
	}

	digest := sha256.Sum256(signed)
	wellFormed := 0
	var got [maxDecoded]byte
	for _, text := range req.candidates {
		n := decodeSignature(f.d.Encoding, text, got[:])
		ok := false
		switch {
		case n <= 0:
			continue
		case f.key.ec != nil:
			ok = ecdsa.VerifyASN1(f.key.ec, digest[:], got[:n])
		case n != ed25519.SignatureSize:
			continue
		default:
			ok = ed25519.Verify(f.key.ed, signed, got[:n])
		}

		wellFormed++
		if ok {
			req.digest = digest
			return nil
		}
		if wellFormed == maxPublicKeyChecks {
			break
		}
	}

	return f.mismatch(req, m, wellFormed)
}

// maxPublicKeyChecks bounds the candidates of a request that cost a public key
// operation each.
const maxPublicKeyChecks = 16
