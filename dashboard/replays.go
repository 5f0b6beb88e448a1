package dashboard

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"millwright/admin"
	"millwright/api"
	"millwright/state"
)

// maxSelected is how many deliveries a page takes at once.
const maxSelected = 50

// selectedRows returns the deliveries of a factory that were selected, each once, the oldest first.
func (q *request) selectedRows(f state.Factory, uids []string) ([]deliveryRow, error) {
	uids = slices.Compact(slices.Sorted(slices.Values(uids)))
	if len(uids) > maxSelected {
		return nil, api.InvalidField("delivery", "select at most %d deliveries", maxSelected)
	}
	if len(uids) == 0 {
		return nil, nil
	}

	for _, uid := range uids {
		if !state.ValidID(state.PrefixDelivery, uid) {
			return nil, api.Problem("resource_not_found", "there is no delivery %s", line(uid))
		}
	}

	all, err := q.Store.DeliveriesOf(q.Context(), f.UID, uids...)
	if err != nil {
		return nil, err
	}
	hooks, err := q.Store.Webhooks(q.Context(), f.UID, true)
	if err != nil {
		return nil, err
	}

	rows := make([]deliveryRow, 0, len(uids))
	for _, uid := range uids {
		at := slices.IndexFunc(all, func(d state.Delivery) bool { return d.UID == uid })
		if at < 0 {
			return nil, api.Problem("resource_not_found", "the factory has no delivery %s", line(uid))
		}

		of := slices.IndexFunc(hooks, func(w state.Webhook) bool { return w.UID == all[at].WebhookUID })
		if of < 0 {
			return nil, api.Problem("resource_not_found", "the webhook of delivery %s is gone", uid)
		}
		rows = append(rows, deliveryRow{Delivery: all[at], Webhook: hooks[of]})
	}
	return rows, nil
}

// selectedOf leads from the deliveries of all factories, which are selected as factory/delivery, to a page of the
// factory that they are of.
func (q *request) selectedOf() error {
	var of string
	uids := url.Values{}
	for _, pair := range q.URL.Query()["delivery"] {
		factory, uid, _ := strings.Cut(pair, "/")
		if !state.ValidID(state.PrefixFactory, factory) {
			return api.Problem("resource_not_found", "there is no factory %s", line(factory))
		}
		if of != "" && of != factory {
			return api.InvalidField("delivery", "select deliveries of one factory")
		}

		of = factory
		uids.Add("delivery", uid)
	}
	if of == "" {
		return q.redirect("/deliveries", "")
	}

	return q.redirect("/factories/"+of+"/"+q.param("page")+"?"+uids.Encode(), "")
}

// replayView is selected deliveries that are to be replayed, or were.
type replayView struct {
	Rows []replayRow
	Done bool
	Made int // deliveries that were replayed
}

// replayRow is a selected delivery, with what became of it.
type replayRow struct {
	deliveryRow
	Made    string // UID of the new delivery
	Runs    []admin.DeliveryRun
	Problem string
}

// confirmReplay shows which deliveries would be replayed.
func (q *request) confirmReplay() error {
	return q.showReplay(q.URL.Query()["delivery"], func(*replayRow) error { return nil }, false)
}

// replayAll replays the selected deliveries one after the other, and shows what became of each.
func (q *request) replayAll() error {
	if !q.key.Role.Allows(state.RoleRunner) {
		return api.Problem("not_authorized", "replaying deliveries needs a key of role runner")
	}
	if len(q.PostForm["delivery"]) == 0 {
		return api.InvalidField("delivery", "select at least one")
	}

	return q.showReplay(q.PostForm["delivery"], q.replayOne, true)
}

func (q *request) showReplay(uids []string, do func(*replayRow) error, done bool) error {
	p, f, err := q.factoryPage("Replay", "deliveries")
	if err != nil {
		return err
	}
	rows, err := q.selectedRows(f, uids)
	if err != nil {
		return err
	}

	v := replayView{Done: done}
	for _, row := range rows {
		one := replayRow{deliveryRow: row}
		if err := do(&one); err != nil {
			return err
		}
		if one.Made != "" {
			v.Made++
		}
		v.Rows = append(v.Rows, one)
	}

	p.Data = v
	return q.render("replay", p)
}

// replayOne replays a delivery. What the API refuses of it is shown in its row; the error is one of all.
func (q *request) replayOne(row *replayRow) error {
	var made admin.ReplayResponse
	err := q.call(http.MethodPost, q.apiPath(row.Delivery)+"/replay", nil, &made)
	if err == nil {
		row.Made, row.Runs = made.DeliveryID, made.Runs
		return nil
	}

	problem := problemOf(err)
	if problem.Status == http.StatusForbidden || q.Context().Err() != nil {
		return err
	}
	if row.Problem = problem.Detail; row.Problem == "" {
		row.Problem = problem.Title
	}
	return nil
}
