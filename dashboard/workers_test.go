package dashboard_test

import (
	"strings"
	"testing"

	"millwright/state"
	"millwright/state/statetest"
	"millwright/state/workers"
)

func TestWorkersPage(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		b := w.signedIn(state.RoleViewer)
		says(t, b.page("/workers"), "No worker was seen within a day")
		w.run("work")
		statetest.Until(t, "the overview to say that no worker takes runs", func() bool {
			return strings.Contains(plain(b.page("/")), "No worker takes runs")
		})

		report := workers.Report{
			UID: state.WorkerUID("local", "1"), Worker: "local", Name: "<b>build</b>", Slots: 2, Harnesses: []string{"echo"},
		}
		if err := w.store.Workers().See(t.Context(), report); err != nil {
			t.Fatal(err)
		}
		page := b.page("/workers")
		says(t, page, "<b>build</b>", "0 of 2", "free", "echo", "in the server's own process")
		saysNot(t, b.page("/"), "No worker takes runs")
	})
}
