package schema_test

import (
	"reflect"
	"strings"
	"testing"

	"millwright/schema"
)

const editedAutomation = `---
# ours
agent: reviewer # the careful one
triggers:
  - provider: webhook # CI
    event: received
    filter:
      webhook_ids:
        - wh_01h2xcejqtf2nbrexx3vqjhp41 # ci
        - wh_01h455vb4pex5vsknk084sn02q # alerts
      payload: # what fails
        # on the branch
        status: [failed] # only these
        n: {exists: true}
  - provider: schedule
    event: cron_fired
    schedule: {cron: '0 6 * * *', name: morning}
  - provider: github
    event: pull_request_opened
    filter: {labels: [a, b]} # theirs
retry:
  attempts: 2 # at most
---

Say *what* happened.

---
And why.
`

// TestEditAutomationFile changes one thing at a time, and compares what changed.
func TestEditAutomationFile(t *testing.T) {
	const third = "wh_01h455vb4pex5vsknk084sn02r"
	for _, c := range []struct {
		name     string
		change   func(f *schema.AutomationForm)
		old, new string
	}{
		{"nothing", func(*schema.AutomationForm) {}, "", ""},
		{"disabled", func(f *schema.AutomationForm) { f.Enabled = false }, "  attempts: 2 # at most\n", "  attempts: 2 # at most\nenabled: false\n"},
		{"another agent", func(f *schema.AutomationForm) { f.Agent = "yes: no" }, "agent: reviewer", `agent: "yes: no"`},
		{"no agent", func(f *schema.AutomationForm) { f.Agent = "" }, "agent: reviewer # the careful one\n", ""},
		{"a runner", func(f *schema.AutomationForm) { f.Runner = "big" }, "# at most\n", "# at most\nrunner: big\n"},
		{
			"another webhook", func(f *schema.AutomationForm) {
				f.Triggers[0].WebhookIDs = []string{"wh_01h455vb4pex5vsknk084sn02q", third}
			},
			"        - wh_01h2xcejqtf2nbrexx3vqjhp41 # ci\n        - wh_01h455vb4pex5vsknk084sn02q # alerts\n",
			"        - wh_01h455vb4pex5vsknk084sn02q # alerts\n        - " + third + "\n",
		},
		{
			"a filter with its comments", func(f *schema.AutomationForm) {
				f.Triggers[0].Filter = strings.Replace(f.Triggers[0].Filter, "[failed]", "[failed, \"on: hold\"]\nnested:\n  deep: [1.50]", 1)
			},
			"        status: [failed] # only these\n", "        status: [failed, \"on: hold\"]\n        nested:\n          deep: [1.50] # only these\n",
		},
		{
			"a filter as JSON", func(f *schema.AutomationForm) { f.Triggers[0].Filter = "{\n  \"a\": [9007199254740993]\n}" },
			"payload: # what fails\n        # on the branch\n        status: [failed] # only these\n        n: {exists: true}\n",
			"payload: {\n          \"a\": [9007199254740993]\n        } # what fails\n",
		},
		{
			"no filter", func(f *schema.AutomationForm) { f.Triggers[0].Filter = " \n" },
			"      payload: # what fails\n        # on the branch\n        status: [failed] # only these\n        n: {exists: true}\n", "",
		},
		{"another time", func(f *schema.AutomationForm) { f.Triggers[1].Cron = "*/5 * * * *" }, "'0 6 * * *'", `"*/5 * * * *"`},
		{"a provider's filter", func(f *schema.AutomationForm) { f.Triggers[2].Filter = "labels:\n  - c" }, " {labels: [a, b]} # theirs", "\n      labels:\n        - c # theirs"},
		{"another prompt", func(f *schema.AutomationForm) { f.Prompt = "\n---\nBe brief.\n\n" }, "Say *what* happened.\n\n---\nAnd why.\n", "---\nBe brief.\n"},
	} {
		for _, lineEnd := range []string{"\n", "\r\n"} {
			src := strings.ReplaceAll(editedAutomation, "\n", lineEnd)
			form, err := schema.ReadAutomationFile([]byte(src))
			if err != nil {
				t.Fatal(err)
			}

			c.change(&form)
			got, err := schema.EditAutomationFile([]byte(src), form)
			want := strings.ReplaceAll(strings.Replace(editedAutomation, c.old, c.new, 1), "\n", lineEnd)
			if err != nil || string(got) != want {
				t.Errorf("%s, %q: %v\n got %s\nwant %s", c.name, lineEnd, err, got, want)
			}
		}
	}
}

// TestEditAutomationFileRefused changes files where an edit would change more than it should.
func TestEditAutomationFileRefused(t *testing.T) {
	for name, c := range map[string]struct {
		src    string
		change func(f *schema.AutomationForm)
	}{
		"no front matter":   {"Go.\n", func(*schema.AutomationForm) {}},
		"one line":          {"---\n{triggers: []}\n---\nGo.\n", func(f *schema.AutomationForm) { f.Enabled = false }},
		"another trigger":   {editedAutomation, func(f *schema.AutomationForm) { f.Triggers = append(f.Triggers, f.Triggers[0]) }},
		"a filter with ---": {editedAutomation, func(f *schema.AutomationForm) { f.Triggers[0].Filter = "a: [1]\n---\nb: [2]" }},
		"keys in a filter":  {editedAutomation, func(f *schema.AutomationForm) { f.Triggers[0].Filter = "{a: [1]}\nagent: other" }},
	} {
		form, _ := schema.ReadAutomationFile([]byte(c.src))
		c.change(&form)
		if got, err := schema.EditAutomationFile([]byte(c.src), form); err == nil {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestEditAutomationFileInOneLine changes triggers whose filter stands in one line.
func TestEditAutomationFileInOneLine(t *testing.T) {
	const src = "---\nenabled: false\ntriggers:\n  - provider: webhook\n    event: received\n    filter: {webhook_ids: [wh_01h2xcejqtf2nbrexx3vqjhp41], headers: {X-A: [b]}}\n---\nGo.\n"
	form, err := schema.ReadAutomationFile([]byte(src))
	if err != nil {
		t.Fatal(err)
	}

	form.Enabled, form.Triggers[0].Filter = true, "n: [1.50]\n"
	text, err := schema.EditAutomationFile([]byte(src), form)
	if err != nil {
		t.Fatal(err)
	}
	got, err := schema.ReadAutomationFile(text)
	form.Triggers[0].Filter = `{"n":[1.50]}`
	if err != nil || !reflect.DeepEqual(got, form) || !strings.Contains(string(text), `"headers":{"X-A":["b"]}`) {
		t.Errorf("%v, %+v\n%s", err, got, text)
	}
}
