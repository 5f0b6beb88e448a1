package dashboard

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	acts "millwright/outbox/request"
	"millwright/state"
	"millwright/state/outputs"
)

var outputNames = map[outputs.Kind]string{
	outputs.PullRequest: "Pull request",
	outputs.Comment:     "Comment",
	outputs.Label:       "Labels",
	outputs.Review:      "Review",
	outputs.Status:      "Status",
	outputs.Reference:   "Link",
}

var outputTones = map[outputs.State]string{
	outputs.Pending:  "quiet",
	outputs.Doing:    "quiet",
	outputs.Staged:   "odd",
	outputs.Done:     "good",
	outputs.Failed:   "bad",
	outputs.Rejected: "quiet",
	outputs.Refused:  "odd",
}

// outputRowOf describes an output for people.
func outputRowOf(o outputs.Output) outputRow {
	row := outputRow{Output: o, Name: outputNames[o.Kind], Tone: outputTones[o.State]}
	if o.Kind == outputs.Status {
		var s outputs.StatusBody
		if json.Unmarshal(o.Body, &s) == nil {
			row.About = s.Context + ": " + s.State
		}
		return row
	}

	var a acts.Act
	if json.Unmarshal(o.Body, &a) != nil {
		return row
	}

	var about []string
	if a.Repository.Name != "" {
		about = append(about, a.Repository.String())
	}
	if a.Number > 0 && len(about) > 0 {
		about[0] += fmt.Sprintf("#%d", a.Number)
	}
	about = append(about, a.Branch, a.Event)
	for _, l := range a.Add {
		about = append(about, "+"+l)
	}
	for _, l := range a.Remove {
		about = append(about, "-"+l)
	}
	row.About = strings.Join(strings.Fields(strings.Join(about, " ")), " ")

	row.Text = a.Body
	if a.Title != "" {
		row.Text = strings.TrimSpace(a.Title + "\n\n" + a.Body)
	}
	for _, c := range a.Comments {
		row.Text += fmt.Sprintf("\n\n%s:%d\n%s", c.Path, c.Line, c.Body)
	}
	return row
}

// outputs reads the outputs of a run, and whether a person may open a pull request from its changes.
func (q *request) outputs(v *runView) error {
	all, err := q.Store.Outputs().Of(q.Context(), v.Run.ID)
	if err != nil {
		return err
	}

	pulls := 0
	for _, o := range all {
		v.Outputs = append(v.Outputs, outputRowOf(o))
		if o.Kind == outputs.PullRequest && o.State != outputs.Refused && o.State != outputs.Rejected {
			pulls++
		}
	}
	if pulls > 0 || !v.Run.State.Ended() {
		return nil
	}

	artifacts, err := q.Store.Artifacts(q.Context(), v.Run.ID)
	for _, a := range artifacts[v.Run.ID] {
		if a.Kind == state.KindBundle && a.Facts.Head != "" {
			v.Openable = append(v.Openable, a.Repository)
		}
	}
	return err
}

func (q *request) approveOutput() error { return q.decide("approve", "agreed") }
func (q *request) rejectOutput() error  { return q.decide("reject", "rejected") }
func (q *request) retryOutput() error   { return q.decide("retry", "again") }

// decide changes an output of a run, and returns to the run's page with a message.
func (q *request) decide(decision, said string) error {
	id := strings.ToLower(q.param("run"))
	path := "/agent/runs/" + url.PathEscape(id) + "/outputs/" + url.PathEscape(q.param("output")) + "/" + decision
	if err := q.call(http.MethodPost, path, nil, nil); err != nil {
		return err
	}
	return q.redirect("/runs/"+url.PathEscape(id), said)
}

// openPull opens a pull request from the changes of a run.
func (q *request) openPull() error {
	id := strings.ToLower(q.param("run"))
	in := map[string]string{"repository": q.FormValue("repository")}
	if err := q.call(http.MethodPost, "/agent/runs/"+url.PathEscape(id)+"/outputs", in, nil); err != nil {
		return err
	}
	return q.redirect("/runs/"+url.PathEscape(id), "opened")
}

// pullsOf returns the pull requests that runs opened, by run ID.
func (q *request) pullsOf(runs []state.Run) (map[string][]state.Artifact, error) {
	var ids []string
	for _, r := range runs {
		ids = append(ids, r.ID)
	}

	all, err := q.Store.Artifacts(q.Context(), ids...)
	for id, artifacts := range all {
		all[id] = slices.DeleteFunc(artifacts, func(a state.Artifact) bool {
			return a.Type != state.ArtifactPullRequest || webAddress(a) == ""
		})
	}
	return all, err
}

// outputFindings are the outputs that wait for a person.
func (q *request) outputFindings() (all []finding, err error) {
	failed, staged, err := q.Store.Outputs().Attention(q.Context(), maxOutputFindings)
	for _, o := range failed {
		row := outputRowOf(o)
		all = append(all, finding{"bad", row.Name + " failed: " + row.About, o.Reason, "/runs/" + o.RunID, "Try again"})
	}
	for _, o := range staged {
		row := outputRowOf(o)
		all = append(all,
			finding{"odd", row.Name + " waits for approval: " + row.About, o.Reason, "/runs/" + o.RunID, "Look"})
	}
	return all, err
}

// maxOutputFindings bounds the outputs of each state on the start page.
const maxOutputFindings = 5
