package runs

import (
	"context"
	"io"
	"mime"
	"net/http"
	"path"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"millwright/api"
	"millwright/state"
)

// ArtifactItem is a file or link that a run left.
type ArtifactItem struct {
	ArtifactType ArtifactType     `json:"artifact_type" doc:"Kind of artifact. It decides which fields data has"`
	CreatedAt    time.Time        `json:"created_at" doc:"Time when the server got the artifact"`
	Data         ArtifactItemData `json:"data" doc:"The artifact"`
}

// ArtifactItemData describes an artifact. Which fields it has depends on the artifact's type.
type ArtifactItemData struct {
	ArtifactUID   string  `json:"artifact_uid" doc:"Identifier of the artifact" example:"art_01j9zy0000e8q9v4m3k2n1p0rs"`
	Filename      string  `json:"filename,omitempty" doc:"FILE, SCREENSHOT: last element of filepath"`
	Filepath      string  `json:"filepath,omitempty" doc:"FILE, SCREENSHOT: path below .millwright/artifacts. Changes are named changes.patch and changes.bundle, below the repository's name when the run has several"`
	MimeType      string  `json:"mime_type,omitempty" doc:"FILE, SCREENSHOT: media type"`
	SizeBytes     *int64  `json:"size_bytes,omitempty" doc:"FILE, SCREENSHOT: size"`
	Repository    string  `json:"repository,omitempty" doc:"FILE with changes, PULL_REQUEST: the repository, as owner/name"`
	URL           string  `json:"url,omitempty" doc:"PULL_REQUEST, EXTERNAL_REFERENCE: address"`
	Branch        *string `json:"branch,omitempty" doc:"PULL_REQUEST: its branch"`
	Status        string  `json:"status,omitempty" doc:"PULL_REQUEST: open, closed or merged, when the server last looked"`
	ReferenceType *string `json:"reference_type,omitempty" doc:"EXTERNAL_REFERENCE: kind of reference"`
	Title         string  `json:"title,omitempty" doc:"EXTERNAL_REFERENCE: text for people"`
}

// ArtifactType is the type of an artifact.
type ArtifactType string

// Schema describes ArtifactType.
func (ArtifactType) Schema(r huma.Registry) *huma.Schema {
	var values []any
	for _, of := range state.ArtifactTypes() {
		values = append(values, string(of))
	}
	return named(r, "ArtifactType", &huma.Schema{
		Type: huma.TypeString, Enum: values,
		Description: "Type of an artifact. SCREENSHOT: a file that is a PNG, JPEG, WebP or GIF image, " +
			"by its content; " +
			"FILE: any other file, changes included; PLAN is never produced.",
	})
}

// artifactItem returns the API's form of an artifact.
func artifactItem(a state.Artifact) ArtifactItem {
	d := ArtifactItemData{ArtifactUID: a.UID, Repository: a.Repository}
	switch a.Type {
	case state.ArtifactPullRequest:
		d.URL, d.Branch, d.Status = a.Path, ptr(a.Facts.Branch), a.Facts.Status
	case state.ArtifactReference:
		d.URL, d.ReferenceType, d.Title = a.Path, ptr(a.Facts.ReferenceType), a.Facts.Title
	default:
		d.Filename, d.Filepath, d.MimeType, d.SizeBytes = path.Base(a.Path), a.Path, a.MimeType, ptr(a.Size)
	}

	return ArtifactItem{ArtifactType(a.Type), a.Created, d}
}

func ptr[T any](v T) *T { return &v }

// artifactItems returns the API's form of what a run left.
func artifactItems(all []state.Artifact) []ArtifactItem {
	items := []ArtifactItem{}
	for _, a := range all {
		items = append(items, artifactItem(a))
	}
	return items
}

// Artifact is an artifact with the address of its content.
type Artifact struct {
	ArtifactType ArtifactType `json:"artifact_type" doc:"Kind of artifact"`
	ArtifactUID  string       `json:"artifact_uid" doc:"Identifier of the artifact"`
	CreatedAt    time.Time    `json:"created_at" doc:"Time when the server got the artifact"`
	RunID        string       `json:"run_id" doc:"The run that left it"`
	Data         ArtifactData `json:"data" doc:"The artifact"`
}

// ArtifactData describes an artifact and where its content is.
type ArtifactData struct {
	ArtifactItemData
	ContentType string     `json:"content_type,omitempty" doc:"FILE, SCREENSHOT: media type"`
	DownloadURL string     `json:"download_url,omitempty" doc:"FILE, SCREENSHOT: address of the content. It needs an API key, too"`
	ExpiresAt   *time.Time `json:"expires_at,omitempty" doc:"FILE, SCREENSHOT: time after which to ask for download_url again"`
	SHA256      string     `json:"sha256,omitempty" doc:"FILE, SCREENSHOT: SHA-256 of the content, in hexadecimal"`
}

// artifactPath names an artifact in a path.
type artifactPath struct {
	UID string `path:"uid" doc:"The artifact's UID"`
}

func (s *service) registerArtifacts() {
	api.Handle(
		s.api,
		api.Filtered(api.Operation(
			http.MethodGet,
			"/agent/artifacts/{uid}",
			"getArtifact",
			state.RoleViewer,
			"Show an artifact",
		)),
		s.artifact,
	)

	op := api.Explained(
		api.Filtered(api.Operation(
			http.MethodGet,
			"/agent/artifacts/{uid}/download",
			"downloadArtifact",
			state.RoleViewer,
			"Download an artifact",
		)),
		"An agent wrote the content: do not trust it. 404 for an artifact that is a link.",
	)
	op.Responses = map[string]*huma.Response{"200": {
		Description: "The file",
		Content: map[string]*huma.MediaType{
			"*/*": {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}},
		},
	}}
	op.DefaultStatus = http.StatusOK
	api.Register(s.api, op, s.downloadArtifact)
}

// findArtifact returns the artifact that a path names.
func (s *service) findArtifact(ctx context.Context, p artifactPath) (state.Artifact, error) {
	if !state.ValidID(state.PrefixArtifact, p.UID) {
		return state.Artifact{}, api.Problem("resource_not_found", "there is no such artifact")
	}

	a, err := s.Store.Artifact(ctx, p.UID)
	if err == nil && !api.KeyOf(ctx).Reaches(a.FactoryUID) {
		return state.Artifact{}, api.Problem("resource_not_found", "artifact %q does not exist", p.UID)
	}

	return a, err
}

// downloadAgain is how long a client may use an address of a download.
const downloadAgain = time.Hour

func (s *service) artifact(ctx context.Context, in *artifactPath) (Artifact, error) {
	a, err := s.findArtifact(ctx, *in)
	if err != nil {
		return Artifact{}, err
	}

	item := artifactItem(a)
	data := ArtifactData{ArtifactItemData: item.Data}
	if a.Kind != state.KindLink {
		data.ContentType, data.SHA256 = a.MimeType, a.Digest
		data.DownloadURL = s.PublicURL + api.Base + "/agent/artifacts/" + a.UID + "/download"
		data.ExpiresAt = ptr(time.Now().Add(downloadAgain).Truncate(time.Second).UTC())
	}

	return Artifact{item.ArtifactType, a.UID, a.Created, a.RunID, data}, nil
}

// downloadArtifact answers with a file that browsers only save, since an agent wrote it.
func (s *service) downloadArtifact(ctx context.Context, in *artifactPath) (*huma.StreamResponse, error) {
	a, err := s.findArtifact(ctx, *in)
	if err != nil {
		return nil, err
	}
	if a.Kind == state.KindLink {
		return nil, api.Problem("resource_not_found", "artifact %s is a link: it has no content", a.UID)
	}

	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		for name, value := range map[string]string{
			"Content-Type":            a.MimeType,
			"Content-Length":          strconv.FormatInt(a.Size, 10),
			"Content-Disposition":     Attachment(path.Base(a.Path)),
			"X-Content-Type-Options":  "nosniff",
			"Content-Security-Policy": "default-src 'none'; sandbox",
			"Cache-Control":           "private, no-store",
		} {
			ctx.SetHeader(name, value)
		}

		ctx.SetStatus(http.StatusOK)
		if ctx.Method() == http.MethodHead {
			return
		}

		// A client learns of an error by the missing bytes.
		if _, err := io.Copy(ctx.BodyWriter(), s.Store.ArtifactContent(ctx.Context(), a)); err != nil {
			s.Log.Warn("download of an artifact", "artifact_uid", a.UID, "error", err)
		}
	}}, nil
}

// Attachment is the Content-Disposition of a download under a name.
func Attachment(name string) string {
	return mime.FormatMediaType("attachment", map[string]string{"filename": name})
}
