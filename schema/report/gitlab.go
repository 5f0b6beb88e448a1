package report

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"millwright/schema"
)

// gitlabIssue is an entry of a Code Quality report, as GitLab's documentation
// describes it ("Code Quality report format").
type gitlabIssue struct {
	Description string         `json:"description"`
	CheckName   string         `json:"check_name"`
	Fingerprint string         `json:"fingerprint"`
	Severity    string         `json:"severity"` // info, minor, major, critical or blocker
	Location    gitlabLocation `json:"location"`
}

type gitlabLocation struct {
	Path  string      `json:"path"`
	Lines gitlabLines `json:"lines"`
}

type gitlabLines struct {
	Begin int `json:"begin"`
	End   int `json:"end,omitempty"`
}

// gitlab is a Code Quality report for the artifacts of a GitLab job. What was
// not checked is an issue of its own, the same in every run, so that a merge
// request that changes nothing about it does not show it as new.
func (r *Report) gitlab() ([]byte, error) {
	severities := map[schema.Severity]string{
		schema.SeverityError:   "major",
		schema.SeverityWarning: "minor",
		schema.SeverityInfo:    "info",
	}
	out := []gitlabIssue{}
	fingerprints := r.fingerprints()
	for i, p := range r.Problems {
		out = append(out, gitlabIssue{
			Description: sentence(
				p,
				"; ",
			), CheckName: p.Code, Fingerprint: fingerprints[i], Severity: severities[p.Severity],
			Location: gitlabLocation{p.Path, gitlabLines{p.Line, p.EndLine}},
		})
	}

	about := func(check, severity, path, text string) {
		sum := sha256.Sum256([]byte(check + "\x00" + path + "\x00" + text))
		out = append(
			out,
			gitlabIssue{
				text,
				check,
				hex.EncodeToString(sum[:16]),
				severity,
				gitlabLocation{path, gitlabLines{Begin: 1}},
			},
		)
	}

	for _, t := range r.Trees {
		if t.Err != "" {
			about("incomplete", "major", t.Path, schema.Printable("could not check all of "+t.Path+": "+t.Err))
		}
	}

	if len(r.NotChecked) > 0 && len(r.Trees) > 0 {
		about("not-checked", "info", r.Trees[0].Path, "not checked: "+strings.Join(r.NotChecked, ", "))
	}

	return indented(out)
}
