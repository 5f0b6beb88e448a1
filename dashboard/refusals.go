package dashboard

import (
	"fmt"
	"time"

	"millwright/state"
)

// refusalNotes describe what a webhook refused within the last day and its log does not show.
func refusalNotes(refused map[state.RefusalKind]state.RefusedRequests) (notes []string) {
	if r := refused[state.RefusedDeliveries]; r.Count > 0 {
		notes = append(notes, fmt.Sprintf(
			"%s refused by the budget of %d a minute, the last from %s: raise deliveriesPerMinute in the webhook's "+
				"file, or ask the sender to slow down",
			count(int(r.Count), "delivery", "deliveries"), r.Budget, line(r.Sender),
		))
	}
	if r := refused[state.RefusedFailures]; r.Count > 0 {
		notes = append(notes, fmt.Sprintf(
			"%s refused after %d failed authentications in a minute, the last from %s: its credential is wrong",
			count(int(r.Count), "request", "requests"), r.Budget, line(r.Sender),
		))
	}
	if r := refused[state.RefusedDisabled]; r.Count > 0 {
		notes = append(notes, fmt.Sprintf(
			"%s answered 404 while the webhook was disabled, the last from %s",
			count(int(r.Count), "request", "requests"), line(r.Sender),
		))
	}

	return notes
}

// refusedRequests returns what webhooks refused within the last day, by UID and cause.
func (q *request) refusedRequests(factoryUID string) (map[string]map[state.RefusalKind]state.RefusedRequests, error) {
	return q.Store.Refusals(q.Context(), factoryUID, time.Now().Add(-24*time.Hour))
}

// refusalFindings name the webhooks that refused deliveries over a budget, or while disabled.
func (q *request) refusalFindings(v *startView, hooks []state.Webhook) (all []finding, err error) {
	refused, err := q.refusedRequests("")
	if err != nil {
		return nil, err
	}

	names := map[string]string{}
	for _, f := range v.Factories {
		names[f.UID] = f.Name
	}
	for _, w := range hooks {
		for _, note := range refusalNotes(refused[w.UID]) {
			all = append(all, finding{
				"odd",
				fmt.Sprintf("Webhook %s / %s", names[w.FactoryUID], w.Spec.Name),
				note,
				"/factories/" + w.FactoryUID + "/webhooks/" + w.UID,
				"Open",
			})
		}
	}

	return all, nil
}
