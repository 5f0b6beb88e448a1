//go:build unix

package checkout

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
)

// Credential authenticates a fetch. The zero value is none.
type Credential struct{ User, Password string }

// credentialHelper has git read the credential from descriptor 3, once.
const credentialHelper = `!f() { test "$1" = get && cat <&3; }; f`

// pipe returns the reading end of a pipe with the credential, in git's form; nil without a credential. The
// credential is on no command line, in no environment and in no file.
func (c Credential) pipe() (r *os.File, done func(), err error) {
	if c == (Credential{}) {
		return nil, func() {}, nil
	}
	if strings.ContainsAny(c.User+c.Password, "\n\x00") {
		return nil, nil, errors.New("the credential of the forge has several lines")
	}

	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}

	_, err = fmt.Fprintf(w, "username=%s\npassword=%s\n", c.User, c.Password)
	if err = errors.Join(err, w.Close()); err != nil {
		r.Close()
		return nil, nil, err
	}

	return r, func() { r.Close() }, nil
}

// redact removes the password from git's words.
func (c Credential) redact(text string) string {
	if c.Password == "" {
		return text
	}
	text = strings.ReplaceAll(text, url.QueryEscape(c.Password), "***")
	return strings.ReplaceAll(text, c.Password, "***")
}
