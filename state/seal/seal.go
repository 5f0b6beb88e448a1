// Package seal encrypts secrets at rest under the master key of a state: it finds that key, checks that a
// state is sealed under it, and replaces it.
package seal

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"millwright/state/db"
)

// keySize is how many bytes a master key has.
const keySize = 32

// ErrWrongKey says that the state is sealed under another master key.
var ErrWrongKey = errors.New("wrong master key: this state is sealed under another one; " +
	"give the key it was made with (MILLWRIGHT_MASTER_KEY or --master-key-file)")

// Sealer seals and opens the secrets of a state.
type Sealer struct {
	keys []*key // of which the state is sealed under one
	used atomic.Pointer[key]
}

// New returns a sealer for a master key: 32 bytes, or the 64 of the two keys between which a rotation is
// under way. [Sealer.Check] finds out which of them it is.
func New(master []byte) (*Sealer, error) {
	if len(master) != keySize && len(master) != 2*keySize {
		return nil, fmt.Errorf("master key: need %d bytes, have %d", keySize, len(master))
	}

	s := &Sealer{}
	for one := range slices.Chunk(master, keySize) {
		s.keys = append(s.keys, newKey(one))
	}

	s.used.Store(s.keys[0])
	return s, nil
}

// Seal encrypts a value. purpose names the value, which only opens under the same name.
func (s *Sealer) Seal(purpose string, plain []byte) []byte { return s.used.Load().seal(purpose, plain) }

// Open returns what Seal encrypted.
func (s *Sealer) Open(purpose string, sealed []byte) ([]byte, error) {
	return s.used.Load().open(purpose, sealed)
}

// Derive returns 32 bytes that every holder of the master key derives from it, and nobody else can, for one
// purpose: a secret that servers share.
func (s *Sealer) Derive(purpose string) []byte {
	return derived(s.used.Load().master, "millwright shared "+purpose)
}

func derived(master []byte, info string) []byte {
	secret, err := hkdf.Key(sha256.New, master, nil, info, keySize)
	if err != nil {
		panic(err) // only for lengths that are constants here
	}
	return secret
}

// key is AES-256-GCM with a random nonce, under a key derived from the master key by HKDF-SHA-256, with the
// purpose of what is sealed as associated data.
type key struct {
	aead   cipher.AEAD
	master []byte
}

func newKey(master []byte) *key {
	block, err := aes.NewCipher(derived(master, "millwright secrets v1"))
	if err != nil {
		panic(err) // only for lengths that are constants here
	}

	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err)
	}

	return &key{aead, master}
}

// version is the first byte of a sealed value.
const version = 1

func (k *key) seal(purpose string, plain []byte) []byte {
	return append([]byte{version}, k.aead.Seal(nil, nil, plain, []byte(purpose))...)
}

func (k *key) open(purpose string, sealed []byte) ([]byte, error) {
	if len(sealed) == 0 || sealed[0] != version {
		return nil, errors.New("sealed value has an unknown form")
	}

	plain, err := k.aead.Open(nil, nil, sealed[1:], []byte(purpose))
	if err != nil {
		return nil, fmt.Errorf("sealed value %q cannot be opened", purpose)
	}

	return plain, nil
}

// A value that is sealed under the master key of the state tells that key from others.
const (
	checkName = "master-key-check"
	checkText = "millwright"
)

const readCheckSQL = `SELECT value FROM facts WHERE name = $1`

// Check finds the key that the state is sealed under, and uses it from then on. ErrWrongKey when it is none of
// ours. A state without a check is as good as sealed under the first.
func (s *Sealer) Check(ctx context.Context, d *db.DB) error {
	var sealed []byte
	err := d.QueryRow(ctx, readCheckSQL, checkName).Scan(&sealed)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}

	return s.choose(sealed)
}

func (s *Sealer) choose(check []byte) error {
	for _, k := range s.keys {
		if _, err := k.open(checkName, check); err == nil {
			s.used.Store(k)
			return nil
		}
	}
	return ErrWrongKey
}

// Bind binds a new state to our key, and checks one that is bound: two replicas may have started at once with
// different keys.
func (s *Sealer) Bind(ctx context.Context, d *db.DB) error {
	err := d.Exec(ctx, `INSERT INTO facts (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING`,
		checkName, s.Seal(checkName, []byte(checkText)))
	if err != nil {
		return err
	}
	return s.Check(ctx, d)
}

// Fits reports whether the SQLite state at path is sealed under the key. Nothing may use it.
func Fits(ctx context.Context, path string, master []byte) bool {
	s, err := New(master)
	if err != nil {
		return false
	}

	file, err := db.OpenFile(path, "mode=ro&immutable=1")
	if err != nil {
		return false
	}
	defer file.Close()

	var sealed []byte
	err = file.QueryRowContext(ctx, readCheckSQL, checkName).Scan(&sealed)
	return errors.Is(err, sql.ErrNoRows) || err == nil && s.choose(sealed) == nil
}
