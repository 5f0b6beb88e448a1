package forge_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	gitlab "gitlab.com/gitlab-org/api/client-go"
)

// published returns a function that compares exchanges of a recording with what the forge publishes: GitHub its
// OpenAPI document, GitLab the types of its client. The function returns what they do not document.
func published(t *testing.T, file string) func(r *http.Request, body []byte, e exchange) []string {
	t.Helper()
	kind, _, _ := strings.Cut(strings.TrimSuffix(file, ".json"), "_")

	switch kind {
	case "github":
		text, err := os.ReadFile(filepath.Join("testdata", "published", "github.json"))
		must(t, err)
		doc, err := openapi3.NewLoader().LoadFromData(text)
		must(t, err)
		return gitHubAPI{doc}.check
	case "gitlab":
		return gitLabTypes
	}
	return func(*http.Request, []byte, exchange) []string { return nil }
}

// gitHubAPI is a part of the OpenAPI document of GitHub.
type gitHubAPI struct{ doc *openapi3.T }

func (a gitHubAPI) check(r *http.Request, body []byte, e exchange) (wrong []string) {
	route, params := a.route(r)
	if route == nil {
		return []string{"no such operation"}
	}

	r = r.Clone(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(body))
	in := &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route}
	if err := openapi3filter.ValidateRequest(r.Context(), in); err != nil {
		wrong = append(wrong, err.Error())
	}
	for name := range r.URL.Query() {
		if route.Operation.Parameters.GetByInAndName("query", name) == nil {
			wrong = append(wrong, "undocumented parameter "+name)
		}
	}
	if b := route.Operation.RequestBody; b != nil && len(body) > 0 {
		wrong = append(wrong, undocumented("the request", body, b.Value.Content)...)
	}

	out := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: in, Status: e.Status, Header: http.Header{"Content-Type": {"application/json"}},
		Options: &openapi3filter.Options{IncludeResponseStatus: true},
	}
	out.SetBodyBytes(e.Answer)
	if err := openapi3filter.ValidateResponse(r.Context(), out); err != nil {
		wrong = append(wrong, err.Error())
	}
	if answer := route.Operation.Responses.Status(e.Status); answer != nil && len(e.Answer) > 0 {
		wrong = append(wrong, undocumented("the answer", e.Answer, answer.Value.Content)...)
	}
	return wrong
}

// route finds the operation of a request.
func (a gitHubAPI) route(r *http.Request) (route *routers.Route, params map[string]string) {
	path, ok := strings.CutPrefix(r.URL.EscapedPath(), "/api/v3")
	if !ok {
		return nil, nil
	}
	segments := strings.Split(path, "/")

	for template, item := range a.doc.Paths.Map() {
		operation := item.GetOperation(r.Method)
		names := strings.Split(template, "/")
		params := map[string]string{}
		same := operation != nil && slices.EqualFunc(names, segments, func(name, segment string) bool {
			if !strings.HasPrefix(name, "{") {
				return name == segment
			}
			params[strings.Trim(name, "{}")] = segment
			return true
		})
		if same {
			return &routers.Route{
				Spec: a.doc, Path: template, PathItem: item, Method: r.Method, Operation: operation,
			}, params
		}
	}
	return nil, nil
}

// undocumented returns the members of JSON that its schema does not have.
func undocumented(at string, text []byte, content openapi3.Content) []string {
	media := content.Get("application/json")
	var value any
	if err := json.Unmarshal(text, &value); err != nil || media == nil {
		return []string{fmt.Sprintf("%s: no documented JSON, %v", at, err)}
	}
	return unknownMembers(at, value, openapi3.SchemaRefs{media.Schema})
}

func unknownMembers(at string, value any, schemas openapi3.SchemaRefs) (found []string) {
	for i := 0; i < len(schemas); i++ { // it grows
		s := schemas[i].Value
		schemas = slices.Concat(schemas, s.AllOf, s.AnyOf, s.OneOf)
	}

	switch value := value.(type) {
	case []any:
		var items openapi3.SchemaRefs
		for _, s := range schemas {
			if s.Value.Items != nil {
				items = append(items, s.Value.Items)
			}
		}
		for _, v := range value {
			found = append(found, unknownMembers(at+"[]", v, items)...)
		}
	case map[string]any:
		closed := func(s *openapi3.SchemaRef) bool { return len(s.Value.Properties) > 0 }
		if !slices.ContainsFunc(schemas, closed) {
			return nil
		}
		for name, v := range value {
			var of openapi3.SchemaRefs
			for _, s := range schemas {
				if p := s.Value.Properties[name]; p != nil {
					of = append(of, p)
				}
			}
			if of == nil {
				found = append(found, fmt.Sprintf("%s: undocumented member %s", at, name))
			}
			found = append(found, unknownMembers(at+"."+name, v, of)...)
		}
	}
	return found
}

// Types without the methods of theirs that decode leniently.
type (
	mergeRequest gitlab.MergeRequest
	issue        gitlab.Issue
)

// gitLabAnswers decode GitLab's answers, by method and path behind the project.
var gitLabAnswers = []struct {
	request *regexp.Regexp
	decode  func(answer []byte) error
}{
	{regexp.MustCompile(`^GET user$`), strictly[gitlab.User]},
	{regexp.MustCompile(`^GET $`), strictly[gitlab.Project]},
	{regexp.MustCompile(`^GET repository/branches/[^/]+$`), strictly[gitlab.Branch]},
	{regexp.MustCompile(`^GET repository/commits/[^/]+/refs$`), strictly[[]gitlab.CommitRef]},
	{regexp.MustCompile(`^GET merge_requests$`), strictly[[]gitlab.BasicMergeRequest]},
	{regexp.MustCompile(`^(POST merge_requests|(GET|PUT) merge_requests/\d+)$`), strictly[mergeRequest]},
	{regexp.MustCompile(`^GET merge_requests/\d+/diffs$`), strictly[[]gitlab.MergeRequestDiff]},
	{regexp.MustCompile(`^GET (issues|merge_requests)/\d+/notes$`), strictly[[]gitlab.Note]},
	{regexp.MustCompile(`^(POST|PUT) (issues|merge_requests)/\d+/notes(/\d+)?$`), strictly[gitlab.Note]},
	{regexp.MustCompile(`^PUT issues/\d+$`), strictly[issue]},
	{regexp.MustCompile(`^POST statuses/[0-9a-f]+$`), strictly[gitlab.CommitStatus]},
	{regexp.MustCompile(`^GET merge_requests/\d+/draft_notes$`), strictly[[]gitlab.DraftNote]},
	{regexp.MustCompile(`^POST merge_requests/\d+/draft_notes$`), strictly[gitlab.DraftNote]},
	{regexp.MustCompile(`^GET hooks$`), strictly[[]gitlab.ProjectHook]},
	{regexp.MustCompile(`^(POST hooks|PUT hooks/\d+)$`), strictly[gitlab.ProjectHook]},
}

// strictly decodes JSON into a type that has all of its members.
func strictly[T any](text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	return decoder.Decode(new(T))
}

// gitLabTypes decodes an answer into the type of GitLab's client. That client makes the requests.
func gitLabTypes(r *http.Request, _ []byte, e exchange) []string {
	if e.Status >= 300 || len(e.Answer) == 0 {
		return nil
	}
	path := strings.TrimPrefix(r.URL.EscapedPath(), "/api/v4/")
	path = strings.TrimPrefix(strings.TrimPrefix(path, "projects/acme%2Ftool"), "/")

	for _, a := range gitLabAnswers {
		if !a.request.MatchString(r.Method + " " + path) {
			continue
		}
		if err := a.decode(e.Answer); err != nil {
			return []string{err.Error()}
		}
		return nil
	}
	return []string{"an answer without a type"}
}

// TestPublishedSchemas holds that the comparison finds what the forges do not document.
func TestPublishedSchemas(t *testing.T) {
	const repo = "/api/v3/repos/acme/tool"
	for name, test := range map[string]struct {
		file, method, path, body string
		status                   int
		answer, want             string // want is empty: nothing is found
	}{
		"right": {
			file: "github.json", method: "POST", path: repo + "/issues/7/comments", body: `{"body":"x"}`,
			status: 201, answer: `{"id":1,"body":"x","user":{"login":"o"}}`,
		},
		"path": {
			file: "github.json", method: "GET", path: repo + "/pull/1", status: 200, want: "no such operation",
		},
		"parameter": {
			file: "github.json", method: "GET", path: repo + "/pulls?branch=x", status: 200, answer: `[]`,
			want: "undocumented parameter branch",
		},
		"value of a parameter": {
			file: "github.json", method: "GET", path: repo + "/pulls?state=merged", status: 200, answer: `[]`,
			want: "state",
		},
		"member of a request": {
			file: "github.json", method: "POST", path: repo + "/issues/7/comments", body: `{"body":"x","text":"y"}`,
			status: 201, answer: `{}`, want: "the request: undocumented member text",
		},
		"request without a member": {
			file: "github.json", method: "POST", path: repo + "/statuses/" + mainCommit, body: `{"context":"x"}`,
			status: 201, answer: `{}`, want: "state",
		},
		"member of an answer": {
			file: "github.json", method: "GET", path: repo + "/pulls", status: 200,
			answer: `[{"head":{"repo":{"fullname":"x"}}}]`,
			want:   "the answer[].head.repo: undocumented member fullname",
		},
		"type of an answer": {
			file: "github.json", method: "GET", path: repo + "/pulls", status: 200, answer: `[{"number":"8"}]`,
			want: "number",
		},
		"status": {
			file: "github.json", method: "POST", path: repo + "/issues/7/comments", body: `{"body":"x"}`,
			status: 200, answer: `{}`, want: "status",
		},
		"member of GitLab": {
			file: "gitlab.json", method: "GET", path: "/api/v4/projects/acme%2Ftool/merge_requests/8",
			status: 200, answer: `{"iid":8,"number":8}`, want: `unknown field "number"`,
		},
		"type of GitLab": {
			file: "gitlab.json", method: "GET", path: "/api/v4/projects/acme%2Ftool/pulls/8", status: 200,
			answer: `{}`, want: "without a type",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(test.method, test.path, nil)
			r.Header.Set("Content-Type", "application/json")
			e := exchange{Status: test.status, Answer: json.RawMessage(test.answer)}

			found := strings.Join(published(t, test.file)(r, []byte(test.body), e), "\n")
			if test.want == "" && found != "" || !strings.Contains(found, test.want) {
				t.Errorf("found %q, want %q", found, test.want)
			}
		})
	}
}
