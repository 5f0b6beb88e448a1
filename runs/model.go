package runs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"millwright/api"
	"millwright/state"
)

// RunItem is a run in lists and alone (docs/contract.md, section 4).
type RunItem struct {
	RunID             string              `json:"run_id" doc:"The run's ID" example:"01960f3e-8a4b-7c3d-9e5f-0a1b2c3d4e5f"`
	TaskID            string              `json:"task_id" doc:"The same as run_id"`
	RootRunID         string              `json:"root_run_id" doc:"The first ancestor of the run; the run itself if it has no parent"`
	ParentRunID       string              `json:"parent_run_id,omitempty" doc:"The run that started this one"`
	Title             string              `json:"title" doc:"Text for people"`
	Prompt            string              `json:"prompt" doc:"Text that the agent executes"`
	SubmittedPrompt   string              `json:"submitted_prompt,omitempty" doc:"The full text given to the agent, envelope included; not in lists"`
	State             RunState            `json:"state" doc:"State of the run. FAILED: the agent's work failed; ERROR: the platform failed; BLOCKED: the agent waits for input"`
	StatusMessage     *RunStatusMessage   `json:"status_message,omitempty" doc:"Details of the state"`
	CreatedAt         time.Time           `json:"created_at" doc:"Time of creation"`
	UpdatedAt         time.Time           `json:"updated_at" doc:"Time of the last change"`
	StartedAt         *time.Time          `json:"started_at" nullable:"true" doc:"Start of the execution"`
	FinishedAt        *time.Time          `json:"finished_at" nullable:"true" doc:"Time of the end"`
	RunTime           string              `json:"run_time,omitempty" doc:"Duration of the run, in ISO 8601" example:"PT12.5S"`
	Source            RunSourceType       `json:"source" doc:"Kind of creator"`
	Creator           RunCreatorInfo      `json:"creator" doc:"Creator of the run"`
	Executor          *RunCreatorInfo     `json:"executor,omitempty" doc:"The worker that executes or executed the run"`
	SessionID         string              `json:"session_id" doc:"Identifier of the session"`
	SessionLink       string              `json:"session_link" doc:"The run's page on the dashboard"`
	ConversationID    string              `json:"conversation_id" doc:"The conversation that the run belongs to"`
	AgentConfig       *AmbientAgentConfig `json:"agent_config" doc:"The resolved configuration"`
	Metadata          map[string]string   `json:"metadata" doc:"Metadata from the creator; for a run that a delivery started, also automation_id, webhook_id and delivery_id"`
	FactoryUID        string              `json:"factory_uid,omitempty" doc:"The factory that the run belongs to"`
	TriggerURL        string              `json:"trigger_url,omitempty" doc:"Source of the run"`
	Cancellable       bool                `json:"is_run_type_cancellable" doc:"Whether runs of this kind can be cancelled"`
	CancelRequestedAt *time.Time          `json:"cancel_requested_at,omitempty" doc:"Time of the request to cancel"`
	AdvertisedSkills  []AdvertisedSkill   `json:"advertised_skills" nullable:"false" doc:"Skills that the agent advertised"`
	Attachments       []AttachmentInfo    `json:"attachments" nullable:"false" doc:"The files that the agent gets"`
}

// RunState is state.RunState with its description for the OpenAPI document.
type RunState string

// Schema describes RunState.
func (RunState) Schema(r huma.Registry) *huma.Schema {
	var values []any
	for _, st := range state.RunStates() {
		values = append(values, string(st))
	}
	return named(r, "RunState", &huma.Schema{
		Type: huma.TypeString, Enum: values,
		Description: "State of a run. FAILED: the agent's work failed, and the user must act; ERROR: the platform failed, and a retry may help; BLOCKED: the agent waits for input; PENDING is never produced.",
	})
}

// RunSourceType is what made a run. Others than the listed ones are possible.
type RunSourceType string

// Schema describes RunSourceType.
func (RunSourceType) Schema(r huma.Registry) *huma.Schema {
	return named(r, "RunSourceType", &huma.Schema{
		Type: huma.TypeString, Examples: []any{"API", "CLI", "WEB_APP", "CUSTOM_WEBHOOK", "SCHEDULED_AGENT", "ORCHESTRATION"},
		Description: "Source of a run: API, CLI, WEB_APP, CUSTOM_WEBHOOK, SCHEDULED_AGENT, ORCHESTRATION, or another.",
	})
}

// named puts a schema among the document's components and returns a reference to it.
func named(r huma.Registry, name string, schema *huma.Schema) *huma.Schema {
	if r.Map()[name] == nil {
		schema.PrecomputeMessages()
		r.Map()[name] = schema
	}
	return &huma.Schema{Ref: "#/components/schemas/" + name}
}

// RunStatusMessage says what became of a run.
type RunStatusMessage struct {
	Message   string `json:"message" doc:"Text for people"`
	ErrorCode string `json:"error_code,omitempty" doc:"Kind of failure" example:"agent_process_failed"`
	Retryable bool   `json:"retryable" doc:"Whether a retry may succeed"`
}

// RunCreatorInfo says who made or executes a run.
type RunCreatorInfo struct {
	Type        string `json:"type" enum:"user,service_account" doc:"Kind"`
	UID         string `json:"uid" doc:"Identifier"`
	DisplayName string `json:"display_name" doc:"Name"`
}

// AdvertisedSkill is a skill that an agent said it has.
type AdvertisedSkill struct {
	Name           string `json:"name" doc:"Name of the skill"`
	SkillPath      string `json:"skill_path,omitempty" doc:"Path of the skill"`
	BundledSkillID string `json:"bundled_skill_id,omitempty" doc:"ID of a skill that comes with the service"`
}

// AttachmentInfo describes a file of a run.
type AttachmentInfo struct {
	FileName  string `json:"file_name" doc:"Name of the file"`
	MimeType  string `json:"mime_type" doc:"Its media type"`
	SizeBytes int64  `json:"size_bytes" doc:"Its size"`
}

// item describes a run.
func (s *service) item(r state.Run, files []state.Attachment) RunItem {
	item := RunItem{
		RunID: r.ID, TaskID: r.ID, RootRunID: r.RootRunID, ParentRunID: r.ParentRunID, Title: r.Title, Prompt: r.Prompt, State: RunState(r.State),
		CreatedAt: r.Created, UpdatedAt: r.Updated, StartedAt: r.Started, FinishedAt: r.Finished, Source: RunSourceType(r.Source),
		Creator: RunCreatorInfo{
			r.Creator.Type,
			r.Creator.UID,
			r.Creator.DisplayName,
		}, SessionID: r.ID, SessionLink: s.link(r.ID),
		ConversationID: r.ConversationID, FactoryUID: r.FactoryUID, TriggerURL: r.TriggerURL, Cancellable: true,
		CancelRequestedAt: r.CancelRequested, Metadata: map[string]string{}, AdvertisedSkills: []AdvertisedSkill{}, Attachments: []AttachmentInfo{},
	}

	for k, v := range r.Metadata {
		item.Metadata[k] = v
	}

	for k, v := range map[string]string{metaAutomation: r.AutomationUID, metaWebhook: r.WebhookUID, metaDelivery: r.DeliveryUID} {
		if v != "" {
			item.Metadata[k] = v
		}
	}

	if r.Worker != "" {
		item.Executor = &RunCreatorInfo{"service_account", r.Worker, r.WorkerName}
	}
	if r.StatusMessage != "" || r.ErrorCode != "" {
		item.StatusMessage = &RunStatusMessage{r.StatusMessage, r.ErrorCode, r.State == state.RunError}
	}
	if text := s.Store.Unheard(r); text != "" {
		item.StatusMessage = &RunStatusMessage{Message: text}
	}

	if r.Started != nil {
		end := time.Now()
		if r.Finished != nil {
			end = *r.Finished
		}

		item.RunTime = duration(end.Sub(*r.Started))
	}

	if item.AgentConfig = new(AmbientAgentConfig); !bytes.Contains(r.Config, []byte(`"mcp_servers"`)) {
		item.AgentConfig.stored = r.Config
	} else {
		if err := json.Unmarshal(r.Config, item.AgentConfig); err != nil {
			s.Log.Error("configuration of a run cannot be read", "run_id", r.ID)
		}
		item.AgentConfig.mask()
	}

	if string(r.Skills) != "[]" {
		if err := json.Unmarshal(r.Skills, &item.AdvertisedSkills); err != nil || item.AdvertisedSkills == nil {
			item.AdvertisedSkills = []AdvertisedSkill{}
		}
	}

	for _, f := range files {
		item.Attachments = append(item.Attachments, AttachmentInfo{f.Name, f.MimeType, f.Size})
	}

	return item
}

// duration writes d in ISO 8601.
func duration(d time.Duration) string {
	d = max(d, 0).Round(time.Millisecond)
	var b strings.Builder
	b.WriteString("PT")
	if h := d / time.Hour; h > 0 {
		fmt.Fprintf(&b, "%dH", h)
	}
	if m := d % time.Hour / time.Minute; m > 0 {
		fmt.Fprintf(&b, "%dM", m)
	}
	if rest := d % time.Minute; rest > 0 || d == 0 {
		fmt.Fprintf(&b, "%sS", strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.3f", rest.Seconds()), "0"), "."))
	}

	return b.String()
}

// AmbientAgentConfig says how to execute a run. Keys that are not listed are kept and returned.
type AmbientAgentConfig struct {
	Name               string                     `json:"name,omitempty" nullable:"true" maxLength:"200" doc:"Label for grouping and filtering; the skill's name when a run is started from a skill"`
	ModelID            string                     `json:"model_id,omitempty" nullable:"true" maxLength:"200" doc:"The language model"`
	BasePrompt         string                     `json:"base_prompt,omitempty" nullable:"true" doc:"Instructions that precede the prompt"`
	EnvironmentID      string                     `json:"environment_id,omitempty" nullable:"true" maxLength:"200" doc:"The environment"`
	SkillSpec          string                     `json:"skill_spec,omitempty" nullable:"true" maxLength:"500" doc:"Skill as base prompt: owner/repo:skill-name or owner/repo:path/to/SKILL.md"`
	MCPServers         map[string]MCPServerConfig `json:"mcp_servers,omitempty" nullable:"true" doc:"Tools through MCP, by name"`
	Harness            *Harness                   `json:"harness,omitempty" doc:"What executes the run"`
	WorkerHost         string                     `json:"worker_host,omitempty" nullable:"true" maxLength:"200" doc:"Where to execute the run"`
	RunnerID           string                     `json:"runner_id,omitempty" nullable:"true" maxLength:"200" doc:"The runner"`
	IdleTimeoutMinutes int                        `json:"idle_timeout_minutes,omitempty" nullable:"true" minimum:"0" maximum:"10080" doc:"Idle time of a session, in minutes; stored and returned, without effect here"`

	rest   map[string]json.RawMessage // the keys as they came, listed ones too
	stored json.RawMessage            // all of it, in place of the fields, where nothing in it is to be masked
}

// Harness selects what executes a run.
type Harness struct {
	Type           string `json:"type,omitempty" nullable:"true" maxLength:"100" doc:"Name of a configured harness; oz and absence mean the default"`
	ModelID        string `json:"model_id,omitempty" nullable:"true" maxLength:"200" doc:"The language model"`
	ReasoningLevel string `json:"reasoning_level,omitempty" nullable:"true" maxLength:"100" doc:"Effort of the model"`
}

// MCPServerConfig is an MCP server: exactly one of command, url and warp_id. Values of env and headers are
// sealed, and returned as ***; ${secret:NAME} in them is the team secret of that name, where the applied
// definition gives it to the same server, or the key is an admin's.
type MCPServerConfig struct {
	Command string            `json:"command,omitempty" nullable:"true" doc:"The program"`
	Args    []string          `json:"args,omitempty" nullable:"true" doc:"Its arguments"`
	URL     string            `json:"url,omitempty" nullable:"true" doc:"URL of the server"`
	WarpID  string            `json:"warp_id,omitempty" nullable:"true" doc:"Identifier of a shared server"`
	Env     map[string]string `json:"env,omitempty" nullable:"true" doc:"Environment variables; values are returned as ***. ${secret:NAME} is a team secret. It needs a key of role admin, or the same server in the applied definition"`
	Headers map[string]string `json:"headers,omitempty" nullable:"true" doc:"HTTP headers; values are returned as ***. ${secret:NAME} is a team secret. It needs a key of role admin, or an applied definition that grants the secret to the same server"`

	rest map[string]json.RawMessage
}

// UnmarshalJSON reads the listed keys and keeps the others.
func (c *AmbientAgentConfig) UnmarshalJSON(data []byte) error {
	type plain AmbientAgentConfig
	if err := json.Unmarshal(data, (*plain)(c)); err != nil {
		return err
	}
	return json.Unmarshal(data, &c.rest)
}

// MarshalJSON writes the listed keys and those that were kept.
func (c AmbientAgentConfig) MarshalJSON() ([]byte, error) {
	if c.stored != nil {
		return c.stored, nil
	}
	type plain AmbientAgentConfig
	return merged(c.rest, plain(c))
}

// UnmarshalJSON reads the listed keys and keeps the others.
func (c *MCPServerConfig) UnmarshalJSON(data []byte) error {
	type plain MCPServerConfig
	if err := json.Unmarshal(data, (*plain)(c)); err != nil {
		return err
	}
	return json.Unmarshal(data, &c.rest)
}

// MarshalJSON writes the listed keys and those that were kept.
func (c MCPServerConfig) MarshalJSON() ([]byte, error) {
	type plain MCPServerConfig
	return merged(c.rest, plain(c))
}

// merged writes the fields of listed, and the keys of rest that listed does not know. Reading takes a field in
// any case, so that ENV is env: sealed, and not kept beside it.
func merged(rest map[string]json.RawMessage, listed any) ([]byte, error) {
	text, err := json.Marshal(listed)
	if err != nil {
		return nil, err
	}

	all := maps.Clone(rest)
	for _, f := range reflect.VisibleFields(reflect.TypeOf(listed)) {
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		maps.DeleteFunc(all, func(k string, _ json.RawMessage) bool { return strings.EqualFold(k, key) })
	}

	if all == nil {
		all = map[string]json.RawMessage{}
	}
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, err
	}

	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	err = enc.Encode(all)
	return bytes.TrimSpace(out.Bytes()), err
}

const masked = "***"

// mask hides the values of env and headers.
func (c *AmbientAgentConfig) mask() {
	for _, server := range c.MCPServers {
		for _, values := range []map[string]string{server.Env, server.Headers} {
			for k := range values {
				values[k] = masked
			}
		}
	}
}

// servers returns the MCP servers as JSON where mask hides anything of them, else nil.
func (c *AmbientAgentConfig) servers() ([]byte, error) {
	for _, server := range c.MCPServers {
		if len(server.Env)+len(server.Headers) > 0 {
			return json.Marshal(c.MCPServers)
		}
	}
	return nil, nil
}

// ListRunsResponse is a page of runs.
type ListRunsResponse struct {
	Runs     []RunItem    `json:"runs" nullable:"false" doc:"The runs"`
	PageInfo api.PageInfo `json:"page_info" doc:"Whether the tree has more files"`
}
