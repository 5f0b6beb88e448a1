package dashboard

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"millwright/admin"
	"millwright/api"
	"millwright/state"
)

const deliveryRowsShown = 25

// deliveryRow is a row of a delivery log with what belongs to it.
type deliveryRow struct {
	state.Delivery
	Webhook state.Webhook
	Runs    []state.DeliveryRun
}

// deliveryRows merges the logs of webhooks, newest first, before the cursor, and adds the runs.
func (q *request) deliveryRows(
	ctx context.Context,
	hooks []state.Webhook,
	f state.DeliveryFilter,
	before string,
	n int,
) ([]deliveryRow, error) {
	var rows []deliveryRow
	for _, w := range hooks {
		list, err := q.Store.Deliveries(ctx, w.FactoryUID, w.UID, f, before, n)
		if err != nil {
			return nil, err
		}

		for _, d := range list {
			rows = append(rows, deliveryRow{Delivery: d, Webhook: w})
		}
	}

	slices.SortFunc(rows, func(a, b deliveryRow) int { return cmp.Compare(b.UID, a.UID) })
	rows = rows[:min(len(rows), n)]
	var uids []string
	for _, r := range rows {
		uids = append(uids, r.UID)
	}

	runs, err := q.Store.RunsOfDeliveries(ctx, uids...)
	for i := range rows {
		rows[i].Runs = runs[rows[i].UID]
	}

	return rows, err
}

// deliveryList is a delivery log with its filter.
type deliveryList struct {
	Rows     []deliveryRow
	Outcomes []state.DeliveryOutcome
	Webhooks []state.Webhook // to choose from; none on the page of one
	Query    deliveryQuery
	Next     string // the address of the next page
	First    string // the address of the first page, when this is not it
}

// Empty explains a page without deliveries.
func (v deliveryList) Empty() string {
	if v.Query.address("", v.Query.Before) == "" {
		return "No delivery has come yet."
	}
	return "No delivery matches."
}

// deliveryQuery is the filter of a delivery log, as it was typed.
type deliveryQuery struct {
	Webhook, Outcome, From, To, Before string
	Errors                             map[string]string
}

func (v deliveryQuery) filter() (state.DeliveryFilter, map[string]string) {
	f := state.DeliveryFilter{Outcome: state.DeliveryOutcome(v.Outcome)}
	wrong := map[string]string{}
	if v.Outcome != "" && f.Outcome.Label() == v.Outcome {
		wrong["outcome"] = "is none of the outcomes"
		f.Outcome = ""
	}

	for _, at := range []struct {
		name, text string
		to         *time.Time
	}{{"from", v.From, &f.From}, {"to", v.To, &f.To}} {
		if at.text == "" {
			continue
		}

		t, err := time.Parse(inputTime, at.text)
		if err != nil {
			t, err = time.Parse(time.RFC3339, at.text)
		}
		if err != nil || t.Year() < 1970 || t.Year() > 9999 {
			wrong[at.name] = "is not a time such as 2026-01-31T08:30"
			continue
		}

		*at.to = t
	}

	return f, wrong
}

func (v deliveryQuery) address(path, before string) string {
	values := url.Values{}
	fields := map[string]string{
		"webhook": v.Webhook, "outcome": v.Outcome, "from": v.From, "to": v.To, "before": before,
	}
	for name, text := range fields {
		if text != "" {
			values.Set(name, text)
		}
	}
	if len(values) == 0 {
		return path
	}
	return path + "?" + values.Encode()
}

// deliveryList reads the log of webhooks as the address asks.
func (q *request) deliveryList(hooks []state.Webhook) (deliveryList, error) {
	in := q.URL.Query()
	v := deliveryList{
		Outcomes: state.DeliveryOutcomes(),
		Query: deliveryQuery{
			Webhook: clip(64, in.Get("webhook")),
			Outcome: clip(64, in.Get("outcome")),
			From:    clip(64, in.Get("from")),
			To:      clip(64, in.Get("to")),
			Before:  in.Get("before"),
		},
	}

	f, wrong := v.Query.filter()
	v.Query.Errors = wrong
	if v.Query.Before != "" && !state.ValidID(state.PrefixDelivery, v.Query.Before) {
		return v, api.InvalidField("before", "is not a place in this list")
	}

	if v.Query.Webhook != "" {
		var chosen []state.Webhook
		for _, w := range hooks {
			if w.UID == v.Query.Webhook {
				chosen = append(chosen, w)
			}
		}

		if len(chosen) == 0 {
			v.Query.Errors["webhook"] = "is none of this factory"
		}

		hooks = chosen
	}

	rows, err := q.deliveryRows(q.Context(), hooks, f, v.Query.Before, deliveryRowsShown+1)
	if err != nil {
		return v, err
	}
	if v.Rows = rows; len(rows) > deliveryRowsShown {
		v.Rows = rows[:deliveryRowsShown]
		v.Next = v.Query.address(q.URL.Path, v.Rows[deliveryRowsShown-1].UID)
	}
	if v.Query.Before != "" {
		v.First = v.Query.address(q.URL.Path, "")
	}

	return v, nil
}

// deliveries shows the log of all webhooks of a factory.
func (q *request) deliveries() error {
	p, f, err := q.factoryPage("Deliveries", "deliveries")
	if err != nil {
		return err
	}

	hooks, err := q.Store.Webhooks(q.Context(), f.UID, true)
	if err != nil {
		return err
	}

	v, err := q.deliveryList(hooks)
	v.Webhooks = hooks
	p.Data = v
	p.Live = []string{"run"}
	for _, w := range hooks {
		if w.Deleted == nil && (v.Query.Webhook == "" || v.Query.Webhook == w.UID) {
			p.Live = append(p.Live, "delivery."+w.UID)
		}
	}

	if err != nil {
		return err
	}

	return q.render("deliveries", p)
}

// allDeliveries shows the logs of all factories that the key reaches.
func (q *request) allDeliveries() error {
	factories, err := q.ownFactories()
	if err != nil {
		return err
	}

	var hooks []state.Webhook
	for _, f := range factories {
		some, err := q.Store.Webhooks(q.Context(), f.UID, true)
		if err != nil {
			return err
		}
		hooks = append(hooks, some...)
	}

	v, err := q.deliveryList(hooks)
	if err != nil {
		return err
	}

	v.Webhooks = hooks
	return q.render("deliveries", page{Title: "Deliveries", Live: []string{"delivery", "run"}, Data: v})
}

type deliveryView struct {
	Delivery state.Delivery
	Webhook  state.Webhook
	Runs     []state.DeliveryRun
	Detail   admin.DeliveryDetail
	Kept     bool
	Payload  string // pretty-printed
	Bytes    int64
	Again    resend
}

// Started returns the runs of an automation that the delivery started.
func (v deliveryView) Started(automationUID string) (runs []state.DeliveryRun) {
	for _, r := range v.Runs {
		if r.AutomationUID == automationUID {
			runs = append(runs, r)
		}
	}
	return runs
}

// Made returns what the flow of an automation made of the delivery; nil when it made nothing.
func (v deliveryView) Made(automationUID string) *state.FlowDecision {
	for _, d := range v.Delivery.Flow {
		if d.AutomationUID == automationUID {
			return &d
		}
	}
	return nil
}

// Gone returns what flow made of the delivery for automations that no longer exist, or no longer select the
// webhook.
func (v deliveryView) Gone() (all []state.FlowDecision) {
	for _, d := range v.Delivery.Flow {
		if !slices.ContainsFunc(v.Detail.Automations, func(a admin.AutomationVerdict) bool {
			return a.AutomationID == d.AutomationUID
		}) {
			all = append(all, d)
		}
	}
	return all
}

// deliveryPage reads the delivery that the path names.
func (q *request) deliveryPage() (page, deliveryView, error) {
	p, f, w, err := q.webhookPage("Delivery", "deliveries")
	if err != nil {
		return p, deliveryView{}, err
	}

	v := deliveryView{Webhook: w}
	uid := q.param("delivery")
	if !state.ValidID(state.PrefixDelivery, uid) {
		return p, v, api.Problem("resource_not_found", "there is no delivery %s", line(uid))
	}

	v.Delivery, err = q.Store.Delivery(q.Context(), f.UID, w.UID, uid)
	return p, v, err
}

// delivery shows the outcome of one delivery, and the reason.
func (q *request) delivery() error {
	p, v, err := q.deliveryPage()
	if err != nil {
		return err
	}

	d := v.Delivery
	if err := q.call(http.MethodGet, q.apiPath(d), nil, &v.Detail); err != nil {
		return err
	}

	v.Runs = nil
	runs, err := q.Store.RunsOfDeliveries(q.Context(), d.UID)
	if err != nil {
		return err
	}

	v.Runs = runs[d.UID]
	if d.Outcome == state.DeliveryAccepted {
		body, err := q.Store.Payload(q.Context(), d.FactoryUID, d.UID)
		if err != nil && !errors.Is(err, state.ErrNotFound) {
			return err
		}
		if v.Kept = err == nil; v.Kept {
			v.Payload, v.Bytes = pretty(body), int64(len(body))
			v.Again = resendOf(q.PublicURL, v.Webhook, v.Detail.RequestHeaders, body)
		}
	}

	p.Live, p.Data = []string{"run"}, v
	return q.render("delivery", p)
}

func (q *request) apiPath(d state.Delivery) string {
	return "/factory/" + d.FactoryUID + "/webhooks/" + d.WebhookUID + "/deliveries/" + d.UID
}

// payload sends the stored body as a file, byte for byte.
func (q *request) payload() error {
	_, v, err := q.deliveryPage()
	if err != nil {
		return err
	}
	body, err := q.Store.Payload(q.Context(), v.Delivery.FactoryUID, v.Delivery.UID)
	if err != nil {
		return err
	}
	q.download(state.PayloadName, body)
	return nil
}

// download sends foreign bytes as a file that no browser shows.
func (q *request) download(name string, body []byte) {
	q.attach(name, int64(len(body)))
	q.w.Write(body)
}

// attach begins a download of so many foreign bytes.
func (q *request) attach(name string, size int64) {
	h := q.w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	h.Set("Content-Disposition", "attachment; filename*=UTF-8''"+url.PathEscape(clip(200, name)))
	h.Set("Content-Length", strconv.FormatInt(size, 10))
}

// replay starts the runs of a delivery again, as a new delivery.
func (q *request) replay() error {
	_, v, err := q.deliveryPage()
	if err != nil {
		return err
	}
	var made admin.ReplayResponse
	if err := q.call(http.MethodPost, q.apiPath(v.Delivery)+"/replay", nil, &made); err != nil {
		return err
	}
	d := v.Delivery
	return q.redirect("/factories/"+d.FactoryUID+"/webhooks/"+d.WebhookUID+"/deliveries/"+made.DeliveryID, "replayed")
}
