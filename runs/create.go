package runs

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"millwright/api"
	"millwright/runs/wire"
	"millwright/schema"
	"millwright/schema/agentconfig"
	"millwright/state"
	"millwright/trace"
)

// RunAgentResponse names the created run.
type RunAgentResponse struct {
	RunID  string   `json:"run_id" doc:"The run's ID"`
	TaskID string   `json:"task_id" doc:"The same as run_id"`
	State  RunState `json:"state" doc:"State of the run"`
}

// Limits of a request (docs/contract.md, section 4).
const (
	maxTitle         = schema.MaxTitle
	maxMetadata      = 20
	maxMetadataValue = 256 // bytes
	maxAttachment    = 1 << 20
	maxFileName      = 255 // bytes; the limit of file systems
	maxIdempotency   = 255
)

// Metadata keys that name the cause of a run.
const (
	metaAutomation = "automation_id"
	metaWebhook    = "webhook_id"
	metaDelivery   = "delivery_id"
)

// queued is the first state of every run.
const queued = RunState(state.RunQueued)

type createInput struct {
	IdempotencyKey string `header:"Idempotency-Key" maxLength:"255" doc:"Repeats with the same key and body within 24 hours get the first answer"`
	Client         string `header:"X-Millwright-Client" maxLength:"100" doc:"Origin of the request: cli or web. It sets the run's source"`
	Body           RunAgentRequest
	RawBody        []byte
}

func (s *service) registerCreate() {
	op := api.Also(
		api.Explained(
			api.Filtered(api.Operation(http.MethodPost, "/agent/runs", "createRun", state.RoleRunner, "Start a run")),
			"Queues a run. Repeats with the same Idempotency-Key get the first answer for 24 hours.",
		),
		http.StatusConflict,
	)

	api.Handle(s.api, op, s.create)
	alias := api.Also(
		api.Explained(
			api.Filtered(api.Operation(
				http.MethodPost,
				"/agent/run",
				"createRunAlias",
				state.RoleRunner,
				"Start a run (older path)",
			)),
			"The same as POST /agent/runs.",
		),
		http.StatusConflict,
	)

	alias.Deprecated = true
	api.Handle(s.api, alias, s.create)
	api.Handle(
		s.api,
		api.Also(api.Explained(
			api.Operation(
				http.MethodPost,
				"/factory/{uid}/runs",
				"createFactoryRun",
				state.RoleRunner,
				"Send work to a factory",
			),
			"The factory's foreman agent gets the work, if the definition has one: its prompt becomes "+
				"the base prompt.",
		), http.StatusConflict),
		s.createForFactory,
	)
}

func (s *service) create(ctx context.Context, in *createInput) (RunAgentResponse, error) {
	r, err := s.createRun(ctx, in, state.AgentDefinition{})
	return RunAgentResponse{r.ID, r.ID, queued}, err // a repeat gets the first answer
}

// FactoryRunRequest sends work to a factory.
type FactoryRunRequest struct {
	Prompt    string                          `json:"prompt" minLength:"1" doc:"The task"`
	Title     string                          `json:"title,omitempty" nullable:"true" maxLength:"120" doc:"Title for people; the first line of the prompt when absent"`
	TicketRef string                          `json:"ticket_ref,omitempty" nullable:"true" maxLength:"256" doc:"The ticket of the task"`
	TicketURL string                          `json:"ticket_url,omitempty" nullable:"true" maxLength:"2000" doc:"URL of the ticket"`
	Config    *agentconfig.AmbientAgentConfig `json:"config,omitempty" doc:"Changes to the configuration in the definition"`
}

// FactoryRunResponse names the run created for a factory.
type FactoryRunResponse struct {
	FactoryUID   string   `json:"factory_uid" doc:"The factory"`
	ForemanAgent string   `json:"foreman_agent" doc:"Name of the foreman agent; empty if the definition has none"`
	RunID        string   `json:"run_id" doc:"The run's ID"`
	State        RunState `json:"state" doc:"State of the run"`
	TicketRef    string   `json:"ticket_ref" doc:"As in the request"`
	RunURL       string   `json:"run_url" doc:"The run's page on the dashboard"`
}

type factoryCreateInput struct {
	UID            string `path:"uid" doc:"The factory's UID"`
	IdempotencyKey string `header:"Idempotency-Key" maxLength:"255" doc:"Repeats with the same key and body within 24 hours get the first answer"`
	Client         string `header:"X-Millwright-Client" maxLength:"100" doc:"Origin of the request: cli or web. It sets the run's source"`
	Body           FactoryRunRequest
	RawBody        []byte
}

// metaTicket and metaSchedule are the keys of metadata for a ticket and for the name of a schedule.
const (
	metaTicket   = "ticket_ref"
	metaSchedule = "schedule"
)

func (s *service) createForFactory(ctx context.Context, in *factoryCreateInput) (FactoryRunResponse, error) {
	def, err := s.Store.Foreman(ctx, in.UID)
	if err != nil {
		return FactoryRunResponse{}, err
	}

	body := RunAgentRequest{Prompt: in.Body.Prompt, Title: in.Body.Title, Config: in.Body.Config}
	if in.Body.TicketRef != "" {
		body.Metadata = map[string]string{metaTicket: in.Body.TicketRef}
	}

	raw := append([]byte(in.UID+"\n"), in.RawBody...)
	create := createInput{IdempotencyKey: in.IdempotencyKey, Client: in.Client, Body: body, RawBody: raw}
	n, files, err := s.newRun(ctx, &create, def)
	if err != nil {
		return FactoryRunResponse{}, err
	}

	if n.TriggerURL = in.Body.TicketURL; !strings.HasPrefix(n.TriggerURL, "https://") &&
		!strings.HasPrefix(n.TriggerURL, "http://") &&
		n.TriggerURL != "" ||
		!clean(n.TriggerURL) {
		return FactoryRunResponse{}, api.InvalidField("ticket_url", "want an http or https address")
	}

	r, err := s.save(ctx, n, files, &create)
	return FactoryRunResponse{in.UID, def.Name, r.ID, queued, in.Body.TicketRef, s.link(r.ID)}, err
}

func (s *service) createRun(ctx context.Context, in *createInput, def state.AgentDefinition) (state.Run, error) {
	n, files, err := s.newRun(ctx, in, def)
	if err != nil {
		return state.Run{}, err
	}
	return s.save(ctx, n, files, in)
}

// idempotency returns the idempotency key and the hash of a request, under which a repeat finds the first
// run.
func idempotency(ctx context.Context, key string, request []byte) state.Idempotency {
	return state.Idempotency{KeyUID: api.KeyOf(ctx).UID, Key: key, Request: sha256.Sum256(request)}
}

func (s *service) save(
	ctx context.Context,
	n state.NewRun,
	files []state.Attachment,
	in *createInput,
) (state.Run, error) {
	idem := idempotency(ctx, in.IdempotencyKey, in.RawBody)
	ctx, span := s.Tracer.Start(ctx, "create", time.Time{})
	defer span.End()

	n.Traceparent = trace.Position(ctx)
	r, err := s.Store.CreateRun(ctx, n, files, idem)
	if span.Set(trace.Run, r.ID); err != nil {
		span.Fail("not_stored")
	}

	if errors.Is(err, state.ErrNotFound) { // names the request, and is not part of its content
		return r, api.Problem("invalid_request", "%s does not exist", state.Detail(err))
	}

	return r, err
}

// newRun returns the run for a request, or all problems of the request. def has the defaults of the
// definition.
func (s *service) newRun(
	ctx context.Context,
	in *createInput,
	def state.AgentDefinition,
) (state.NewRun, []state.Attachment, error) {
	b := &in.Body
	var p problems
	p.text("prompt", b.Prompt)
	p.text("title", b.Title)
	if utf8.RuneCountInString(b.Title) > maxTitle {
		p.add("title", "at most %d characters", maxTitle)
	}

	if p.text("agent_identity_uid", b.AgentIdentityUID); b.AgentIdentityUID != "" && len(p) == 0 {
		agent, err := s.Store.Agent(ctx, b.AgentIdentityUID)
		switch {
		case errors.Is(err, state.ErrNotFound), err == nil && !api.KeyOf(ctx).Reaches(agent.FactoryUID):
			p.add("agent_identity_uid", "no applied agent has this UID")
		case err != nil:
			return state.NewRun{}, nil, err
		default:
			def = agent
		}
	}

	config := s.config(ctx, b, def, &p)
	if err := s.ownSkills(ctx, def, config, &p); err != nil {
		return state.NewRun{}, nil, err
	}

	servers, err := config.Mask()
	if err != nil {
		return state.NewRun{}, nil, err
	}

	ungranted(ctx, def, servers, &p)
	files := attachments(b.Attachments, &p)
	metadata(b.Metadata, &p)
	for field, id := range map[string]*string{"parent_run_id": &b.ParentRunID, "conversation_id": &b.ConversationID} {
		if *id == "" {
			continue
		}

		parsed, err := uuid.Parse(*id)
		if err != nil || len(*id) != 36 {
			p.add(field, "not a UUID")
		}

		*id = parsed.String()
	}

	if blank(b.Prompt) && config.SkillSpec == "" && !config.ListsSkills() && b.ConversationID == "" {
		p.add("prompt", "required unless a skill or a conversation_id is given")
	}
	key := api.KeyOf(ctx)
	if !key.Reaches(def.FactoryUID) {
		p.add("agent_identity_uid", "required: the key %q is limited to factories", key.Name)
	}
	if len(p) > 0 {
		return state.NewRun{}, nil, p.err()
	}
	if err := s.mayJoin(ctx, b.ConversationID, b.ParentRunID); err != nil {
		return state.NewRun{}, nil, err
	}

	n := state.NewRun{
		FactoryUID:     def.FactoryUID,
		AgentUID:       def.UID,
		Title:          b.Title,
		Prompt:         b.Prompt,
		Source:         source(in.Client),
		Creator:        state.Creator{Type: "service_account", UID: key.UID, DisplayName: key.Name},
		ConversationID: b.ConversationID,
		ParentRunID:    b.ParentRunID,
		Metadata:       b.Metadata,
		Secrets:        def.Secrets,
		ConfigName:     config.Name,
		ModelID:        config.ModelID,
		EnvironmentID:  config.EnvironmentID,
		SkillSpec:      config.SkillSpec,
	}
	if blank(n.Prompt) && config.SkillSpec != "" {
		n.Prompt = "Use skill " + config.SkillSpec
	} else if specs := listedSkills(config); blank(n.Prompt) && len(specs) > 0 {
		skills := "skills "
		if len(specs) == 1 {
			skills = "skill "
		}
		n.Prompt = "Use " + skills + strings.Join(specs, ", ")
	}
	if blank(n.Title) {
		n.Title = title(n.Prompt)
	}
	n.Sealed = servers
	n.Config, err = json.Marshal(config)
	return n, files, err
}

// source returns the RunSourceType for the name of a client.
func source(client string) string {
	switch client {
	case "cli":
		return "CLI"
	case "web":
		return "WEB_APP"
	}
	return "API"
}

// title returns the first line of a prompt that is not blank, cut to the maximum length.
func title(prompt string) string {
	for line := range strings.Lines(prompt) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if r := []rune(line); len(r) > maxTitle {
			line = string(r[:maxTitle-1]) + "…"
		}

		return line
	}

	return "Untitled"
}

var metadataKey = regexp.MustCompile(`^[a-zA-Z0-9._-]{1,64}$`)

func metadata(m map[string]string, p *problems) {
	if len(m) > maxMetadata {
		p.add("metadata", "at most %d keys", maxMetadata)
		return
	}
	for k, v := range m {
		switch field := "metadata." + k; {
		case !metadataKey.MatchString(k):
			p.add("metadata", "a key has 1 to 64 of the characters a-z A-Z 0-9 . _ -")
		case k == metaAutomation || k == metaWebhook || k == metaDelivery:
			p.add(field, "the server sets this key to the cause of a run")
		case len(v) > maxMetadataValue:
			p.add(field, "at most %d bytes", maxMetadataValue)
		default:
			p.text(field, v)
		}
	}
}

func attachments(in []AttachmentRequest, p *problems) []state.Attachment {
	var files []state.Attachment
	seen := map[string]bool{}
	for i, a := range in {
		field := fmt.Sprintf("attachments[%d]", i)
		name := a.FileName
		switch {
		case name == "." || name == ".." || strings.ContainsAny(name, "/\\") || !clean(name) ||
			strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }):
			p.add(field+".file_name", "want a file name without a directory or control characters")
		case len(name) > maxFileName:
			p.add(field+".file_name", "at most %d bytes", maxFileName)
		case wire.ReservedFile(strings.ToLower(name)): // a worker's file system may ignore case
			p.add(field+".file_name", "%s is the name of a file that every run has", name)
		case seen[strings.ToLower(name)]:
			p.add(field+".file_name", "another attachment has this name")
		}

		seen[strings.ToLower(name)] = true
		body, err := base64.StdEncoding.DecodeString(a.Data)
		if err != nil {
			p.add(field+".data", "not base64")
		} else if len(body) > maxAttachment {
			p.add(field+".data", "at most %d bytes", maxAttachment)
		}

		if a.MimeType == "" {
			a.MimeType = "application/octet-stream"
		} else if _, _, err := mime.ParseMediaType(a.MimeType); err != nil || !clean(a.MimeType) {
			p.add(field+".mime_type", "not a media type")
		}

		files = append(files, state.Attachment{Name: name, MimeType: a.MimeType, Body: body})
	}

	return files
}
