package worker_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"millwright/runs/dispatch"
	"millwright/runs/wire"
	"millwright/runs/worker"
	"millwright/state"
	"millwright/state/notice"
	"millwright/state/statetest"
)

// bench is a state with a dispatcher, and a worker whose default harness is sh with a script.
type bench struct {
	t     *testing.T
	store *state.Store
	d     *dispatch.Dispatcher
	dir   string
}

func newBench(t *testing.T, lease time.Duration) *bench {
	t.Helper()
	return newBenchOn(t, statetest.Open(t, statetest.SQLite(t)), lease)
}

func newBenchOn(t *testing.T, s *state.Store, lease time.Duration) *bench {
	t.Helper()
	d, err := dispatch.Start(t.Context(), dispatch.Config{Store: s, Lease: lease})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close(context.Background()) })
	return &bench{t: t, store: s, d: d, dir: t.TempDir()}
}

func sh(script string) worker.Harness {
	return worker.Harness{Command: []string{"sh", "-c", script}, SameUser: true}
}

// work runs a worker until stop is called; stop returns when it has ended.
func (b *bench) work(cfg worker.Config) (stop func()) {
	b.t.Helper()
	client, err := b.d.Client()
	if err != nil {
		b.t.Fatal(err)
	}
	return b.workAs(client, cfg)
}

// workAs is work with the connection of a worker.
func (b *bench) workAs(client *wire.Client, cfg worker.Config) (stop func()) {
	b.t.Helper()
	cfg.Client, cfg.Dir = client, b.dir
	cfg.Keeper, cfg.Enter = []string{"keeper"}, []string{enterSandbox}
	if cfg.Grace == 0 {
		cfg.Grace = 2 * time.Second
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- worker.Run(ctx, cfg) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err, _ := statetest.Receive(b.t, "the worker to end", done); err != nil {
			b.t.Error(err)
		}
		client.Close()
	}
	b.t.Cleanup(stop)
	return stop
}

// script has a worker execute runs with a shell script.
func (b *bench) script(script string) {
	b.t.Helper()
	b.work(worker.Config{Harnesses: map[string]worker.Harness{"sh": sh(script)}, Default: "sh"})
}

func (b *bench) create(change func(*state.NewRun), files ...state.Attachment) string {
	b.t.Helper()
	n := state.NewRun{Title: "x", Prompt: "do it", Source: "API", Creator: state.Creator{Type: "service_account", UID: "key_1", DisplayName: "ci"}}
	if change != nil {
		change(&n)
	}
	r, err := b.store.CreateRun(b.t.Context(), n, files, state.Idempotency{})
	if err != nil {
		b.t.Fatal(err)
	}
	return r.ID
}

// until waits until ok holds for the run.
func (b *bench) until(id string, ok func(state.Run) bool) state.Run {
	b.t.Helper()
	notices, end := b.store.Subscribe(100, notice.Run)
	defer end()
	deadline := time.After(statetest.Patience)
	poll := time.NewTicker(20 * time.Millisecond) // for what the state does not tell of
	defer poll.Stop()
	for {
		r, err := b.store.Run(b.t.Context(), id)
		if err != nil {
			b.t.Fatal(err)
		}
		if ok(r) {
			return r
		}
		select {
		case <-notices:
		case <-poll.C:
		case <-deadline:
			b.t.Fatalf("run %s is %s: %s", id, r.State, r.StatusMessage)
		}
	}
}

func (b *bench) end(id string) state.Run {
	b.t.Helper()
	return b.until(id, func(r state.Run) bool { return r.Ended() })
}

// blocks returns what the agent put out.
func (b *bench) blocks(r state.Run) []state.Block {
	b.t.Helper()
	steps, err := b.store.Steps(b.t.Context(), r, 0)
	if err != nil {
		b.t.Fatal(err)
	}
	var all []state.Block
	for _, step := range steps {
		for _, m := range step.Messages {
			if m.Role == state.RoleAssistant {
				all = append(all, m.Content...)
			}
		}
	}
	return all
}

func (b *bench) said(r state.Run) string {
	b.t.Helper()
	var texts []string
	for _, block := range b.blocks(r) {
		if block.Type != "event" {
			texts = append(texts, block.Text)
		}
	}
	return strings.Join(texts, "\n")
}

func wantIn(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%q is not in:\n%s", p, text)
		}
	}
}

func TestEchoShowsWhatAnAgentReceives(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		b := newBenchOn(t, s, 0)
		b.work(worker.Config{})
		id := b.create(func(n *state.NewRun) { n.Envelope = "The envelope." },
			state.Attachment{Name: "event-payload.json", MimeType: "application/json", Body: []byte(`{"a":` + strings.Repeat("1", 100_000) + `}`)},
			state.Attachment{Name: "notes.txt", MimeType: "text/plain", Body: []byte("see")})
		r := b.end(id)
		if r.State != state.RunSucceeded {
			t.Fatalf("run is %s: %s", r.State, r.StatusMessage)
		}
		said := b.said(r)
		wantIn(t, said, "do it\n\nThe envelope.", "- event-payload.json (application/json, 100006 bytes)", "- notes.txt (text/plain, 3 bytes)", `{"a":111`, "bytes left out")
		if len(said) > 30_000 {
			t.Errorf("echo says %d bytes", len(said))
		}
	})
}

func TestHarnessProtocol(t *testing.T) {
	t.Setenv("LISTED", "yes")
	t.Setenv("UNLISTED", "no")
	b := newBench(t, 0)
	h := sh(`cat; echo; ls; cat mcp.json config.json base-prompt.md conversation.json a.txt; echo; env | sort
echo '{"type":"action","id":"1","category":"skill","name":"read_skill","input":{"skill_path":"x/SKILL.md"}}'
echo '{"type":"action_result","action_id":"1","state":"ok","output":[1]}'
echo '{"type":"event","name":"note","data":{"k":"v"}}'
echo '{"type":"skills_advertised","skills":[{"name":"s","bundled_skill_id":"pr-comments","extra":1},{"no":"name"}]}'
echo '{"type":"unknown"}'
printf 'last'`)
	h.Env = []string{"LISTED", "ABSENT"}
	b.work(worker.Config{Harnesses: map[string]worker.Harness{"h": h}})
	if _, err := b.store.SetSecret(t.Context(), "GRANTED", []byte("hunter22")); err != nil {
		t.Fatal(err)
	}
	id := b.create(func(n *state.NewRun) {
		n.Config = []byte(`{"base_prompt":"Be kind.","model_id":"m1","environment_id":"e1","skill_spec":"o/r:s","harness":{"type":"h"}}`)
		n.FactoryUID, n.Secrets = b.factory([]string{"GRANTED"}), []string{"GRANTED"}
	}, state.Attachment{Name: "a.txt", Body: []byte("attached")})
	r := b.end(id)
	if r.State != state.RunSucceeded || r.StatusMessage != "" {
		t.Fatalf("run is %s: %s", r.State, r.StatusMessage)
	}
	said := b.said(r)
	wantIn(t, said, "do it\n", "prompt.md", "{}", `"model_id":"m1"`, "Be kind.", `"steps":[]`, "attached",
		"MILLWRIGHT_RUN_ID="+id, "MILLWRIGHT_MODEL_ID=m1", "MILLWRIGHT_ENVIRONMENT_ID=e1", "MILLWRIGHT_SKILL=o/r:s",
		"LISTED=yes", "GRANTED=***", `{"type":"unknown"}`, "last")
	for _, no := range []string{"UNLISTED", "ABSENT", "hunter22", "skills_advertised"} {
		if strings.Contains(said, no) {
			t.Errorf("%q is in:\n%s", no, said)
		}
	}
	if got := string(r.Skills); got != `[{"name":"s","bundled_skill_id":"pr-comments"}]` {
		t.Errorf("skills %s", got)
	}
	var types []string
	for _, block := range b.blocks(r) { // texts that come late are blocks of their own
		if n := len(types); block.Type != "text" || n == 0 || types[n-1] != "text" {
			types = append(types, block.Type)
		}
	}
	if got := strings.Join(types, " "); got != "text action action_result event text" {
		t.Errorf("blocks %s", got)
	}
}

func TestExits(t *testing.T) {
	b := newBench(t, 0)
	slow := sh("sleep 60 & sleep 60")
	slow.Timeout = 200 * time.Millisecond
	none := worker.Harness{Command: []string{"/nonexistent/program"}, SameUser: true}
	b.work(worker.Config{Slots: 4, Harnesses: map[string]worker.Harness{
		"blocked": sh("echo which one? >&2; exit 10"), "failed": sh("echo oops >&2; exit 3"), "signal": sh("kill -SEGV $$"),
		"slow": slow, "none": none, "flood of errors": sh("yes error | head -c 1000000 >&2; echo end >&2; exit 1"),
	}})
	for _, test := range []struct {
		harness string
		state   state.RunState
		code    string
		message string
	}{
		{"blocked", state.RunBlocked, "", "which one?"},
		{"failed", state.RunFailed, "agent_process_failed", "exit status 3: oops"},
		{"signal", state.RunFailed, "agent_process_failed", "signal 11"},
		{"slow", state.RunError, "infrastructure_timeout", "200ms"},
		{"none", state.RunError, "agent_process_failed", "program"},
		{"missing", state.RunError, "environment_setup_failed", `no harness "missing"`},
		{"flood of errors", state.RunFailed, "agent_process_failed", "end"},
	} {
		r := b.end(b.create(func(n *state.NewRun) { n.Config = fmt.Appendf(nil, `{"harness":{"type":%q}}`, test.harness) }))
		if r.State != test.state || r.ErrorCode != test.code || !strings.Contains(r.StatusMessage, test.message) || len(r.StatusMessage) > 5000 {
			t.Errorf("%s: %s %q %q", test.harness, r.State, r.ErrorCode, r.StatusMessage)
		}
		if strings.Contains(r.StatusMessage, "/nonexistent") {
			t.Errorf("%s: the message tells a path: %q", test.harness, r.StatusMessage)
		}
	}
	left, err := filepath.Glob(filepath.Join(b.dir, "worker-*", "run-*"))
	if err != nil || len(left) != 0 {
		t.Errorf("working directories left: %v %v", left, err)
	}
}

// gone waits until the process whose ID is in the file has ended.
func gone(t *testing.T, file string) {
	t.Helper()
	pid, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	statetest.Until(t, fmt.Sprintf("process %s has ended", bytes.TrimSpace(pid)), func() bool {
		stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/stat")
		return err != nil || strings.Contains(string(stat), ") Z ")
	})
}

func TestCancelKillsTheWholeGroup(t *testing.T) {
	b := newBench(t, 0)
	marks := t.TempDir()
	// The harness ignores SIGTERM and has a child in the background, which ignores it too.
	b.script(`trap '' TERM; sh -c 'trap "" TERM; echo $$ > ` + marks + `/child; while :; do sleep 0.1; done' & echo $$ > ` + marks + `/parent; echo ready; while :; do sleep 0.1; done`)
	id := b.create(nil)
	b.until(id, func(state.Run) bool {
		_, err1 := os.Stat(marks + "/child")
		_, err2 := os.Stat(marks + "/parent")
		return err1 == nil && err2 == nil
	})
	if _, err := b.store.RequestCancel(t.Context(), id, "tester"); err != nil {
		t.Fatal(err)
	}
	if r := b.end(id); r.State != state.RunCancelled {
		t.Errorf("run is %s", r.State)
	}
	gone(t, marks+"/child")
	gone(t, marks+"/parent")
}

func TestChildrenEndWithTheHarness(t *testing.T) {
	b := newBench(t, 0)
	marks := t.TempDir()
	b.script(`sh -c 'echo $$ > ` + marks + `/child; exec sleep 600' & while ! [ -s ` + marks + `/child ]; do :; done; echo done`)
	if r := b.end(b.create(nil)); r.State != state.RunSucceeded || b.said(r) != "done" {
		t.Errorf("run is %s, said %q", r.State, b.said(r))
	}
	gone(t, marks+"/child")
}

func TestOutputIsBounded(t *testing.T) {
	b := newBench(t, 0)
	b.work(worker.Config{Harnesses: map[string]worker.Harness{
		"flood": sh(`yes "0123456789012345678901234567890123456789" | head -c 40000000; echo the end`),
		"line":  sh(`head -c 3000000 /dev/zero | tr '\0' x; echo; echo after`),
		"bytes": sh(`printf 'a\377b\0c\033[1m\n'; printf '{"type":"text","text":"\\u0000\\ud800"}\n'`),
	}})
	end := func(harness string) string {
		r := b.end(b.create(func(n *state.NewRun) { n.Config = fmt.Appendf(nil, `{"harness":{"type":%q}}`, harness) }))
		if r.State != state.RunSucceeded {
			t.Errorf("%s: %s %s", harness, r.State, r.StatusMessage)
		}
		return b.said(r)
	}
	if said := end("flood"); len(said) > 17<<20 || len(said) < 10<<20 || !strings.HasSuffix(said, "are stored.]") {
		t.Errorf("a flood became %d bytes", len(said))
	}
	if said := end("line"); len(said) > 100<<10 || !strings.HasSuffix(said, "\nafter") {
		t.Errorf("a long line became %d bytes", len(said))
	}
	if said := end("bytes"); !strings.HasPrefix(said, "a\uFFFDb\uFFFDc") {
		t.Errorf("odd bytes became %q", said)
	}
}

func TestSecretsAreRedactedInOtherForms(t *testing.T) {
	b := newBench(t, 0)
	secret := "first line of it\nsecond \"quoted\" lïne\n"
	if _, err := b.store.SetSecret(t.Context(), "KEY", []byte(secret)); err != nil {
		t.Fatal(err)
	}
	b.script(`printf '%s' "$KEY"; printf '%s' "$KEY" | base64 -w0; echo; echo '{"type":"text","text":"first line of it\nsecond \"quoted\" lïne\n"}'
printf '%s\n' '{"type":"text","text":"first line of it\nsecond \"quoted\" lïne\n"}'; printf '%s\n' '{"type":"text","text":"\u0066irst line of it"}' '{"type":"event","name":"e","data":{"k":"second \"quoted\" l\u00efne"}}'; printf '%s' "$KEY" >&2; exit 1`)
	r := b.end(b.create(func(n *state.NewRun) {
		n.FactoryUID, n.Secrets = b.factory([]string{"KEY"}), []string{"KEY"}
	}))
	said := b.said(r) + r.StatusMessage
	for _, block := range b.blocks(r) {
		said += string(block.Data)
	}
	for _, form := range []string{"first line", "quoted", "Zmlyc3Q"} {
		if strings.Contains(said, form) || !strings.Contains(said, "***") {
			t.Errorf("%q is in %q", form, said)
		}
	}
}

func TestWorkerEnds(t *testing.T) {
	defer statetest.VerifyNoLeaks(t)()
	t.Run("hands back", func(t *testing.T) {
		b := newBench(t, 0)
		mark := filepath.Join(t.TempDir(), "pid")
		stop := b.work(worker.Config{Grace: 200 * time.Millisecond, Harnesses: map[string]worker.Harness{"sh": sh("echo $$ > " + mark + "; echo begun; exec sleep 600")}, Default: "sh"})
		id := b.create(nil)
		b.until(id, func(r state.Run) bool { info, err := os.Stat(mark); return err == nil && info.Size() > 0 })
		stop()
		r, err := b.store.Run(t.Context(), id)
		if err != nil || r.State != state.RunQueued || r.Attempt != 1 {
			t.Errorf("handed back: %+v %v", r, err)
		}
		gone(t, mark)
		b.script("echo again")
		if r := b.end(id); r.State != state.RunSucceeded || b.said(r) != "again" { // what the first attempt said stands apart
			t.Errorf("run is %s, said %q", r.State, b.said(r))
		}
	})
	t.Run("lets short runs finish", func(t *testing.T) {
		b := newBench(t, 0)
		begun, release := filepath.Join(t.TempDir(), "begun"), filepath.Join(t.TempDir(), "go")
		stop := b.work(worker.Config{Grace: time.Minute, Harnesses: map[string]worker.Harness{"sh": sh("touch " + begun + "; while ! [ -e " + release + " ]; do sleep 0.02; done; echo finished")}, Default: "sh"})
		id := b.create(nil)
		b.until(id, func(state.Run) bool { _, err := os.Stat(begun); return err == nil })
		done := make(chan struct{})
		go func() { defer close(done); stop() }()
		if err := os.WriteFile(release, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		statetest.Receive(t, "the worker to end", done)
		if r, err := b.store.Run(t.Context(), id); err != nil || r.State != state.RunSucceeded {
			t.Errorf("run is %s %v", r.State, err)
		}
	})
}

func TestLostRunIsStopped(t *testing.T) {
	b := newBench(t, 6*time.Second)
	mark := filepath.Join(t.TempDir(), "pid")
	b.script("echo $$ > " + mark + "; exec sleep 600")
	id := b.create(nil)
	b.until(id, func(r state.Run) bool { info, err := os.Stat(mark); return err == nil && info.Size() > 0 })
	if _, err := b.store.RequestCancel(t.Context(), id, "tester"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.store.ReapWorker(t.Context(), dispatch.LocalWorker); err != nil { // the server gave up on it
		t.Fatal(err)
	}
	if r := b.end(id); r.State != state.RunCancelled {
		t.Errorf("run is %s", r.State)
	}
	gone(t, mark)
}

func TestConfigurations(t *testing.T) {
	b := newBench(t, 0)
	client, err := b.d.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for want, cfg := range map[string]worker.Config{
		`harness "x" does not exist`:     {Default: "x"},
		"no command":                     {Harnesses: map[string]worker.Harness{"h": {SameUser: true}}},
		"choose where it runs":           {Harnesses: map[string]worker.Harness{"h": {Command: []string{"x"}}}},
		"one of: user":                   {Harnesses: map[string]worker.Harness{"h": {Command: []string{"x"}, SameUser: true, User: "nobody"}}},
		`user "no-such-user" does not`:   {Harnesses: map[string]worker.Harness{"h": {Command: []string{"x"}, User: "no-such-user"}}},
		`adapter "wrong" does not exist`: {Harnesses: map[string]worker.Harness{"h": {Command: []string{"x"}, SameUser: true, Adapter: "wrong"}}},
		"is negative":                    {Harnesses: map[string]worker.Harness{"h": {Command: []string{"x"}, SameUser: true, Timeout: -1}}},
		"":                               {Harnesses: map[string]worker.Harness{"h": {Command: []string{"x"}, SameUser: true}}},
	} {
		cfg.Client, cfg.Dir = client, b.dir
		err := worker.Run(ctx, cfg)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestFullDirectory(t *testing.T) {
	b := newBench(t, 6*time.Second)
	registry := prometheus.NewRegistry()
	release := filepath.Join(t.TempDir(), "go")
	b.work(worker.Config{MaxDir: 1 << 20, Registerer: registry, Default: "h", Harnesses: map[string]worker.Harness{
		"h": sh("while ! [ -e " + release + " ]; do sleep 0.02; done; mkdir -p a/b; head -c 2000000 /dev/zero > a/b/big; exec sleep 600"),
	}})
	id := b.create(nil)
	b.until(id, func(r state.Run) bool { return r.State == state.RunInProgress })
	families, err := registry.Gather()
	if err != nil || len(families) != 2 || families[0].Metric[0].Gauge.GetValue() != 1 || families[1].Metric[0].Gauge.GetValue() != 1 {
		t.Errorf("metrics %v %v", families, err)
	}
	if err := os.WriteFile(release, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := b.end(id); r.State != state.RunError || r.ErrorCode != "environment_setup_failed" || !strings.Contains(r.StatusMessage, "working directory") {
		t.Errorf("run is %s %s: %s", r.State, r.ErrorCode, r.StatusMessage)
	}
	if left, _ := filepath.Glob(filepath.Join(b.dir, "worker-*", "run-*")); len(left) != 0 {
		t.Errorf("working directories are left: %v", left)
	}
}

// TestDeepValues has a harness put out values that few readers of JSON could read back.
func TestDeepValues(t *testing.T) {
	b := newBench(t, 0)
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	var script strings.Builder
	for _, n := range []int{32, 33, 9997} {
		fmt.Fprintf(&script, "echo '{\"type\": \"event\", \"name\": \"e\", \"data\": %s}'\n", nested(n))
	}
	b.script(script.String())
	blocks := b.blocks(b.end(b.create(nil)))
	if len(blocks) != 3 || string(blocks[0].Data) != nested(32) || string(blocks[1].Data) != `"`+nested(33)+`"` || len(blocks[2].Data) != 2*9997+2 {
		t.Errorf("blocks %.200v", blocks)
	}
}
