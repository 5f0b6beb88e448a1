package admin

import (
	"bytes"
	"context"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-chi/chi/v5"

	"millwright/api"
	"millwright/schema"
	"millwright/state"
	"millwright/state/audit"
)

// HeldFile is a file of a managed definition.
type HeldFile struct {
	Path string `json:"path" doc:"Path relative to the root of the definition" example:"webhooks/alerts.yaml"`
	Size int    `json:"size" doc:"Its size in bytes"`
}

// ListFilesResponse is a page of the files of a revision, by path.
type ListFilesResponse struct {
	Revision string       `json:"revision" doc:"Revision of the files" example:"r12"`
	Files    []HeldFile   `json:"files" nullable:"false" doc:"The files, by path"`
	PageInfo api.PageInfo `json:"page_info" doc:"Whether there is another page"`
}

// FileContent is a file of a managed definition, with its text.
type FileContent struct {
	Revision string `json:"revision" doc:"Revision of the file: base_revision for an edit" example:"r12"`
	Path     string `json:"path" doc:"Path relative to the root of the definition" example:"webhooks/alerts.yaml"`
	Content  string `json:"content" doc:"Text of the file"`
}

// EditFileRequest is the new text of a definition file.
type EditFileRequest struct {
	Content string `json:"content" doc:"The text of the file"`
}

// ImportFilesRequest is a whole definition tree.
type ImportFilesRequest struct {
	Files []DefinitionFile `json:"files" maxItems:"2000" nullable:"false" doc:"The whole tree; the call deletes all other files"`
}

// FilePath are the path parameters that name a definition file.
type FilePath struct {
	FactoryUID
	Path string `path:"path" doc:"Path of the file, relative to the root of the definition; slashes need no escaping" example:"automations/ci/automation.md"`
}

// RevisionQuery asks for one revision of a managed definition.
type RevisionQuery struct {
	Revision string `query:"revision" doc:"ID of the revision; absent for the newest" example:"r12"`
}

// BaseQuery names the revision that an edit is based on.
type BaseQuery struct {
	Base string `query:"base_revision" doc:"Revision on which the edit is based: 409 if the file has changed since. Absent: the edit applies to the newest revision" example:"r12"`
}

// AllowQuery allows destructive changes of an edit.
type AllowQuery struct {
	AllowPrune  bool `query:"allow_prune" doc:"Allow an edit that deletes all webhooks, or more than half of them"`
	AllowRename bool `query:"allow_rename" doc:"Allow a renamed webhook, which gets a new URL"`
}

// maxTarBytes bounds the body of a tar import: the files and the overhead of the format.
const maxTarBytes = 2 * maxManagedBytes

const tarType = "application/x-tar"

func (s *service) registerFiles() {
	read := func(path, id string, role state.Role, summary string) huma.Operation {
		return api.Explained(
			api.Also(
				api.Operation(http.MethodGet, "/factory/{uid}"+path, id, role, summary),
				http.StatusUnprocessableEntity,
			),
			"Only for managed factories.",
		)
	}

	api.Handle(s.api, read("/files", "listFiles", state.RoleViewer, "List the files of a definition"), s.listFiles)
	api.Handle(s.api, read("/files/{path}", "getFile", state.RoleAdmin, "Read a definition file"), s.getFile)
	api.Handle(s.api, editOperation(http.MethodPut, "/files/{path}", "putFile", "Write a definition file"), s.putFile)
	api.Handle(
		s.api,
		editOperation(http.MethodDelete, "/files/{path}", "deleteFile", "Delete a definition file"),
		s.deleteFile,
	)
	whole := editOperation(http.MethodPut, "/files", "importFiles", "Replace the definition with a tree of files")
	api.Handle(s.api, whole, s.importFiles)

	content := map[string]*huma.MediaType{tarType: {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}}
	export := read(
		"/files.tar",
		"exportFiles",
		state.RoleAdmin,
		"Export the definition as a tar, for a git or directory source",
	)

	export.Responses = map[string]*huma.Response{"200": {Description: "The files", Content: content}}
	api.Register(s.api, export, s.exportTar)
	whole = editOperation(http.MethodPut, "/files.tar", "importTar", "Replace the definition with the files of a tar")
	whole.MaxBodyBytes, whole.SkipValidateBody = maxTarBytes, true
	whole = api.WithBounds(whole, api.Bounded{Raw: true})
	api.Handle(s.api, whole, s.importTar)

	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete} {
		s.api.Router().MethodFunc(method, api.Base+"/factory/{uid}/files/*", s.slashes)
	}
}

// slashes routes a path of several segments to one parameter.
func (s *service) slashes(w http.ResponseWriter, r *http.Request) {
	u := *r.URL
	head, tail, _ := strings.Cut(u.EscapedPath(), "/files/")
	u.RawPath = head + "/files/" + strings.ReplaceAll(tail, "/", "%2F")
	again := r.WithContext(context.WithValue(r.Context(), chi.RouteCtxKey, (*chi.Context)(nil))) // route it anew
	again.URL = &u
	s.api.Router().ServeHTTP(w, again)
}

// filesOf returns the files of a revision of a factory's definition, by path.
func (s *service) filesOf(
	ctx context.Context,
	uid, file string,
	q RevisionQuery,
) (state.Factory, state.ManagedRevision, []schema.File, error) {
	f, err := s.managed(ctx, uid, file, "read %s there")
	if err != nil {
		return f, state.ManagedRevision{}, nil, err
	}
	revision, err := s.revision(ctx, f, q.Revision)
	if err != nil {
		return f, revision, nil, err
	}
	files, err := s.Store.ManagedFiles(ctx, f.UID, revision.Number)
	return f, revision, files, err
}

// revision returns the revision of a factory's definition with this ID, or the newest for "".
func (s *service) revision(ctx context.Context, f state.Factory, id string) (state.ManagedRevision, error) {
	if id == "" {
		return s.Store.ManagedHead(ctx, f.UID)
	}
	number, ok := state.ParseManagedID(id)
	if !ok {
		return state.ManagedRevision{}, api.Problem("resource_not_found", "revision %q does not exist", id)
	}
	return s.Store.ManagedRevision(ctx, f.UID, number)
}

func (s *service) listFiles(ctx context.Context, in *struct {
	FactoryUID
	RevisionQuery
	PageQuery
},
) (ListFilesResponse, error) {
	f, revision, files, err := s.filesOf(ctx, in.Factory, "", in.RevisionQuery)
	if err != nil {
		return ListFilesResponse{}, err
	}

	rows, info, err := paginate(
		in.PageQuery,
		"files "+f.UID+" "+revision.ID,
		files,
		func(f schema.File) string { return f.Path },
		false,
	)

	out := ListFilesResponse{revision.ID, []HeldFile{}, info}
	for _, f := range rows {
		out.Files = append(out.Files, HeldFile{f.Path, len(f.Content)})
	}

	return out, err
}

func (s *service) getFile(ctx context.Context, in *struct {
	FilePath
	RevisionQuery
},
) (FileContent, error) {
	_, revision, files, err := s.filesOf(ctx, in.Factory, in.Path, in.RevisionQuery)
	if err != nil {
		return FileContent{}, err
	}
	i := slices.IndexFunc(files, func(f schema.File) bool { return f.Path == in.Path })
	if i < 0 {
		return FileContent{}, api.Problem("resource_not_found", "revision %s has no file %q", revision.ID, in.Path)
	}
	return FileContent{revision.ID, in.Path, files[i].Content}, nil
}

func (s *service) putFile(ctx context.Context, in *struct {
	FilePath
	BaseQuery
	Body EditFileRequest
},
) (Sync, error) {
	return s.editFile(ctx, in.FilePath, in.Base, "write", func(d *draft) error {
		d.files[in.Path] = in.Body.Content
		return nil
	})
}

func (s *service) deleteFile(ctx context.Context, in *struct {
	FilePath
	BaseQuery
},
) (Sync, error) {
	return s.editFile(ctx, in.FilePath, in.Base, "delete", func(d *draft) error {
		if _, exists := d.files[in.Path]; !exists {
			return api.Problem("resource_not_found", "file %q does not exist", in.Path)
		}
		delete(d.files, in.Path)
		return nil
	})
}

func (s *service) editFile(
	ctx context.Context,
	in FilePath,
	base, verb string,
	change func(*draft) error,
) (Sync, error) {
	f, err := s.managed(ctx, in.Factory, in.Path, verb+" %s there")
	if !validPath(in.Path) && (err == nil || f.UID != "") {
		return Sync{}, api.InvalidField("path", "%q is not a path relative to the root of the definition", in.Path)
	}
	if err != nil {
		return Sync{}, err
	}

	return s.editFiles(ctx, f, editing{
		subject: verb + " " + in.Path,
		action:  audit.FactoryEdit,
		object:  in.Path,
		base:    base,
	}, func(d *draft) error {
		if err := s.unchanged(ctx, d, base, in.Path); err != nil {
			return err
		}
		return change(d)
	})
}

// editFiles edits files and returns the result.
func (s *service) editFiles(
	ctx context.Context,
	f state.Factory,
	e editing,
	change func(*draft) error,
) (Sync, error) {
	done, err := s.edit(ctx, f.UID, e, change)
	if err != nil {
		return Sync{}, answered(err, inFiles)
	}
	done.attempt.Source = f.Source
	return newSync(done.attempt), nil
}

func (s *service) importFiles(ctx context.Context, in *struct {
	FactoryUID
	BaseQuery
	AllowQuery
	Body ImportFilesRequest
},
) (Sync, error) {
	f, err := s.managed(ctx, in.Factory, "", "change %s there")
	if err != nil {
		return Sync{}, err
	}
	if err := checkPaths(in.Body.Files); err != nil {
		return Sync{}, err
	}
	return s.replace(ctx, f, in.BaseQuery, in.AllowQuery, in.Body.Files)
}

func (s *service) replace(
	ctx context.Context,
	f state.Factory,
	base BaseQuery,
	allow AllowQuery,
	files []DefinitionFile,
) (Sync, error) {
	all := make(map[string]string, len(files))
	for _, f := range files {
		all[f.Path] = f.Content
	}

	e := editing{
		subject:     "import a tree of files",
		action:      audit.FactoryEdit,
		object:      f.UID,
		whole:       true,
		base:        base.Base,
		allowPrune:  allow.AllowPrune,
		allowRename: allow.AllowRename,
	}

	return s.editFiles(ctx, f, e, func(d *draft) error {
		d.files = all
		return nil
	})
}

func (s *service) importTar(ctx context.Context, in *struct {
	FactoryUID
	BaseQuery
	AllowQuery
	RawBody []byte `contentType:"application/x-tar"`
},
) (Sync, error) {
	f, err := s.managed(ctx, in.Factory, "", "change %s there")
	if err != nil {
		return Sync{}, err
	}
	files, err := readTar(bytes.NewReader(in.RawBody))
	if err != nil {
		return Sync{}, err
	}
	return s.replace(ctx, f, in.BaseQuery, in.AllowQuery, files)
}

// tarOutput is a tar to download.
type tarOutput struct {
	ContentType        string `header:"Content-Type"`
	ContentDisposition string `header:"Content-Disposition"`
	NoSniff            string `header:"X-Content-Type-Options"`
	CacheControl       string `header:"Cache-Control"`
	Body               []byte
}

func (s *service) exportTar(ctx context.Context, in *struct {
	FactoryUID
	RevisionQuery
},
) (*tarOutput, error) {
	f, revision, files, err := s.filesOf(ctx, in.Factory, "", in.RevisionQuery)
	if err != nil {
		return nil, err
	}

	at := f.Created
	if revision.At != nil {
		at = *revision.At
	}

	body, err := writeTar(files, at)
	return &tarOutput{
		tarType, mime.FormatMediaType("attachment", map[string]string{"filename": f.Name + "-" + revision.ID + ".tar"}),
		"nosniff", "private, no-store", body,
	}, err
}
