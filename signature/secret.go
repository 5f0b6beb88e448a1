package signature

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
)

const (
	whsec = "whsec_"
	whpk  = "whpk_"
	whsk  = "whsk_" // the private half of whpk_, for Sign
)

// key is a parsed secret. The algorithm determines which field is set.
type key struct {
	mac   []byte
	token [sha256.Size]byte
	ed    ed25519.PublicKey
	ec    *ecdsa.PublicKey
}

// verifyKey reads the secret of a webhook. Its errors never quote the secret.
func (f *form) verifyKey(secret []byte) (k key, err error) {
	raw, err := f.decodeSecret(secret)
	if err != nil {
		return key{}, err
	}

	switch f.d.Alg {
	case AlgToken:
		k.token = sha256.Sum256(raw)
	case AlgEd25519:
		if f.d.Key == KeySPKI {
			pub, err := x509.ParsePKIXPublicKey(raw)
			ed, ok := pub.(ed25519.PublicKey)
			if err != nil || !ok {
				return key{}, errors.New("the secret is not an Ed25519 public key in DER")
			}

			k.ed = ed
		} else if len(raw) != ed25519.PublicKeySize {
			return key{}, fmt.Errorf("an Ed25519 public key has 32 bytes, the secret has %d", len(raw))
		} else {
			k.ed = raw
		}

	case AlgECDSAP256:
		pub, err := x509.ParsePKIXPublicKey(raw)
		ec, ok := pub.(*ecdsa.PublicKey)
		if err != nil || !ok || ec.Curve != elliptic.P256() {
			return key{}, errors.New("the secret is not a P-256 public key in DER")
		}

		k.ec = ec

	default:
		if len(raw) == 0 {
			return key{}, errors.New("the secret decodes to an empty key")
		}
		k.mac = raw
	}

	return k, nil
}

// decodeSecret decodes the secret's text as the descriptor defines.
func (f *form) decodeSecret(secret []byte) ([]byte, error) {
	switch f.d.Key {
	case KeyBase64, KeySPKI:
		return base64Secret(secret)
	case KeyHex:
		raw := make([]byte, hex.DecodedLen(len(secret)))
		if _, err := hex.Decode(raw, secret); err != nil {
			return nil, errors.New("the secret is not hexadecimal")
		}

		return raw, nil

	case KeyWhsec:
		raw, err := base64Secret(bytes.TrimPrefix(secret, []byte(whsec)))
		if err != nil {
			return nil, err
		}
		if len(raw) < 24 || len(raw) > 64 {
			return nil, fmt.Errorf("the secret has %d bytes; Standard Webhooks asks for 24 to 64", len(raw))
		}

		return raw, nil

	case KeyWhpk:
		rest, ok := bytes.CutPrefix(secret, []byte(whpk))
		if !ok {
			return nil, errors.New("the secret is not a public key that begins with whpk_")
		}

		return base64Secret(rest)
	}

	return bytes.Clone(secret), nil
}

// base64Secret decodes the standard alphabet, padded or not.
func base64Secret(text []byte) ([]byte, error) {
	raw, err := base64.RawStdEncoding.AppendDecode(nil, bytes.TrimRight(text, "="))
	if err != nil || bytes.ContainsAny(text, "\r\n") {
		return nil, errors.New("the secret is not base64")
	}
	return raw, nil
}

// NewSecret generates a secret for standard_webhooks and svix: "whsec_" and the base64 of 32 random bytes.
// For every other scheme, including aliases, the provider issues the secret, and ok is false.
func NewSecret(schemeName string) (secret string, ok bool) {
	if schemeName != "standard_webhooks" && schemeName != "svix" {
		return "", false
	}
	raw := make([]byte, 32)
	_, _ = rand.Read(raw) // never fails
	return whsec + base64.StdEncoding.EncodeToString(raw), true
}
