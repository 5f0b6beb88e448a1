package state

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const masterKeySize = 32

// ErrWrongMasterKey says that the state is sealed under another master key.
var ErrWrongMasterKey = errors.New(
	"wrong master key: this state is sealed under another one; give the key it was made with (MILLWRIGHT_MASTER_KEY or --master-key-file)",
)

// sealer encrypts secrets at rest: AES-256-GCM with a random nonce, under a key derived from the master
// key by HKDF-SHA-256, with the purpose and name of what is sealed as associated data.
type sealer struct {
	aead   cipher.AEAD
	master []byte
}

func newSealer(master []byte) *sealer {
	key, err := hkdf.Key(sha256.New, master, nil, "millwright secrets v1", 32)
	if err != nil {
		panic(err) // only for lengths that are constants here
	}

	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err)
	}

	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err)
	}

	return &sealer{aead, master}
}

const sealVersion = 1

func (s *sealer) seal(purpose string, plain []byte) []byte {
	return append([]byte{sealVersion}, s.aead.Seal(nil, nil, plain, []byte(purpose))...)
}

func (s *sealer) open(purpose string, sealed []byte) ([]byte, error) {
	if len(sealed) == 0 || sealed[0] != sealVersion {
		return nil, errors.New("sealed value has an unknown form")
	}
	plain, err := s.aead.Open(nil, nil, sealed[1:], []byte(purpose))
	if err != nil {
		return nil, fmt.Errorf("sealed value %q cannot be opened", purpose)
	}
	return plain, nil
}

// DeriveKey returns 32 bytes that every server of this state derives from the master key, and nobody else
// can, for one purpose: a secret that servers share.
func (s *Store) DeriveKey(purpose string) []byte {
	key, err := hkdf.Key(sha256.New, s.seal.master, nil, "millwright shared "+purpose, 32)
	if err != nil {
		panic(err) // only for lengths that are constants here
	}
	return key
}

const masterKeyFact = "master-key-check"

// checkMasterKey refuses a state that is sealed under none of the given keys, and settles for the one
// that it is sealed under.
func (s *Store) checkMasterKey(ctx context.Context) error {
	var sealed []byte
	err := s.write.QueryRowContext(ctx, `SELECT value FROM facts WHERE name = $1`, masterKeyFact).Scan(&sealed)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return s.classify(err)
	}

	for _, key := range append([]*sealer{s.seal}, s.otherKeys...) {
		if _, err := key.open(masterKeyFact, sealed); err == nil {
			if key != s.seal {
				s.seal = key
			}
			return nil
		}
	}

	return ErrWrongMasterKey
}

// setMasterKey takes one key, or the two between which a rotation is under way.
func (s *Store) setMasterKey(key []byte) error {
	if len(key) != masterKeySize && len(key) != 2*masterKeySize {
		return fmt.Errorf("master key: need %d bytes, have %d", masterKeySize, len(key))
	}
	s.seal = newSealer(key[:masterKeySize])
	for other := range slices.Chunk(key[masterKeySize:], masterKeySize) {
		s.otherKeys = append(s.otherKeys, newSealer(other))
	}
	return nil
}

func (s *Store) rememberMasterKey(ctx context.Context) error {
	_, err := s.write.ExecContext(
		ctx,
		`INSERT INTO facts (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING`,
		masterKeyFact,
		s.seal.seal(masterKeyFact, []byte("millwright")),
	)
	if err != nil {
		return s.classify(err)
	}
	return s.checkMasterKey(ctx) // two replicas may have started with different keys
}

// LoadMasterKey finds the master key of the state that dsn names: value if it is not empty, else the
// contents of file if that is not empty, else the key file beside a SQLite state, which it makes with
// mode 0600 when there is none. A PostgreSQL state has no such place: then an error says what to give.
// A key is 32 bytes in base64; any other text of at least 32 characters is hashed to 32 bytes. While a
// rotation is under way the file holds two keys in base64, and both are returned, one after the other.
func LoadMasterKey(dsn, value, file string) ([]byte, error) {
	if value != "" {
		return parseMasterKey(value, "MILLWRIGHT_MASTER_KEY")
	}

	if file == "" {
		path, ok := SQLitePath(dsn)
		if !ok {
			return nil, errors.New(
				"a PostgreSQL state needs a master key: set MILLWRIGHT_MASTER_KEY or --master-key-file (make one with: openssl rand -base64 32)",
			)
		}

		file = MasterKeyFile(path)
		if err := makeMasterKey(path, file); err != nil {
			return nil, err
		}
	}

	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("master key: %w", err)
	}

	return parseMasterKey(strings.TrimSpace(string(text)), file)
}

// MasterKeyFile is the key file beside the SQLite state at path.
func MasterKeyFile(path string) string { return filepath.Join(filepath.Dir(path), "master-key") }

// makeMasterKey writes a new key file, unless there is one, or the state is older than the key would be.
func makeMasterKey(statePath, file string) error {
	if _, err := os.Stat(file); err == nil || !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if info, err := os.Stat(statePath); err == nil && info.Size() > 0 {
		return fmt.Errorf("%w: %s does not exist", ErrWrongMasterKey, file)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("master key: %w", err)
	}
	return writeNew(file, keyText(newMasterKey()))
}

func newMasterKey() []byte {
	key := make([]byte, masterKeySize)
	rand.Read(key)
	return key
}

// keyText is how a key file holds keys.
func keyText(keys ...[]byte) []byte {
	var text []byte
	for _, key := range keys {
		text = append(base64.StdEncoding.AppendEncode(text, key), '\n')
	}
	return text
}

// writeNew writes a file, for its owner only, that does not exist yet.
func writeNew(file string, text []byte) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("master key: %w", err)
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Sync(), f.Close(), syncFile(filepath.Dir(file)))
}

func parseMasterKey(text, from string) ([]byte, error) {
	if two := strings.Fields(text); len(two) == 2 {
		old, err := base64.StdEncoding.DecodeString(two[0])
		next, err2 := base64.StdEncoding.DecodeString(two[1])
		if err == nil && err2 == nil && len(old) == masterKeySize && len(next) == masterKeySize {
			return append(old, next...), nil
		}
	}

	if key, err := base64.StdEncoding.DecodeString(text); err == nil && len(key) == masterKeySize {
		return key, nil
	}

	if len(text) < 32 {
		return nil, fmt.Errorf(
			"master key in %s is too short: need 32 bytes in base64, or at least 32 characters",
			from,
		)
	}

	sum := sha256.Sum256([]byte(text))
	return sum[:], nil
}
