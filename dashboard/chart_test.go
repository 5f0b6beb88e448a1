package dashboard_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"millwright/state"
	"millwright/state/statetest"
)

var (
	barOfDeliveries = regexp.MustCompile(`<a href="(/deliveries\?[^"]+)" tabindex="-1"><rect class="bar accepted"`)
	barOfRuns       = regexp.MustCompile(`<a href="(/runs\?[^"]+)" tabindex="-1"><rect class="bar queued"`)
	cellOfRuns      = regexp.MustCompile(`<a href="(/runs\?[^"]+)" aria-label="1 Queued`)
	zoomOfRow       = regexp.MustCompile(`<tr><td class="main"><a href="([^"]+)"`)
)

// TestCharts: a bar, and its cell in the table, lead to the list of what it counts. A row leads to the chart of
// its time.
func TestCharts(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.furnish()
		d := w.ciDelivery(`{"status":"failed"}`)
		b := w.signedIn(state.RoleViewer)
		counted := func(path string, pattern *regexp.Regexp) string {
			t.Helper()
			var page string
			statetest.Until(t, path+" is counted", func() bool {
				page = b.page(path)
				return pattern.MatchString(page)
			})
			return page
		}

		for _, path := range []string{"/", "/?range=1h", "/?range=30d"} {
			page := counted(path, barOfDeliveries)
			says(t, b.page(find(t, barOfDeliveries, page)), d.UID)
			page = counted(path, cellOfRuns)
			if bar, cell := find(t, barOfRuns, page), find(t, cellOfRuns, page); bar != cell {
				t.Errorf("%s: the bar leads to %s, the table to %s", path, bar, cell)
			}
			says(t, b.page(find(t, barOfRuns, page)), "triage from ci", "state=QUEUED")
		}

		// Everything is in the address: the chart of a list stays as it is.
		list := find(t, barOfRuns, counted("/runs?range=7d", barOfRuns))
		says(t, b.page(list), "in the last 7 days</h2>", "triage from ci", `name="range" value="7d"`)
		early := strings.NewReplacer("changed_to=", "changed_from=2001-01-01T00%3A00&x=", "changed_from=", "changed_to=")
		says(t, b.page(early.Replace(list)), "No run matches.")
		counted(find(t, zoomOfRow, counted("/?range=7d", zoomOfRow)), barOfDeliveries)

		now := time.Now().UTC()
		at := func(d time.Duration) string { return now.Add(d).Format("2006-01-02T15:04") }
		own := "/?since=" + at(-2*time.Hour) + "&until=" + at(time.Hour)
		says(t, counted(own, barOfDeliveries), "Deliveries from ", "Earlier", "Zoom in", "Zoom out")
		statetest.Until(t, "an empty range is counted", func() bool {
			page := b.page("/?since=2020-01-01T00:00&until=2020-03-01T00:00")
			return strings.Contains(page, "Nothing in this time.") && strings.Contains(page, "Later")
		})
	})
}

// TestWrongRanges: a range that cannot be shown is refused beside its fields, with what was typed.
func TestWrongRanges(t *testing.T) {
	w := newWorld(t, statetest.Open(t, statetest.SQLite(t)), "")
	w.furnish()
	b := w.signedIn(state.RoleViewer)
	for query, want := range map[string]string{
		"since=2026-01-01T00:00":                        "Write both times",
		"since=%3Cscript%3E&until=2026-01-01T00:00":     "Write both times",
		"since=0001-01-01T00:00&until=9999-01-01T00:00": "Write both times",
		"since=2026-01-02T00:00&until=2026-01-01T00:00": "at least 5 minutes",
		"since=2026-01-01T00:00&until=2026-01-01T00:04": "at least 5 minutes",
		"since=2024-01-01T00:00&until=2026-01-01T00:00": "at most 366 days",
	} {
		for _, path := range []string{"/", "/runs", "/factories/" + w.repo} {
			page := b.page(path + "?" + query)
			says(t, page, want, "in the last 24 hours</h2>", `aria-invalid="true"`)
			hostile(t, path+"?"+query, page)
		}
	}
	says(t, b.page("/runs?changed_from=yesterday"), "is not a time such as")
	says(t, b.page("/deliveries?from=yesterday"), "is not a time such as")
}
