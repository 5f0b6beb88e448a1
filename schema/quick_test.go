package schema_test

import (
	"encoding/json"
	"io/fs"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"millwright/schema"
)

// TestFormsAgree holds that files of common forms, which are read without the YAML parser, mean what the parser
// reads: a comment with a letter beyond ASCII has it read them, and changes neither resources nor problems.
func TestFormsAgree(t *testing.T) {
	compared := 0
	for _, x := range listFixtures(t, "ok") {
		fsys := x.tree(t)
		var plain, parsed []schema.File
		err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}

			text, err := fs.ReadFile(fsys, name)
			plain = append(plain, schema.File{Path: name, Content: string(text)})
			parsed = append(parsed, schema.File{Path: name, Content: withComment(name, string(text))})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}

		if diff := cmp.Diff(meaning(t, parsed), meaning(t, plain)); diff != "" {
			t.Errorf("%s: the parser reads it otherwise:\n%s", x.name, diff)
		}
		compared += len(plain)
	}

	for _, form := range []string{
		"[opened, reopened]", "{in: [a, b], not_in: ['c d', \"e\"]}", "[]", "[1, 22, true, null, True]", "{exists: true}",
		"\n          in:\n          - a\n          - b c\n",
		"\n          in:\n            - 7\n\n            # two\n            - x:y",
	} {
		text := "---\nagent: foreman\ntriggers:\n- provider: webhook\n  event: received\n  filter:\n" +
			"    webhook_ids: [" + sampleUID + "]\n    payload:\n        key: " + form + "\n---\n\nDo it.\n"
		text = strings.ReplaceAll(text, ": \n", ":\n")
		name := "automations/a/automation.md"
		plain := []schema.File{{Path: name, Content: text}}
		parsed := []schema.File{{Path: name, Content: withComment(name, text)}}
		if diff := cmp.Diff(meaning(t, parsed), meaning(t, plain)); diff != "" {
			t.Errorf("%s: the parser reads it otherwise:\n%s", text, diff)
		}
		compared++
	}

	t.Logf("%d files", compared)
}

// withComment adds a comment at the end of the YAML of a file.
func withComment(name, text string) string {
	const comment = "# é\n"
	switch path.Ext(name) {
	case ".yaml":
		return strings.TrimSuffix(text, "\n") + "\n" + comment
	case ".md":
		if head, body, ok := strings.Cut(text, "\n---\n"); ok {
			return head + "\n" + comment + "---\n" + body
		}
	}
	return text
}

// meaning returns the resources and the problems of files as text.
func meaning(t *testing.T, files []schema.File) string {
	t.Helper()
	fsys, err := schema.FilesFS(files)
	if err != nil {
		t.Fatal(err)
	}

	r := schema.Load(fsys, nil)
	out, err := json.MarshalIndent([]any{r.Factory, r.Problems}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
