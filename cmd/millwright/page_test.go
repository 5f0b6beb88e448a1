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
		}
	}
	if commands < 8 {
		t.Fatalf("%d commands were found", commands)
	}

	script.WriteString("stdout 'Find the first commit'\nstdout 'event-payload.json'\nstdout '1741'\nkill -INT serve\nwait serve\n")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "page.txtar"), []byte(script.String()+files.String()), 0o644); err != nil {
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
