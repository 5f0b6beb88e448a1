package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"millwright/schema"
)

// neovimStory is what an editor does with a file: it waits for the problem, repairs it, completes a key and
// saves.
const neovimStory = `
local said = {}
local function await(what, f)
  if not vim.wait(50000, f, 50) then
    print('waited for ' .. what)
    vim.cmd('cquit')
  end
end
await('a problem', function() return #vim.diagnostic.get(0) > 0 end)
local found = vim.diagnostic.get(0)[1]
said.code, said.line = found.code, found.lnum

local params = vim.lsp.util.make_range_params(0, 'utf-16')
params.range = { start = { line = found.lnum, character = 0 }, ['end'] = { line = found.lnum, character = 99 } }
params.context = { diagnostics = {}, only = { 'quickfix' } }
local client = vim.lsp.get_clients({ bufnr = 0 })[1]
local answer = client:request_sync('textDocument/codeAction', params, 50000, 0)
said.title = answer.result[1].title
vim.lsp.util.apply_workspace_edit(answer.result[1].edit, 'utf-16')
await('no problem', function() return #vim.diagnostic.get(0) == 0 end)

local place = { textDocument = { uri = vim.uri_from_bufnr(0) }, position = { line = 1, character = 0 } }
said.keys = #client:request_sync('textDocument/completion', place, 50000, 0).result
vim.cmd('write')
vim.fn.writefile({ vim.json.encode(said) }, vim.env.SAID)
vim.cmd('qall!')
`

// TestAcceptanceNeovim edits an automation in a real Neovim, with the setting in editors/neovim.
func TestAcceptanceNeovim(t *testing.T) {
	neovim := os.Getenv("MILLWRIGHT_TEST_NEOVIM")
	if neovim == "" {
		t.Skip("MILLWRIGHT_TEST_NEOVIM is not set: .ci/editors sets it")
	}

	dir := t.TempDir()
	setting, err := os.ReadFile(filepath.Join("..", "..", "editors", "neovim", "millwright.lua"))
	if err != nil {
		t.Fatal(err)
	}
	program, err := filepath.Abs(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"config/nvim/plugin/millwright.lua":    string(setting),
		"story.lua":                            neovimStory,
		"bin/millwright":                       fmt.Sprintf("#!/bin/sh\n%s=1 exec '%s' \"$@\"\n", runMain, program),
		"tree/agents/lead/agent.md":            "---\nagentType: FOREMAN\n---\nLead.\n",
		"tree/automations/night/automation.md": "---\nenabeld: true\ntriggers:\n  - provider: schedule\n    event: cron_fired\n    schedule: {cron: \"@daily\"}\n---\nTidy up.\n",
	} {
		to := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}

	file, said := filepath.Join(dir, "tree", "automations", "night", "automation.md"), filepath.Join(dir, "said.json")
	cmd := exec.CommandContext(t.Context(), neovim, "--headless", file, "-c", "luafile "+filepath.Join(dir, "story.lua"))
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+filepath.Join(dir, "config"), "SAID="+said,
		"XDG_DATA_HOME="+filepath.Join(dir, "data"), "XDG_STATE_HOME="+filepath.Join(dir, "state"),
		"PATH="+filepath.Join(dir, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
	cmd.WaitDelay = time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}

	var got struct {
		Code, Title string
		Line, Keys  int
	}
	text, err := os.ReadFile(said)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &got); err != nil || got.Code != "unknown-key" || got.Line != 1 || got.Keys == 0 {
		t.Errorf("the editor said %s, %v", text, err)
	}

	saved, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(saved), "\nenabled: true\n") {
		t.Errorf("the editor saved %q, %v", saved, err)
	}
	if r := schema.Load(os.DirFS(filepath.Join(dir, "tree")), nil); len(r.Problems) > 0 {
		t.Errorf("the repaired tree has problems: %+v", r.Problems)
	}
}

// TestAcceptanceVSCode checks the types of the extension, builds it, and packages it.
func TestAcceptanceVSCode(t *testing.T) {
	dir := os.Getenv("MILLWRIGHT_TEST_VSCODE")
	if dir == "" {
		t.Skip("MILLWRIGHT_TEST_VSCODE is not set: .ci/editors sets it")
	}

	cmd := exec.CommandContext(t.Context(), "npm", "run", "package")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if info, err := os.Stat(filepath.Join(dir, "millwright.vsix")); err != nil || info.Size() > 1<<20 {
		t.Errorf("the package is %+v, %v", info, err)
	}
}
