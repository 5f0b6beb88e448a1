package report

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// ErrUnknownFormat is returned by Write for a form that Formats does not list.
var ErrUnknownFormat = errors.New("unknown format")

// Formats returns the names of the forms that Write knows.
func Formats() []string {
	return []string{"text", "json", "sarif", "github", "gitlab", "junit", "markdown"}
}

// Write prints r to w in a form that Formats lists.
func Write(w io.Writer, format string, r *Report) error {
	var out []byte
	var err error
	switch format {
	case "text":
		out = r.text()
	case "json":
		out, err = r.json()
	case "sarif":
		out, err = r.sarif()
	case "github":
		out = r.github()
	case "gitlab":
		out, err = r.gitlab()
	case "junit":
		out, err = r.junit()
	case "markdown":
		out = r.markdown()
	default:
		return fmt.Errorf("%w %q: there is %s", ErrUnknownFormat, format, strings.Join(Formats(), ", "))
	}

	if err != nil {
		return fmt.Errorf("write the report as %s: %w", format, err)
	}

	_, err = w.Write(out)
	return err
}
