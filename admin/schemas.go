package admin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"millwright/api"
	"millwright/schema"
)

// SchemaVersions lists the versions of the definition files.
type SchemaVersions struct {
	CurrentVersion string          `json:"current_version" doc:"The version to write"`
	Versions       []SchemaVersion `json:"versions" nullable:"false" doc:"All versions"`
}

// SchemaVersion is a version of the definition files.
type SchemaVersion struct {
	SchemaVersion string `json:"schema_version" doc:"Its name, as in schemaVersion of factory.yaml" example:"v1alpha1"`
	SchemaURL     string `json:"schema_url" doc:"URL of its schemas"`
}

// SchemaDocuments holds the JSON Schemas of one version.
type SchemaDocuments struct {
	SchemaVersion string                     `json:"schema_version" doc:"The version" example:"v1alpha1"`
	Documents     map[string]json.RawMessage `json:"documents" doc:"The JSON Schema (2020-12) of each kind of definition file. The schema of a Markdown file describes its front matter"`
}

// Conditional is the header of a conditional request.
type Conditional struct {
	IfNoneMatch string `header:"If-None-Match" doc:"ETag of the client's copy"`
}

// cacheable is an answer that a client may keep.
type cacheable[T any] struct {
	Status       int
	ETag         string `header:"ETag" doc:"Identifies the answer's content"`
	CacheControl string `header:"Cache-Control" doc:"How long the answer may be kept"`
	Body         T
}

func (s *service) registerSchemas() {
	handleCacheable(s, api.Operation(
		http.MethodGet,
		"/factory-files/schemas",
		"listSchemas",
		"",
		"List the versions of the definition files",
	), func(context.Context, *struct{ Conditional }) (SchemaVersions, error) {
		url := s.PublicURL + api.Base + "/factory-files/schemas/" + schema.SchemaVersion
		return SchemaVersions{schema.SchemaVersion, []SchemaVersion{{schema.SchemaVersion, url}}}, nil
	})

	handleCacheable(s, api.Operation(http.MethodGet, "/factory-files/schemas/{version}", "getSchemas", "",
		"Get the JSON Schemas of all definition files"), func(_ context.Context, in *struct {
		Conditional
		Version string `path:"version" doc:"The version" example:"v1alpha1"`
	},
	) (SchemaDocuments, error) {
		out := SchemaDocuments{schema.SchemaVersion, map[string]json.RawMessage{}}
		for _, name := range schema.JSONSchemaNames() {
			text, _ := schema.JSONSchema(name)
			out.Documents[name] = text
		}

		return out, checkVersion(in.Version)
	})

	handleCacheable(s, api.Operation(http.MethodGet, "/factory-files/schemas/{version}/{document}", "getSchema", "",
		"Get the JSON Schema of one kind of definition file"), func(_ context.Context, in *struct {
		Conditional
		Version  string `path:"version" doc:"The version" example:"v1alpha1"`
		Document string `path:"document" doc:"The kind of file, with or without .schema.json" example:"webhook"`
	},
	) (json.RawMessage, error) {
		text, ok := schema.JSONSchema(strings.TrimSuffix(in.Document, ".schema.json"))
		if err := checkVersion(in.Version); err != nil {
			return nil, err
		}

		if !ok {
			return nil, api.Problem(
				"resource_not_found",
				"schema %q does not exist: want one of %s",
				in.Document,
				strings.Join(schema.JSONSchemaNames(), ", "),
			)
		}

		return text, nil
	})
}

func checkVersion(version string) error {
	if version != schema.SchemaVersion {
		return api.Problem(
			"resource_not_found",
			"version %q of the definition files does not exist: want %s",
			version,
			schema.SchemaVersion,
		)
	}
	return nil
}

// conditional is an input that may have If-None-Match.
type conditional interface{ noneMatch() string }

func (c Conditional) noneMatch() string { return c.IfNoneMatch }

// handleCacheable registers an endpoint whose answer has an ETag. It answers 304 if the client has the
// current copy.
func handleCacheable[I, T any](s *service, op huma.Operation, f func(context.Context, *I) (T, error)) {
	op.Responses = map[string]*huma.Response{"304": {Description: "The client's copy is current"}}
	api.Register(s.api, op, func(ctx context.Context, in *I) (*cacheable[T], error) {
		v, err := f(ctx, in)
		if err != nil {
			return nil, err
		}

		text, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}

		sum := sha256.Sum256(text)
		out := &cacheable[T]{http.StatusOK, `"` + hex.EncodeToString(sum[:16]) + `"`, "public, max-age=300", v}
		if c, ok := any(in).(conditional); ok && matches(c.noneMatch(), out.ETag) {
			out.Status = http.StatusNotModified
		}

		return out, nil
	})
}

// matches reports whether If-None-Match names the ETag (RFC 9110, section 13.1.2). Our tags contain no
// comma.
func matches(header, etag string) bool {
	for tag := range strings.SplitSeq(header, ",") {
		tag = strings.TrimSpace(tag)
		if tag == "*" || strings.TrimPrefix(tag, "W/") == etag {
			return true
		}
	}
	return false
}
