package signers

import (
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"golang.org/x/crypto/ssh"
)

// keyring are the trusted keys of OpenPGP.
type keyring = openpgp.EntityList

// allowed is a line of an allowed_signers file.
type allowed struct {
	principals    string
	key           ssh.PublicKey
	namespaces    string    // patterns; empty: all
	after, before time.Time // zero: no bound
}

// Keys are the trusted signers of a source. The zero value trusts nobody.
type Keys struct {
	ssh     []allowed
	openpgp keyring
}

// Signer is who signed a commit.
type Signer struct {
	Name string // the principals of an SSH key, or the user ID of an OpenPGP key
	Key  string // its fingerprint
}

// String returns the signer for people: the name, and the key.
func (s Signer) String() string { return s.Name + " (" + s.Key + ")" }
