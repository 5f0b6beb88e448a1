package worker_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"millwright/runs/worker"
	"millwright/state"
)

// TestAdapters replays streams of the coding agents' command lines, and compares the conversation.
func TestAdapters(t *testing.T) {
	b := newBench(t, 0)
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	harnesses := map[string]worker.Harness{}
	for _, name := range []string{"claude", "codex", "gemini"} {
		h := sh("cat " + filepath.Join(here, "testdata", name+".jsonl"))
		h.Adapter = name
		harnesses[name] = h
	}
	b.work(worker.Config{Harnesses: harnesses})
	for name := range harnesses {
		r := b.end(b.create(func(n *state.NewRun) { n.Config = fmt.Appendf(nil, `{"harness":{"type":%q}}`, name) }))
		if r.State != state.RunSucceeded {
			t.Errorf("%s: %s %s", name, r.State, r.StatusMessage)
		}
		var got strings.Builder
		for _, block := range b.blocks(r) {
			text, err := json.Marshal(block)
			if err != nil {
				t.Fatal(err)
			}
			got.Write(append(text, '\n'))
		}
		want, err := os.ReadFile(filepath.Join("testdata", name+".want.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		if got.String() != string(want) {
			t.Errorf("%s became\n%s\nwant\n%s", name, got.String(), want)
		}
		if name == "claude" && string(r.Skills) != `[{"name":"triage"},{"name":"pr-comments"}]` {
			t.Errorf("skills %s", r.Skills)
		}
	}
}

// TestLongNames has an agent give its actions IDs and names that are not worth remembering.
func TestLongNames(t *testing.T) {
	b := newBench(t, 0)
	var script strings.Builder
	for _, id := range []string{"short", strings.Repeat("l", 501)} {
		fmt.Fprintf(&script, "echo '{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"tool_use\",\"id\":\"%s\",\"name\":\"Bash\"}]}}'\n", id)
		fmt.Fprintf(&script, "echo '{\"type\":\"user\",\"message\":{\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"%s\"}]}}'\n", id)
	}
	h := sh(script.String())
	h.Adapter = "claude"
	b.work(worker.Config{Harnesses: map[string]worker.Harness{"h": h}, Default: "h"})
	blocks := b.blocks(b.end(b.create(nil)))
	if len(blocks) != 4 || blocks[1].Name != "Bash" || blocks[3].Name != "" || blocks[3].ActionID != blocks[2].ID {
		t.Errorf("blocks %.300v", blocks)
	}
}

// TestCutLines has an agent put out lines that are too long, and nothing but blank ones: a result whose image
// is cut is a result all the same, and what cannot be closed is text.
func TestCutLines(t *testing.T) {
	b := newBench(t, 0)
	long := "head -c 1100000 /dev/zero | tr '\\0' "
	claude := sh(`printf '{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":[{"data":"'; ` + long + `A; echo '"}]}]}}'
		printf '{"type":"user","a":"b",'; ` + long + `' '; echo '"c":1}'
		echo '{"type":"result","subtype":"success","result":"Unknown command"}'`)
	claude.Adapter = "claude"
	b.work(worker.Config{Harnesses: map[string]worker.Harness{"claude": claude, "blank": sh("echo")}, Default: "claude"})
	var got []string
	for _, block := range b.blocks(b.end(b.create(nil))) {
		got = append(got, fmt.Sprintf("%s %s %s%.16s%.28s", block.Type, block.ActionID, block.Name, block.Output, block.Text))
	}
	want := []string{`action_result t1 "{\"output\":[{\`, `text  {"type":"user","a":"b",     `, "text  Unknown command", "event  result"}
	if !slices.Equal(got, want) {
		t.Errorf("cut lines became %q, want %q", got, want)
	}
	r := b.end(b.create(func(n *state.NewRun) { n.Config = []byte(`{"harness":{"type":"blank"}}`) }))
	if blocks := b.blocks(r); len(blocks) != 0 {
		t.Errorf("a blank line became %v", blocks)
	}
}

// TestAdaptersTellFailures has agents fail in their own words, with exit status 0 too.
func TestAdaptersTellFailures(t *testing.T) {
	b := newBench(t, 0)
	type failing struct{ adapter, output, message string }
	harnesses := map[string]worker.Harness{}
	tests := map[string]failing{
		"a": {"claude", `{"type":"result","subtype":"error_max_turns","is_error":false}`, "error_max_turns"},
		"b": {"claude", `{"type":"result","subtype":"success","is_error":true,"result":"Credit balance is too low"}`, "Credit balance"},
		"c": {"codex", `{"type":"error","message":"lost"}` + "\n" + `{"type":"turn.failed","error":{"message":"no model"}}`, "no model"},
		"f": {"claude", `{"type":"result","subtype":"success","is_error":true,"result":{"future":1},"num_turns":"many"}`, "the agent ended with"},
		"e": {"claude", `{"type":"result","subtype":"error_during_execution","is_error":true,"duration_ms":1.5,"errors":["overloaded","gave up"]}`, "overloaded; gave up"},
		"d": {"gemini", `{"type":"result","status":"error","error":{"type":"X","message":"quota"}}`, "quota"},
	}
	for name, f := range tests {
		h := sh("cat <<'EOF'\n" + f.output + "\nEOF")
		h.Adapter = f.adapter
		harnesses[name] = h
	}
	b.work(worker.Config{Slots: 2, Harnesses: harnesses})
	for name, f := range tests {
		r := b.end(b.create(func(n *state.NewRun) { n.Config = fmt.Appendf(nil, `{"harness":{"type":%q}}`, name) }))
		if r.State != state.RunFailed || !strings.Contains(r.StatusMessage, f.message) {
			t.Errorf("%+v: %s %q", f, r.State, r.StatusMessage)
		}
	}
}

// TestDeniedActions has a command declined: its result is denied, and not failed.
func TestDeniedActions(t *testing.T) {
	b := newBench(t, 0)
	h := sh(`echo '{"type":"item.completed","item":{"id":"1","type":"command_execution","command":"rm x","status":"declined"}}'
		echo '{"type":"item.completed","item":{"id":"2","type":"file_change","status":"declined"}}'
		echo '{"type":"item.completed","item":{"id":"3","type":"command_execution","command":"false","exit_code":1}}'`)
	h.Adapter = "codex"
	b.work(worker.Config{Harnesses: map[string]worker.Harness{"h": h}, Default: "h"})

	states := map[string]string{}
	for _, block := range b.blocks(b.end(b.create(nil))) {
		if block.Type == "action_result" {
			states[block.ActionID] = block.State
		}
	}

	if got := fmt.Sprint(states); got != "map[1:denied 2:denied 3:failed]" {
		t.Errorf("states %s", got)
	}
}

// TestSkillPaths loads skills by name and by path.
func TestSkillPaths(t *testing.T) {
	b := newBench(t, 0)
	var script strings.Builder
	for _, skill := range []string{"triage", "skills/x/SKILL.md", "plug:name"} {
		fmt.Fprintf(&script, "echo '{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"tool_use\",\"id\":\"1\",\"name\":\"Skill\",\"input\":{\"skill\":%q}}]}}'\n", skill)
	}
	h := sh(script.String())
	h.Adapter = "claude"
	b.work(worker.Config{Harnesses: map[string]worker.Harness{"h": h}, Default: "h"})

	var got []string
	for _, block := range b.blocks(b.end(b.create(nil))) {
		got = append(got, string(block.Input))
	}

	want := []string{
		`{"skill_path":".claude/skills/triage/SKILL.md"}`, `{"skill_path":"skills/x/SKILL.md"}`,
		`{"skill_path":"plug:name"}`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("inputs %q, want %q", got, want)
	}
}
