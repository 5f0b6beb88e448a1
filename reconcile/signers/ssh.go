package signers

import (
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
)

const (
	sshHeader = "-----BEGIN SSH SIGNATURE-----"
	// namespace is what git signs commits for.
	namespace = "git"
)

// readAllowed reads an allowed_signers file. It refuses lines that it cannot follow in full.
func readAllowed(text []byte) ([]allowed, error) {
	var all []allowed
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}

		a, err := readSigner(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}

		all = append(all, a)
	}

	if len(all) == 0 {
		return nil, errors.New("the file names no key: want lines like alice@example.com ssh-ed25519 AAAA…")
	}

	return all, nil
}

func readSigner(line string) (a allowed, err error) {
	end, rest := strings.IndexAny(line, " \t"), ""
	if strings.HasPrefix(line, `"`) {
		if end = strings.IndexByte(line[1:], '"') + 2; end < 2 {
			return a, errors.New("a quote is not closed")
		}
	}
	if end > 0 {
		a.principals, rest = strings.Trim(line[:end], `"`), line[end:]
	}

	key, _, options, _, err := ssh.ParseAuthorizedKey([]byte(strings.TrimSpace(rest)))
	if err != nil || a.principals == "" {
		return a, errors.New("want principals, options and a key, like alice@example.com ssh-ed25519 AAAA…")
	}

	a.key = key
	if _, certificate := key.(*ssh.Certificate); certificate {
		return a, errors.New("certificates are not supported: list the key itself")
	}

	for _, option := range options {
		name, value, _ := strings.Cut(option, "=")
		value = strings.Trim(value, `"`)
		switch strings.ToLower(name) {
		case "namespaces":
			a.namespaces, err = value, checkPatterns(value)
		case "valid-after":
			a.after, err = readTime(value)
		case "valid-before":
			a.before, err = readTime(value)
		case "cert-authority":
			err = errors.New("cert-authority is not supported: list the keys themselves")
		default:
			err = fmt.Errorf("unknown option %q", name)
		}

		if err != nil {
			return a, err
		}
	}

	return a, nil
}

// readTime reads a time of allowed_signers: YYYYMMDD[HHMM[SS]], local, or with Z in UTC.
func readTime(text string) (time.Time, error) {
	digits, utc := strings.CutSuffix(text, "Z")
	zone := time.Local
	if utc {
		zone = time.UTC
	}

	for _, layout := range []string{"20060102", "200601021504", "20060102150405"} {
		if t, err := time.ParseInLocation(layout, digits, zone); err == nil {
			return t, nil
		}
	}

	return time.Time{}, fmt.Errorf("%q is not a time: want YYYYMMDD[HHMM[SS]][Z]", text)
}

func checkPatterns(list string) error {
	for pattern := range strings.SplitSeq(list, ",") {
		if pattern == "" || strings.ContainsAny(pattern, `[\`) {
			return fmt.Errorf("namespaces: %q is not a pattern", pattern)
		}
	}
	return nil
}

// signsCommits reports whether the namespaces of a line include that of git.
func (a allowed) signsCommits() bool {
	if a.namespaces == "" {
		return true
	}

	found := false
	for pattern := range strings.SplitSeq(a.namespaces, ",") {
		pattern, negated := strings.CutPrefix(pattern, "!")
		if matched, _ := path.Match(pattern, namespace); !matched {
			continue
		}
		if negated {
			return false
		}
		found = true
	}

	return found
}

// refusal returns why a line does not allow a signature of its key at a time; nil if it does.
func (a allowed) refusal(at time.Time) error {
	const day = "2006-01-02 15:04:05 MST"
	switch {
	case !a.signsCommits():
		return fmt.Errorf("whose namespaces %q are not for git", a.namespaces)
	case !a.after.IsZero() && at.Before(a.after):
		return fmt.Errorf("which is valid only after %s", a.after.UTC().Format(day))
	case !a.before.IsZero() && at.After(a.before):
		return fmt.Errorf("which expired at %s", a.before.UTC().Format(day))
	}
	return nil
}

// verifySSH verifies a signature in the format of OpenSSH, for a commit that was made at a time.
func (k *Keys) verifySSH(payload, signature []byte, at time.Time) (Signer, error) {
	block, rest := pem.Decode(signature)
	if block == nil || len(bytes.TrimSpace(rest)) > 0 {
		return Signer{}, errors.New("its SSH signature is malformed")
	}

	sig, err := sshsig.ParseSignature(block.Bytes)
	if err != nil {
		return Signer{}, errors.New("its SSH signature is malformed")
	}

	fingerprint := ssh.FingerprintSHA256(sig.PublicKey)
	if _, certificate := sig.PublicKey.(*ssh.Certificate); certificate {
		return Signer{}, fmt.Errorf("it is signed with an SSH certificate (%s), which is not supported", fingerprint)
	}
	if f := sig.Signature.Format; f == ssh.KeyAlgoRSA || f == "ssh-dss" {
		return Signer{}, fmt.Errorf("its signature uses the weak algorithm %s", f)
	}
	if sig.Namespace != namespace {
		return Signer{}, fmt.Errorf("it is signed for the namespace %q, not for git", sig.Namespace)
	}

	err = sshsig.Verify(bytes.NewReader(payload), sig, sig.PublicKey, sig.HashAlgorithm, namespace)
	if err != nil {
		return Signer{}, fmt.Errorf("its signature by SSH key %s is not over this commit", fingerprint)
	}

	var refused error
	for _, a := range k.ssh {
		if !bytes.Equal(a.key.Marshal(), sig.PublicKey.Marshal()) {
			continue
		}
		if refused = a.refusal(at); refused == nil {
			return Signer{Name: a.principals, Key: fingerprint}, nil
		}

		refused = fmt.Errorf("it is signed by %s (%s), %w", a.principals, fingerprint, refused)
	}

	if refused != nil {
		return Signer{}, refused
	}

	return Signer{}, fmt.Errorf("it is signed by SSH key %s, which is not one of the trusted keys", fingerprint)
}
