package report

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"slices"
	"strings"

	"millwright/schema"
)

// The elements and attributes are those that the JUnit schema of Jenkins'
// xUnit plugin allows, the strictest in use.
type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Errors   int          `xml:"errors,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Cases    []junitCase `xml:"testcase"`
	Output   string      `xml:"system-out,omitempty"`
}

type junitCase struct {
	Name    string       `xml:"name,attr"`
	Class   string       `xml:"classname,attr"`
	Skipped *junitResult `xml:"skipped"`
	Error   *junitResult `xml:"error"`
	Failure *junitResult `xml:"failure"`
	Output  string       `xml:"system-out,omitempty"`
}

type junitResult struct {
	Type    string `xml:"type,attr,omitempty"`
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// junit makes a test of every rule: it passes when no problem of it fails the
// check, is skipped when it was not checked, and otherwise there is a failed
// test for each problem.
func (r *Report) junit() ([]byte, error) {
	suite := junitSuite{Name: "millwright validate", Output: r.Summary()}
	byRule := map[string][]schema.Problem{}
	codes := make([]string, 0, len(schema.RuleCodes()))
	for _, rule := range schema.Rules() {
		codes = append(codes, rule.Code)
	}

	for _, p := range r.Problems {
		if byRule[p.Code] = append(byRule[p.Code], p); !slices.Contains(codes, p.Code) {
			codes = append(codes, p.Code)
		}
	}

	for _, code := range codes {
		r.junitRule(&suite, code, byRule[code])
	}

	for _, t := range r.Trees {
		if t.Err != "" {
			suite.Cases = append(
				suite.Cases,
				junitCase{
					Name:  t.Path,
					Class: "tree",
					Error: &junitResult{Type: "incomplete", Message: "could not check: " + schema.Printable(t.Err)},
				},
			)
		}
	}

	for _, c := range suite.Cases {
		suite.Tests++
		switch {
		case c.Failure != nil:
			suite.Failures++
		case c.Error != nil:
			suite.Errors++
		case c.Skipped != nil:
			suite.Skipped++
		}
	}

	all := junitSuites{
		Name:     "millwright",
		Tests:    suite.Tests,
		Failures: suite.Failures,
		Errors:   suite.Errors,
		Suites:   []junitSuite{suite},
	}

	var b bytes.Buffer
	b.WriteString(xml.Header)
	e := xml.NewEncoder(&b)
	e.Indent("", "  ")
	if err := e.Encode(all); err != nil {
		return nil, err
	}

	b.WriteByte('\n')
	return b.Bytes(), nil
}

func (r *Report) junitRule(suite *junitSuite, code string, problems []schema.Problem) {
	var output []string
	failed := false
	for _, p := range problems {
		text := schema.Text(p, r.source(p))
		if !r.fails(p) {
			output = append(output, text)
			continue
		}

		failed = true
		suite.Cases = append(suite.Cases, junitCase{
			Name: fmt.Sprintf("%s:%d:%d", schema.Printable(p.Path), p.Line, p.Column), Class: code,
			Failure: &junitResult{Type: code, Message: schema.Printable(p.Message), Text: text},
		})
	}

	switch {
	case slices.Contains(r.NotChecked, code):
		suite.Cases = append(
			suite.Cases,
			junitCase{Name: code, Class: code, Skipped: &junitResult{Message: "not checked"}},
		)
	case r.Outcome() == Incomplete && !failed:
		suite.Cases = append(
			suite.Cases,
			junitCase{
				Name:    code,
				Class:   code,
				Skipped: &junitResult{Message: "not checked in full"},
				Output:  strings.Join(output, "\n"),
			},
		)

	case !failed:
		suite.Cases = append(suite.Cases, junitCase{Name: code, Class: code, Output: strings.Join(output, "\n")})
	case output != nil:
		suite.Cases[len(suite.Cases)-1].Output = strings.Join(output, "\n")
	}
}
