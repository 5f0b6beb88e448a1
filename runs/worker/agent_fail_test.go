package worker_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"millwright/runs/worker"
	"millwright/state"
)

// TestAgentsGoWrong has programs in the place of agents fail in their ways. Each run reports it, and the
// worker goes on.
func TestAgentsGoWrong(t *testing.T) {
	const (
		claudeBegins = `{"type":"system","subtype":"init","session_id":"s","model":"m"}`
		claudeSays   = `{"type":"assistant","message":{"id":"a","content":[{"type":"text","text":"at work"}]}}`
		cutShort     = "the agent's output ends before its result"
	)
	put := func(lines ...string) string {
		return "cat <<'EOF'\n" + strings.Join(lines, "\n") + "\nEOF\n"
	}
	tests := map[string]struct{ preset, script, message string }{
		"older": {
			"claude",
			"echo \"error: unknown option '--setting-sources'\" >&2; exit 1",
			"unknown option '--setting-sources'",
		},
		"unsigned": {
			"claude", put(claudeBegins, `{"type":"result","subtype":"success","is_error":true,"result":"Not logged in · Please run /login"}`),
			"Not logged in · Please run /login; harness \"unsigned\" gives the agent none of ANTHROPIC_API_KEY",
		},
		"killed": {"claude", put(claudeBegins, claudeSays) + "kill -9 $$", "ended by signal 9"},
		"claude-cut": {
			"claude",
			put(claudeBegins, claudeSays) + `printf '{"type":"assistant","message":{"con'`,
			cutShort,
		},
		"codex-cut": {
			"codex",
			put(`{"type":"thread.started","thread_id":"s"}`, `{"type":"turn.started"}`),
			cutShort,
		},
		"gemini-cut":  {"gemini", put(`{"type":"init","session_id":"s","model":"m"}`), cutShort},
		"open-cut":    {"opencode", put(`{"type":"step_start","sessionID":"s","part":{"id":"1"}}`), cutShort},
		"open-silent": {"opencode", "true", "without a word of its session"},
	}

	b := newBench(t, 0)
	harnesses := map[string]worker.Harness{"well": sh("echo well")}
	for name, test := range tests {
		harnesses[name] = worker.Harness{
			Preset:   test.preset,
			Program:  agentScript(t, test.script),
			SameUser: true,
		}
	}
	b.work(worker.Config{Harnesses: harnesses, Default: "well", Slots: 2})

	for name, test := range tests {
		r := b.end(
			b.create(func(n *state.NewRun) { n.Config = fmt.Appendf(nil, `{"harness":{"type":%q}}`, name) }),
		)
		if r.State != state.RunFailed || r.ErrorCode != "agent_process_failed" ||
			!strings.Contains(r.StatusMessage, test.message) {
			t.Errorf(
				"%s: run is %s, %s: %q; want %q",
				name,
				r.State,
				r.ErrorCode,
				r.StatusMessage,
				test.message,
			)
		}
	}
	if r := b.end(b.create(nil)); r.State != state.RunSucceeded {
		t.Errorf("the next run is %s: %s", r.State, r.StatusMessage)
	}
}

// TestBadSnapshots has executions leave what the next one cannot use, or not whole: it reports that and
// begins without.
func TestBadSnapshots(t *testing.T) {
	b := newBench(t, 0)
	leave := func(id string, v state.Snapshot, body []byte) {
		t.Helper()
		c, _, err := b.store.ClaimRun(t.Context(), id, "w", "w", time.Minute)
		if err == nil {
			_, err = b.store.StartRun(t.Context(), c, time.Minute)
		}
		if err == nil {
			err = b.store.PutSnapshotPart(t.Context(), c, 0, body)
		}
		if err == nil {
			err = b.store.PutSnapshot(t.Context(), c, v)
		}
		if err == nil {
			_, err = b.store.FinishRun(t.Context(), c, state.Result{State: state.RunSucceeded})
		}
		if err != nil {
			t.Fatal(err)
		}
	}

	session := json.RawMessage(`{"preset":"claude","id":"s"}`)
	garbage := bytes.Repeat([]byte("no archive "), 100)
	sum := "0f" + strings.Repeat("0", 62)
	wrongSum, noArchive := b.create(nil), b.create(nil)
	leave(wrongSum, state.Snapshot{Session: session, Digest: sum, Size: int64(len(garbage))}, garbage)
	leave(
		noArchive,
		state.Snapshot{Session: session, Digest: digest(garbage), Size: int64(len(garbage))},
		garbage,
	)

	claude := worker.Harness{
		Preset:   "claude",
		Program:  agentScript(t, agentOf),
		SameUser: true,
		Env:      []string{"SESSION", "RESULT"},
	}
	t.Setenv("SESSION", "anew")
	t.Setenv("RESULT", `{"type":"result","subtype":"success"}`)
	b.work(worker.Config{Default: "claude", Harnesses: map[string]worker.Harness{
		"claude": claude,
		"large":  sh(`[ -e small ] && ls; truncate -s 100M big; echo x > small`),
	}})
	for name, id := range map[string]string{"another digest": wrongSum, "no archive": noArchive} {
		r := b.goOn(id, "go on")
		if got := b.events(r, "snapshot_not_restored"); len(got) != 1 {
			t.Errorf("%s: events %q", name, got)
		}
		said := b.said(r)
		wantIn(t, said, "go on")
		if strings.Contains(said, "sessions s ") {
			t.Errorf("%s: the session goes on: %s", name, said)
		}
	}

	id := b.create(func(n *state.NewRun) { n.Config = json.RawMessage(`{"harness":{"type":"large"}}`) })
	r := b.end(id)
	if got := b.events(r, "snapshot_incomplete"); len(got) != 1 || !strings.Contains(got[0], "big") {
		t.Errorf("a file of 100 MB: %s, %q", r.State, got)
	}
	if said := b.said(b.goOn(id, "go on")); strings.Contains(said, "big") ||
		!strings.Contains(said, "small") {
		t.Errorf("the follow-up found %s", said)
	}
}

func digest(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}
