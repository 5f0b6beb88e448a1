package signature

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"hash"
	"sync"
)

type keyedForm struct {
	*form
	key  key
	pool sync.Pool // of *scratch
}

// scratch is the reusable memory of a verification: the keyed hash and a buffer.
type scratch struct {
	mac hash.Hash
	buf []byte
	sum [sha512.Size]byte
}

// maxPooled bounds the buffer that is kept between verifications.
const maxPooled = 16 << 10

func (f *keyedForm) matchMAC(req *request, m *Message, s *scratch) *Refusal {
	s.mac.Reset()
	f.writeParts(s, req, m)
	sum := s.mac.Sum(s.sum[:0])
	wellFormed := 0
	var got [maxDecoded]byte
	for _, text := range req.candidates {
		n := decodeSignature(f.d.Encoding, text, got[:])
		if n != len(sum) {
			continue
		}

		wellFormed++
		if hmac.Equal(got[:n], sum) {
			req.digest = sha256.Sum256(sum)
			return nil
		}
	}

	return f.mismatch(req, m, wellFormed)
}

func (f *form) mismatch(req *request, m *Message, wellFormed int) *Refusal {
	if wellFormed == 0 {
		return refuse(CodeMalformed, "%s holds no %s signature of the right length for %s after %s (%d looked at)",
			f.d.Header, f.d.Encoding, f.d.Alg, preview(f.d.Prefix), len(req.candidates))
	}
	return refuse(
		CodeMismatch,
		"%s does not match %s of %q under this webhook's secret (%d signatures compared, body of %d bytes)",
		f.d.Header,
		f.d.Alg,
		f.d.Template,
		wellFormed,
		len(m.Body),
	)
}

// writeParts feeds the signed bytes into the keyed hash without joining them.
func (f *form) writeParts(s *scratch, req *request, m *Message) {
	s.buf = s.buf[:0]
	for _, p := range f.parts {
		if p.kind == partBody {
			if len(s.buf) > 0 {
				s.mac.Write(s.buf)
				s.buf = s.buf[:0]
			}

			s.mac.Write(m.Body)
			continue
		}

		s.buf = appendPart(s.buf, p, req, m)
	}

	if len(s.buf) > 0 {
		s.mac.Write(s.buf)
	}
}

func appendPart(buf []byte, p part, req *request, m *Message) []byte {
	switch p.kind {
	case partBody:
		return append(buf, m.Body...)
	case partTime:
		return append(buf, req.ts...)
	case partID:
		return append(buf, req.id...)
	case partURL:
		return append(buf, m.URL...)
	case partMethod:
		return append(buf, m.Method...)
	case partHeaders:
		return append(buf, req.headers...)
	}

	return append(buf, p.text...)
}

func (f *keyedForm) scratch() *scratch {
	if s, ok := f.pool.Get().(*scratch); ok {
		return s
	}
	return &scratch{mac: hmac.New(newHash(f.d.Alg), f.key.mac)}
}

func (f *keyedForm) release(s *scratch) {
	if cap(s.buf) > maxPooled {
		s.buf = nil
	}
	clear(s.sum[:])
	f.pool.Put(s)
}

func newHash(alg string) func() hash.Hash {
	switch alg {
	case AlgHMACSHA1:
		return sha1.New
	case AlgHMACSHA512:
		return sha512.New
	}
	return sha256.New
}
