package admin

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/rogpeppe/go-internal/diff"

	"millwright/api"
	"millwright/state"
	"millwright/state/audit"
)

// Revision is a revision of a managed definition.
type Revision struct {
	Revision     string    `json:"revision" doc:"Identifier; later ones have higher numbers" example:"r12"`
	Author       string    `json:"author" doc:"Name of the API key that made it"`
	Subject      string    `json:"subject" doc:"Summary of the edit" example:"disable webhook alerts"`
	CreatedAt    time.Time `json:"created_at" doc:"Time of creation"`
	FilesChanged int       `json:"files_changed" doc:"Number of files written or deleted; 0 for a new secret"`
}

// ListRevisionsResponse is a page of revisions, newest first.
type ListRevisionsResponse struct {
	Revisions []Revision   `json:"revisions" nullable:"false" doc:"The revisions, newest first"`
	PageInfo  api.PageInfo `json:"page_info" doc:"Whether there is another page"`
}

// RevisionWithDifference is a revision with its changes.
type RevisionWithDifference struct {
	Revision
	Files []FileDifference `json:"files" nullable:"false" doc:"The changed files, by path"`
}

// FileDifference is the change of a file in a revision.
type FileDifference struct {
	Path       string `json:"path" doc:"Path relative to the root of the definition"`
	Action     string `json:"action" enum:"create,update,delete" doc:"Kind of change"`
	Difference string `json:"difference" doc:"The changed lines, as a unified diff; empty if the answer would be too long"`
}

// RevisionPath are the path parameters that name a revision.
type RevisionPath struct {
	FactoryUID
	Revision string `path:"revision" doc:"ID of the revision" example:"r12"`
}

// maxDifferences bounds the differences of one answer, in bytes.
const maxDifferences = 1 << 20

func (s *service) registerRevisions() {
	read := func(path, id string, role state.Role, summary string) huma.Operation {
		return api.Explained(
			api.Also(
				api.Operation(http.MethodGet, "/factory/{uid}/revisions"+path, id, role, summary),
				http.StatusUnprocessableEntity,
			),
			"Only for managed factories. The server stores the last 200, fewer if their files are large.",
		)
	}

	api.Handle(
		s.api,
		read("", "listRevisions", state.RoleViewer, "List the revisions of a definition, newest first"),
		s.listRevisions,
	)
	api.Handle(
		s.api,
		read("/{revision}", "getRevision", state.RoleAdmin, "Get a revision with its changes"),
		s.getRevision,
	)
	api.Handle(
		s.api,
		editOperation(
			http.MethodPost,
			"/revisions/{revision}/restore",
			"restoreRevision",
			"Restore an earlier revision as a new one",
		),
		s.restore,
	)
}

func newRevision(h state.ManagedRevision) Revision {
	r := Revision{Revision: h.ID, Author: h.Author, Subject: h.Subject, FilesChanged: h.Files}
	if h.At != nil {
		r.CreatedAt = *h.At
	}
	return r
}

func (s *service) listRevisions(ctx context.Context, in *struct {
	FactoryUID
	PageQuery
},
) (ListRevisionsResponse, error) {
	f, err := s.managed(ctx, in.Factory, "", "look at the history of %s there")
	if err != nil {
		return ListRevisionsResponse{}, err
	}

	list := "revisions " + f.UID
	after, err := in.after(list)
	if err != nil {
		return ListRevisionsResponse{}, err
	}

	before := int64(0)
	if after != "" {
		if before, err = strconv.ParseInt(after, 10, 64); err != nil || before <= 0 {
			return ListRevisionsResponse{}, api.InvalidField(
				"cursor",
				"not a cursor of this list: take next_cursor of the page before",
			)
		}
	}

	held, err := s.Store.ManagedRevisions(ctx, f.UID, before, in.Limit+1)
	if err != nil {
		return ListRevisionsResponse{}, err
	}

	rows, info := page(
		in.PageQuery,
		list,
		held,
		func(h state.ManagedRevision) string { return strconv.FormatInt(h.Number, 10) },
	)

	out := ListRevisionsResponse{[]Revision{}, info}
	for _, h := range rows {
		out.Revisions = append(out.Revisions, newRevision(h))
	}

	return out, nil
}

func (s *service) getRevision(ctx context.Context, in *RevisionPath) (RevisionWithDifference, error) {
	f, err := s.managed(ctx, in.Factory, "", "look at the history of %s there")
	if err != nil {
		return RevisionWithDifference{}, err
	}

	h, err := s.revision(ctx, f, in.Revision)
	if err != nil {
		return RevisionWithDifference{}, err
	}

	changes, err := s.Store.ManagedChanges(ctx, f.UID, h.Number)
	if err != nil {
		return RevisionWithDifference{}, err
	}

	out := RevisionWithDifference{newRevision(h), []FileDifference{}}
	room := maxDifferences
	for _, c := range changes {
		d := newDifference(c)
		if room -= len(d.Difference); room < 0 {
			d.Difference = ""
		}

		out.Files = append(out.Files, d)
	}

	return out, nil
}

// newDifference returns a change in git's format, with /dev/null for a missing file.
func newDifference(c state.ManagedChange) FileDifference {
	d := FileDifference{Path: c.Path, Action: "update"}
	oldName, newName, old, now := "a/"+c.Path, "b/"+c.Path, "", ""
	if c.Old != nil {
		old = *c.Old
	} else {
		d.Action, oldName = "create", "/dev/null"
	}

	if c.New != nil {
		now = *c.New
	} else {
		d.Action, newName = "delete", "/dev/null"
	}

	text := string(diff.Diff(oldName, []byte(old), newName, []byte(now)))
	if header, rest, ok := strings.Cut(text, "\n"); ok && strings.HasPrefix(header, "diff ") {
		text = rest
	}

	d.Difference = text
	return d
}

func (s *service) restore(ctx context.Context, in *struct {
	RevisionPath
	BaseQuery
	AllowQuery
},
) (Sync, error) {
	f, err := s.managed(ctx, in.Factory, "", "bring the earlier content of %s back there")
	if err != nil {
		return Sync{}, err
	}

	h, err := s.revision(ctx, f, in.Revision)
	if err != nil {
		return Sync{}, err
	}

	files, err := s.Store.ManagedFiles(ctx, f.UID, h.Number)
	if err != nil {
		return Sync{}, err
	}

	e := editing{
		subject:     "restore " + h.ID,
		action:      audit.FactoryRestore,
		object:      f.UID,
		whole:       true,
		base:        in.Base,
		allowPrune:  in.AllowPrune,
		allowRename: in.AllowRename,
	}

	return s.editFiles(ctx, f, e, func(d *draft) error {
		d.files = contents(files)
		return nil
	})
}
