package dashboard

import (
	"strings"

	"millwright/state/checks"
)

// pullRows is how many checked pull requests the page of a factory lists.
const pullRows = 50

// pullRow is a checked pull request on the page of its factory.
type pullRow struct {
	checks.Check
	Tone   string
	Link   string // of its page at the forge; empty: none that a browser may follow
	Closed bool
	Note   string // why the forge does not show the check
}

var checkTones = map[checks.Result]string{
	checks.Pending: "quiet", checks.Success: "good", checks.Failure: "bad", checks.Error: "odd",
}

// pulls returns the checked pull requests of a factory.
func (q *request) pulls(factoryUID string) ([]pullRow, error) {
	all, err := q.Store.Checks().Pulls(q.Context(), factoryUID, pullRows)
	var rows []pullRow
	for _, c := range all {
		row := pullRow{Check: c, Tone: checkTones[c.Result], Closed: !c.Open}
		if strings.HasPrefix(c.Pull.URL, "https://") || strings.HasPrefix(c.Pull.URL, "http://") {
			row.Link = c.Pull.URL
		}

		switch {
		case c.State == checks.Failed:
			row.Note = "Not published: " + c.Reason
		case c.State == checks.Waiting && c.Attempts > 0 && c.Reason != "":
			row.Note = "Published later: " + c.Reason
		}
		rows = append(rows, row)
	}

	return rows, err
}
