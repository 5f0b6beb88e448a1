package dashboard

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"millwright/admin"
	"millwright/api"
	"millwright/reconcile/plan"
	"millwright/schema"
	"millwright/state"
)

// A managed definition is edited here, file by file. Every change goes through the
// API, which validates the whole definition and applies it, or changes nothing.

type filesView struct {
	Revision string
	Files    []admin.HeldFile
	Form     form // of an import
	Refused  []schema.Problem
}

// managedPage begins a page of a managed factory.
func (q *request) managedPage(title, tab string) (page, state.Factory, error) {
	p, f, err := q.factoryPage(title, tab)
	if err == nil && !managed(f) {
		err = api.Problem(
			"resource_not_found",
			"this server does not manage the definition of factory %s",
			line(f.Name),
		)
	}
	return p, f, err
}

// heldFiles lists the files of the newest revision.
func (q *request) heldFiles(factoryUID string) (admin.ListFilesResponse, error) {
	var all admin.ListFilesResponse
	for cursor, pages := "", 0; pages < maxFilePages; pages++ {
		var list admin.ListFilesResponse
		address := "/factory/" + factoryUID + "/files?limit=500&cursor=" + cursor
		if err := q.call(http.MethodGet, address, nil, &list); err != nil {
			return all, err
		}

		all.Revision, all.Files = list.Revision, append(all.Files, list.Files...)
		if cursor = list.PageInfo.NextCursor; !list.PageInfo.HasNextPage {
			break
		}
	}

	return all, nil
}

// maxFilePages times 500 is at least what the server holds of a definition.
const maxFilePages = 5

func (q *request) files() error { return q.showFiles(http.StatusOK, filesView{}) }

func (q *request) showFiles(status int, v filesView) error {
	p, f, err := q.managedPage("Files", "files")
	if err != nil {
		return err
	}

	list, err := q.heldFiles(f.UID)
	if err != nil {
		return err
	}

	v.Revision, v.Files = list.Revision, list.Files
	p.Live, p.Data = []string{"sync." + f.UID}, v
	return q.renderStatus(status, "files", p)
}

// exportFiles sends the definition as a tar that a git source accepts unchanged.
func (q *request) exportFiles() error {
	_, f, err := q.managedPage("", "")
	if err != nil {
		return err
	}
	var tar bytes.Buffer
	if err := q.call(http.MethodGet, "/factory/"+f.UID+"/files.tar", nil, &tar); err != nil {
		return err
	}
	q.download(f.Name+".tar", tar.Bytes())
	return nil
}

// importFiles replaces the definition by the files of a tar.
func (q *request) importFiles() error {
	_, f, err := q.managedPage("", "")
	if err != nil {
		return err
	}

	v := filesView{Form: q.formOf("allow_prune", "allow_rename")}
	v.Form.Values["tar"] = ""
	upload, _, err := q.FormFile("tar")
	if err != nil {
		v.Form.Errors["tar"] = "choose a tar of definition files"
		return q.showFiles(http.StatusUnprocessableEntity, v)
	}
	defer upload.Close()

	text, err := io.ReadAll(upload) // within bounds.MaxImport
	if err != nil {
		return api.Problem("invalid_request", "the file cannot be read")
	}

	address := "/factory/" + f.UID + "/files.tar?" + url.Values{
		"allow_prune": {yes(v.Form.Values["allow_prune"])}, "allow_rename": {yes(v.Form.Values["allow_rename"])},
	}.Encode()
	return q.edited(
		f.UID,
		q.call(http.MethodPut, address, text, nil),
		&v.Form,
		func() error { return q.showFiles(http.StatusUnprocessableEntity, v) },
	)
}

func yes(value string) string {
	if value == "yes" {
		return "true"
	}
	return "false"
}

// edited leads back to the files after an edit, or shows its form again.
func (q *request) edited(factoryUID string, err error, f *form, again func() error) error {
	switch {
	case err == nil:
		return q.redirect("/factories/"+factoryUID+"/files", "saved")
	case f.take(err):
		return again()
	}
	return err
}

type fileView struct {
	Path     string
	New      bool
	Base     string // the revision that is edited
	Form     form
	Problems []schema.Problem // why the edited definition would be refused
	Tried    bool             // it was only planned
	Tests    []plan.Backtest  // what its triggers would have done
	Filter   string           // the automation whose filter can be tested
	Webhook  string           // that the file declares
}

// file shows the editor of a definition file.
func (q *request) file() error {
	_, f, err := q.managedPage("", "")
	if err != nil {
		return err
	}

	name := clip(1024, q.URL.Query().Get("path"))
	v := fileView{Path: name, New: name == "", Form: form{Values: map[string]string{"path": name}}}
	if v.New {
		list, err := q.heldFiles(f.UID)
		if err != nil {
			return err
		}

		v.Base = list.Revision
		return q.showFile(http.StatusOK, v)
	}

	var now admin.FileContent
	if err := q.call(http.MethodGet, filePath(f.UID, name), nil, &now); err != nil {
		return err
	}

	v.Base, v.Form.Values["content"] = now.Revision, now.Content
	return q.showFile(http.StatusOK, v)
}

func filePath(factoryUID, name string) string {
	return "/factory/" + factoryUID + "/files/" + url.PathEscape(name)
}

func (q *request) showFile(status int, v fileView) error {
	title := v.Path
	if v.New {
		title = "New file"
	}

	p, f, err := q.managedPage(line(title), "files")
	if err != nil {
		return err
	}
	if dir, file := path.Split(v.Path); !v.New && strings.HasPrefix(dir, "automations/") && file == "automation.md" {
		v.Filter = path.Base(dir)
	}
	v.Webhook = webhookOf(v.Path)

	p.Crumbs = append(p.Crumbs, crumb{"Files", "/factories/" + f.UID + "/files"})
	p.Data = v
	return q.renderStatus(status, "file", p)
}

// saveFile writes a definition file.
func (q *request) saveFile() error {
	_, f, err := q.managedPage("", "")
	if err != nil {
		return err
	}

	v := fileView{
		Form: q.formOf("path", "content"),
		New:  q.PostForm.Get("new") == "yes",
		Base: clip(40, q.PostForm.Get("base")),
	}
	v.Path = strings.TrimSpace(v.Form.Values["path"])
	content := unixLines(v.Form.Values["content"])
	v.Form.Values["content"] = content
	if v.Path == "" {
		v.Form.Errors["path"] = "is empty: write for example webhooks/alerts.yaml"
		return q.showFile(http.StatusUnprocessableEntity, v)
	}

	if v.New {
		list, err := q.heldFiles(f.UID)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(list.Files, func(file admin.HeldFile) bool { return file.Path == v.Path }) {
			v.Form.Errors["path"] = "there is a file of this path already: edit that one"
			return q.showFile(http.StatusUnprocessableEntity, v)
		}
	}

	if q.PostForm.Get("try") == "yes" {
		p, err := q.planWith(f.UID, v.Path, content)
		if err != nil {
			return err
		}

		v.Tried, v.Tests, v.Problems = true, p.Backtests, p.Problems[:min(len(p.Problems), 100)]
		return q.showFile(http.StatusOK, v)
	}

	err = q.call(
		http.MethodPut,
		filePath(f.UID, v.Path)+"?base_revision="+url.QueryEscape(v.Base),
		admin.EditFileRequest{Content: content},
		nil,
	)

	return q.edited(f.UID, err, &v.Form, func() error {
		if v.Problems, err = q.refusals(f.UID, v.Path, content); err != nil {
			return err
		}
		return q.showFile(http.StatusUnprocessableEntity, v)
	})
}

// planWith plans a definition with one file changed.
func (q *request) planWith(factoryUID, name, content string) (p plan.Plan, err error) {
	head, err := q.Store.ManagedHead(q.Context(), factoryUID)
	if err != nil {
		return p, err
	}

	files, err := q.Store.ManagedFiles(q.Context(), factoryUID, head.Number)
	if err != nil {
		return p, err
	}

	in := admin.PlanRequest{Files: &[]admin.DefinitionFile{{Path: name, Content: content}}}
	for _, f := range files {
		if f.Path != name {
			*in.Files = append(*in.Files, admin.DefinitionFile(f))
		}
	}

	return p, q.call(http.MethodPost, "/factory/"+factoryUID+"/plan", in, &p)
}

// refusals returns the errors of a definition with one file changed, as validate prints them.
func (q *request) refusals(factoryUID, name, content string) ([]schema.Problem, error) {
	p, err := q.planWith(factoryUID, name, content)
	var problem *api.Error
	if errors.As(err, &problem) && problem.Status < 500 {
		return nil, nil // the path, for one; the edit's own error names it
	}

	p.Problems = slices.DeleteFunc(
		p.Problems,
		func(p schema.Problem) bool { return p.Severity != schema.SeverityError },
	)
	return p.Problems[:min(len(p.Problems), 100)], err
}

// webhookOf returns the name of the webhook that a file declares, or "" when it declares none.
func webhookOf(file string) string {
	dir, name := path.Split(file)
	if dir != "webhooks/" {
		return ""
	}
	return strings.TrimSuffix(name, path.Ext(name))
}

// deleteFile deletes a definition file.
func (q *request) deleteFile() error {
	_, f, err := q.managedPage("", "")
	if err != nil {
		return err
	}

	name := q.PostForm.Get("path")
	v := filesView{Form: q.formOf()}
	if webhook := webhookOf(name); webhook != "" && strings.TrimSpace(q.PostForm.Get("name")) != webhook {
		v.Form.Error = "Nothing was deleted: type " + webhook + " to delete the webhook."
		return q.showFiles(http.StatusUnprocessableEntity, v)
	}

	err = q.call(
		http.MethodDelete,
		filePath(f.UID, name)+"?base_revision="+url.QueryEscape(clip(40, q.PostForm.Get("base"))),
		nil,
		nil,
	)

	return q.edited(f.UID, err, &v.Form, func() error { return q.showFiles(http.StatusUnprocessableEntity, v) })
}

// revision shows what one revision of a definition changed.
func (q *request) revision() error { return q.showRevision(http.StatusOK, form{}) }

type revisionView struct {
	admin.RevisionWithDifference
	Newest string
	Form   form
}

func (q *request) showRevision(status int, typed form) error {
	p, f, err := q.managedPage("", "history")
	if err != nil {
		return err
	}

	v := revisionView{Form: typed}
	address := "/factory/" + f.UID + "/revisions/" + url.PathEscape(q.param("revision"))
	if err := q.call(http.MethodGet, address, nil, &v.RevisionWithDifference); err != nil {
		return err
	}

	head, err := q.Store.ManagedHead(q.Context(), f.UID)
	if err != nil {
		return err
	}

	v.Newest = head.ID
	p.Title = "Revision " + v.Revision.Revision
	p.Crumbs = append(p.Crumbs, crumb{"History", "/factories/" + f.UID + "/history"})
	p.Data = v
	return q.renderStatus(status, "revision", p)
}

// restore makes a new revision with the files of an earlier one.
func (q *request) restore() error {
	_, f, err := q.managedPage("", "")
	if err != nil {
		return err
	}

	typed := q.formOf("allow_prune", "allow_rename")
	address := "/factory/" + f.UID + "/revisions/" + url.PathEscape(q.param("revision")) + "/restore?" + url.Values{
		"base_revision": {
			clip(40, q.PostForm.Get("base")),
		}, "allow_prune": {yes(typed.Values["allow_prune"])}, "allow_rename": {yes(typed.Values["allow_rename"])},
	}.Encode()
	return q.edited(
		f.UID,
		q.call(http.MethodPost, address, nil, nil),
		&typed,
		func() error { return q.showRevision(http.StatusUnprocessableEntity, typed) },
	)
}
