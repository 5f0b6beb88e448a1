package report

import (
	"net/url"
	"strings"

	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"

	"millwright/schema"
)

// sarif is a log of the Static Analysis Results Interchange Format, version
// 2.1.0 (OASIS), as code hosts and editors read it. Rules that were not checked
// are notifications of the invocation.
func (r *Report) sarif() ([]byte, error) {
	driver := sarif.NewToolComponent().WithName("millwright").WithVersion(r.Version)
	index := map[string]int{}
	for i, rule := range schema.Rules() {
		index[rule.Code] = i
		driver.AddRule(sarifRule(rule))
	}

	run := sarif.NewRun().WithTool(sarif.NewTool().WithDriver(driver)).
		WithColumnKind("unicodeCodePoints") // as schema.Problem counts them
	fingerprints := r.fingerprints()
	for i, p := range r.Problems {
		run.AddResult(sarifResult(p, index, fingerprints[i]))
	}

	run.AddInvocation(r.sarifInvocation())
	log := sarif.NewReport()
	log.Schema = "https://json.schemastore.org/sarif-2.1.0.json"
	log.AddRun(run)
	return indented(log)
}

func sarifLevel(s schema.Severity) string {
	if s == schema.SeverityInfo {
		return "note"
	}
	return string(s)
}

func sarifText(text string) *sarif.MultiformatMessageString {
	return sarif.NewMultiformatMessageString().WithText(text)
}

func sarifRule(rule schema.Rule) *sarif.ReportingDescriptor {
	help := sarifText(rule.Doc + "\n\nSee: millwright explain " + rule.Code)
	if page, ok := schema.RuleDoc(rule.Code); ok {
		help = help.WithMarkdown(page)
	}
	return sarif.NewReportingDescriptor().WithID(rule.Code).WithShortDescription(sarifText(rule.Title)).
		WithFullDescription(sarifText(rule.Doc)).WithHelp(help).
		WithDefaultConfiguration(sarif.NewReportingConfiguration().WithLevel(sarifLevel(rule.Severity)))
}

func sarifResult(p schema.Problem, index map[string]int, fingerprint string) *sarif.Result {
	i, known := index[p.Code]
	if !known { // of a server that knows more rules
		i = -1
	}

	region := sarif.NewRegion().
		WithStartLine(p.Line).
		WithStartColumn(p.Column).
		WithEndLine(p.EndLine).
		WithEndColumn(p.EndColumn)
	place := sarif.NewPhysicalLocation().WithRegion(region).WithArtifactLocation(
		sarif.NewArtifactLocation().WithURI(reference(p.Path)).WithURIBaseID("%SRCROOT%"))
	return sarif.NewRuleResult(p.Code).WithRuleIndex(i).WithLevel(sarifLevel(p.Severity)).
		WithMessage(sarif.NewTextMessage(sentence(p, "\n"))).
		WithLocations([]*sarif.Location{sarif.NewLocation().WithPhysicalLocation(place)}).
		WithPartialFingerprints(map[string]string{"millwright/v1": fingerprint})
}

func (r *Report) sarifInvocation() *sarif.Invocation {
	inv := sarif.NewInvocation().WithExecutionSuccessful(r.Outcome() != Incomplete)
	note := func(level, text string) *sarif.Notification {
		n := sarif.NewNotification().WithLevel(level).WithMessage(sarif.NewTextMessage(schema.Printable(text)))
		inv.AddToolExecutionNotification(n)
		return n
	}
	for _, t := range r.Trees {
		if t.Err != "" {
			note("error", "could not check all of "+t.Path+": "+t.Err)
		}
	}

	for _, code := range r.NotChecked {
		note(
			"note",
			"the rule "+code+" was not checked",
		).WithAssociatedRule(sarif.NewReportingDescriptorReference().WithID(code))
	}

	for _, n := range r.Notices {
		note("note", n)
	}

	return inv
}

// reference is a shown path as a relative URI reference (RFC 3986, section
// 4.2): escaped, and without a colon that would pass for a scheme's.
func reference(path string) string {
	steps := strings.Split(path, "/")
	for i, s := range steps {
		steps[i] = strings.ReplaceAll(url.PathEscape(s), ":", "%3A")
	}
	return strings.Join(steps, "/")
}
