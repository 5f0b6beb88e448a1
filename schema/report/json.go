package report

import (
	"bytes"
	"encoding/json"

	"millwright/schema"
)

// FormatVersion is the version of the form "json". It changes when a member
// goes or changes its meaning; members may be added at any time. Its JSON
// Schema is the document "report" of package schema.
const FormatVersion = "1"

type jsonReport struct {
	FormatVersion string           `json:"format_version"`
	Version       string           `json:"program_version"`
	SchemaVersion string           `json:"schema_version"`
	Outcome       Outcome          `json:"outcome"`
	Counts        jsonCounts       `json:"counts"`
	Trees         []jsonTree       `json:"trees"`
	Problems      []schema.Problem `json:"problems"`
	NotChecked    []string         `json:"not_checked"`
	Notices       []string         `json:"notices"`
}

type jsonCounts struct {
	Files    int `json:"files"`
	Errors   int `json:"errors"`
	Warnings int `json:"warnings"`
	Infos    int `json:"infos"`
	Fixed    int `json:"fixed"`
}

type jsonTree struct {
	Path     string `json:"path"`
	Files    int    `json:"files"`
	Complete bool   `json:"complete"`
	Reason   string `json:"reason,omitempty"`
}

func (r *Report) json() ([]byte, error) {
	out := jsonReport{
		FormatVersion: FormatVersion, Version: r.Version, SchemaVersion: schema.SchemaVersion, Outcome: r.Outcome(),
		Counts: jsonCounts{
			r.Files(),
			r.Count(schema.SeverityError),
			r.Count(schema.SeverityWarning),
			r.Count(schema.SeverityInfo),
			r.Fixed,
		},
		Trees: []jsonTree{}, Problems: append([]schema.Problem{}, r.Problems...),
		NotChecked: append([]string{}, r.NotChecked...), Notices: append([]string{}, r.Notices...),
	}

	for i, p := range out.Problems {
		if p.Excerpt == "" {
			out.Problems[i].Excerpt = schema.Excerpt(r.source(p), p)
		}
	}

	for _, t := range r.Trees {
		out.Trees = append(out.Trees, jsonTree{t.Path, t.Files, t.Err == "", t.Err})
	}

	return indented(out)
}

// indented is v as JSON for files that people look at too.
func indented(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return b.Bytes(), err
}
