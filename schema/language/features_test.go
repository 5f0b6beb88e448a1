package language_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"millwright/schema"
	"millwright/schema/editortest"
	"millwright/schema/language"
)

const uid = "wh_01h2xcejqtf2nbrexx3vqjhp41"

// answers is what a server says of every tree.
type answers struct{}

func (answers) Judge(_ context.Context, tree fs.FS) (language.Judgement, error) {
	if _, err := fs.Stat(tree, "webhooks/ci.yaml"); err != nil {
		return language.Judgement{}, err
	}
	return language.Judgement{
		Known: schema.Known{
			UIDs: map[string]string{"ci": uid}, KnownUIDs: map[string]string{uid: "ci"},
			Secrets: map[string]schema.SecretFact{"CI_TOKEN": {}, "DEPLOY_KEY": {}},
		},
		Webhooks: map[string]language.Webhook{uid: {Name: "ci", Factory: "shop", URL: "https://hooks.example.com/w/" + uid}},
		Secrets:  []language.Secret{{Name: "CI_TOKEN", Standing: "set"}, {Name: "DEPLOY_KEY", Standing: "pending"}},
		Fired:    map[string]language.Fired{"go": {Count: 12, LookedAt: 40, Days: 7, Complete: true}},
	}, nil
}

func (answers) Deliveries(_ context.Context, of, filter string, most int) ([]language.Delivery, error) {
	if _, problems := schema.FilterText("filter", []byte(filter)); of != uid || most < 1 || len(problems) > 0 {
		return nil, errors.New("not such a request: " + filter)
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return []language.Delivery{
		{ID: "dlv_a", ReceivedAt: at, Matches: true}, {ID: "dlv_b", ReceivedAt: at, Failed: "act`ion in"},
	}, nil
}

// definition is a tree without an error.
var definition = map[string]string{
	"factory.yaml":          "schemaVersion: v1alpha1\nname: Shop\n",
	"webhooks/ci.yaml":      "authMode: token\nsecretName: CI_TOKEN\n",
	"runners/big.yaml":      "description: A large machine\nplatform: {os: linux}\n",
	"agents/boss/agent.md":  "---\nagentType: FOREMAN\n---\nLead.\n",
	"agents/coder/agent.md": "---\ndescription: Writes code\nrunner: big\n---\nWrite.\n",
	"automations/go/automation.md": "---\ntriggers:\n  - provider: webhook\n    event: received\n    filter:\n      webhook_ids: [" +
		uid + "]\nagent: coder\nrunner: big\n---\nGo.\n",
}

func writeDefinition(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range definition {
		write(t, dir, name, text)
	}
	return dir
}

// opened opens a file with a text in which ¦ is the cursor, and returns its URI and the place of the cursor.
func opened(t *testing.T, c *editortest.Client, dir, name, text string) (uri string, at language.Position) {
	t.Helper()
	before, after, found := strings.Cut(text, "¦")
	if !found {
		t.Fatalf("no cursor in %q", text)
	}
	uri = "file://" + filepath.ToSlash(filepath.Join(dir, name))
	if err := c.Open(t.Context(), uri, before+after, 1); err != nil {
		t.Fatal(err)
	}
	at.Line = uint32(strings.Count(before, "\n"))
	at.Character = uint32(len(before) - strings.LastIndexByte(before, '\n') - 1)
	return uri, at
}

func placeOf(uri string, at language.Position) map[string]any {
	return map[string]any{"textDocument": map[string]any{"uri": uri}, "position": at}
}

// asked waits until the server of the program was asked, which has problems of secrets shown.
func asked(t *testing.T, c *editortest.Client, dir string) {
	t.Helper()
	write(t, dir, "webhooks/probe.yaml", "secretName: NO_SUCH_SECRET\n")
	if err := c.Notify(t.Context(), "workspace/didChangeWatchedFiles", map[string]any{"changes": []any{}}); err != nil {
		t.Fatal(err)
	}
	if err := c.Await(t.Context(), func(all map[string]editortest.Published) (bool, string) {
		for _, p := range all {
			for _, d := range p.Diagnostics {
				if d.Code == "secret-missing" {
					return true, ""
				}
			}
		}
		return false, "the server of the program was not asked"
	}); err != nil {
		t.Fatal(err)
	}
}

type item struct {
	Label, Detail string
	Documentation *language.MarkupContent
	TextEdit      language.TextEdit
}

func TestCompletion(t *testing.T) {
	dir := writeDefinition(t)
	c := session(t, language.Config{Lookup: answers{}}, dir)
	asked(t, c, dir)

	const trigger = "---\ntriggers:\n  - provider: %s\n    event: %s\n    filter:\n"
	github := fmt.Sprintf(trigger, "github", "pull_request_opened")
	webhook := fmt.Sprintf(trigger, "webhook", "received")
	for name, row := range map[string]struct {
		file, text string
		want       []string // labels, each with = and the text that it puts in
		not        []string
	}{
		"keys of an empty file":   {"webhooks/n.yaml", "¦", []string{"secretName=secretName: ", "authMode"}, nil},
		"the rest of a key":       {"webhooks/n.yaml", "authMode: token\nsec¦", []string{"secretName=secretName: "}, []string{"authMode"}},
		"a key with its colon":    {"webhooks/n.yaml", "auth¦: token\n", []string{"secretName=secretName"}, nil},
		"a word":                  {"webhooks/n.yaml", "authMode: ¦\nsecretName: CI_TOKEN\n", []string{"token", "url_token", "signature"}, nil},
		"a scheme":                {"webhooks/n.yaml", "signatureScheme: gi¦", []string{"github", "gitlab"}, nil},
		"a secret":                {"webhooks/n.yaml", "secretName: ¦", []string{"CI_TOKEN", "DEPLOY_KEY"}, nil},
		"a secret in a list":      {"agents/n/agent.md", "---\nsecrets: [CI_TOKEN, ¦]\n---\n", []string{"DEPLOY_KEY"}, nil},
		"in quotes":               {"webhooks/n.yaml", "secretName: \"¦\"", []string{"CI_TOKEN=\"CI_TOKEN\""}, nil},
		"true or false":           {"webhooks/n.yaml", "enabled: ¦", []string{"true", "false"}, nil},
		"keys of front matter":    {"automations/n/automation.md", "---\n¦\n---\nGo.\n", []string{"triggers", "agent", "outputs"}, nil},
		"front matter left open":  {"automations/n/automation.md", "---\nagent: coder\nrun¦", []string{"runner"}, []string{"agent"}},
		"no keys in the prompt":   {"automations/n/automation.md", "---\nagent: coder\n---\nrun¦\n", nil, []string{"runner"}},
		"an agent":                {"automations/n/automation.md", "---\nagent: ¦\n---\nGo.\n", []string{"boss", "coder"}, nil},
		"a runner":                {"automations/n/automation.md", "---\nrunner: b¦\n---\nGo.\n", []string{"big"}, nil},
		"keys of a trigger":       {"automations/n/automation.md", "---\ntriggers:\n  - ¦\n---\nGo.\n", []string{"provider=provider: ", "event"}, nil},
		"a provider":              {"automations/n/automation.md", "---\ntriggers:\n  - provider: ¦\n---\n", []string{"webhook", "schedule", "github", "slack"}, nil},
		"an event":                {"automations/n/automation.md", "---\ntriggers:\n  - provider: github\n    event: ¦\n---\n", []string{"pull_request_opened"}, []string{"received"}},
		"more keys of a trigger":  {"automations/n/automation.md", "---\ntriggers:\n  - provider: github\n    ¦\n---\n", []string{"event", "filter"}, []string{"provider"}},
		"keys of a filter":        {"automations/n/automation.md", github + "      ¦\n---\n", []string{"repos=repos: ", "labels"}, []string{"webhook_ids"}},
		"operators of a key":      {"automations/n/automation.md", github + "      labels:\n        ¦\n---\n", []string{"in", "not_in"}, []string{"exists"}},
		"documented values":       {"automations/n/automation.md", fmt.Sprintf(trigger, "github", "check_suite_completed") + "      conclusions: [¦]\n---\n", []string{"success", "failure"}, nil},
		"parts of a filter":       {"automations/n/automation.md", webhook + "      ¦\n---\n", []string{"webhook_ids", "payload", "headers"}, []string{"repos"}},
		"a UID":                   {"automations/n/automation.md", webhook + "      webhook_ids: [¦]\n---\n", []string{"ci=" + uid}, nil},
		"a UID on its own line":   {"automations/n/automation.md", webhook + "      webhook_ids:\n        - c¦\n---\n", []string{"ci=" + uid}, nil},
		"an operator":             {"automations/n/automation.md", webhook + "      payload:\n        action:\n          ¦\n---\n", []string{"in", "not_in", "exists"}, nil},
		"a schedule":              {"automations/n/automation.md", "---\ntriggers:\n  - provider: schedule\n    schedule: {cron: ¦}\n---\n", []string{"@daily=\"@daily\"", "0 6 * * 1-5=\"0 6 * * 1-5\""}, nil},
		"the schedule that is it": {"automations/n/automation.md", "---\ntriggers:\n  - provider: schedule\n    schedule:\n      cron: 5 4 * * *¦\n---\n", []string{"5 4 * * *"}, nil},
		"in a broken file":        {"automations/n/automation.md", "---\nagent: ¦\ntriggers: [\n  {\n---\nGo.\n", []string{"coder"}, nil},
		"not in a comment":        {"webhooks/n.yaml", "# auth¦\n", nil, []string{"authMode"}},
		"keys of factory.yaml":    {"factory.yaml", "name: Shop\n¦", []string{"repositories", "agentDefaults"}, []string{"name"}},
		"keys of a skill":         {"skills/s/SKILL.md", "---\ndesc¦\n---\n", []string{"description"}, nil},
		"keys of an environment":  {"environments/e.yaml", "¦", []string{"dockerImage"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			uri, at := opened(t, c, dir, row.file, row.text)
			var found []item
			if err := c.Call(t.Context(), "textDocument/completion", placeOf(uri, at), &found); err != nil {
				t.Fatal(err)
			}

			has := func(want string) bool {
				label, text, exact := strings.Cut(want, "=")
				return slices.ContainsFunc(found, func(i item) bool {
					return i.Label == label && (!exact || i.TextEdit.NewText == text)
				})
			}
			for _, want := range row.want {
				if !has(want) {
					t.Errorf("%s is not offered: %+v", want, found)
				}
			}
			for _, not := range row.not {
				if has(not) {
					t.Errorf("%s is offered", not)
				}
			}
			for _, i := range found {
				if r := i.TextEdit.Range; r.Start.Line > at.Line || r.End.Line < at.Line || r.End.Character > 1000 {
					t.Errorf("%s replaces %+v, and the cursor is at %+v", i.Label, r, at)
				}
			}
		})
	}
}

func TestHover(t *testing.T) {
	dir := writeDefinition(t)
	c := session(t, language.Config{Lookup: answers{}}, dir)
	asked(t, c, dir)

	for name, row := range map[string]struct{ file, text, want string }{
		"a key":          {"webhooks/n.yaml", "auth¦Mode: token\nsecretName: CI_TOKEN\n", "How senders authenticate"},
		"an inner key":   {"runners/big.yaml", "platform:\n  o¦s: linux\n", "os"},
		"a problem":      {"webhooks/n.yaml", "secret¦name: CI_TOKEN\n", "rule `unknown-key`"},
		"a scheme":       {"webhooks/n.yaml", "signatureScheme: git¦hub\n", "github"},
		"an event":       {"automations/n/automation.md", "---\ntriggers:\n- {provider: github, event: pull_request¦_opened}\n---\nGo.\n", "Keys of its filter"},
		"a filter key":   {"automations/n/automation.md", "---\ntriggers:\n- {provider: github, event: pull_request_opened, filter: {lab¦els: [a]}}\n---\nGo.\n", "A key of the filter"},
		"a schedule":     {"automations/n/automation.md", "---\ntriggers:\n- {provider: schedule, event: cron_fired, schedule: {cron: \"0 6 * *¦ *\"}}\n---\nGo.\n", "06:00:00 UTC"},
		"an agent":       {"automations/n/automation.md", "---\nagent: cod¦er\n---\nGo.\n", "Writes code"},
		"a secret":       {"webhooks/n.yaml", "secretName: CI_¦TOKEN\n", "CI_TOKEN"},
		"a UID":          {"automations/n/automation.md", "---\ntriggers:\n- provider: webhook\n  event: received\n  filter:\n    webhook_ids: [" + uid + "¦]\n    payload: {a: [b]}\n---\nGo.\n", "https://hooks.example.com/w/"},
		"its deliveries": {"automations/n/automation.md", "---\ntriggers:\n- provider: webhook\n  event: received\n  filter:\n    webhook_ids: [" + uid + "¦]\n    payload: {a: [b]}\n---\nGo.\n", "`dlv_b` starts nothing: `act'ion in` fails"},
		"the prompt":     {"automations/n/automation.md", "---\nagent: coder\n---\nGo ¦on.\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			uri, at := opened(t, c, dir, row.file, row.text)
			var found struct{ Contents language.MarkupContent }
			if err := c.Call(t.Context(), "textDocument/hover", placeOf(uri, at), &found); err != nil {
				t.Fatal(err)
			}
			if got := found.Contents.Value; !strings.Contains(got, row.want) || row.want == "" && got != "" && row.file != "automations/n/automation.md" {
				t.Errorf("the hover is %q, want %q", got, row.want)
			}
		})
	}
}

func TestNavigation(t *testing.T) {
	dir := writeDefinition(t)
	c := session(t, language.Config{Lookup: answers{}}, dir)
	asked(t, c, dir)
	file := func(name string) string { return "file://" + filepath.ToSlash(filepath.Join(dir, name)) }

	cursorBefore := func(text string) string {
		return strings.Replace(definition["automations/go/automation.md"], text, text+"¦", 1)
	}
	for text, want := range map[string]string{
		uid: "webhooks/ci.yaml", "agent: code": "agents/coder/agent.md", "runner: b": "runners/big.yaml",
	} {
		uri, at := opened(t, c, dir, "automations/go/automation.md", cursorBefore(text))
		var found language.Location
		if err := c.Call(t.Context(), "textDocument/definition", placeOf(uri, at), &found); err != nil {
			t.Fatal(err)
		}
		if found.URI != file(want) {
			t.Errorf("%s is defined in %s, want %s", text, found.URI, want)
		}
	}

	for name, want := range map[string][]string{
		"webhooks/ci.yaml": {"automations/go/automation.md"}, "agents/coder/agent.md": {"automations/go/automation.md"},
		"runners/big.yaml": {"agents/coder/agent.md", "automations/go/automation.md"},
	} {
		uri, _ := opened(t, c, dir, name, "¦"+definition[name])
		place := placeOf(uri, language.Position{Line: 1, Character: 1})
		if strings.HasPrefix(name, "agents/") {
			place = placeOf(uri, language.Position{Line: 4})
		}
		var found []language.Location
		if err := c.Call(t.Context(), "textDocument/references", place, &found); err != nil {
			t.Fatal(err)
		}
		var files []string
		for _, l := range found {
			files = append(files, strings.TrimPrefix(l.URI, file("")+"/"))
		}
		slices.Sort(files)
		if !slices.Equal(files, want) {
			t.Errorf("%s is named in %v, want %v", name, files, want)
		}
	}
}

func TestSymbolsFoldingAndLens(t *testing.T) {
	dir := writeDefinition(t)
	c := session(t, language.Config{Lookup: answers{}}, dir)
	asked(t, c, dir)

	uri, _ := opened(t, c, dir, "automations/go/automation.md", "¦"+definition["automations/go/automation.md"])
	for method, wants := range map[string][]string{
		"textDocument/documentSymbol": {`"name":"triggers"`, `"name":"webhook/received"`, `"name":"prompt"`, `"detail":"coder"`},
		"textDocument/foldingRange":   {`{"startLine":0,"endLine":8,"kind":"region"}`, `{"startLine":1,"endLine":5}`},
		"textDocument/codeLens":       {"would have fired 12 times in the last 7 days, of 40 deliveries"},
	} {
		var found json.RawMessage
		if err := c.Call(t.Context(), method, placeOf(uri, language.Position{}), &found); err != nil {
			t.Fatal(err)
		}
		for _, want := range wants {
			if !strings.Contains(string(found), want) {
				t.Errorf("%s gives %s, want %s", method, found, want)
			}
		}
	}
}

func TestRename(t *testing.T) {
	dir := writeDefinition(t)
	c := session(t, language.Config{}, dir)
	uri, at := opened(t, c, dir, "automations/go/automation.md",
		strings.Replace(definition["automations/go/automation.md"], "runner: ", "runner: ¦", 1))

	for name, row := range map[string]struct {
		to   string
		want []string // parts of the answer
	}{
		"a runner":         {"huge", []string{`"newUri":"file://` + dir + `/runners/huge.yaml"`, "agents/coder/agent.md", `"newText":"huge"`, `"version":1`}},
		"a bad name":       {"../x", []string{"a name consists of"}},
		"an empty name":    {"", []string{"a name consists of"}},
		"a name in quotes": {"12", []string{`"newText":"\"12\""`}},
	} {
		t.Run(name, func(t *testing.T) {
			params := placeOf(uri, at)
			params["newName"] = row.to
			var found json.RawMessage
			err := c.Call(t.Context(), "textDocument/rename", params, &found)
			got := fmt.Sprint(string(found), err)
			for _, want := range row.want {
				if !strings.Contains(got, want) {
					t.Errorf("the answer is %s, want %s", got, want)
				}
			}
		})
	}

	uri, at = opened(t, c, dir, "agents/coder/agent.md", "---\ndescription: ¦Writes code\n---\nWrite.\n")
	params := placeOf(uri, at)
	params["newName"] = "writer"
	var found json.RawMessage
	if err := c.Call(t.Context(), "textDocument/rename", params, &found); err != nil ||
		!strings.Contains(string(found), dir+`/agents/writer"`) || !strings.Contains(string(found), "automations/go/automation.md") {
		t.Errorf("the agent is renamed with %s, %v", found, err)
	}

	params["newName"] = "Boss"
	if err := c.Call(t.Context(), "textDocument/rename", params, &found); err == nil || !strings.Contains(err.Error(), "another agent") {
		t.Errorf("the agent took the name of another: %v", err)
	}
}

// TestRepairWithUID offers the UID of a webhook whose name stands in its place, whatever diagnostics the
// client tells.
func TestRepairWithUID(t *testing.T) {
	dir := writeDefinition(t)
	c := session(t, language.Config{Lookup: answers{}}, dir)
	asked(t, c, dir)

	uri, at := opened(t, c, dir, "automations/go/automation.md",
		strings.Replace(definition["automations/go/automation.md"], "["+uid+"]", "[c¦i]", 1))
	params := placeOf(uri, at)
	params["range"] = language.Range{Start: at, End: at}
	params["context"] = map[string]any{"diagnostics": []any{}}
	var found []language.CodeAction
	if err := c.Call(t.Context(), "textDocument/codeAction", params, &found); err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 || found[0].Title != "Use the UID of ci" || !strings.Contains(fmt.Sprint(found[0].Edit.DocumentChanges), uid) {
		t.Errorf("the actions are %+v", found)
	}

	params["range"] = language.Range{}
	if err := c.Call(t.Context(), "textDocument/codeAction", params, &found); err != nil {
		t.Fatal(err)
	}
	for _, a := range found {
		if a.Kind == "quickfix" {
			t.Errorf("%s is offered outside of its problem", a.Title)
		}
	}
}

// TestChanges changes parts of a document, on lines with characters of one, two and four bytes.
func TestChanges(t *testing.T) {
	dir := writeDefinition(t)
	c := session(t, language.Config{}, dir)
	uri := "file://" + filepath.ToSlash(filepath.Join(dir, "webhooks/ci.yaml"))
	if err := c.Open(t.Context(), uri, "# 😀ä\r\nsecretName: \"😀\" # x\r\n", 1); err != nil {
		t.Fatal(err)
	}

	found, err := c.AwaitVersion(t.Context(), uri, 1)
	want := language.Range{Start: language.Position{Line: 1, Character: 12}, End: language.Position{Line: 1, Character: 16}}
	if err != nil || len(found) != 1 || found[0].Code != "secret-name" || found[0].Range != want {
		t.Fatalf("%+v, %v", found, err)
	}

	part := func(start, end uint32, text string) any {
		return map[string]any{"text": text, "range": language.Range{
			Start: language.Position{Line: 1, Character: start}, End: language.Position{Line: 1, Character: end},
		}}
	}
	if err := c.Notify(t.Context(), "textDocument/didChange", map[string]any{
		"textDocument":   map[string]any{"uri": uri, "version": 2},
		"contentChanges": []any{part(13, 15, "CI😀TOKEN"), part(15, 17, "_"), part(0, 1, "S")},
	}); err != nil {
		t.Fatal(err)
	}

	found, err = c.AwaitVersion(t.Context(), uri, 2)
	if err != nil || !slices.ContainsFunc(found, func(d language.Diagnostic) bool { return strings.Contains(d.Message, "SecretName") }) ||
		slices.ContainsFunc(found, func(d language.Diagnostic) bool { return d.Code == "secret-name" }) {
		t.Errorf("%+v, %v", found, err)
	}
}
