package server

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"millwright/cmd/settings"
	"millwright/reconcile/signers"
)

// maxKeys bounds a file of trusted keys.
const maxKeys = 4 << 20

// readSigners reads the keys that must have signed the commits of a factory's source. It also returns the contents
// of their files. Without such keys it returns nothing.
func readSigners(f settings.Factory) (*signers.Keys, []byte, error) {
	if f.Source.Git == nil || f.Source.Git.Verify == nil {
		return nil, nil, nil
	}

	v := f.Source.Git.Verify
	ssh, err := readKeys("ssh", v.SSH)
	if err != nil {
		return nil, nil, err
	}

	openpgp, err := readKeys("openpgp", v.OpenPGP)
	if err != nil {
		return nil, nil, err
	}

	trusted, err := signers.Read(ssh, openpgp)
	if err != nil {
		return nil, nil, fmt.Errorf("source.git.verify: %w", err)
	}

	return trusted, bytes.Join([][]byte{ssh, openpgp}, []byte{0}), nil
}

func readKeys(setting, path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}

	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("source.git.verify.%s: %w", setting, err)
	}
	defer file.Close()

	text, err := io.ReadAll(io.LimitReader(file, maxKeys+1))
	if err == nil && len(text) > maxKeys {
		err = fmt.Errorf("%s has more than %d MiB", path, maxKeys>>20)
	}
	if err != nil {
		return nil, fmt.Errorf("source.git.verify.%s: %w", setting, err)
	}

	return text, nil
}
