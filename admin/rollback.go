package admin

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"millwright/api"
	"millwright/reconcile/plan"
	"millwright/schema"
	"millwright/state"
	"millwright/state/audit"
	"millwright/state/notice"
	"millwright/state/trees"
)

// RollbackRequest asks for an earlier applied revision of a factory.
type RollbackRequest struct {
	Revision    string `json:"revision,omitempty" maxLength:"200" doc:"The revision, or its first 7 characters or more; absent: the applied one before the present"`
	DryRun      bool   `json:"dry_run,omitempty" doc:"Only plan, and change nothing"`
	AllowPrune  bool   `json:"allow_prune,omitempty" doc:"Allow a rollback that deletes all webhooks, or more than half of them"`
	AllowRename bool   `json:"allow_rename,omitempty" doc:"Allow a renamed webhook, which gets a new URL"`
}

// Rollback is the result of a rollback, or of its plan.
type Rollback struct {
	Revision string    `json:"revision" doc:"The earlier revision"`
	Applied  bool      `json:"applied" doc:"Whether it serves now; false after a dry run"`
	Plan     plan.Plan `json:"plan" doc:"The changes from the revision that was applied before"`
}

// AppliedRevision is a revision that was applied and can serve again.
type AppliedRevision struct {
	Revision   string     `json:"revision" doc:"Identifier of the revision"`
	Author     string     `json:"author" doc:"Author of the revision"`
	Subject    string     `json:"subject" doc:"First line of the commit message, or summary of the edit"`
	AppliedAt  time.Time  `json:"applied_at" doc:"Time of the last apply of the revision from the source"`
	ReplacedAt *time.Time `json:"replaced_at" doc:"Time at which another revision took its place; null for the one in force"`
}

// ListAppliedResponse lists the revisions that can serve again.
type ListAppliedResponse struct {
	Revisions []AppliedRevision `json:"revisions" nullable:"false" doc:"The revisions, the last applied first"`
}

// minRevision is how much of the name of a revision a request gives at least.
const minRevision = 7

func (s *service) registerRollback() {
	api.Handle(s.api, api.Explained(
		api.Operation(http.MethodGet, "/factory/{uid}/applied", "listApplied", state.RoleViewer,
			"List the applied revisions to which a factory can be rolled back"),
		"The files of a revision are kept for 30 days after another one took its place. Revisions with the same "+
			"files are one.",
	), s.listApplied)
	api.Handle(s.api, api.Explained(
		api.Also(api.Operation(http.MethodPost, "/factory/{uid}/rollback", "rollbackFactory", state.RoleAdmin,
			"Serve an earlier applied revision"), http.StatusConflict),
		"The factory stays there, suspended, until it is resumed. Secrets keep their present values.",
	), s.rollback)
	api.Handle(s.api, api.Explained(
		api.Also(api.Operation(http.MethodPost, "/factory/{uid}/resume", "resumeFactory", state.RoleAdmin,
			"Have a factory follow its source again after a rollback"), http.StatusConflict),
		"The server then applies the newest revision of the source, without the call waiting for it.",
	), s.resume)
}

func (s *service) listApplied(ctx context.Context, in *FactoryUID) (ListAppliedResponse, error) {
	out := ListAppliedResponse{[]AppliedRevision{}}
	f, err := s.factory(ctx, in.Factory)
	if err != nil {
		return out, err
	}

	kept, err := s.kept(ctx, f.UID)
	for _, k := range kept {
		out.Revisions = append(out.Revisions, AppliedRevision{
			Revision:   k.revision.ID,
			Author:     k.revision.Author,
			Subject:    k.revision.Subject,
			AppliedAt:  k.Applied,
			ReplacedAt: k.Replaced,
		})
	}

	return out, err
}

// keptTree is an applied definition whose files are kept.
type keptTree struct {
	trees.Tree
	revision state.Revision
}

func (s *service) kept(ctx context.Context, factoryUID string) ([]keptTree, error) {
	all, err := s.Store.Trees().All(ctx, factoryUID)
	if err != nil {
		return nil, err
	}

	kept := make([]keptTree, len(all))
	for i, t := range all {
		kept[i].Tree = t
		if err := json.Unmarshal(t.Revision, &kept[i].revision); err != nil {
			return nil, err
		}
	}

	return kept, nil
}

// target returns the definition that a rollback asks for.
func (s *service) target(ctx context.Context, f state.Factory, id string) (keptTree, error) {
	kept, err := s.kept(ctx, f.UID)
	if err != nil {
		return keptTree{}, err
	}

	if id == "" {
		present := slices.IndexFunc(kept, func(k keptTree) bool { return k.Replaced == nil })
		if present+1 >= len(kept) {
			return keptTree{}, api.Problem("conflict", "no applied revision before %s is kept", f.Applied.ID)
		}
		return kept[present+1], nil
	}

	if named(f.Applied.ID, id) {
		return keptTree{}, api.Problem("conflict", "revision %s is the applied one", f.Applied.ID)
	}

	var found []keptTree
	for _, k := range kept {
		if k.revision.ID == id {
			return k, nil
		}
		if named(k.revision.ID, id) {
			found = append(found, k)
		}
	}

	switch len(found) {
	case 0:
		return s.attempted(ctx, f, id, kept)
	case 1:
		return found[0], nil
	}
	return keptTree{}, api.InvalidField("revision", "%q begins several revisions: give more of it", id)
}

// attempted looks for a revision in the history: the files of one that was applied may be kept under a later
// revision with the same files.
func (s *service) attempted(ctx context.Context, f state.Factory, id string, kept []keptTree) (keptTree, error) {
	attempts, err := s.Store.Attempts(ctx, f.UID, 0, 200)
	if err != nil {
		return keptTree{}, err
	}

	known := ""
	for _, a := range attempts {
		if !named(a.Revision.ID, id) {
			continue
		}

		known = a.Revision.ID
		if a.Outcome != state.OutcomeApplied && a.Outcome != state.OutcomeUnchanged {
			continue
		}

		for _, k := range kept {
			if a.Revision.Tree == "" || k.revision.Tree != a.Revision.Tree {
				continue
			}
			if k.Replaced == nil {
				return keptTree{}, api.Problem("conflict",
					"revision %s has the same files as the applied one", a.Revision.ID)
			}

			k.revision = a.Revision
			return k, nil
		}

		return keptTree{}, api.Problem("conflict", "the files of revision %s are no longer kept", a.Revision.ID)
	}

	if known != "" {
		return keptTree{}, api.Problem("conflict", "revision %s was never applied", known)
	}
	return keptTree{}, api.Problem("resource_not_found", "no revision %q of factory %q was applied", id, f.Name)
}

// named reports whether text is the name of a revision, or enough of its beginning.
func named(revision, text string) bool {
	short := strings.TrimPrefix(text, "sha256:")
	long := strings.HasPrefix(strings.TrimPrefix(revision, "sha256:"), short)
	return revision == text || len(short) >= minRevision && long
}

func (s *service) rollback(ctx context.Context, in *struct {
	FactoryUID
	Body *RollbackRequest
},
) (Rollback, error) {
	var how RollbackRequest
	if in.Body != nil {
		how = *in.Body
	}

	for range 5 {
		out, err := s.rollbackOnce(ctx, in.Factory, how)
		if !errors.Is(err, state.ErrMoved) {
			return out, err
		}
	}
	return Rollback{}, api.Problem("resource_unavailable", "the definition changes all the time: try again soon")
}

func (s *service) rollbackOnce(ctx context.Context, uid string, how RollbackRequest) (Rollback, error) {
	f, err := s.factory(ctx, uid)
	if err != nil {
		return Rollback{}, err
	}
	if f.Detached {
		return Rollback{}, detached(f)
	}

	cur, err := s.Store.Current(ctx, f.UID)
	if err != nil {
		return Rollback{}, err
	}

	to, err := s.target(ctx, cur.Factory, how.Revision)
	if err != nil {
		return Rollback{}, err
	}

	files, err := s.Store.Trees().Files(ctx, f.UID, to.Digest)
	if errors.Is(err, trees.ErrNotFound) {
		err = api.Problem("conflict", "the files of revision %s are no longer kept", to.revision.ID)
	}
	if err != nil {
		return Rollback{}, err
	}

	tree, err := schema.FilesFS(files)
	if err != nil {
		return Rollback{}, err
	}

	opts := s.planOptions(f.UID, how.AllowPrune, how.AllowRename)
	opts.Revision = to.revision
	opts.OpenSecrets, opts.KeepSecrets = false, true
	p, app := plan.Make(cur, tree, opts)
	if p.Err != nil {
		return Rollback{}, p.Err
	}

	out := Rollback{Revision: to.revision.ID, Plan: masked(p)}
	if how.DryRun {
		return out, nil
	}
	if app == nil {
		return Rollback{}, refusedEdit{p.Problems, contents(files)}.problem(inFiles)
	}

	app.Rollback = to.Digest
	app.Audit = audit.Entry{Action: audit.FactoryRollback, Subject: f.UID, Detail: "from " + cur.Factory.Applied.ID}
	err = s.Store.Apply(ctx, *app)
	if errors.Is(err, trees.ErrNotFound) {
		return Rollback{}, api.Problem("conflict", "the files of revision %s are no longer kept", to.revision.ID)
	}
	if err != nil {
		return Rollback{}, err
	}

	s.Store.Notify(notice.Source, f.UID)
	out.Applied = true
	return out, nil
}

func (s *service) resume(ctx context.Context, in *FactoryUID) (Factory, error) {
	f, err := s.factory(ctx, in.Factory)
	if err != nil {
		return Factory{}, err
	}
	if err := s.Store.Resume(ctx, f.UID); err != nil {
		return Factory{}, err
	}
	return s.describeFactory(ctx, f.UID)
}
