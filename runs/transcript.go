package runs

import (
	"context"
	"encoding/json"
	"mime"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"millwright/api"
	"millwright/state"
)

func (s *service) registerTranscripts() {
	api.Register(s.api, transcript("/agent/runs/{runId}/transcript", "getRunTranscript", "of a run"),
		func(ctx context.Context, in *RunPath) (*attachmentOutput, error) {
			c, err := s.runConversation(ctx, in)
			return asFile("run-"+in.RunID, c, err)
		})

	api.Register(s.api, transcript("/agent/conversations/{id}/transcript", "getConversationTranscript", ""),
		func(ctx context.Context, in *conversationInput) (*attachmentOutput, error) {
			c, err := s.conversation(ctx, in)
			return asFile("conversation-"+in.ID, c, err)
		})
}

// transcript describes an endpoint that answers with a conversation as a file.
func transcript(path, id, of string) huma.Operation {
	op := api.Explained(
		api.Filtered(api.Operation(http.MethodGet, path, id, state.RoleViewer, "Download a conversation "+of)),
		"Returns the same JSON as the conversation, as a file to save. "+leftOut,
	)
	op.Responses = map[string]*huma.Response{"200": {
		Description: "The file",
		Content: map[string]*huma.MediaType{
			"*/*": {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}},
		},
	}}
	return op
}

// asFile returns a conversation as a file.
func asFile(name string, c Conversation, err error) (*attachmentOutput, error) {
	if err != nil {
		return nil, err
	}

	text, err := json.Marshal(c)
	return &attachmentOutput{
		ContentType:        "application/json",
		ContentDisposition: mime.FormatMediaType("attachment", map[string]string{"filename": name + ".json"}),
		NoSniff:            "nosniff",
		Policy:             "default-src 'none'; sandbox",
		CacheControl:       "private, no-store",
		Body:               text,
	}, err
}
