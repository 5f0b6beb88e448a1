package dashboard

import (
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"

	"millwright/api"
	"millwright/state/notice"
)

// filteredPages are the pages of all factories that leave out those that the key does not reach.
var filteredPages = []string{"/", "/factories", "/runs", "/runs/new", "/deliveries", "/search", "/live", "/logout"}

// reach returns nil if the key may use the page. To a key that is limited to factories, other factories and their
// runs do not exist.
func (q *request) reach() error {
	if !q.key.Limited() {
		return nil
	}

	route := chi.RouteContext(q.Context()).RoutePattern()
	switch {
	case strings.HasPrefix(route, "/factories/{factory}"):
		if uid := q.param("factory"); !q.key.Reaches(uid) {
			return api.Problem("resource_not_found", "there is no factory %s", line(uid))
		}
		return nil
	case strings.HasPrefix(route, "/runs/{run}"):
		return q.reachRun(strings.ToLower(q.param("run")))
	case slices.Contains(filteredPages, route):
		return nil
	}

	return api.Problem("not_authorized", "your key is limited to factories, and this page concerns all")
}

func (q *request) reachRun(id string) error {
	r, err := q.Store.Run(q.Context(), id)
	if err == nil && !q.key.Reaches(r.FactoryUID) {
		return api.Problem("resource_not_found", "run %q does not exist", id)
	}
	return err
}

// concerns reports whether the key reaches what a notice is about.
func (q *request) concerns(n notice.Notice) bool {
	if !q.key.Limited() {
		return true
	}

	switch n.Topic {
	case notice.Sync:
		return q.key.Reaches(n.ID)
	case notice.Run:
		return q.reachRun(n.ID) == nil
	case notice.Delivery:
		return slices.ContainsFunc(q.key.Factories, func(factory string) bool {
			_, err := q.Store.Webhook(q.Context(), factory, n.ID)
			return err == nil
		})
	}

	return false
}
