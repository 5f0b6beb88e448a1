package worker_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"millwright/runs/worker"
	"millwright/state"
)

// agentScript makes a program that stands for the agent of a preset.
func agentScript(t *testing.T, script string) string {
	t.Helper()
	dir, err := os.MkdirTemp(".", "agent-") // a run has its own /tmp
	if err == nil {
		dir, err = filepath.Abs(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })

	file := filepath.Join(dir, "agent")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestPresetStartsAgents replaces each agent by a script that prints its arguments and files.
func TestPresetStartsAgents(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "test-key-of-openai")
	tests := map[string]struct {
		say  string // a line that becomes this text
		want []string
	}{
		"claude": {
			`{"type":"assistant","message":{"content":[{"type":"text","text":"%s"}]}}`,
			[]string{"--model the-model", "--append-system-prompt-file", "base-prompt.md", "--extra", "claude/CLAUDE.md"},
		},
		"codex": {
			`{"type":"item.completed","item":{"type":"agent_message","text":"%s"}}`,
			[]string{"exec --json", "-m the-model", "--extra", "config.toml", "key=***"},
		},
		"gemini": {
			`{"type":"message","role":"assistant","content":"%s"}`,
			[]string{"-m the-model", "--extra", "gemini/GEMINI.md", "believed=0"},
		},
		"opencode": {
			`{"type":"text","sessionID":"s","part":{"text":"%s"}}`,
			[]string{"run --format json", "-m the-model", "--extra", "opencode/base-prompt.md"},
		},
	}

	b := newBench(t, 0)
	harnesses := map[string]worker.Harness{}
	for name, test := range tests {
		script := fmt.Sprintf(`files=$(cd "$HOME" && find . -type f | tr '\n' ' ')
printf '%s\n' "$* files=$files key=$CODEX_API_KEY believed=$(ls -A | grep -c '^[.]env$') prompt=$(cat)"
`, test.say)
		harnesses[name] = worker.Harness{
			Preset: name, Program: agentScript(t, script), Args: []string{"--extra"}, SameUser: true,
			Env: []string{"OPENAI_API_KEY"},
		}
	}
	b.work(worker.Config{Harnesses: harnesses, Slots: 2})

	for name, test := range tests {
		id := b.create(func(n *state.NewRun) {
			n.Config = fmt.Appendf(nil, `{"harness": {"type": %q}, "model_id": "the-model", "base_prompt": "be brief",
				"environment_id": "e", "runner_id": "r", "skill_spec": "o/r:s", "skills": ["x"], "idle_timeout_minutes": 1}`, name)
		}, state.Attachment{Name: ".env", MimeType: "text/plain", Body: []byte("A=b")})
		r := b.end(id)
		if r.State != state.RunSucceeded {
			t.Fatalf("%s: %s %s", name, r.State, r.StatusMessage)
		}

		wantIn(t, b.said(r), append(test.want, "prompt=do it")...)
		var lost []string
		for _, block := range b.blocks(r) {
			var data struct{ Field, Harness, Reason string }
			if err := json.Unmarshal(block.Data, &data); err == nil && block.Name == "config_not_applied" {
				if lost = append(lost, data.Field); data.Harness != name || data.Reason == "" {
					t.Errorf("%s: event %+v", name, data)
				}
			}
		}
		if got := strings.Join(lost, " "); got != "environment_id idle_timeout_minutes runner_id skill_spec skills" {
			t.Errorf("%s: not applied: %s", name, got)
		}
	}
}

// TestPresetWithoutProgram has the program of a preset be absent.
func TestPresetWithoutProgram(t *testing.T) {
	b := newBench(t, 0)
	b.work(worker.Config{Harnesses: map[string]worker.Harness{
		"h": {Preset: "claude", SameUser: true, Path: "/var/empty"},
	}, Default: "h"})
	r := b.end(b.create(nil))
	if r.State != state.RunError || r.ErrorCode != "agent_process_failed" {
		t.Errorf("run is %s, %s", r.State, r.ErrorCode)
	}
	wantIn(t, r.StatusMessage, "npm install -g @anthropic-ai/claude-code", "set program")
}

// TestProgramInTmp has the program of a preset lie where runs have a directory of their own.
func TestProgramInTmp(t *testing.T) {
	wantPrivate(t)
	dir, err := os.MkdirTemp("/tmp", "millwright-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	program, link := filepath.Join(dir, "claude"), filepath.Join(t.TempDir(), "claude")
	err = errors.Join(os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755), os.Symlink(program, link))
	if err != nil {
		t.Fatal(err)
	}

	b := newBench(t, 0)
	b.work(worker.Config{Harnesses: map[string]worker.Harness{
		"h": {Preset: "claude", SameUser: true, Program: link},
	}, Default: "h"})
	r := b.end(b.create(nil))
	if r.State != state.RunError || r.ErrorCode != "agent_process_failed" {
		t.Errorf("run is %s, %s", r.State, r.ErrorCode)
	}
	wantIn(t, r.StatusMessage, "runs have their own /tmp")
}

// TestPresetChecks has settings contradict themselves.
func TestPresetChecks(t *testing.T) {
	for want, h := range map[string]worker.Harness{
		"does not exist: want one of claude, codex, gemini, opencode": {Preset: "clod", SameUser: true},
		"a preset has its own command":                                {Preset: "claude", Command: []string{"x"}, SameUser: true},
		"belong to a preset":                                          {Command: []string{"x"}, Args: []string{"y"}, SameUser: true},
		"choose where it runs":                                        {Preset: "claude"},
	} {
		if err := h.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", h, err, want)
		}
	}
}
