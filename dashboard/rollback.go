package dashboard

import (
	"net/http"
	"net/url"

	"millwright/admin"
	"millwright/reconcile/plan"
)

// rollbackView is the plan of a rollback, with the revisions to choose from.
type rollbackView struct {
	Revisions []admin.AppliedRevision
	Rollback  admin.Rollback
	Changed   []plan.Change
	Prune     bool
	Rename    bool
	Codes     []string // of the problems
	Error     string
}

// rollback shows what a rollback would change.
func (q *request) rollback() error { return q.showRollback(http.StatusOK, "") }

func (q *request) showRollback(status int, problem string) error {
	p, f, err := q.factoryPage("Roll back", "history")
	if err != nil {
		return err
	}

	v := rollbackView{Error: problem}
	var list admin.ListAppliedResponse
	if err := q.call(http.MethodGet, "/factory/"+f.UID+"/applied", nil, &list); err != nil {
		return err
	}

	for _, r := range list.Revisions {
		if r.ReplacedAt != nil {
			v.Revisions = append(v.Revisions, r)
		}
	}

	in := q.rollbackRequest()
	in.DryRun = true
	v.Prune, v.Rename = in.AllowPrune, in.AllowRename
	if err := q.call(http.MethodPost, "/factory/"+f.UID+"/rollback", in, &v.Rollback); err != nil {
		found := problemOf(err)
		if found.Status == http.StatusForbidden || found.Status == http.StatusInternalServerError {
			return err
		}
		v.Error = found.Detail
	}

	for _, c := range v.Rollback.Plan.Changes {
		if c.Action != plan.ActionUnchanged {
			v.Changed = append(v.Changed, c)
		}
	}
	for _, found := range v.Rollback.Plan.Problems {
		v.Codes = append(v.Codes, found.Code)
	}

	p.Data = v
	return q.renderStatus(status, "rollback", p)
}

// rollbackRequest reads what the address or the form asks for.
func (q *request) rollbackRequest() admin.RollbackRequest {
	return admin.RollbackRequest{
		Revision:    clip(200, q.FormValue("revision")),
		AllowPrune:  q.FormValue("allow_prune") == "yes",
		AllowRename: q.FormValue("allow_rename") == "yes",
	}
}

// rollBack serves an earlier revision.
func (q *request) rollBack() error {
	_, f, err := q.factoryPage("", "")
	if err != nil {
		return err
	}

	err = q.call(http.MethodPost, "/factory/"+f.UID+"/rollback", q.rollbackRequest(), nil)
	if err != nil {
		problem := problemOf(err)
		if problem.Status != http.StatusConflict && problem.Status != http.StatusBadRequest {
			return err
		}
		return q.showRollback(problem.Status, problem.Detail)
	}

	return q.redirect("/factories/"+url.PathEscape(f.UID), "rolledback")
}

// resume has the factory follow its source again.
func (q *request) resume() error {
	_, f, err := q.factoryPage("", "")
	if err != nil {
		return err
	}
	if err := q.call(http.MethodPost, "/factory/"+f.UID+"/resume", nil, nil); err != nil {
		return err
	}
	return q.redirect("/factories/"+url.PathEscape(f.UID), "resumed")
}
