package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"millwright/schema"
	"millwright/state/statetest"
)

// editedFiles are what an editor finds: the program, and a definition with a misspelled key.
func editedFiles(t *testing.T, dir string, more map[string]string) (file string) {
	t.Helper()
	program, err := filepath.Abs(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}

	all := map[string]string{
		"bin/millwright":             fmt.Sprintf("#!/bin/sh\n%s=1 exec '%s' \"$@\"\n", runMain, program),
		"tree/factory.yaml":          mcpFactory,
		"tree/agents/lead/agent.md":  "---\nagentType: FOREMAN\n---\nLead.\n",
		"tree/agents/coder/agent.md": "---\ndescription: Writes code\n---\nWrite.\n",
		"tree/automations/night/automation.md": `---
enabeld: true
agent: coder
triggers:
  - provider: schedule
    event: cron_fired
    schedule: {cron: "@daily"}
---
Tidy up the workspace. Delete branches that are merged.
`,
	}
	for name, text := range more {
		all[name] = text
	}

	for name, text := range all {
		to := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "tree", "automations", "night", "automation.md")
}

// repaired reports whether the file is saved with the key spelled right, and the tree has no problems.
func repaired(file string) bool {
	saved, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(saved), "\nenabled: true\n") {
		return false
	}
	tree := filepath.Join(filepath.Dir(file), "..", "..")
	return len(schema.Load(os.DirFS(tree), nil).Problems) == 0
}

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
	file := editedFiles(t, dir, map[string]string{
		"config/nvim/plugin/millwright.lua": string(setting),
		"story.lua":                         neovimStory,
	})

	said := filepath.Join(dir, "said.json")
	cmd := exec.CommandContext(t.Context(), neovim, "--headless", file,
		"-c", "luafile "+filepath.Join(dir, "story.lua"), "-c", "cquit")
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

	if !repaired(file) {
		t.Error("the editor did not save the repaired file")
	}
}

// TestAcceptanceVSCode checks the types of the extension, packages it, and edits a file with it in a real VS
// Code: its server runs here, and its window is a browser.
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
	packed := filepath.Join(dir, "millwright.vsix")
	if info, err := os.Stat(packed); err != nil || info.Size() > 1<<20 {
		t.Errorf("the package is %+v, %v", info, err)
	}

	t.Run("edit", func(t *testing.T) { editInVSCode(t, packed) })
}

// editInVSCode waits for the problem, repairs it by a key of the keyboard, and saves the file.
func editInVSCode(t *testing.T, packed string) {
	program := os.Getenv("MILLWRIGHT_TEST_VSCODE_SERVER")
	if program == "" {
		t.Skip("MILLWRIGHT_TEST_VSCODE_SERVER is not set: .ci/editors sets it")
	}
	fromEnvironment(t, chromiumVariable)

	dir := t.TempDir()
	settings, err := json.Marshal(map[string]any{
		"millwright.path":                  filepath.Join(dir, "bin", "millwright"),
		"workbench.startupEditor":          "none",
		"chat.commandCenter.enabled":       false,
		"editor.minimap.enabled":           false,
		"security.workspace.trust.enabled": false,
	})
	if err != nil {
		t.Fatal(err)
	}
	file := editedFiles(t, dir, map[string]string{
		"vscode/data/Machine/settings.json": string(settings),
		"vscode/data/User/settings.json":    string(settings),
	})

	at := startVSCode(t, program, filepath.Join(dir, "vscode"), packed)
	b := newTab(t, &browserWorld{t: t})
	b.screen(1100, 620, "light")
	opened, err := json.Marshal([][]string{{"openFile", "vscode-remote://" + at + file}})
	if err != nil {
		t.Fatal(err)
	}
	q := url.Values{"folder": {filepath.Join(dir, "tree")}, "payload": {string(opened)}}
	b.do(chromedp.Navigate("http://" + at + "/?" + q.Encode()))

	b.wait(`document.querySelector('.squiggly-error, .squiggly-warning') !== null`)
	b.do(chromedp.Click(chromedp.CSS(`.view-line:nth-child(2)`)), chromedp.KeyEvent(kb.F8))
	b.waitText(".marker-widget", "enabeld")
	if *screenshots != "" {
		b.photograph(filepath.Join(*screenshots, "vscode.png"), false)
	}

	statetest.Until(t, "the problem is repaired", func() bool {
		ask(b, input.DispatchKeyEvent, input.DispatchKeyEventParams{ // Auto Fix
			Type: "rawKeyDown", Key: ">", Code: "Period", WindowsVirtualKeyCode: 190,
			Modifiers: int64(kb.ModifierAlt | kb.ModifierShift),
		})
		return eval[bool](b, `new Promise((said) => {
			const left = () => document.querySelector('.squiggly-error, .squiggly-warning') !== null;
			const stop = (is) => { clearInterval(timer); said(is); };
			const timer = setInterval(() => left() || stop(true), 20);
			setTimeout(() => stop(false), 3000);
		})`)
	})
	b.do(chromedp.KeyEvent("s", chromedp.KeyModifiers(kb.ModifierCtrl)))
	statetest.Until(t, "the repaired file is saved", func() bool { return repaired(file) })
}

// startVSCode starts the server of VS Code with the extension, and returns its address.
func startVSCode(t *testing.T, program, data, packed string) string {
	t.Helper()
	port, err := statetest.FreePort()
	if err != nil {
		t.Fatal(err)
	}

	cmd := exec.Command("node", program, "--host", "127.0.0.1", "--port", port, "--without-connection-token",
		"--accept-server-license-terms", "--telemetry-level", "off", "--server-data-dir", data,
		"--install-extension", packed, "--start-server")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	log := &lockedLog{}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("VS Code said:\n%.4000s", log.Bytes())
		}
	})

	at := "127.0.0.1:" + port
	statetest.Until(t, "VS Code listens", func() bool {
		res, err := http.Get("http://" + at + "/version")
		if err != nil {
			return false
		}
		res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
	return at
}
