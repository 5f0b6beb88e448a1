package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"millwright/api"
	"millwright/reconcile/plan"
	"millwright/schema"
	"millwright/state"
	"millwright/state/audit"
)

// Limits of a managed definition.
const (
	maxManagedFiles = 2000
	maxManagedBytes = 8 << 20 // of all files
	maxPathBytes    = 1024
)

// maxProblems bounds the problems that one answer lists.
const maxProblems = 100

// editing describes an edit of a definition and its permissions.
type editing struct {
	subject     string // summary for the history
	action      string // in the audit log
	object      string // what it changes, for the audit log
	whole       bool   // it replaces all files
	base        string // ID of the revision that its author saw; empty: the newest
	allowPrune  bool
	allowRename bool
}

// draft is a definition during an edit: the newest revision, and its changed files.
type draft struct {
	state.Current
	head    state.ManagedRevision
	files   map[string]string // content by path
	secrets []state.SecretChange
	forget  []string          // UIDs of webhooks that do not come back with their file
	renamed map[string]string // webhooks that keep their UID: the old name by the new one
}

// setSecret sets the value of a secret together with the edit; nil makes it pending.
func (d *draft) setSecret(name string, value []byte) {
	info := state.NewSecretInfo(name, value)
	info.Version = d.Secrets[name].Version + 1
	d.Secrets[name] = info
	d.secrets = append(d.secrets, state.SecretChange{Name: name, Value: value, Version: info.Version})
}

// hasSecret reports whether the definition can name a secret: one of the team, or its own.
func (d *draft) hasSecret(name string) bool {
	_, team := d.Secrets[name]
	_, own := d.Own[name]
	return team || own
}

// webhook returns the live webhook of that UID.
func (d *draft) webhook(uid string) (state.Webhook, error) {
	for _, w := range d.Webhooks {
		if w.UID == uid {
			return w, nil
		}
	}
	return state.Webhook{}, api.Problem("resource_not_found", "webhook %q does not exist any more", uid)
}

// edited is the result of an edit, which may have changed nothing.
type edited struct {
	attempt state.Attempt
	uids    map[string]string // of webhooks, by name
}

// edit changes a managed definition: the one way in which that is done. It returns when the
// changed definition is in force on every replica. A definition that would be refused changes nothing: the
// error is a refusedEdit. change is called with the newest revision, and again when another edit came
// first; it must change nothing but the draft.
func (s *service) edit(ctx context.Context, factoryUID string, e editing, change func(*draft) error) (edited, error) {
	release, err := s.turns.take(ctx, factoryUID)
	if err != nil {
		return edited{}, err
	}
	defer release()

	done, err := s.editOnce(ctx, factoryUID, e, change)
	if errors.Is(err, state.ErrMoved) {
		done, err = s.editOnce(ctx, factoryUID, e, change)
	}

	return done, err
}

func (s *service) editOnce(
	ctx context.Context,
	factoryUID string,
	e editing,
	change func(*draft) error,
) (edited, error) {
	started := time.Now().UTC()
	d, err := s.draft(ctx, factoryUID, e)
	if err != nil {
		return edited{}, err
	}

	before := make(map[string]string, len(d.files))
	for p, content := range d.files {
		before[p] = content
	}

	if err := change(d); err != nil {
		return edited{}, err
	}

	next := difference(d.head.Number, before, d.files)
	if len(next.Write)+len(next.Delete)+len(d.secrets) == 0 {
		if err := s.Store.Served(ctx, factoryUID); err != nil {
			return edited{}, err
		}
		return edited{attempt: state.Attempt{
			FactoryUID: factoryUID,
			Started:    started,
			Finished:   time.Now().UTC(),
			Revision:   d.head.Revision,
			Outcome:    state.OutcomeUnchanged,
		}}, nil
	}

	files, err := checkManagedFiles(d.files)
	if err != nil {
		return edited{}, err
	}

	tree, err := schema.FilesFS(files)
	if err != nil {
		return edited{}, api.InvalidField("path", "%s", err)
	}

	revision := state.Revision{
		ID: state.ManagedID(
			d.head.Number + 1,
		), Author: api.KeyOf(ctx).Name, Subject: e.subject, At: &started, Tree: state.ManagedTree(files), Managed: true,
	}
	opts := s.planOptions(factoryUID, e.allowPrune, e.allowRename)
	opts.Revision, opts.Now, opts.Renamed = revision, started, d.renamed

	p, app := plan.Make(d.Current, tree, opts)
	if p.Err != nil {
		return edited{}, p.Err
	}
	if app == nil {
		return edited{}, refusedEdit{p.Problems, d.files}
	}

	app.Edit, app.Secrets, app.ForgetWebhooks = next, append(app.Secrets, d.secrets...), d.forget
	app.Files = files
	app.Audit = audit.Entry{Action: e.action, Subject: e.object, Detail: e.subject}
	if err := s.Store.Apply(ctx, *app); err != nil {
		return edited{}, err
	}

	outcome := state.OutcomeApplied
	if app.Empty() {
		outcome = state.OutcomeUnchanged
	}

	return edited{state.Attempt{
		FactoryUID: factoryUID,
		Started:    started,
		Finished:   time.Now().UTC(),
		Revision:   revision,
		Outcome:    outcome,
		Counts:     app.Counts,
		Problems:   app.Problems,
	}, p.WebhookUIDs}, nil
}

// draft reads the newest revision for an edit, or returns the reason why the edit is impossible.
func (s *service) draft(ctx context.Context, factoryUID string, e editing) (*draft, error) {
	cur, head, files, err := s.Store.ManagedCurrent(ctx, factoryUID)
	if err != nil {
		return nil, err
	}

	f := cur.Factory
	switch {
	case f.Source.Kind != sourceManaged:
		return nil, elsewhere(f, "", "edit %s there")
	case f.Detached:
		return nil, detached(f)
	case f.Pin != nil:
		return nil, api.Problem("conflict", "factory %q is %s", f.Name, f.PinMessage())
	case f.Suspended:
		return nil, api.Problem("conflict", "factory %q is suspended: resume it in the settings", f.Name)
	}

	if head.Number == 0 && f.Applied.ID != "" && !f.Applied.Managed && !e.whole {
		return nil, api.Problem(
			"conflict",
			"factory %q has no stored definition yet, and the applied one came from another source: "+
				"import its files first",
			f.Name,
		)
	}

	if _, ok := state.ParseManagedID(e.base); e.base != "" && !ok {
		return nil, api.InvalidField("base_revision", "%q is not the ID of a revision, such as r12", e.base)
	}

	if e.whole && e.base != "" && e.base != head.ID {
		return nil, api.Problem(
			"conflict",
			"the newest revision is %s, by %q, and not %s: look at it first",
			head.ID,
			head.Author,
			e.base,
		)
	}

	return &draft{Current: cur, head: head, files: contents(files)}, nil
}

func contents(files []schema.File) map[string]string {
	all := make(map[string]string, len(files))
	for _, f := range files {
		all[f.Path] = f.Content
	}
	return all
}

// difference returns the edit from before to after.
func difference(base int64, before, after map[string]string) *state.ManagedEdit {
	edit := &state.ManagedEdit{Base: base}
	for p, content := range after {
		if old, there := before[p]; !there || old != content {
			edit.Write = append(edit.Write, schema.File{Path: p, Content: content})
		}
	}

	for p := range before {
		if _, there := after[p]; !there {
			edit.Delete = append(edit.Delete, p)
		}
	}

	return edit
}

// unchanged checks that a file has not changed since the revision that the author of an edit saw.
func (s *service) unchanged(ctx context.Context, d *draft, base, file string) error {
	number, _ := state.ParseManagedID(base)
	if base == "" || number == d.head.Number {
		return nil
	}

	files, err := s.Store.ManagedFiles(ctx, d.Factory.UID, number)
	if errors.Is(err, state.ErrNotFound) {
		return api.Problem(
			"conflict",
			"revision %s is gone: look at the file in %s first",
			base,
			d.head.ID,
		)
	} else if err != nil {
		return err
	}

	old, was := contents(files)[file]
	if now, is := d.files[file]; is != was || now != old {
		return api.Problem("conflict", "%s was changed after %s: look at it in %s first", file, base, d.head.ID)
	}

	return nil
}

// checkManagedFiles returns the files of a definition if the server may hold them. What they say is not looked
// at.
func checkManagedFiles(all map[string]string) ([]schema.File, error) {
	files, bytes := make([]schema.File, 0, len(all)), 0
	for p, content := range all {
		switch {
		case !validPath(p) || len(p) > maxPathBytes || strings.Count(p, "/") >= maxPathDepth:
			return nil, api.InvalidField(
				"path",
				"%q is not a valid path: want a relative path with forward slashes, at most %d elements "+
					"and %d bytes",
				p,
				maxPathDepth,
				maxPathBytes,
			)

		case len(content) > schema.MaxFileBytes:
			return nil, api.InvalidField(
				p,
				"the file has %d bytes; at most %d are held",
				len(content),
				schema.MaxFileBytes,
			)

		case !utf8.ValidString(content):
			return nil, api.InvalidField(p, "the file is not text in UTF-8: leave it out")
		}

		bytes += len(content)
		files = append(files, schema.File{Path: p, Content: content})
	}

	if len(files) > maxManagedFiles {
		return nil, api.InvalidField(
			"files",
			"there are %d files; the server holds at most %d",
			len(files),
			maxManagedFiles,
		)
	}

	if bytes > maxManagedBytes {
		return nil, api.InvalidField("files", "they have %d bytes; the server holds at most %d", bytes, maxManagedBytes)
	}

	return files, nil
}

// refusedEdit has the problems of an edited definition.
type refusedEdit struct {
	problems []schema.Problem
	files    map[string]string
}

// Error names the first problem.
func (r refusedEdit) Error() string {
	first, more := "", 0
	for _, p := range r.problems {
		if p.Severity != schema.SeverityError {
			continue
		} else if first == "" {
			first = place(p) + ": " + p.Message
		} else {
			more++
		}
	}

	if more > 0 {
		first += fmt.Sprintf(", and %d more", more)
	}

	return "the definition would be refused, and nothing was changed: " + first
}

func place(p schema.Problem) string { return fmt.Sprintf("%s:%d:%d", p.Path, p.Line, p.Column) }

// problem returns the answer to the edit. field names the member of the request that caused a problem; if
// it returns "", the answer has the place in the files.
func (r refusedEdit) problem(field func(schema.Problem) string) *api.Error {
	e := api.Problem("invalid_request", "%s", r.Error())
	for _, p := range r.problems {
		if p.Severity != schema.SeverityError || len(e.Errors) == maxProblems {
			continue
		}

		message := p.Message + " [" + p.Code + "]"
		if p.Hint != "" {
			message += ": " + p.Hint
		}

		f := api.FieldError{Field: place(p), Message: message}
		if name := field(p); name != "" {
			f = api.FieldError{Field: name, Message: f.Field + ": " + message}
		}

		e.Errors = append(e.Errors, f)
	}

	return e
}

// answered converts the error of an edit to its answer.
func answered(err error, field func(schema.Problem) string) error {
	var refused refusedEdit
	if errors.As(err, &refused) {
		return refused.problem(field)
	}
	return err
}

// inFiles keeps the place in the files.
func inFiles(schema.Problem) string { return "" }

const sourceManaged = "managed"

// managed returns the factory if the server itself holds its definition. Otherwise the error names the file
// to change elsewhere; todo has the instruction, with %s for the file.
func (s *service) managed(ctx context.Context, uid, file, todo string) (state.Factory, error) {
	f, err := s.factory(ctx, uid)
	if err == nil && f.Source.Kind != sourceManaged {
		err = elsewhere(f, file, todo)
	}
	return f, err
}

// elsewhere returns the answer to an edit of a factory that is not managed. todo is a format for the
// advice, with the file's path as its first operand.
func elsewhere(f state.Factory, file, todo string, more ...any) error {
	where := fmt.Sprintf(todo, append([]any{path.Join(f.Source.Path, file)}, more...)...)
	if f.Source.Kind == "git" {
		return api.Problem(
			"operation_not_supported",
			"factory %q is defined in the branch %s of a git repository: %s",
			f.Name,
			f.Source.Branch,
			where,
		)
	}

	return api.Problem(
		"operation_not_supported",
		"factory %q is defined in a directory of the server: %s",
		f.Name,
		where,
	)
}

// editOperation describes an endpoint that edits a definition.
func editOperation(method, path, id, summary string) huma.Operation {
	return api.Explained(
		api.Also(api.Operation(method, "/factory/{uid}"+path, id, state.RoleAdmin, summary),
			http.StatusConflict, http.StatusUnprocessableEntity),
		"Only for managed factories; for others the answer names the file to edit. The edit is in force "+
			"when the answer comes. An edit with errors changes nothing; the answer lists them in errors.",
	)
}

// liveWebhook returns a live webhook of a managed factory. Otherwise todo says how
// to change it elsewhere, with its file and its secret as the first and second operand.
func (s *service) liveWebhook(ctx context.Context, in WebhookUID, todo string) (state.Factory, state.Webhook, error) {
	f, w, err := s.webhook(ctx, in)
	switch {
	case err != nil:
	case f.Source.Kind != sourceManaged:
		err = elsewhere(f, w.Spec.Path, todo, w.Spec.SecretName)
	case w.Deleted != nil:
		err = api.Problem("resource_not_found", "webhook %q was deleted", w.UID)
	}
	return f, w, err
}
