package dashboard

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"time"

	"millwright/admin"
	"millwright/api"
	"millwright/state"
	"millwright/state/audit"
)

// auditView is a page of the audit log with its filter.
type auditView struct {
	Entries []admin.AuditEntry
	Kinds   []string
	Of      []state.Factory // to choose from
	Names   map[string]string
	Values  map[string]string // of the filter, as they were typed
	Errors  map[string]string
	Next    string
	First   string
}

// audit lists who changed what.
func (q *request) audit() error {
	in := q.URL.Query()
	v := auditView{
		Kinds:  audit.Kinds(),
		Names:  map[string]string{},
		Values: map[string]string{},
		Errors: map[string]string{},
	}
	for _, name := range []string{"actor", "action", "factory", "from", "to"} {
		v.Values[name] = clip(64, in.Get(name))
	}

	all, err := q.Store.Factories(q.Context())
	if err != nil {
		return err
	}

	v.Of = all
	for _, f := range all {
		v.Names[f.UID] = f.Name
	}

	ask := url.Values{"limit": {"50"}}
	for name, value := range map[string]string{
		"actor":       v.Values["actor"],
		"action":      v.Values["action"],
		"factory_uid": v.Values["factory"],
		"after":       v.time("from"),
		"before":      v.time("to"),
		"cursor":      in.Get("cursor"),
	} {
		if value != "" {
			ask.Set(name, value)
		}
	}

	var list admin.ListAuditResponse
	err = q.call(http.MethodGet, "/audit?"+ask.Encode(), nil, &list)
	var problem *api.Error
	if errors.As(err, &problem) && slices.ContainsFunc(problem.Errors, func(e api.FieldError) bool {
		return e.Field == "action"
	}) {
		v.Errors["action"], err = "is no kind of change", nil
	}
	if err != nil {
		return err
	}

	v.Entries = list.Entries
	v.pages(in.Get("cursor") != "", list.PageInfo)
	return q.render("audit", page{Title: "Audit log", Section: "audit", Data: v})
}

// time returns a time of the filter as the API takes it; empty, and an error, if it is none.
func (v *auditView) time(name string) string {
	text := v.Values[name]
	if text == "" {
		return ""
	}

	t, err := time.Parse(inputTime, text)
	if err != nil {
		t, err = time.Parse(time.RFC3339, text)
	}
	if err != nil || t.Year() < 1970 || t.Year() > 9999 {
		v.Errors[name] = "is not a time such as 2026-01-31T08:30"
		return ""
	}

	return t.UTC().Format(time.RFC3339)
}

// pages sets the addresses of the other pages.
func (v *auditView) pages(later bool, info api.PageInfo) {
	address := url.Values{}
	for name, value := range v.Values {
		if value != "" {
			address.Set(name, value)
		}
	}

	if later {
		v.First = "/audit?" + address.Encode()
	}
	if info.HasNextPage {
		address.Set("cursor", info.NextCursor)
		v.Next = "/audit?" + address.Encode()
	}
}
