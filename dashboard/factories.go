package dashboard

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"path"
	"strconv"

	"millwright/admin"
	"millwright/api"
	"millwright/reconcile/plan"
	"millwright/state"
)

// factoryCard is a factory with what it has.
type factoryCard struct {
	state.Factory
	Webhooks, Automations int
}

// factories lists the factories, detached ones last.
func (q *request) factories() error {
	all, err := q.ownFactories()
	if err != nil {
		return err
	}

	var live, detached []factoryCard
	for _, f := range all {
		cur, err := q.Store.Current(q.Context(), f.UID)
		if errors.Is(err, state.ErrUnreadable) { // the others are shown
			f.SyncState, f.Message, err = state.SyncFailed, err.Error(), nil
		}
		if err != nil {
			return err
		}

		card := factoryCard{f, len(cur.Webhooks), len(cur.Tree.Automations)}
		if f.Detached {
			detached = append(detached, card)
		} else {
			live = append(live, card)
		}
	}

	return q.render(
		"factories",
		page{Title: "Factories", Section: "factories", Live: []string{"sync"}, Data: append(live, detached...)},
	)
}

// factoryPage reads the factory that the path names, and begins a page of it.
func (q *request) factoryPage(title, tab string) (page, state.Factory, error) {
	uid := q.param("factory")
	if !state.ValidID(state.PrefixFactory, uid) {
		return page{}, state.Factory{}, api.Problem("resource_not_found", "there is no factory %s", line(uid))
	}

	f, err := q.Store.Factory(q.Context(), uid)
	p := page{
		Title:   title,
		Section: "factories",
		Tab:     tab,
		Factory: &f,
		Crumbs:  []crumb{{"Factories", "/factories"}, {f.Name, "/factories/" + f.UID}},
	}

	return p, f, err
}

// sync applies the head of the factory's source now.
func (q *request) sync() error {
	_, f, err := q.factoryPage("", "")
	if err != nil {
		return err
	}

	var result admin.Sync
	in := admin.SyncRequest{
		AllowPrune:  q.PostForm.Get("allow_prune") == "yes",
		AllowRename: q.PostForm.Get("allow_rename") == "yes",
		Revision:    q.PostForm.Get("revision"),
	}
	if err := q.call(http.MethodPost, "/factory/"+f.UID+"/sync", in, &result); err != nil {
		return err
	}

	return q.redirect("/factories/"+f.UID, result.Outcome)
}

type planView struct {
	Plan      plan.Plan
	Counts    map[string]int
	Changed   []plan.Change
	Unchanged int
	Error     string
}

// plan shows what applying the head of the source would do. It reads the source, so it may take a while.
func (q *request) plan() error {
	p, f, err := q.factoryPage("Plan", "plan")
	if err != nil {
		return err
	}

	v := planView{Counts: map[string]int{}}
	if err := q.call(http.MethodPost, "/factory/"+f.UID+"/plan", nil, &v.Plan); err != nil {
		problem := problemOf(err)
		if problem.Status == http.StatusForbidden || problem.Status == http.StatusInternalServerError {
			return err
		}

		v.Error = problem.Detail
	}

	for _, c := range v.Plan.Changes {
		v.Counts[c.Action]++
		if c.Action == plan.ActionUnchanged {
			v.Unchanged++
		} else {
			v.Changed = append(v.Changed, c)
		}
	}

	p.Data = v
	return q.render("plan", p)
}

type historyView struct {
	Attempts    []state.Attempt
	Next        string
	Managed     bool
	Revisions   []admin.Revision
	NextManaged string
}

const historyRows = 30

// history lists the attempts to apply.
func (q *request) history() error {
	p, f, err := q.factoryPage("History", "history")
	if err != nil {
		return err
	}

	before := int64(0)
	if text := q.URL.Query().Get("before"); text != "" {
		if before, err = strconv.ParseInt(text, 10, 64); err != nil || before <= 0 {
			return api.InvalidField("before", "is not a place in this list")
		}
	}

	v := historyView{Managed: managed(f)}
	if v.Managed && before == 0 {
		var list admin.ListRevisionsResponse
		address := "/factory/" + f.UID + "/revisions?limit=30&cursor=" + url.QueryEscape(q.URL.Query().Get("revisions"))
		if err := q.call(http.MethodGet, address, nil, &list); err != nil {
			return err
		}

		v.Revisions, v.NextManaged = list.Revisions, list.PageInfo.NextCursor
	}

	if v.Attempts, err = q.Store.Attempts(q.Context(), f.UID, before, historyRows+1); err != nil {
		return err
	}
	if len(v.Attempts) > historyRows {
		v.Attempts = v.Attempts[:historyRows]
		v.Next = strconv.FormatInt(v.Attempts[historyRows-1].ID, 10)
	}

	p.Live, p.Data = []string{"sync." + f.UID}, v
	return q.render("history", p)
}

type attemptView struct {
	Attempt state.Attempt
	Changes []plan.Change
	Whole   bool // every change is there
}

// attempt shows what one attempt to apply changed.
func (q *request) attempt() error {
	p, f, err := q.factoryPage("Attempt", "history")
	if err != nil {
		return err
	}

	id, err := strconv.ParseInt(q.param("attempt"), 10, 64)
	if err != nil {
		return api.Problem("resource_not_found", "there is no attempt %s", line(q.param("attempt")))
	}

	v := attemptView{}
	if v.Attempt, err = q.Store.Attempt(q.Context(), f.UID, id); err != nil {
		return err
	}
	changes := json.NewDecoder(bytes.NewReader(v.Attempt.Changes))
	changes.UseNumber()
	if err := changes.Decode(&v.Changes); err != nil {
		return err
	}

	n := v.Attempt.Counts
	v.Whole = len(v.Changes) >= n.Created+n.Updated+n.Deleted
	p.Crumbs = append(p.Crumbs, crumb{"History", "/factories/" + f.UID + "/history"})
	p.Data = v
	return q.render("attempt", p)
}

// place is where a definition file of a source is edited.
type place struct {
	Path   string
	Line   int // of what is spoken of, 0 for none
	Where  string
	Commit bool // it takes effect when it is committed
}

func (p place) at(line int) place {
	p.Line = line
	return p
}

func placeOf(f state.Factory, file string) place {
	at := path.Join(f.Source.Path, file)
	switch f.Source.Kind {
	case "git":
		return place{
			Path:   at,
			Where:  "on branch " + f.Source.Branch + " of " + admin.WithoutCredentials(f.Source.URL),
			Commit: true,
		}
	case "dir":
		return place{Path: at, Where: "on the server"}
	}

	return place{Path: file}
}

// managed reports whether the server manages the factory's definition.
func managed(f state.Factory) bool { return f.Source.Kind == "managed" && !f.Detached }

// webhookPage reads the webhook that the path names, live or deleted, and begins a page of it.
func (q *request) webhookPage(title, tab string) (page, state.Factory, state.Webhook, error) {
	p, f, err := q.factoryPage(title, tab)
	if err != nil {
		return p, f, state.Webhook{}, err
	}

	uid := q.param("webhook")
	if !state.ValidID(state.PrefixWebhook, uid) {
		return p, f, state.Webhook{}, api.Problem("resource_not_found", "there is no webhook %s", line(uid))
	}

	w, err := q.Store.Webhook(q.Context(), f.UID, uid)
	p.Crumbs = append(
		p.Crumbs,
		crumb{"Webhooks", "/factories/" + f.UID + "/webhooks"},
		crumb{w.Spec.Name, "/factories/" + f.UID + "/webhooks/" + w.UID},
	)
	return p, f, w, err
}
