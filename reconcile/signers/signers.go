// Package signers verifies the signatures of git commits against lists of trusted keys. It runs no program, and
// reads no clock: whether a key counts is judged at the time that the signed data states.
package signers

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Limits of what strangers sign.
const (
	// MaxCommit bounds the size of a commit object, in bytes.
	MaxCommit = 1 << 20
	// maxSignature bounds the signature of a commit. One of OpenSSH or OpenPGP has about 1 KiB.
	maxSignature = 64 << 10
)

// Read returns the keys of an allowed_signers file of OpenSSH and of a keyring of OpenPGP, armored or not. Either
// may be nil. Without any usable key it fails.
func Read(allowedSigners, openpgpKeys []byte) (*Keys, error) {
	var k Keys
	var err error
	if allowedSigners != nil {
		if k.ssh, err = readAllowed(allowedSigners); err != nil {
			return nil, fmt.Errorf("ssh: %w", err)
		}
	}

	if openpgpKeys != nil {
		if k.openpgp, err = readKeyring(openpgpKeys); err != nil {
			return nil, fmt.Errorf("openpgp: %w", err)
		}
	}

	if len(k.ssh)+len(k.openpgp) == 0 {
		return nil, errors.New("no key is in the files")
	}

	return &k, nil
}

// Verify returns who signed a commit, given as git stores it, without the header of the object. The error states
// why the commit is not one of theirs, and who signed it instead where that is known.
func (k *Keys) Verify(commit []byte) (Signer, error) {
	payload, signature, err := split(commit)
	if err != nil {
		return Signer{}, err
	}

	switch {
	case bytes.HasPrefix(signature, []byte(sshHeader)):
		at, err := committed(payload)
		if err != nil {
			return Signer{}, err
		}
		return k.verifySSH(payload, signature, at)
	case bytes.HasPrefix(signature, []byte(openpgpHeader)):
		return k.verifyOpenPGP(payload, signature)
	case bytes.HasPrefix(signature, []byte("-----BEGIN SIGNED MESSAGE-----")):
		return Signer{}, errors.New("it is signed with X.509, which is not supported: sign with SSH or OpenPGP")
	}

	return Signer{}, errors.New("its signature has an unknown format: sign with SSH or OpenPGP")
}

// Tree returns the tree that a commit names in its first line, the only place where git reads it.
func Tree(commit []byte) (string, bool) {
	line, _, _ := bytes.Cut(commit, []byte("\n"))
	tree, found := bytes.CutPrefix(line, []byte("tree "))
	return string(tree), found
}

// split separates a commit into the bytes that were signed and the signature, as git does: the headers gpgsig and
// gpgsig-sha256, with the lines that continue them, belong to no payload.
func split(commit []byte) (payload, signature []byte, err error) {
	if len(commit) > MaxCommit {
		return nil, nil, fmt.Errorf("the commit object has more than %d MiB", MaxCommit>>20)
	}

	count, in := 0, ""
	for rest := commit; len(rest) > 0; {
		line := rest
		if i := bytes.IndexByte(rest, '\n'); i >= 0 {
			line = rest[:i+1]
		}
		if line[0] == '\n' { // the message
			payload = append(payload, rest...)
			break
		}

		rest = rest[len(line):]
		name, value, _ := bytes.Cut(line, []byte(" "))
		continues := line[0] == ' '
		if !continues {
			in = string(name)
		}

		switch {
		case in == "gpgsig" && continues:
			signature = append(signature, line[1:]...)
		case in == "gpgsig":
			count++
			signature = append(signature, value...)
		case in == "gpgsig-sha256":
		case strings.HasPrefix(in, "gpgsig"):
			return nil, nil, fmt.Errorf("it has an unknown header %q", in)
		default:
			payload = append(payload, line...)
		}
	}

	switch {
	case count == 0:
		return nil, nil, errors.New("it is not signed")
	case count > 1:
		return nil, nil, errors.New("it has several signatures")
	case len(signature) > maxSignature:
		return nil, nil, fmt.Errorf("its signature has more than %d KiB", maxSignature>>10)
	}

	return payload, signature, nil
}

// committed returns the time of the committer's line.
func committed(payload []byte) (time.Time, error) {
	headers, _, _ := bytes.Cut(payload, []byte("\n\n"))
	for line := range bytes.SplitSeq(headers, []byte("\n")) {
		who, found := bytes.CutPrefix(line, []byte("committer "))
		if !found {
			continue
		}

		words := strings.Fields(string(who[bytes.LastIndexByte(who, '>')+1:]))
		if len(words) == 0 {
			break
		}

		seconds, err := strconv.ParseInt(words[0], 10, 64)
		if err != nil {
			break
		}

		return time.Unix(seconds, 0), nil
	}

	return time.Time{}, errors.New("it states no time of its committer")
}
