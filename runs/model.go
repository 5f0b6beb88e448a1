package runs

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"millwright/api"
	"millwright/schema/agentconfig"
	"millwright/state"
)

// RunItem is a run, in lists and alone (docs/contract.md, section 4).
type RunItem struct {
	RunID             string                          `json:"run_id" doc:"The run's ID" example:"01960f3e-8a4b-7c3d-9e5f-0a1b2c3d4e5f"`
	TaskID            string                          `json:"task_id" doc:"The same as run_id"`
	RootRunID         string                          `json:"root_run_id" doc:"The first ancestor of the run; the run itself if it has no parent"`
	ParentRunID       string                          `json:"parent_run_id,omitempty" doc:"The run that started this one"`
	Title             string                          `json:"title" doc:"Text for people"`
	Prompt            string                          `json:"prompt" doc:"Text that the agent executes"`
	SubmittedPrompt   string                          `json:"submitted_prompt,omitempty" doc:"The full text given to the agent, envelope included; not in lists"`
	State             RunState                        `json:"state" doc:"State of the run. FAILED: the agent's work failed; ERROR: the platform failed; BLOCKED: the agent waits for input"`
	WaitsFor          string                          `json:"waits_for,omitempty" enum:"concurrency,debounce,retry,budget" doc:"What keeps a queued run from workers: other runs of its automation, more deliveries of a burst, or its next attempt"`
	StartsAt          *time.Time                      `json:"starts_at,omitempty" doc:"When a run that waits for a time is ready"`
	SupersededBy      string                          `json:"superseded_by,omitempty" doc:"The newer run that this one gave way to"`
	DeliveryIDs       []string                        `json:"delivery_ids,omitempty" doc:"The deliveries of a run that stands for several, or that had later ones as follow-ups, oldest first: the newest 1000; not in lists"`
	StatusMessage     *RunStatusMessage               `json:"status_message,omitempty" doc:"Details of the state"`
	CreatedAt         time.Time                       `json:"created_at" doc:"Time of creation"`
	UpdatedAt         time.Time                       `json:"updated_at" doc:"Time of the last change"`
	StartedAt         *time.Time                      `json:"started_at" nullable:"true" doc:"Start of the execution"`
	FinishedAt        *time.Time                      `json:"finished_at" nullable:"true" doc:"Time of the end"`
	RunTime           string                          `json:"run_time,omitempty" doc:"Duration of the run, in ISO 8601" example:"PT12.5S"`
	Source            RunSourceType                   `json:"source" doc:"Kind of creator"`
	Creator           RunCreatorInfo                  `json:"creator" doc:"Creator of the run"`
	Executor          *RunCreatorInfo                 `json:"executor,omitempty" doc:"The worker that executes or executed the run"`
	SessionID         string                          `json:"session_id" doc:"Identifier of the session"`
	SessionLink       string                          `json:"session_link" doc:"The run's page on the dashboard"`
	ConversationID    string                          `json:"conversation_id" doc:"The conversation that the run belongs to"`
	AgentConfig       *agentconfig.AmbientAgentConfig `json:"agent_config" doc:"The resolved configuration"`
	Metadata          map[string]string               `json:"metadata" doc:"Metadata from the creator; for a run that a delivery started, also automation_id, webhook_id and delivery_id"`
	FactoryUID        string                          `json:"factory_uid,omitempty" doc:"The factory that the run belongs to"`
	TriggerURL        string                          `json:"trigger_url,omitempty" doc:"Source of the run"`
	Cancellable       bool                            `json:"is_run_type_cancellable" doc:"Whether runs of this kind can be cancelled"`
	CancelRequestedAt *time.Time                      `json:"cancel_requested_at,omitempty" doc:"Time of the request to cancel"`
	AdvertisedSkills  []AdvertisedSkill               `json:"advertised_skills" nullable:"false" doc:"Skills that the agent advertised"`
	Attachments       []AttachmentInfo                `json:"attachments" nullable:"false" doc:"The files that the agent gets"`
	Artifacts         []ArtifactItem                  `json:"artifacts" nullable:"false" doc:"Files and links that the run left. An artifact appears when its execution has ended"`
	Questions         []RunQuestion                   `json:"questions,omitempty" doc:"What the agent asks before it goes on; not in lists"`
	RequestUsage      *RequestUsage                   `json:"request_usage,omitempty" doc:"Use of language models, summed over all executions and attempts. Absent until an agent reports it"`
}

// RequestUsage is the use of language models by a run.
type RequestUsage struct {
	InputTokens  int64             `json:"input_tokens" doc:"Tokens that went in, cached ones included"`
	OutputTokens int64             `json:"output_tokens" doc:"Tokens that came out"`
	CachedTokens int64             `json:"cached_input_tokens" doc:"The part of input_tokens that was read from a cache"`
	TotalTokens  int64             `json:"total_tokens" doc:"input_tokens and output_tokens together"`
	CostUSD      *float64          `json:"inference_cost_usd,omitempty" doc:"US dollars, as the agent reports them or by the prices of the settings; absent when neither is known"`
	Models       []ModelTokenUsage `json:"model_token_usage" nullable:"false" doc:"The part of each model"`
}

// ModelTokenUsage is the part of one model.
type ModelTokenUsage struct {
	ModelID     string `json:"model_id" doc:"The model"`
	TotalTokens int64  `json:"total_tokens" doc:"Tokens in and out"`
}

// requestUsage returns a run's usage as the API has it.
func requestUsage(u *state.Usage) *RequestUsage {
	if u == nil {
		return nil
	}

	out := &RequestUsage{
		InputTokens:  u.InputTokens,
		OutputTokens: u.OutputTokens,
		CachedTokens: u.CachedTokens,
		TotalTokens:  u.InputTokens + u.OutputTokens,
		CostUSD:      u.CostUSD,
		Models:       []ModelTokenUsage{},
	}
	for _, m := range u.Models {
		if m.Model != "" {
			out.Models = append(out.Models, ModelTokenUsage{m.Model, m.InputTokens + m.OutputTokens})
		}
	}

	return out
}

// RunSourceType is the source of a run. Values beyond the listed ones are possible.
type RunSourceType string

// Schema describes RunSourceType.
func (RunSourceType) Schema(r huma.Registry) *huma.Schema {
	return named(r, "RunSourceType", &huma.Schema{
		Type: huma.TypeString,
		Examples: []any{
			"API", "CLI", "WEB_APP", "CUSTOM_WEBHOOK", "GITHUB_WEBHOOK", "GITLAB_WEBHOOK", "LINEAR", "JIRA", "SLACK",
			"SCHEDULED_AGENT", "ORCHESTRATION",
		},
		Description: "Source of a run: API, CLI, WEB_APP, CUSTOM_WEBHOOK (a webhook trigger), GITHUB_WEBHOOK, " +
			"GITLAB_WEBHOOK, LINEAR, JIRA or SLACK (a trigger of the provider), SCHEDULED_AGENT, " +
			"ORCHESTRATION, or another.",
	})
}

// RunStatusMessage describes the state of a run.
type RunStatusMessage struct {
	Message   string `json:"message" doc:"Text for people"`
	ErrorCode string `json:"error_code,omitempty" doc:"Kind of failure" example:"agent_process_failed"`
	Retryable bool   `json:"retryable" doc:"Whether a retry may succeed"`
}

// RunCreatorInfo identifies the creator or executor of a run.
type RunCreatorInfo struct {
	Type        string `json:"type" enum:"user,service_account" doc:"Kind"`
	UID         string `json:"uid" doc:"Identifier"`
	DisplayName string `json:"display_name" doc:"Name"`
}

// AdvertisedSkill is a skill that an agent advertised.
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

// item returns the API's form of a run.
func (s *service) item(r state.Run, files []state.Attachment, left []state.Artifact) RunItem {
	item := RunItem{
		RunID:        r.ID,
		TaskID:       r.ID,
		RootRunID:    r.RootRunID,
		ParentRunID:  r.ParentRunID,
		Title:        r.Title,
		Prompt:       r.Prompt,
		State:        RunState(r.State),
		WaitsFor:     r.WaitsFor,
		StartsAt:     r.StartsAt(),
		SupersededBy: r.SupersededBy(),
		CreatedAt:    r.Created,
		UpdatedAt:    r.Updated,
		StartedAt:    r.Started,
		FinishedAt:   r.Finished,
		Source:       RunSourceType(r.Source),
		Creator: RunCreatorInfo{
			r.Creator.Type,
			r.Creator.UID,
			r.Creator.DisplayName,
		}, SessionID: r.ID, SessionLink: s.link(r.ID),
		ConversationID:    r.ConversationID,
		FactoryUID:        r.FactoryUID,
		TriggerURL:        r.TriggerURL,
		Cancellable:       true,
		CancelRequestedAt: r.CancelRequested,
		Metadata:          map[string]string{},
		AdvertisedSkills:  []AdvertisedSkill{},
		Attachments:       []AttachmentInfo{},
		Artifacts:         artifactItems(left),
	}

	for k, v := range r.Metadata {
		item.Metadata[k] = v
	}

	known := map[string]string{
		metaAutomation: r.AutomationUID, metaWebhook: r.WebhookUID, metaDelivery: r.DeliveryUID,
	}
	for k, v := range known {
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
	if text := r.Waits(); text != "" {
		item.StatusMessage = &RunStatusMessage{Message: text}
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

	config, err := agentconfig.Stored(r.Config)
	if item.AgentConfig = config; err != nil {
		s.Log.Error("configuration of a run cannot be read", "run_id", r.ID)
	}

	item.RequestUsage = requestUsage(r.Usage)
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

// ListRunsResponse is a page of runs.
type ListRunsResponse struct {
	Runs     []RunItem    `json:"runs" nullable:"false" doc:"The runs"`
	PageInfo api.PageInfo `json:"page_info" doc:"Whether there are more runs"`
}
