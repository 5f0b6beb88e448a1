//go:build unix

package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	acp "github.com/coder/acp-go-sdk"

	"millwright/runs/wire"
	"millwright/runs/worker/preset"
)

// Bounds of a session.
const (
	defaultIdle = 30 * time.Minute // that a session waits for an answer
	sessionTime = 2 * time.Minute  // that an agent may take to begin a session
)

// errIdle is the cause when nobody answers in time.
var errIdle = errors.New("nobody answered in time")

func newSession(
	j *job,
	g *given,
	task preset.Task,
	prompt func() (*os.File, error),
	idle time.Duration,
) *session {
	if idle == 0 {
		idle = defaultIdle
	}
	return &session{
		job:     j,
		out:     g.out,
		given:   g,
		task:    task,
		prompt:  prompt,
		idle:    idle,
		talk:    talk{out: g.out},
		wake:    make(chan struct{}, 1),
		updates: make(chan struct{}, 1),
		asking:  map[string]chan wire.Reply{},
		replies: slices.Clone(j.order.Replies),
	}
}

// spoken is the result of a session.
type spoken struct {
	failure string // why it failed
	gone    bool   // the agent left it
	blocked string // what it waits for; it goes on when that is answered
}

// run speaks with the agent over its standard input and output until the agent has done what it was asked.
func (s *session) run(ctx context.Context, in io.Writer, out io.Reader) spoken {
	ctx, s.stop = context.WithCancelCause(ctx)
	defer s.stop(nil)

	s.job.setSession(s)
	defer s.job.setSession(nil)

	ready := make(chan struct{})
	s.conn = acp.NewClientSideConnection(s, &heard{w: in, deaf: &s.deaf}, &paced{r: out, ready: ready, out: s.out})
	s.conn.SetLogger(slog.New(slog.DiscardHandler)) // it would log what the agent says
	close(ready)

	err := s.begin(ctx)
	if err == nil {
		go s.follow(ctx)
		err = s.converse(ctx)
	}

	s.talk.end()
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errIdle), errors.Is(cause, errHandBack) && s.waits():
		return spoken{blocked: "the agent waits for an answer"}
	case err != nil:
		return spoken{failure: err.Error(), gone: s.gone()}
	}
	return spoken{}
}

// setSession sets the session that messages and answers go to.
func (j *job) setSession(s *session) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.session = s
}

// gone reports whether the agent has closed its input or its output.
func (s *session) gone() bool {
	select {
	case <-s.conn.Done():
		return true
	default:
		return s.deaf.Load()
	}
}

// begin opens the session, or loads the one that the execution before left.
func (s *session) begin(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, sessionTime)
	defer cancel()

	hello, err := s.conn.Initialize(ctx, acp.InitializeRequest{
		ProtocolVersion: acp.ProtocolVersionNumber,
		ClientInfo:      &acp.Implementation{Name: "millwright", Version: s.job.worker.cfg.Version},
	})
	if err != nil {
		return fmt.Errorf("the agent does not begin to speak the Agent Client Protocol: %s", reason(err))
	}
	if hello.ProtocolVersion != acp.ProtocolVersionNumber {
		return fmt.Errorf("the agent speaks version %d of the Agent Client Protocol, not %d",
			hello.ProtocolVersion, acp.ProtocolVersionNumber)
	}

	servers := s.servers(hello.AgentCapabilities.McpCapabilities)
	if s.task.Session != "" {
		if err := s.load(ctx, hello, servers); err != nil {
			return err
		}
	} else if err := s.open(ctx, hello, servers); err != nil {
		return err
	}

	s.given.tell(s.task.Session != "")
	s.out.Session(string(s.id))
	_, err = s.fetch(ctx) // from now on, messages come here
	return err
}

// load resumes the session of the execution before.
func (s *session) load(ctx context.Context, hello acp.InitializeResponse, servers []acp.McpServer) error {
	if !hello.AgentCapabilities.LoadSession {
		return errors.New("the agent cannot load a session")
	}

	s.name(acp.SessionId(s.task.Session))
	s.replays.Store(true)
	defer s.replays.Store(false)

	request := acp.LoadSessionRequest{SessionId: s.id, Cwd: s.task.Dir, McpServers: servers}
	loaded, err := s.conn.LoadSession(ctx, request)
	if needsAuth(err) {
		if err = s.authenticate(ctx, hello.AuthMethods); err == nil {
			loaded, err = s.conn.LoadSession(ctx, request)
		}
	}
	if err != nil {
		return fmt.Errorf("the agent cannot load its session: %s", reason(err))
	}

	s.configure(ctx, loaded.Models, loaded.ConfigOptions)
	s.untilQuiet(ctx)
	return nil
}

// replayPause is how long an agent that has loaded its session is silent before it counts as done with
// repeating it. Gemini CLI repeats a session after it has answered.
const replayPause = 200 * time.Millisecond

// untilQuiet returns when the agent has sent no update for replayPause.
func (s *session) untilQuiet(ctx context.Context) {
	for {
		pause := time.NewTimer(replayPause)
		select {
		case <-s.updates:
			pause.Stop()
		case <-pause.C:
			return
		case <-ctx.Done():
			pause.Stop()
			return
		}
	}
}

// open begins a new session.
func (s *session) open(ctx context.Context, hello acp.InitializeResponse, servers []acp.McpServer) error {
	request := acp.NewSessionRequest{Cwd: s.task.Dir, McpServers: servers}
	made, err := s.conn.NewSession(ctx, request)
	if needsAuth(err) {
		if err = s.authenticate(ctx, hello.AuthMethods); err == nil {
			made, err = s.conn.NewSession(ctx, request)
		}
	}
	if err != nil {
		return fmt.Errorf("the agent begins no session: %s", reason(err))
	}

	s.name(made.SessionId)
	s.configure(ctx, made.Models, made.ConfigOptions)
	return nil
}

// name records the identity of the session. Updates arrive while it is recorded.
func (s *session) name(id acp.SessionId) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.id = id
}

// foreign reports whether an identity is that of another session.
func (s *session) foreign(id acp.SessionId) bool {
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.id != "" && id != s.id
}

// authRequired is the code of an agent that wants to be signed in.
const authRequired = -32000

func needsAuth(err error) bool {
	var refused *acp.RequestError
	return errors.As(err, &refused) && refused.Code == authRequired
}

// authenticate signs in by the first of the agent's ways that needs nobody at a keyboard: a key.
func (s *session) authenticate(ctx context.Context, methods []acp.AuthMethod) error {
	var known []string
	for _, m := range methods {
		id := ""
		switch {
		case m.EnvVar != nil:
			id = m.EnvVar.Id
		case m.Agent != nil:
			id = m.Agent.Id
		default:
			continue
		}

		known = append(known, id)
		if strings.Contains(strings.ReplaceAll(id, "_", "-"), "api-key") {
			_, err := s.conn.Authenticate(ctx, acp.AuthenticateRequest{MethodId: id})
			return err
		}
	}

	return fmt.Errorf("it is not signed in, and no way to sign in is a key: %s", strings.Join(known, ", "))
}

// servers returns the MCP servers that the agent can use.
func (s *session) servers(can acp.McpCapabilities) []acp.McpServer {
	all := []acp.McpServer{}
	for name, server := range s.task.Servers {
		switch {
		case server.Command != "":
			stdio := acp.McpServerStdio{
				Name: name, Command: server.Command, Args: server.Args, Env: []acp.EnvVariable{},
			}

			if stdio.Args == nil {
				stdio.Args = []string{}
			}
			for key, value := range server.Env {
				stdio.Env = append(stdio.Env, acp.EnvVariable{Name: key, Value: value})
			}

			all = append(all, acp.McpServer{Stdio: &stdio})
		case can.Http:
			http := acp.McpServerHttpInline{Name: name, Type: "http", Url: server.URL, Headers: []acp.HttpHeader{}}
			for key, value := range server.Headers {
				http.Headers = append(http.Headers, acp.HttpHeader{Name: key, Value: value})
			}

			all = append(all, acp.McpServer{Http: &http})
		default:
			s.given.lose("mcp_servers."+name, "the agent takes no MCP servers by URL")
		}
	}

	return all
}

// converse gives the agent the prompt of the run, and then each message that comes while it works.
func (s *session) converse(ctx context.Context) error {
	file, err := s.prompt()
	if err != nil {
		return fmt.Errorf("prompt: %v", underlying(err))
	}
	defer file.Close()

	prompt, err := io.ReadAll(file)
	if err != nil {
		return fmt.Errorf("prompt: %v", underlying(err))
	}

	texts := []string{string(prompt)}
	if s.task.BasePrompt != "" && s.task.Session == "" {
		texts = []string{s.task.BasePrompt, string(prompt)}
	}

	for {
		request := acp.PromptRequest{SessionId: s.id}
		for _, text := range texts {
			request.Prompt = append(request.Prompt, acp.TextBlock(text))
		}

		done, err := s.conn.Prompt(ctx, request)
		s.talk.end()
		if err != nil {
			return fmt.Errorf("the agent failed: %s", reason(err))
		}

		s.count(done)
		if done.StopReason != acp.StopReasonEndTurn {
			return fmt.Errorf("the agent stopped: %s", done.StopReason)
		}

		next, err := s.next(ctx)
		if err != nil || next.UID == "" {
			return err
		}
		texts = []string{next.Text}
	}
}

// count adds what a turn has used. The agent reports the cost of the whole session.
func (s *session) count(done acp.PromptResponse) {
	u := usageOfTurn(done)
	u.CostUSD = 0
	if s.task.Model != "" && u.Models == nil && !u.Zero() {
		u.Models = []wire.ModelUsage{{
			Model:        s.task.Model,
			InputTokens:  u.InputTokens,
			OutputTokens: u.OutputTokens,
			CachedTokens: u.CachedTokens,
		}}
	}

	s.turn = s.turn.Plus(u)
	session := wire.Usage{CostUSD: s.talk.spent()}.Clean()
	before := wire.Usage{CostUSD: s.task.Counted.CostUSD}
	s.turn.CostUSD = session.Since(before).CostUSD
	if len(s.turn.Models) == 1 {
		s.turn.Models[0].CostUSD = s.turn.CostUSD
	}
	if !s.turn.Zero() {
		s.out.Usage(s.turn, session)
	}
}

// usageOfTurn reads the usage of a turn: as the protocol has it, or as Gemini CLI does.
func usageOfTurn(done acp.PromptResponse) wire.Usage {
	if u := done.Usage; u != nil {
		used := wire.Usage{InputTokens: int64(u.InputTokens), OutputTokens: int64(u.OutputTokens)}
		for _, cached := range []*int{u.CachedReadTokens, u.CachedWriteTokens} {
			if cached != nil {
				used.InputTokens += int64(*cached)
			}
		}
		if u.CachedReadTokens != nil {
			used.CachedTokens = int64(*u.CachedReadTokens)
		}
		return used.Clean()
	}

	type tokens struct {
		Input  int64 `json:"input_tokens"`
		Output int64 `json:"output_tokens"`
	}
	var meta struct {
		Quota struct {
			Tokens tokens `json:"token_count"`
			Models []struct {
				Model  string `json:"model"`
				Tokens tokens `json:"token_count"`
			} `json:"model_usage"`
		} `json:"quota"`
	}
	if text, err := json.Marshal(done.Meta); err != nil || json.Unmarshal(text, &meta) != nil {
		return wire.Usage{}
	}

	used := wire.Usage{InputTokens: meta.Quota.Tokens.Input, OutputTokens: meta.Quota.Tokens.Output}
	for _, m := range meta.Quota.Models {
		used.Models = append(used.Models, wire.ModelUsage{
			Model: m.Model, InputTokens: m.Tokens.Input, OutputTokens: m.Tokens.Output,
		})
	}
	return used.Clean()
}
