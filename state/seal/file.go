package seal

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"millwright/state/db"
)

// LoadKey finds the master key of the state that dsn names: value if it is not empty, else the contents of
// file if that is not empty, else the key file beside a SQLite state, which it makes with mode 0600 when
// there is none. A PostgreSQL state has no such place: then an error names what to give. A key is 32 bytes in
// base64; any other text of at least 32 characters is hashed to 32 bytes. While a rotation is under way the
// file holds two keys in base64, and both are returned, one after the other.
func LoadKey(dsn, value, file string) ([]byte, error) {
	if value != "" {
		return parseKey(value, "MILLWRIGHT_MASTER_KEY")
	}

	if file == "" {
		path, ok := db.SQLitePath(dsn)
		if !ok {
			return nil, errors.New("a PostgreSQL state needs a master key: set MILLWRIGHT_MASTER_KEY or " +
				"--master-key-file (make one with: openssl rand -base64 32)")
		}

		file = KeyFile(path)
		if err := makeKeyFile(path, file); err != nil {
			return nil, err
		}
	}

	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("master key: %w", err)
	}

	return parseKey(strings.TrimSpace(string(text)), file)
}

// KeyFile is the key file beside the SQLite state at path.
func KeyFile(path string) string { return filepath.Join(filepath.Dir(path), "master-key") }

// makeKeyFile writes a new key file, unless there is one, or the state is older than the key would be.
func makeKeyFile(statePath, file string) error {
	if _, err := os.Stat(file); err == nil || !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if info, err := os.Stat(statePath); err == nil && info.Size() > 0 {
		return fmt.Errorf("%w: %s does not exist", ErrWrongKey, file)
	}
	if err := db.MakeDir(filepath.Dir(file)); err != nil {
		return fmt.Errorf("master key: %w", err)
	}

	err := writeNew(file, keyText(randomKey()))
	if errors.Is(err, os.ErrExist) { // another process was first
		return nil
	}
	return err
}

func randomKey() []byte {
	master := make([]byte, keySize)
	rand.Read(master)
	return master
}

func parseKey(text, from string) ([]byte, error) {
	if two := strings.Fields(text); len(two) == 2 {
		old, err := base64.StdEncoding.DecodeString(two[0])
		next, err2 := base64.StdEncoding.DecodeString(two[1])
		if err == nil && err2 == nil && len(old) == keySize && len(next) == keySize {
			return append(old, next...), nil
		}
	}

	if master, err := base64.StdEncoding.DecodeString(text); err == nil && len(master) == keySize {
		return master, nil
	}

	if len(text) < 32 {
		return nil, fmt.Errorf(
			"master key in %s is too short: need 32 bytes in base64, or at least 32 characters", from)
	}

	sum := sha256.Sum256([]byte(text))
	return sum[:], nil
}

// keyText is how a key file holds keys.
func keyText(keys ...[]byte) []byte {
	var text []byte
	for _, master := range keys {
		text = append(base64.StdEncoding.AppendEncode(text, master), '\n')
	}
	return text
}

func readOrMakeKey(file string) ([]byte, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		master := randomKey()
		return master, writeNew(file, keyText(master))
	}
	if err != nil {
		return nil, fmt.Errorf("new master key: %w", err)
	}

	master, err := parseKey(strings.TrimSpace(string(text)), file)
	if err == nil && len(master) != keySize {
		err = fmt.Errorf("%s holds two keys: want one", file)
	}

	return master, err
}

// writeNew writes a file, for its owner only, that does not exist yet.
func writeNew(file string, text []byte) error {
	if err := db.WriteNew(file, text); err != nil {
		return fmt.Errorf("master key: %w", err)
	}
	return nil
}

// replaceKeys atomically replaces the keys in the key file, which keeps its permissions.
func replaceKeys(file string, keys ...[]byte) error {
	info, err := os.Stat(file)
	if err != nil {
		return fmt.Errorf("master key: %w", err)
	}

	part, err := db.Partial(file)
	if err != nil {
		return fmt.Errorf("master key: its directory must be writable, or give --new-key-file: %w", err)
	}
	defer os.Remove(part)

	if err := os.WriteFile(part, keyText(keys...), 0o600); err != nil {
		return fmt.Errorf("master key: %w", err)
	}

	if err := giveTo(info, part); err != nil {
		return fmt.Errorf("master key: run this as the owner of %s: %w", file, err)
	}

	if err := os.Chmod(part, info.Mode().Perm()); err != nil {
		return fmt.Errorf("master key: %w", err)
	}
	if err := db.Publish(part, file); err != nil {
		return fmt.Errorf("master key: %w", err)
	}
	return nil
}
