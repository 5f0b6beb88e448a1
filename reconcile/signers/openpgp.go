package signers

import (
	"bytes"
	"crypto"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	pgperrors "github.com/ProtonMail/go-crypto/openpgp/errors"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

const openpgpHeader = "-----BEGIN PGP SIGNATURE-----"

// strong are the hash algorithms of acceptable signatures.
var strong = []crypto.Hash{crypto.SHA256, crypto.SHA384, crypto.SHA512, crypto.SHA3_256, crypto.SHA3_512}

// readKeyring reads a keyring: binary, or one or more armored blocks.
func readKeyring(text []byte) (keyring, error) {
	const begin = "-----BEGIN PGP"
	if !bytes.Contains(text, []byte(begin)) {
		return readEntities(bytes.NewReader(text))
	}

	var all keyring
	for i, part := range strings.Split(string(text), begin) {
		if i == 0 {
			continue // what stands before the first block
		}

		block, err := armor.Decode(strings.NewReader(begin + part))
		if err != nil || block.Type != openpgp.PublicKeyType {
			return nil, errors.New("want public keys, as gpg --export --armor writes them")
		}

		entities, err := readEntities(block.Body)
		if err != nil {
			return nil, err
		}

		all = append(all, entities...)
	}

	return all, nil
}

func readEntities(r io.Reader) (keyring, error) {
	entities, err := openpgp.ReadKeyRing(r)
	if err != nil || len(entities) == 0 {
		return nil, errors.New("the file holds no key that can be read: want what gpg --export writes")
	}
	for _, e := range entities {
		if e.PrivateKey != nil {
			return nil, errors.New("the file holds a private key: want what gpg --export writes")
		}
	}
	return entities, nil
}

// verifyOpenPGP verifies a signature in the format of OpenPGP. Keys count as they were when it was made.
func (k *Keys) verifyOpenPGP(payload, signature []byte) (Signer, error) {
	sig, raw, err := oneSignature(signature)
	if err != nil {
		return Signer{}, err
	}

	claimed := "OpenPGP key " + keyOf(sig)
	if !slices.Contains(strong, sig.Hash) {
		return Signer{}, fmt.Errorf("its signature, of %s, uses a weak hash", claimed)
	}

	cfg := &packet.Config{Time: func() time.Time { return sig.CreationTime }}
	verified, entity, err := openpgp.VerifyDetachedSignature(
		k.openpgp,
		bytes.NewReader(payload),
		bytes.NewReader(raw),
		cfg,
	)
	switch {
	case errors.Is(err, pgperrors.ErrUnknownIssuer):
		return Signer{}, fmt.Errorf("it is signed by %s, which is not one of the trusted keys", claimed)
	case verified == nil:
		return Signer{}, fmt.Errorf("its signature, of %s, is not over this commit", claimed)
	}

	by := Signer{Name: "no user ID", Key: fmt.Sprintf("%X", entity.PrimaryKey.Fingerprint)}
	if id := entity.PrimaryIdentity(); id != nil {
		by.Name = id.Name
	}

	switch {
	case err == nil:
		return by, nil
	case errors.Is(err, pgperrors.ErrKeyRevoked):
		return Signer{}, fmt.Errorf("it is signed by %s, whose key is revoked", by)
	case errors.Is(err, pgperrors.ErrKeyExpired):
		return Signer{}, fmt.Errorf("it is signed by %s, whose key had expired", by)
	case errors.Is(err, pgperrors.ErrSignatureExpired):
		return Signer{}, fmt.Errorf("it is signed by %s, with a signature that is not valid at its own time", by)
	}

	return Signer{}, fmt.Errorf("its signature by %s does not count: %w", by, err)
}

// oneSignature reads an armored signature of binary data, and nothing else.
func oneSignature(text []byte) (sig *packet.Signature, raw []byte, err error) {
	malformed := errors.New("its OpenPGP signature is malformed")
	several := errors.New("it has several signatures")
	if strings.Count(string(text), openpgpHeader) != 1 {
		return nil, nil, several
	}

	block, err := armor.Decode(bytes.NewReader(text))
	if err != nil || block.Type != openpgp.SignatureType {
		return nil, nil, malformed
	}

	raw, err = io.ReadAll(block.Body)
	if err != nil {
		return nil, nil, malformed
	}

	packets := packet.NewReader(bytes.NewReader(raw))
	p, err := packets.Next()
	if err != nil {
		return nil, nil, malformed
	}

	sig, ok := p.(*packet.Signature)
	if !ok || sig.SigType != packet.SigTypeBinary || sig.IssuerKeyId == nil {
		return nil, nil, malformed
	}

	if _, err := packets.Next(); !errors.Is(err, io.EOF) {
		return nil, nil, several
	}

	return sig, raw, nil
}

// keyOf names the key that a signature claims to be by.
func keyOf(sig *packet.Signature) string {
	if len(sig.IssuerFingerprint) > 0 {
		return fmt.Sprintf("%X", sig.IssuerFingerprint)
	}
	return fmt.Sprintf("%016X", *sig.IssuerKeyId)
}
