package schema_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"millwright/schema"
)

// definition is an automation of about 400 bytes.
func definition(i int) string {
	return fmt.Sprintf(`---
enabled: true
agent: foreman
triggers:
  - provider: webhook
    event: received
    filter:
      webhook_ids: [wh_01h2xcejqtf2nbrexx3vqjhp41]
      payload:
        action: [opened, reopened]
        repository:
          name: {not_in: [sandbox-%d]}
secrets: [NPM_TOKEN]
---

Read event-payload.json and say which build failed, why it failed, and which
commit broke it. Open a pull request when the cause is clear.
`, i)
}

func writeTree(b *testing.B, webhooks, automations int) string {
	b.Helper()
	dir := b.TempDir()
	write := func(path, text string) {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	for i := range webhooks {
		write(fmt.Sprintf("webhooks/w%d.yaml", i), "authMode: signature\nsignatureScheme: github\nsecretName: GITHUB_SECRET\n")
	}
	for i := range automations {
		write(fmt.Sprintf("automations/a%d/automation.md", i), definition(i))
	}
	write("agents/foreman/agent.md", "---\nagentType: FOREMAN\n---\nYou plan the work.\n")
	return dir
}

func benchmarkLoad(b *testing.B, webhooks, automations int) {
	dir := writeTree(b, webhooks, automations)
	b.ResetTimer()
	for b.Loop() {
		r := schema.Load(os.DirFS(dir), nil)
		if !r.Valid() {
			b.Fatal(r.Problems[0])
		}
	}
	b.ReportMetric(float64(b.N*(webhooks+automations))/b.Elapsed().Seconds(), "files/s")
}

func BenchmarkLoad10000(b *testing.B) { benchmarkLoad(b, 20, 9980) }
func BenchmarkLoad520(b *testing.B)   { benchmarkLoad(b, 20, 500) }

// BenchmarkLoadMemory leaves the file system out.
func BenchmarkLoadMemory(b *testing.B) {
	files := []schema.File{{Path: "agents/foreman/agent.md", Content: "---\nagentType: FOREMAN\n---\nYou plan the work.\n"}}
	for i := range 10_000 {
		files = append(files, schema.File{Path: fmt.Sprintf("automations/a%d/automation.md", i), Content: definition(i)})
	}
	fsys, err := schema.FilesFS(files)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if r := schema.Load(fsys, nil); !r.Valid() {
			b.Fatal(r.Problems[0])
		}
	}
	b.ReportMetric(float64(b.N*len(files))/b.Elapsed().Seconds(), "files/s")
}

// BenchmarkFilter parses a body and matches a filter that looks three levels deep.
func BenchmarkFilter(b *testing.B) {
	const user = `"login":"octocat","id":583231,"site_admin":false,"url":"https://api.github.com/users/octocat",`
	filter, problems := schema.CompileFilter([]byte(`{"action":["closed"],"repository":{"owner":{"x":[null]}}}`))
	if len(problems) > 0 {
		b.Fatal(problems)
	}
	for _, c := range []struct{ name, body string }{
		{"2KB", `{"event":"benchmark","text":"` + strings.Repeat("x", 2000) + `"}`},
		{"8KB", `{"action":"opened","repository":{"owner":{` + strings.Repeat(user, 80) + `"x":null}}}`},
		{"256KB-of-zeros", `{"action":[` + strings.Repeat("0,", 131_000) + `0]}`},
		{"256KB-of-objects", `{"repository":[` + strings.Repeat("{},", 87_000) + `{}]}`},
	} {
		body := []byte(c.body)
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				p, err := schema.ParsePayload(body)
				if err != nil || filter.Match(p) {
					b.Fatal(err)
				}
			}
		})
	}
}
