package signature

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Sign makes the headers that the provider would send with m: signature, time,
// and the delivery header if id is not empty (a scheme that signs its ID needs
// one). The secret is the webhook's, except where the provider signs with a
// private key: then it is that key ("whsk_" and base64 for standard_webhooks;
// hex for discord, 32 bytes of seed or all 64; base64 of PKCS #8 or SEC 1 in
// DER for sendgrid). Header names are written as the provider does.
func (s *Scheme) Sign(secret []byte, m Message, id string, now time.Time) (map[string]string, error) {
	if len(secret) == 0 {
		return nil, errors.New("cannot sign with an empty secret")
	}

	f := s.formsFor(secret)[0]
	req := request{id: id}
	headers := map[string]string{}
	switch {
	case f.d.DeliveryHeader != "" && id != "":
		headers[f.d.DeliveryHeader] = id
	case f.signsID:
		return nil, fmt.Errorf("scheme %s signs %s: a delivery ID is needed", s.row.name, f.d.DeliveryHeader)
	}

	value := ""
	if ts := f.d.Timestamp; ts != nil {
		req.ts = formatTime(ts.Unit, now)
		if f.tsElement == "" {
			headers[ts.Header] = req.ts
		} else {
			value = f.tsElement + req.ts + string(f.sep)
		}
	}

	if f.d.HeaderNames != "" {
		if len(m.Header["Content-Type"]) > 0 {
			req.headers = "content-type"
		}

		value += f.d.HeaderNames + req.headers + string(f.sep)
		if r := f.readNamed(&req, m.Header); r != nil {
			return nil, r
		}
	}

	if f.signsURL && m.URL == "" {
		return nil, fmt.Errorf("scheme %s signs the URL, and there is none", s.row.name)
	}

	sig, err := f.sign(secret, &req, &m)
	if err != nil {
		return nil, fmt.Errorf("sign like %s: %w", s.row.name, err)
	}

	name := f.d.Header
	if f.d.Numbered > 0 {
		name += "-1"
	}

	headers[name] = value + f.d.Prefix + encode(f.d.Encoding, sig)
	return headers, nil
}

func (f *form) sign(secret []byte, req *request, m *Message) ([]byte, error) {
	var signed []byte
	for _, p := range f.parts {
		signed = appendPart(signed, p, req, m)
	}

	switch f.d.Alg {
	case AlgToken:
		return f.decodeSecret(secret)
	case AlgEd25519:
		private, err := f.edPrivate(secret)
		if err != nil {
			return nil, err
		}

		return ed25519.Sign(private, signed), nil

	case AlgECDSAP256:
		private, err := ecPrivate(secret)
		if err != nil {
			return nil, err
		}

		digest := sha256.Sum256(signed)
		return ecdsa.SignASN1(rand.Reader, private, digest[:])
	}

	k, err := f.verifyKey(secret)
	if err != nil {
		return nil, err
	}

	if f.d.BodyHashInURL {
		if err := checkBodyHash(m); err != nil {
			return nil, err
		}
	}

	mac := hmac.New(newHash(f.d.Alg), k.mac)
	mac.Write(signed)
	return mac.Sum(nil), nil
}

func (f *form) edPrivate(secret []byte) (ed25519.PrivateKey, error) {
	var raw []byte
	var err error
	if f.d.Key == KeyWhpk {
		rest, ok := bytes.CutPrefix(secret, []byte(whsk))
		if !ok {
			return nil, errors.New("signing needs the private key, which begins with whsk_")
		}

		raw, err = base64Secret(rest)
	} else {
		raw, err = f.decodeSecret(secret)
	}

	switch {
	case err != nil:
		return nil, err
	case len(raw) == ed25519.SeedSize:
		return ed25519.NewKeyFromSeed(raw), nil
	case len(raw) == ed25519.PrivateKeySize:
		return raw, nil
	}

	return nil, fmt.Errorf("an Ed25519 private key has 32 or 64 bytes, the secret has %d", len(raw))
}

func ecPrivate(secret []byte) (*ecdsa.PrivateKey, error) {
	der, err := base64Secret(secret)
	if err != nil {
		return nil, err
	}

	private, err := x509.ParseECPrivateKey(der)
	if err != nil {
		parsed, _ := x509.ParsePKCS8PrivateKey(der)
		private, _ = parsed.(*ecdsa.PrivateKey)
	}
	if private == nil || private.Curve != elliptic.P256() {
		return nil, errors.New("signing needs the P-256 private key as PKCS #8 or SEC 1 in base64")
	}

	return private, nil
}

func formatTime(unit string, at time.Time) string {
	switch unit {
	case UnitMillis:
		return strconv.FormatInt(at.UnixMilli(), 10)
	case UnitRFC3339:
		return at.UTC().Format(time.RFC3339)
	case UnitHTTPDate:
		return at.UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT")
	}
	return strconv.FormatInt(at.Unix(), 10)
}

func encode(encoding string, sig []byte) string {
	switch encoding {
	case EncodingHex:
		return hex.EncodeToString(sig)
	case EncodingBase64:
		return base64.StdEncoding.EncodeToString(sig)
	case EncodingBase64URL:
		return base64.RawURLEncoding.EncodeToString(sig)
	}
	return string(sig) // a token
}
