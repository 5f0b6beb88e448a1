package admin_test

import (
	"fmt"
	"net/http"
	"testing"

	"millwright/admin"
	"millwright/state"
	"millwright/state/workers"
)

func TestWorkersAreListed(t *testing.T) {
	each(t, admin.Config{}, func(w *world) {
		w.call(state.RoleViewer, http.MethodGet, "/workers", "").want(200).length(0, "workers")
		for i := range 5 {
			report := workers.Report{
				UID: state.WorkerUID("local", fmt.Sprint(i)), Worker: "local", Name: fmt.Sprint("host-", i), Version: "1", Slots: 4,
				Harnesses: []string{"echo"}, Runs: []string{"not-held"},
			}
			if i == 0 {
				report.Worker = "key_01h455vb4pex5vsknk084sn02q"
			}
			if err := w.store.Workers().See(t.Context(), report); err != nil {
				t.Fatal(err)
			}
		}

		list := w.call(state.RoleViewer, http.MethodGet, "/workers?limit=500", "").want(200)
		list.length(5, "workers")
		list.hasKeys("uid name version slots busy harnesses runs last_seen_at live key_uid", "workers", 0)
		list.length(0, "workers", 0, "runs")
		if uids := w.all("/workers", "workers", "uid", 2); len(uids) != 5 {
			t.Errorf("pages have %v", uids)
		}
		w.call("", http.MethodGet, "/workers", "").problem(401, "authentication_required")
		w.call(state.RoleWorker, http.MethodGet, "/workers", "").problem(403, "not_authorized")
		w.call(state.RoleViewer, http.MethodGet, "/workers?cursor=x", "").problem(400, "invalid_request")
	})
}
