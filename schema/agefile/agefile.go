// Package agefile seals the secrets of a factory in files that lie beside its definition, and opens them. A file is
// one of age (age-encryption.org), binary or with ASCII armor, encrypted to the recipient of one factory. The text in
// it begins with a line that names the factory and the secret, so that a file opens only in its own place.
package agefile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"filippo.io/age"
	"filippo.io/age/armor"
)

// Bounds of a file.
const (
	MaxValue = 64 << 10  // bytes of a secret's value
	MaxFile  = 128 << 10 // bytes of a file, with room for armor and recipients

	maxRecipients = 20  // each costs a key exchange
	maxFirstLine  = 256 // bytes
)

// Error is a problem of a file. Neither text holds anything that the file encrypts.
type Error struct{ Text, Hint string }

func (e *Error) Error() string { return e.Text }

const sealAgain = "seal the value again with millwright secret seal"

// Identity opens the files of a factory. It prints as a constant, not as its key.
type Identity struct{ key *age.X25519Identity }

// NewIdentity returns a random identity.
func NewIdentity() (Identity, error) {
	key, err := age.GenerateX25519Identity()
	return Identity{key}, err
}

// ParseIdentity returns the identity of a private key, as Key writes it.
func ParseIdentity(key string) (Identity, error) {
	parsed, err := age.ParseX25519Identity(key)
	if err != nil {
		return Identity{}, errors.New("not an age identity") // the library's error may quote the key
	}
	return Identity{parsed}, nil
}

// Key returns the private key, which must be kept sealed.
func (i Identity) Key() string { return i.key.String() }

// Recipient returns the public key, to which anybody may encrypt.
func (i Identity) Recipient() string { return i.key.Recipient().String() }

// String hides the key from logs.
func (Identity) String() string { return "age identity" }

// GoString hides the key from logs.
func (Identity) GoString() string { return "age identity" }

var (
	factoryForm = regexp.MustCompile(`^fac_[0-9a-z]{26}$`)
	nameForm    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
)

// ValidName reports whether a secret can have this name.
func ValidName(name string) bool { return nameForm.MatchString(name) }

// Seal returns a file, with ASCII armor, that holds the value of a secret of a factory.
func Seal(recipient, factoryUID, name string, value []byte) ([]byte, error) {
	to, err := age.ParseX25519Recipient(recipient)
	switch {
	case err != nil:
		return nil, errors.New("the recipient is not a public key of age, which begins with age1")
	case !factoryForm.MatchString(factoryUID):
		return nil, errors.New("the factory is not a UID, which begins with fac_")
	case !ValidName(name):
		return nil, errors.New("a secret's name has up to 128 letters, digits and _, the first no digit")
	case len(value) == 0:
		return nil, errors.New("the value is empty")
	case len(value) > MaxValue:
		return nil, fmt.Errorf("the value has %d bytes; at most %d are allowed", len(value), MaxValue)
	}

	var out bytes.Buffer
	armored := armor.NewWriter(&out)
	sealed, err := age.Encrypt(armored, to)
	if err != nil {
		return nil, err
	}

	_, err = fmt.Fprintf(sealed, "%s %s\n%s", factoryUID, name, value)
	if err = errors.Join(err, sealed.Close(), armored.Close()); err != nil {
		return nil, err
	}

	return out.Bytes(), nil
}

// Check returns the problem of a file that can be seen without its key. It is an *[Error].
func Check(file []byte) error {
	_, err := binary(file)
	return err
}

const intro = "age-encryption.org/v1\n"

// binary returns a file without its armor, if its form is right.
func binary(file []byte) ([]byte, error) {
	if len(file) > MaxFile {
		return nil, &Error{fmt.Sprintf("the file has more than %d KiB", MaxFile>>10), sealAgain}
	}

	body := file
	if bytes.HasPrefix(bytes.TrimLeft(file, " \t\r\n"), []byte(armor.Header)) {
		var err error
		if body, err = io.ReadAll(armor.NewReader(bytes.NewReader(file))); err != nil {
			return nil, &Error{"the file is damaged: its ASCII armor cannot be read", sealAgain}
		}
	}

	if !bytes.HasPrefix(body, []byte(intro)) {
		return nil, &Error{
			"this is not a file of age",
			"write it with millwright secret seal; a value that stands here in clear is in the repository now: " +
				"replace it where it is used",
		}
	}

	header, err := age.ExtractHeader(bytes.NewReader(body))
	if err != nil {
		return nil, &Error{"the file is damaged: its header cannot be read", sealAgain}
	}
	if bytes.Count(header, []byte("\n-> ")) > maxRecipients {
		return nil, &Error{fmt.Sprintf("the file has more than %d recipients", maxRecipients), sealAgain}
	}

	return body, nil
}

// Open returns the value in a file of the secret of that name of a factory. Its error is an *[Error].
func (i Identity) Open(factoryUID, name string, file []byte) ([]byte, error) {
	body, err := binary(file)
	if err != nil {
		return nil, err
	}

	r, err := age.Decrypt(bytes.NewReader(body), i.key)
	if errors.As(err, new(*age.NoIdentityMatchError)) {
		return nil, &Error{
			"the file is encrypted to another recipient than this factory's, or damaged",
			sealAgain + "; millwright secret recipient shows the factory's recipient",
		}
	}
	if err != nil {
		return nil, &Error{"the file is damaged: it cannot be decrypted", sealAgain}
	}

	text, err := io.ReadAll(io.LimitReader(r, maxFirstLine+MaxValue+1))
	if err != nil {
		return nil, &Error{"the file is damaged: it cannot be decrypted", sealAgain}
	}

	line, value, _ := bytes.Cut(text, []byte("\n"))
	factory, secret, _ := strings.Cut(string(line), " ")
	switch {
	case !factoryForm.MatchString(factory) || !ValidName(secret):
		return nil, &Error{"the encrypted text does not begin with the factory and the name of the secret", sealAgain}
	case factory != factoryUID:
		return nil, &Error{"the value was sealed for another factory", sealAgain}
	case secret != name:
		return nil, &Error{
			fmt.Sprintf("the value was sealed as %q, and this file is that of %q", secret, name),
			"rename the file, or " + sealAgain,
		}
	case len(value) == 0:
		return nil, &Error{"the value is empty", sealAgain}
	case len(value) > MaxValue:
		return nil, &Error{fmt.Sprintf("the value has more than %d KiB", MaxValue>>10), sealAgain}
	}

	return value, nil
}
