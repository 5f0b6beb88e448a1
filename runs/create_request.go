package runs

import "millwright/schema/agentconfig"

// RunAgentRequest creates a run (docs/contract.md, section 4).
type RunAgentRequest struct {
	Prompt           string                          `json:"prompt,omitempty" nullable:"true" doc:"The task of the agent; required without a skill or conversation"`
	Title            string                          `json:"title,omitempty" nullable:"true" maxLength:"120" doc:"Title for people; the first line of the prompt when absent"`
	Config           *agentconfig.AmbientAgentConfig `json:"config,omitempty" doc:"How to execute the run"`
	Skill            string                          `json:"skill,omitempty" nullable:"true" maxLength:"500" doc:"Replaces config.skill_spec; also accepts repo:name and repo:path"`
	AgentIdentityUID string                          `json:"agent_identity_uid,omitempty" nullable:"true" maxLength:"100" doc:"An applied agent, whose prompt, model and settings apply"`
	ConversationID   string                          `json:"conversation_id,omitempty" nullable:"true" maxLength:"100" doc:"The conversation to continue"`
	ParentRunID      string                          `json:"parent_run_id,omitempty" nullable:"true" maxLength:"100" doc:"The run that starts this one"`
	Metadata         map[string]string               `json:"metadata,omitempty" nullable:"true" doc:"At most 20 keys of 1 to 64 letters, digits, dots, underscores and dashes, with values of at most 256 bytes"`
	Attachments      []AttachmentRequest             `json:"attachments,omitempty" nullable:"true" maxItems:"5" doc:"Files for the agent, at most 1 MiB each"`
}

// AttachmentRequest is a file for the agent.
type AttachmentRequest struct {
	FileName string `json:"file_name" minLength:"1" maxLength:"200" doc:"Name of the file, without a directory"`
	MimeType string `json:"mime_type,omitempty" nullable:"true" maxLength:"200" doc:"Its media type"`
	Data     string `json:"data" doc:"Its content in base64; may be empty"`
}
