package runs

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"millwright/api"
	"millwright/schema"
)

// problems are the invalid fields of a request.
type problems []api.FieldError

func (p *problems) add(field, format string, args ...any) {
	*p = append(*p, api.FieldError{Field: field, Message: fmt.Sprintf(format, args...)})
}

// text adds a problem if no database can store a value.
func (p *problems) text(field, value string) {
	if !clean(value) {
		p.add(field, "holds a NUL character or invalid UTF-8")
	}
}

// line adds a problem if a value is not text on one line, as in a definition.
func (p *problems) line(field, value string) {
	if !utf8.ValidString(value) {
		p.text(field, value)
	} else if r, _, found := schema.ControlCharacter(value, false); found {
		p.add(field, "holds the control character U+%04X", r)
	}
}

func (p problems) err() error {
	var details []string
	for _, f := range p {
		details = append(details, f.Field+": "+f.Message)
	}
	e := api.Problem("invalid_request", "%s", strings.Join(details, "; "))
	e.Errors = p
	return e
}
