package report_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"
	"github.com/santhosh-tekuri/jsonschema/v5"

	"millwright/schema"
)

// TestSARIF validates against the schema of the standard, which the library carries.
func TestSARIF(t *testing.T) {
	for name, r := range samples(t) {
		out := write(t, "sarif", r)
		log, err := sarif.FromString(out, sarif.WithStrictValidation())
		if err != nil {
			t.Fatal(err)
		}
		if err := log.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var again bytes.Buffer
		if err := log.PrettyWrite(&again); err != nil {
			t.Fatal(err)
		}
		var a, b any
		if json.Unmarshal([]byte(out), &a) != nil || json.Unmarshal(again.Bytes(), &b) != nil {
			t.Fatal("no JSON")
		}
		if diff := cmp.Diff(a, b); diff != "" { // the validated report is the written one
			t.Errorf("%s: lost on reading:\n%s", name, diff)
		}
		results := log.Runs[0].Results
		if len(results) != len(r.Problems) {
			t.Fatalf("%s: %d results of %d problems", name, len(results), len(r.Problems))
		}
		prints := map[string]bool{}
		for i, res := range results {
			p := r.Problems[i]
			place := res.Locations[0].PhysicalLocation
			if ref, err := url.Parse(*place.ArtifactLocation.URI); err != nil || ref.IsAbs() || ref.Path != p.Path {
				t.Errorf("%s: URI %q of %q: %v", name, *place.ArtifactLocation.URI, p.Path, err)
			}
			if *place.Region.StartLine != p.Line || *place.Region.EndColumn != p.EndColumn || *log.Runs[0].ColumnKind != "unicodeCodePoints" {
				t.Errorf("%s: region %+v of %+v", name, *place.Region, p)
			}
			if res.RuleIndex >= 0 && *log.Runs[0].Tool.Driver.Rules[res.RuleIndex].ID != p.Code {
				t.Errorf("%s: rule %d of %s", name, res.RuleIndex, p.Code)
			}
			prints[res.PartialFingerprints["millwright/v1"]] = true
		}
		if len(prints) != len(results) {
			t.Errorf("%s: fingerprints are not unique", name)
		}
		if done := log.Runs[0].Invocations[0].ExecutionSuccessful; *done == (name == "incomplete") {
			t.Errorf("%s: executionSuccessful is %v", name, *done)
		}
	}
	broken := sarif.NewReport()
	broken.Version = "1"
	if broken.Validate() == nil {
		t.Error("the validator finds nothing")
	}
}

func validate(t *testing.T, s *jsonschema.Schema, name, text string) {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(v); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

// TestJSON validates against the schema that the program publishes.
func TestJSON(t *testing.T) {
	text, _ := schema.JSONSchema("report")
	s := jsonschema.MustCompileString("report.json", string(text))
	for name, r := range samples(t) {
		out := write(t, "json", r)
		validate(t, s, name, out)
		var doc struct {
			Outcome  string
			Problems []schema.Problem
		}
		if err := json.Unmarshal([]byte(out), &doc); err != nil {
			t.Fatal(err)
		}
		if doc.Outcome != string(r.Outcome()) || len(doc.Problems) != len(r.Problems) {
			t.Errorf("%s: %s", name, out)
		}
		for i, p := range doc.Problems {
			want := r.Problems[i]
			want.Fix, p.Excerpt = nil, ""
			if diff := cmp.Diff(want, p); diff != "" {
				t.Errorf("%s: problem %d:\n%s", name, i, diff)
			}
		}
	}
}

func TestGitLab(t *testing.T) {
	text, err := os.ReadFile("testdata/gitlab-codequality.json")
	if err != nil {
		t.Fatal(err)
	}
	s := jsonschema.MustCompileString("codequality.json", string(text))
	for name, r := range samples(t) {
		out := write(t, "gitlab", r)
		validate(t, s, name, out)
		var issues []struct{ Fingerprint string }
		if err := json.Unmarshal([]byte(out), &issues); err != nil || len(issues) < len(r.Problems) {
			t.Fatalf("%s: %d issues of %d problems: %v", name, len(issues), len(r.Problems), err)
		}
		seen := map[string]bool{}
		for _, i := range issues {
			if seen[i.Fingerprint] {
				t.Errorf("%s: a fingerprint is there twice: GitLab would show one of the two", name)
			}
			seen[i.Fingerprint] = true
		}
	}
}

// TestFingerprintsSurviveMoves adds lines above a problem.
func TestFingerprintsSurviveMoves(t *testing.T) {
	prints := func(prefix string) []string {
		r := check(t, "f", nil, schema.File{Path: "webhooks/a.yaml", Content: prefix + "secretName: A\nsecretname: B\n"})
		var issues []struct{ Fingerprint string }
		if err := json.Unmarshal([]byte(write(t, "gitlab", r)), &issues); err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, i := range issues {
			out = append(out, i.Fingerprint)
		}
		return out
	}
	if diff := cmp.Diff(prints(""), prints("# a comment\n\n")); diff != "" {
		t.Errorf("fingerprints change with the line:\n%s", diff)
	}
}

// workflowCommand reads a line as the runner of GitHub Actions does: two colons, the command, a blank,
// properties parted by commas, two colons, data; %0D, %0A, %25, and in properties %3A and %2C, are escapes.
func workflowCommand(line string) (command string, properties map[string]string, data string, ok bool) {
	rest, ok := strings.CutPrefix(strings.TrimLeft(line, " "), "::")
	if !ok {
		return "", nil, "", false
	}
	info, data, ok := strings.Cut(rest, "::")
	if !ok {
		return "", nil, "", false
	}
	command, list, _ := strings.Cut(info, " ")
	properties = map[string]string{}
	for _, pair := range strings.Split(list, ",") {
		if k, v, ok := strings.Cut(pair, "="); ok {
			properties[k] = strings.NewReplacer("%0D", "\r", "%0A", "\n", "%3A", ":", "%2C", ",", "%25", "%").Replace(v)
		}
	}
	return command, properties, strings.NewReplacer("%0D", "\r", "%0A", "\n", "%25", "%").Replace(data), true
}

func TestGitHub(t *testing.T) {
	commands := map[schema.Severity]string{schema.SeverityError: "error", schema.SeverityWarning: "warning", schema.SeverityInfo: "notice"}
	for name, r := range samples(t) {
		lines := strings.Split(strings.TrimSuffix(write(t, "github", r), "\n"), "\n")
		for i, p := range r.Problems {
			command, properties, data, ok := workflowCommand(lines[i])
			if !ok || command != commands[p.Severity] {
				t.Fatalf("%s: %q", name, lines[i])
			}
			want := map[string]string{"file": p.Path, "line": strconv.Itoa(p.Line), "endLine": strconv.Itoa(p.EndLine), "title": "millwright " + p.Code}
			if p.Line == p.EndLine {
				want["col"], want["endColumn"] = strconv.Itoa(p.Column), strconv.Itoa(p.EndColumn)
			}
			if diff := cmp.Diff(want, properties); diff != "" {
				t.Errorf("%s: properties:\n%s", name, diff)
			}
			if !strings.HasPrefix(data, schema.Printable(p.Message)) || p.Hint != "" && !strings.HasSuffix(data, "\nhint: "+schema.Printable(p.Hint)) {
				t.Errorf("%s: data %q of %+v", name, data, p)
			}
		}
		if last := lines[len(lines)-1]; strings.HasPrefix(last, "::") || !strings.Contains(last, "checked") {
			t.Errorf("%s: last line %q", name, last)
		}
	}
}

// The schema of Jenkins' xUnit plugin (junit-10.xsd) for the elements that we write: attributes,
// those in capitals required, and children.
var junitElements = map[string]struct{ attributes, children []string }{
	"testsuites": {[]string{"name", "time", "tests", "failures", "errors"}, []string{"testsuite"}},
	"testsuite": {
		[]string{"NAME", "TESTS", "FAILURES", "ERRORS", "group", "time", "skipped", "timestamp", "hostname", "id", "package", "file", "log", "url", "version"},
		[]string{"testsuite", "properties", "testcase", "system-out", "system-err"},
	},
	"testcase":   {[]string{"NAME", "time", "classname", "group"}, []string{"skipped", "error", "failure", "system-out", "system-err"}},
	"failure":    {[]string{"type", "message"}, nil},
	"error":      {[]string{"type", "message"}, nil},
	"skipped":    {[]string{"type", "message"}, nil},
	"system-out": {nil, nil},
}

func TestJUnit(t *testing.T) {
	for name, r := range samples(t) {
		out := write(t, "junit", r)
		d := xml.NewDecoder(strings.NewReader(out))
		var open []string
		counts := map[string]int{}
		total := map[string]string{}
		for {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			switch e := token.(type) {
			case xml.StartElement:
				rule, known := junitElements[e.Name.Local]
				if !known || len(open) > 0 && !slices.Contains(junitElements[open[len(open)-1]].children, e.Name.Local) || len(open) == 0 && e.Name.Local != "testsuites" {
					t.Fatalf("%s: element %s in %v", name, e.Name.Local, open)
				}
				given := map[string]string{}
				for _, a := range e.Attr {
					given[a.Name.Local] = a.Value
				}
				for _, a := range rule.attributes {
					if _, has := given[strings.ToLower(a)]; strings.ToUpper(a) == a && !has {
						t.Errorf("%s: %s has no %s", name, e.Name.Local, strings.ToLower(a))
					}
					delete(given, strings.ToLower(a))
				}
				if len(given) > 0 {
					t.Errorf("%s: %s has attributes %v", name, e.Name.Local, given)
				}
				counts[e.Name.Local]++
				if e.Name.Local == "testsuite" {
					for _, a := range e.Attr {
						total[a.Name.Local] = a.Value
					}
				}
				open = append(open, e.Name.Local)
			case xml.EndElement:
				open = open[:len(open)-1]
			}
		}
		want := map[string]string{"name": "millwright validate", "tests": strconv.Itoa(counts["testcase"]), "failures": strconv.Itoa(counts["failure"]), "errors": strconv.Itoa(counts["error"]), "skipped": strconv.Itoa(counts["skipped"])}
		if diff := cmp.Diff(want, total); diff != "" {
			t.Errorf("%s: totals:\n%s", name, diff)
		}
		if failures := r.Count(schema.SeverityError); counts["failure"] != failures {
			t.Errorf("%s: %d failures of %d errors", name, counts["failure"], failures)
		}
	}
}
