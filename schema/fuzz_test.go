package schema_test

import (
	"encoding/json"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"millwright/schema"
)

// seedFiles gives every definition file of the fixtures to a fuzz target.
func seedFiles(f *testing.F, add func(path, text string)) {
	f.Helper()
	for _, kind := range []string{"ok", "err"} {
		for _, x := range listFixtures(f, kind) {
			if strings.HasPrefix(x.name, "tree-too-large") || x.name == "file-too-large" {
				continue
			}
			fsys := x.tree(f)
			err := fs.WalkDir(fsys, ".", func(path string, d fs.DirEntry, err error) error {
				if err != nil || !d.Type().IsRegular() {
					return nil
				}
				if text, err := fs.ReadFile(fsys, path); err == nil && len(text) < 4096 {
					add(path, string(text))
				}
				return nil
			})
			if err != nil {
				f.Fatal(err)
			}
		}
	}
}

// checkResult checks what holds for every tree, and that a second look, and a
// load with knowledge, agree with the first.
func checkResult(t *testing.T, files []schema.File) {
	fsys, err := schema.FilesFS(files)
	if err != nil {
		return
	}
	known := &schema.Known{
		Secrets:   map[string]schema.SecretFact{"CI_TOKEN": schema.FactOf("a"), "B": {}},
		UIDs:      map[string]string{"a": sampleUID},
		KnownUIDs: map[string]string{sampleUID: "a"}, HarnessTypes: []string{"echo"},
	}
	for _, k := range []*schema.Known{nil, known} {
		r := schema.Load(fsys, k)
		for _, p := range r.Problems {
			checkProblem(t, r, p)
			if p.Fix != nil {
				src := r.Source(p.Path)
				if fixed := schema.ApplyFixes(src, []schema.Fix{*p.Fix}); string(fixed) == string(src) {
					t.Errorf("a fix changes nothing: %+v %+v", p, *p.Fix)
				}
			}
		}
		if (r.Factory != nil) != r.Valid() {
			t.Errorf("valid is %v, factory %v", r.Valid(), r.Factory)
		}
		if diff := cmp.Diff(r.Problems, schema.Load(fsys, k).Problems); diff != "" {
			t.Errorf("two loads differ:\n%s", diff)
		}
		if r.Factory == nil {
			continue
		}
		for _, a := range r.Factory.Automations {
			r.Factory.Resolve(a)
			for _, trigger := range a.Triggers {
				if f, problems := schema.CompileFilter(trigger.Payload); len(problems) > 0 || f == nil && trigger.Payload != nil {
					t.Errorf("an accepted filter does not compile: %s %v", trigger.Payload, problems)
				}
				if trigger.Schedule != nil {
					if _, err := schema.ParseCron(trigger.Schedule.Cron); err != nil {
						t.Errorf("an accepted schedule does not parse: %v", err)
					}
				}
			}
			if strings.TrimSpace(a.Prompt) == "" {
				t.Error("an automation without a prompt is accepted")
			}
		}
		if _, err := json.Marshal(r.Factory); err != nil {
			t.Error(err)
		}
		for _, file := range files {
			out, err := schema.RewriteWebhookIDs([]byte(file.Content), file.Path, map[string]string{"a": sampleUID})
			if err != nil && string(out) != file.Content {
				t.Error("a failed rewrite changes the file")
			}
		}
	}
}

func FuzzYAML(f *testing.F) {
	seedFiles(f, func(path, text string) {
		if strings.HasSuffix(path, ".yaml") {
			f.Add(text)
		}
	})
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 20_000 {
			return
		}
		checkResult(t, []schema.File{{Path: "webhooks/a.yaml", Content: text}, {Path: "factory.yaml", Content: text}})
	})
}

func FuzzFrontMatter(f *testing.F) {
	seedFiles(f, func(path, text string) {
		if strings.HasSuffix(path, ".md") {
			f.Add(text)
		}
	})
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 20_000 {
			return
		}
		checkResult(t, []schema.File{{Path: "automations/a/automation.md", Content: text}, {Path: "agents/a/agent.md", Content: text}, {Path: "skills/a/SKILL.md", Content: text}})
	})
}

// FuzzLoad makes whole trees: each file is a line with its path, and its text up
// to a line with a form feed.
func FuzzLoad(f *testing.F) {
	seedFiles(f, func(path, text string) { f.Add(path + "\n" + text + "\n\f\nwebhooks/a.yaml\nsecretName: B\n") })
	f.Fuzz(func(t *testing.T, tree string) {
		if len(tree) > 20_000 {
			return
		}
		var files []schema.File
		for part := range strings.SplitSeq(tree, "\n\f\n") {
			path, text, _ := strings.Cut(part, "\n")
			files = append(files, schema.File{Path: path, Content: text})
		}
		checkResult(t, files)
	})
}
