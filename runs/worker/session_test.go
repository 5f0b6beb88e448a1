package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	acp "github.com/coder/acp-go-sdk"

	"millwright/runs/worker"
	"millwright/state"
)

// acpAgent is an agent that speaks the Agent Client Protocol: it asks before it acts, and keeps its session in a file.
type acpAgent struct {
	conn    *acp.AgentSideConnection
	file    string
	past    []string // prompts
	options []acp.SessionConfigOption
}

// fakeACP speaks the protocol over standard input and output.
func fakeACP() int {
	a := &acpAgent{
		file:    filepath.Join(os.Getenv("HOME"), ".gemini", "tmp", "session.json"),
		options: acpOptions(),
	}
	a.conn = acp.NewAgentSideConnection(a, os.Stdout, os.Stdin)
	<-a.conn.Done()
	return 0
}

func (a *acpAgent) Initialize(context.Context, acp.InitializeRequest) (acp.InitializeResponse, error) {
	return acp.InitializeResponse{
		ProtocolVersion:   acp.ProtocolVersionNumber,
		AgentCapabilities: acp.AgentCapabilities{LoadSession: true},
	}, nil
}

func (a *acpAgent) NewSession(_ context.Context, r acp.NewSessionRequest) (acp.NewSessionResponse, error) {
	if len(r.McpServers) != 1 || r.McpServers[0].Stdio == nil || r.McpServers[0].Stdio.Command != "tool" {
		return acp.NewSessionResponse{}, acp.NewInvalidParams("no servers")
	}
	return acp.NewSessionResponse{SessionId: "s1", ConfigOptions: a.options}, a.keep()
}

// acpOptions are what a session lets its client choose.
func acpOptions() (options []acp.SessionConfigOption) {
	for _, o := range []struct {
		category acp.SessionConfigOptionCategory
		values   []acp.SessionConfigValueId
	}{
		{acp.SessionConfigOptionCategoryModel, []acp.SessionConfigValueId{"small", "large"}},
		{acp.SessionConfigOptionCategoryThoughtLevel, []acp.SessionConfigValueId{"low", "high"}},
	} {
		var offered acp.SessionConfigSelectOptionsUngrouped
		for _, v := range o.values {
			offered = append(offered, acp.SessionConfigSelectOption{Value: v, Name: string(v)})
		}
		options = append(options, acp.SessionConfigOption{Select: &acp.SessionConfigOptionSelect{
			Id: acp.SessionConfigId("of-" + o.category), Name: "x", Category: &o.category, Type: "select",
			CurrentValue: o.values[0], Options: acp.SessionConfigSelectOptions{Ungrouped: &offered},
		}})
	}
	return options
}

func (a *acpAgent) keep() error {
	text, _ := json.Marshal(a.past)
	return errors.Join(os.MkdirAll(filepath.Dir(a.file), 0o700), os.WriteFile(a.file, text, 0o600))
}

func (a *acpAgent) LoadSession(ctx context.Context, r acp.LoadSessionRequest) (acp.LoadSessionResponse, error) {
	text, err := os.ReadFile(a.file)
	if err == nil {
		err = json.Unmarshal(text, &a.past)
	}
	if err == nil {
		err = a.say(ctx, r.SessionId, "REPLAYED")
	}
	return acp.LoadSessionResponse{}, err
}

func (a *acpAgent) say(ctx context.Context, id acp.SessionId, text string) error {
	return a.conn.SessionUpdate(ctx, acp.SessionNotification{SessionId: id, Update: acp.UpdateAgentMessageText(text)})
}

func (a *acpAgent) Prompt(ctx context.Context, r acp.PromptRequest) (acp.PromptResponse, error) {
	var text []string
	for _, block := range r.Prompt {
		text = append(text, block.Text.Text)
	}
	prompt := strings.Join(text, " | ")
	a.past = append(a.past, prompt)
	if err := a.keep(); err != nil {
		return acp.PromptResponse{}, err
	}

	said := fmt.Sprintf("turn %d: %s.", len(a.past), prompt)
	if strings.Contains(text[len(text)-1], "ask") {
		for i := range 1 + strings.Count(prompt, "twice") {
			choice, err := a.ask(ctx, r.SessionId, fmt.Sprintf("rm -r build-%d", i))
			if err != nil {
				return acp.PromptResponse{}, err
			}
			said += " chose " + choice + "."
		}
	}

	for _, o := range a.options {
		said += " " + string(o.Select.CurrentValue)
	}
	err := errors.Join(a.say(ctx, r.SessionId, said), a.conn.SessionUpdate(ctx, acp.SessionNotification{
		SessionId: r.SessionId,
		Update: acp.SessionUpdate{UsageUpdate: &acp.SessionUsageUpdate{
			Size: 1000, Used: 11, Cost: &acp.Cost{Amount: 0.25 * float64(len(a.past)), Currency: "USD"},
		}},
	}))
	return acp.PromptResponse{
		StopReason: acp.StopReasonEndTurn, Usage: &acp.Usage{InputTokens: 10, OutputTokens: 1, TotalTokens: 11},
	}, err
}

func (a *acpAgent) ask(ctx context.Context, id acp.SessionId, command string) (string, error) {
	tool := acp.ToolCallId(command)
	begun := acp.StartToolCall(tool, command, acp.WithStartStatus(acp.ToolCallStatusPending))
	if err := a.conn.SessionUpdate(ctx, acp.SessionNotification{SessionId: id, Update: begun}); err != nil {
		return "", err
	}

	input := map[string]any{"command": command}
	var early any = input
	if command == "rm -r build-1" { // this one is described when it was allowed
		early = nil
	}

	asked, err := a.conn.RequestPermission(ctx, acp.RequestPermissionRequest{
		SessionId: id,
		ToolCall: acp.ToolCallUpdate{
			ToolCallId: tool, Title: acp.Ptr(command), Kind: acp.Ptr(acp.ToolKindExecute),
			RawInput: early,
		},
		Options: []acp.PermissionOption{
			{OptionId: "yes-always", Name: "Always", Kind: acp.PermissionOptionKindAllowAlways},
			{OptionId: "yes", Name: "Allow", Kind: acp.PermissionOptionKindAllowOnce},
			{OptionId: "no", Name: "Reject", Kind: acp.PermissionOptionKindRejectOnce},
		},
	})
	if err != nil || asked.Outcome.Selected == nil {
		return "nothing", err
	}

	ended := acp.WithUpdateStatus(acp.ToolCallStatusCompleted)
	done := acp.UpdateToolCall(tool, ended, acp.WithUpdateRawInput(input))
	err = a.conn.SessionUpdate(ctx, acp.SessionNotification{SessionId: id, Update: done})
	return string(asked.Outcome.Selected.OptionId), err
}

func (a *acpAgent) Cancel(context.Context, acp.CancelNotification) error { return nil }

func (a *acpAgent) Authenticate(context.Context, acp.AuthenticateRequest) (acp.AuthenticateResponse, error) {
	return acp.AuthenticateResponse{}, nil
}

func (a *acpAgent) CloseSession(context.Context, acp.CloseSessionRequest) (acp.CloseSessionResponse, error) {
	return acp.CloseSessionResponse{}, nil
}

func (a *acpAgent) ListSessions(context.Context, acp.ListSessionsRequest) (acp.ListSessionsResponse, error) {
	return acp.ListSessionsResponse{}, nil
}

func (a *acpAgent) ResumeSession(context.Context, acp.ResumeSessionRequest) (acp.ResumeSessionResponse, error) {
	return acp.ResumeSessionResponse{}, nil
}

func (a *acpAgent) SetSessionConfigOption(
	_ context.Context, r acp.SetSessionConfigOptionRequest,
) (acp.SetSessionConfigOptionResponse, error) {
	for _, o := range a.options {
		if o.Select.Id != r.ValueId.ConfigId {
			continue
		}
		for _, v := range *o.Select.Options.Ungrouped {
			if v.Value == r.ValueId.Value {
				o.Select.CurrentValue = v.Value
				return acp.SetSessionConfigOptionResponse{ConfigOptions: a.options}, nil
			}
		}
	}
	return acp.SetSessionConfigOptionResponse{}, acp.NewInvalidParams("it is not offered")
}

func (a *acpAgent) SetSessionMode(context.Context, acp.SetSessionModeRequest) (acp.SetSessionModeResponse, error) {
	return acp.SetSessionModeResponse{}, nil
}

// acpHarness is a harness of the agent.
func acpHarness(t *testing.T) worker.Harness {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(".", "acp-") // a run has its own /tmp
	if err == nil {
		dir, err = filepath.Abs(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	agent := filepath.Join(dir, "acp-agent")
	if text, err := os.ReadFile(program); err != nil {
		t.Fatal(err)
	} else if err := os.WriteFile(agent, text, 0o755); err != nil {
		t.Fatal(err)
	}
	return worker.Harness{Preset: "acp", Program: agent, SameUser: true}
}

// asking makes a run whose agent is given a prompt, and waits for its question.
func asking(b *bench, prompt string) (state.Run, state.Question) {
	b.t.Helper()
	id := b.create(func(n *state.NewRun) {
		n.Prompt = prompt
		n.Config = []byte(`{"base_prompt": "be careful", "mcp_servers": {"t": {"command": "tool"}}}`)
	})
	r := b.until(id, func(r state.Run) bool { return r.State == state.RunBlocked || r.Ended() })
	return r, openQuestion(b, r)
}

func openQuestion(b *bench, r state.Run) state.Question {
	b.t.Helper()
	all, err := b.store.Questions(b.t.Context(), r.ID)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, q := range all {
		if q.Closed == nil {
			return q
		}
	}
	b.t.Fatalf("run %s is %s and asks nothing: %s %s", r.ID, r.State, r.StatusMessage, b.said(r))
	return state.Question{}
}

func (b *bench) answer(r state.Run, q state.Question, choice string) (state.Run, state.FollowupOutcome) {
	b.t.Helper()
	r, outcome, err := b.store.AnswerQuestion(b.t.Context(), r.ID, state.Answer{Question: q.UID, Choice: choice, By: "ada", Message: "mind the gap"})
	if err != nil {
		b.t.Fatal(err)
	}
	return r, outcome
}

// TestSessionAsks has an agent ask twice, and a message come meanwhile: all of it is one session.
func TestSessionAsks(t *testing.T) {
	b := newBench(t, 0)
	b.work(worker.Config{Default: "h", Harnesses: map[string]worker.Harness{"h": acpHarness(t)}})

	r, q := asking(b, "ask twice")
	if r.Finished != nil || !r.Held() || r.StatusMessage != "the agent asks: rm -r build-0" {
		t.Errorf("the run that waits: %+v", r)
	}
	if len(q.Choices) != 3 || q.Choices[1] != (state.Choice{ID: "yes", Name: "Allow", Kind: "allow_once"}) || string(q.Input) != `{"command":"rm -r build-0"}` {
		t.Errorf("question %+v: %s", q, q.Input)
	}
	if _, outcome, err := b.store.Followup(t.Context(), r.ID, "and then?", state.Idempotency{}); err != nil || outcome != state.FollowupLive {
		t.Errorf("a message to a living session: %s, %v", outcome, err)
	}

	now, outcome := b.answer(r, q, "approve")
	if now.State != state.RunInProgress || outcome != state.FollowupLive {
		t.Errorf("answered: %s, %s", now.State, outcome)
	}
	for _, again := range []string{"approve", "no"} {
		_, _, err := b.store.AnswerQuestion(t.Context(), r.ID, state.Answer{Question: q.UID, Choice: again, By: "bob"})
		if !errors.Is(err, state.ErrConflict) || !strings.Contains(err.Error(), "ada answered this question already") {
			t.Errorf("answered again: %v", err)
		}
	}

	r = b.until(r.ID, func(r state.Run) bool { return r.State == state.RunBlocked || r.Ended() })
	b.answer(r, openQuestion(b, r), "deny")
	r = b.end(r.ID)
	if r.State != state.RunSucceeded || r.Execution != 1 {
		t.Fatalf("run is %s in execution %d: %s", r.State, r.Execution, r.StatusMessage)
	}
	wantIn(t, b.said(r), "turn 1: be careful", "| ask twice. chose yes. chose no.", "turn 2: and then?.")
	wantSpent(t, r, 20, 0.5)

	var uses []string
	for _, block := range b.blocks(r) {
		if block.Type == "action" || block.Type == "action_result" {
			uses = append(uses, block.Type+" "+block.Name+" "+string(block.Input))
		}
	}
	slices.Sort(uses)
	want := `action rm -r build-0 {"command":"rm -r build-0"}, ` +
		`action rm -r build-1 {"command":"rm -r build-1"}, ` +
		`action_result rm -r build-0 , action_result rm -r build-1 `
	if got := strings.Join(uses, ", "); got != want {
		t.Errorf("tools %s, want %s", got, want)
	}

	steps, err := b.store.Steps(t.Context(), r, 0)
	if err != nil {
		t.Fatal(err)
	}
	var users []string
	for _, m := range steps[0].Messages {
		if m.Role == state.RoleUser {
			for _, block := range m.Content {
				users = append(users, strings.ReplaceAll(block.Text, "\n", " "))
			}
		}
	}
	if got := strings.Join(users, "; "); !strings.Contains(got, "Allow  mind the gap; Reject  mind the gap; and then?") {
		t.Errorf("the user said %q", got)
	}

	// The agent reports the cost of the whole session.
	r = b.goOn(r.ID, "once more")
	wantIn(t, b.said(r), "turn 3: once more.")
	wantSpent(t, r, 30, 0.75)
}

// wantSpent checks the tokens and the cost of a run.
func wantSpent(t *testing.T, r state.Run, tokens int64, cost float64) {
	t.Helper()
	u := r.Usage
	if u == nil || u.InputTokens != tokens || u.CostUSD == nil || *u.CostUSD != cost {
		t.Errorf("usage %+v, want %d tokens for %v", u, tokens, cost)
	}
}

// TestSessionOptions has runs name a model and a reasoning level that the agent offers, and others.
func TestSessionOptions(t *testing.T) {
	b := newBench(t, 0)
	b.work(worker.Config{Default: "h", Harnesses: map[string]worker.Harness{"h": acpHarness(t)}})
	for level, test := range map[string]struct {
		model, said string
		refused     int
	}{
		"high": {"large", "large high", 0},
		"most": {"huge", "small low", 2},
	} {
		r := b.end(b.create(func(n *state.NewRun) {
			n.Config = fmt.Appendf(nil, `{"model_id": %q, "harness": {"reasoning_level": %q},
				"mcp_servers": {"t": {"command": "tool"}}}`, test.model, level)
		}))
		if r.State != state.RunSucceeded {
			t.Fatalf("run is %s: %s", r.State, r.StatusMessage)
		}

		wantIn(t, b.said(r), "do it. "+test.said)
		refused := b.events(r, "config_not_applied")
		if len(refused) != test.refused || strings.Count(strings.Join(refused, " "), "the agent refuses") != test.refused {
			t.Errorf("%s: not applied: %s", test.model, refused)
		}
		if of := r.Usage.Models[0].Model; (of == test.model) != (test.refused == 0) {
			t.Errorf("%s: usage of model %q", test.model, of)
		}
	}
}

// TestSessionResumesWithAnswer ends the worker while the agent waits: the answer reaches the session on another one.
func TestSessionResumesWithAnswer(t *testing.T) {
	b := newBench(t, 0)
	h := acpHarness(t)
	stop := b.work(worker.Config{Default: "h", Harnesses: map[string]worker.Harness{"h": h}})
	r, q := asking(b, "ask")
	stop()
	r = b.until(r.ID, func(r state.Run) bool { return !r.Held() })
	if r.State != state.RunBlocked || r.Finished == nil || r.StatusMessage != "the agent asks: rm -r build-0" {
		t.Fatalf("run is %s, finished %v: %s", r.State, r.Finished, r.StatusMessage)
	}

	now, outcome := b.answer(r, q, "yes")
	if now.State != state.RunQueued || outcome != state.FollowupHandoff {
		t.Errorf("answered: %s, %s", now.State, outcome)
	}
	b.work(worker.Config{Default: "h", Harnesses: map[string]worker.Harness{"h": h}})
	r = b.end(r.ID)
	if r.State != state.RunSucceeded || r.Execution != 2 {
		t.Fatalf("run is %s in execution %d: %s", r.State, r.Execution, r.StatusMessage)
	}
	// The session asks again, for "You asked" has the word: it gets the answer that was given.
	said := b.said(r)
	wantIn(t, said, "turn 2: You asked: rm -r build-0. The answer is: Allow (yes).", "mind the gap. chose yes.")
	if strings.Contains(said, "REPLAYED") {
		t.Errorf("what the session repeated is in the conversation: %s", said)
	}
}

// TestSessionIsCancelled cancels a run whose agent waits.
func TestSessionIsCancelled(t *testing.T) {
	b := newBench(t, 0)
	b.work(worker.Config{Default: "h", Harnesses: map[string]worker.Harness{"h": acpHarness(t)}})
	r, q := asking(b, "ask")
	if _, err := b.store.RequestCancel(t.Context(), r.ID, "ada"); err != nil {
		t.Fatal(err)
	}
	if r = b.end(r.ID); r.State != state.RunCancelled || r.StatusMessage != "cancelled by ada" {
		t.Errorf("run is %s: %s", r.State, r.StatusMessage)
	}
	_, _, err := b.store.AnswerQuestion(t.Context(), r.ID, state.Answer{Question: q.UID, Choice: "yes"})
	if !errors.Is(err, state.ErrConflict) {
		t.Errorf("a late answer: %v", err)
	}
}

// TestSessionFails has programs in the place of the agent that do not speak the protocol.
func TestSessionFails(t *testing.T) {
	b := newBench(t, 0)
	harnesses := map[string]worker.Harness{}
	for name, script := range map[string]string{
		"ends":    "echo something is wrong >&2; exit 3",
		"chats":   "echo hello; echo '{}'; echo '{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}'; sleep 1",
		"old":     `read -r line; id=$(echo "$line" | sed 's/.*"id":\([0-9]*\).*/\1/'); echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":99,"authMethods":[]}}'; sleep 5`,
		"refuses": `read -r line; id=$(echo "$line" | sed 's/.*"id":\([0-9]*\).*/\1/'); echo '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32603,"message":"no key"}}'; sleep 5`,
	} {
		harnesses[name] = worker.Harness{Preset: "acp", Program: agentScript(t, script), SameUser: true}
	}
	b.work(worker.Config{Harnesses: harnesses, Slots: 2})
	for name, want := range map[string]string{
		"ends": "exit status 3: something is wrong", "chats": "does not begin to speak", "old": "speaks version 99", "refuses": "no key",
	} {
		r := b.end(b.create(func(n *state.NewRun) { n.Config = fmt.Appendf(nil, `{"harness": {"type": %q}}`, name) }))
		if r.State != state.RunFailed || r.ErrorCode != "agent_process_failed" || !strings.Contains(r.StatusMessage, want) {
			t.Errorf("%s: run is %s, %s: %q, want %q", name, r.State, r.ErrorCode, r.StatusMessage, want)
		}
	}
}
