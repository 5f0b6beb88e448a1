package language

import (
	"encoding/json"
	"regexp"
)

// completion is one completion in progress.
type completion struct {
	cursor
	tree  *loaded
	facts *facts
}

// keyText writes a key: with a colon, unless the key that is typed has one.
func (c completion) keyText(name string) string {
	name = yamlText(name)
	if c.onKey && c.colon {
		return name
	}
	return name + ": "
}

// offer is a text to complete with. An empty text is the label.
type offer struct {
	label, text, detail, doc string
	kind                     int
}

// The kinds of completion items.
const (
	itemProperty  = 10
	itemValue     = 12
	itemReference = 18
)

// completionItem is a text that an editor offers.
type completionItem struct {
	Label         string         `json:"label"`
	Kind          int            `json:"kind"`
	Detail        string         `json:"detail,omitempty"`
	Documentation *MarkupContent `json:"documentation,omitempty"`
	FilterText    string         `json:"filterText"`
	SortText      string         `json:"sortText"`
	TextEdit      TextEdit       `json:"textEdit"`
}

var (
	plainText = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_./-]*$`)
	otherWord = regexp.MustCompile(`(?i)^(true|false|null|yes|no|on|off|y|n)$`)
)

// yamlText writes a text as YAML, in quotes where it would be read as something else.
func yamlText(s string) string {
	if plainText.MatchString(s) && !otherWord.MatchString(s) {
		return s
	}
	text, _ := json.Marshal(s)
	return string(text)
}
