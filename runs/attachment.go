package runs

import (
	"context"
	"mime"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"millwright/api"
	"millwright/state"
)

type attachmentInput struct {
	RunPath
	FileName string `path:"fileName" doc:"Name of the file"`
}

// attachmentOutput is a file that browsers only download, since outsiders wrote it.
type attachmentOutput struct {
	ContentType        string `header:"Content-Type"`
	ContentDisposition string `header:"Content-Disposition"`
	NoSniff            string `header:"X-Content-Type-Options"`
	Policy             string `header:"Content-Security-Policy"`
	CacheControl       string `header:"Cache-Control"`
	Body               []byte
}

func (s *service) registerAttachment() {
	op := api.Explained(
		api.Operation(
			http.MethodGet,
			"/agent/runs/{runId}/attachments/{fileName}",
			"getAttachment",
			state.RoleViewer,
			"Download a file of a run",
		),
		"Outsiders may have written the content: do not trust it.",
	)

	op.Responses = map[string]*huma.Response{"200": {
		Description: "The file",
		Content: map[string]*huma.MediaType{
			"*/*": {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}},
		},
	}}

	api.Register(s.api, op, func(ctx context.Context, in *attachmentInput) (*attachmentOutput, error) {
		r, err := s.run(ctx, in.RunPath)
		if err != nil {
			return nil, err
		}

		a, err := s.Store.Attachment(ctx, r, in.FileName)
		if err != nil {
			return nil, err
		}

		return &attachmentOutput{
			ContentType:        a.MimeType,
			ContentDisposition: mime.FormatMediaType("attachment", map[string]string{"filename": a.Name}),
			NoSniff:            "nosniff",
			Policy:             "default-src 'none'; sandbox",
			CacheControl:       "private, no-store",
			Body:               a.Body,
		}, nil
	})
}
