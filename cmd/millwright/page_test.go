package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestFirstPage runs every command of docs/from-webhook-to-run.md, with the files that it shows.
func TestFirstPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/from-webhook-to-run.md")
	if err != nil {
		t.Fatal(err)
	}

	var script, files strings.Builder
	commands := 0
	blocks := strings.Split(string(page), "```\n")
	for i := 1; i < len(blocks); i += 2 {
		if name, ok := strings.CutPrefix(blocks[i], "$ cat "); ok {
			name, text, _ := strings.Cut(name, "\n")
			fmt.Fprintf(&files, "-- %s --\n%s", name, text)
			continue
		}

		for line := range strings.Lines(blocks[i]) {
			command, ok := strings.CutPrefix(strings.TrimSpace(line), "$ ")
			if !ok {
				t.Fatalf("a line that is no command: %s", line)
			}
			commands++
			fmt.Fprintln(&script, scriptLine(command))
			if strings.Contains(command, "run logs") {
				script.WriteString("stdout 'Find the first commit'\nstdout 'event-payload.json'\nstdout '1741'\n")
			}
		}
	}
	if commands < 8 {
		t.Fatalf("%d commands were found", commands)
	}

	script.WriteString("stdout '/webhooks/w/wh_'\nkill -INT serve\nwait serve\n")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "page.txtar"), []byte(script.String()+files.String()), 0o644); err != nil {
		t.Fatal(err)
	}

	testscript.Run(t, scriptParams(dir))
}

// TestSendingPage runs every example of docs/sending.md against a webhook of its kind.
func TestSendingPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/sending.md")
	if err != nil {
		t.Fatal(err)
	}

	kinds := []string{"--auth-mode token", "--auth-mode url_token", "--scheme standard_webhooks", "--scheme github --secret-file github.txt"}
	examples := strings.Split(string(page), "```sh\n")[1:]
	if len(examples) != len(kinds) {
		t.Fatalf("%d examples of %d kinds", len(examples), len(kinds))
	}

	script := "exec millwright serve --config millwright.yaml &serve&\neventually 'ops: applied' millwright status\n"
	files := "-- millwright.yaml --\nfactories: [{name: ops, source: {managed: {}}}]\n-- github.txt --\nof-github\n"
	for i, example := range examples {
		example, _, _ = strings.Cut(example, "```")
		files += fmt.Sprintf("-- %d.sh --\n%s", i, example)
		script += fmt.Sprintf("exec millwright webhook create w%d %s\nsetenv URL stdout '^(http\\S+)'\n", i, kinds[i])
		switch {
		case strings.Contains(kinds[i], "github"):
			script += "env SECRET=of-github\n"
		case !strings.Contains(kinds[i], "url_token"):
			script += "setenv SECRET stdout '\\n(\\S+)\\n$'\n"
		}
		script += fmt.Sprintf("exec sh %d.sh\nstdout '^202 '\n! stdout duplicate\n", i)
		script += fmt.Sprintf("env SECRET=another\nexec sh %d.sh\nstdout '^(401|202)'\n", i)
	}

	dir := t.TempDir()
	script += "kill -INT serve\nwait serve\n"
	if err := os.WriteFile(filepath.Join(dir, "sending.txtar"), []byte(script+files), 0o644); err != nil {
		t.Fatal(err)
	}

	testscript.Run(t, scriptParams(dir))
}

// scriptLine returns a command of the page as a line of a script, which waits for what takes a moment.
func scriptLine(command string) string {
	if server, ok := strings.CutSuffix(command, " &"); ok {
		return "exec " + server + " &serve&\neventually 'admin' millwright key list"
	}
	if command == "millwright run list" {
		return "eventually SUCCEEDED " + command
	}
	return "exec sh -c '" + strings.ReplaceAll(command, "'", "''") + "'"
}
