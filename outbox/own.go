package outbox

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"millwright/outbox/request"
	"millwright/schema/provider"
	"millwright/state/checks"
	"millwright/state/outputs"
)

// labelTime is how long after an output a change of labels is taken for its own. Labels bear no marker, and
// Gitea and GitLab do not name the one that changed.
const labelTime = 5 * time.Minute

// runID finds the IDs of runs in names of branches and in addresses. They only lead to the outputs to compare.
var runID = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

const maxRunIDs = 4 // of a name or an address

// Own reports why a delivery tells of what the servers of this state did at a forge, for the Config of an
// ingress; "" if it does not. It does if its sender is the account that performs an output, and its object is
// that output. It asks no forge.
//
// Account and output are recorded before the forge hears of them, so it does not matter if the delivery arrives
// before the forge's answer.
func (o *Outbox) Own(ctx context.Context, d provider.Origin) (why string, err error) {
	if d.Sender == "" {
		return "", nil
	}

	marked := request.MarkerOf(o.key, d.Text)
	if why, err := o.ownCheck(ctx, d, marked); why != "" || err != nil {
		return why, err
	}
	if byPerson(d.Action) {
		return "", nil
	}

	rows, err := o.compared(ctx, d, marked)
	if err != nil {
		return "", err
	}

	for _, row := range rows {
		var act request.Act
		if !strings.EqualFold(row.Account, d.Sender) || json.Unmarshal(row.Body, &act) != nil {
			continue
		}
		if tells(d, marked, row, act) {
			return fmt.Sprintf("the server did this itself as %s, for the output %s of run %s",
				request.Printable(row.Account), row.UID, row.RunID), nil
		}
	}

	return "", nil
}

// ownCheck reports why a delivery tells of a check that the server published; "" if it does not.
func (o *Outbox) ownCheck(ctx context.Context, d provider.Origin, marked string) (why string, err error) {
	table := o.cfg.Store.Checks()
	var rows []checks.Check
	switch page, ours := strings.CutPrefix(d.URL, o.cfg.PublicURL+"/factories/"); {
	case strings.HasPrefix(marked, checkMark):
		number, factory, _ := strings.Cut(marked[len(checkMark):], "-")
		rows, err = table.Subject(ctx, factory, "#"+number)
	case d.Object == "status" && ours && strings.HasPrefix(d.Context, statusContext):
		if end := strings.IndexAny(page, "/#"); end >= 0 {
			page = page[:end]
		}
		rows, err = table.Commit(ctx, page, d.Target.Commit)
	}

	for _, row := range rows {
		if strings.EqualFold(row.Account, d.Sender) {
			return "the server did this itself as " + request.Printable(row.Account) + ", for a check", err
		}
	}

	return "", err
}

// byPerson reports whether an action is one that outputs never have. It is a person's, who may use the same
// account.
func byPerson(action string) bool {
	switch action {
	case "edited", "deleted", "closed", "reopened", "ready_for_review", "converted_to_draft", "assigned",
		"unassigned", "milestoned", "demilestoned", "locked", "unlocked", "dismissed", // of GitHub and Gitea
		"update", "close", "reopen", "merge", "approved", "unapproved", "approval", "unapproval": // of GitLab
		return true
	}
	return false
}

// compared returns the outputs that a delivery may tell of.
func (o *Outbox) compared(ctx context.Context, d provider.Origin, marked string) ([]outputs.Output, error) {
	table := o.cfg.Store.Outputs()
	hint := ""
	switch {
	case d.Labels:
		return table.Recent(ctx, labelTime)
	case marked != "":
		return table.Beside(ctx, marked)
	case d.Object == "status":
		hint = d.URL
	case d.Object == "push" || d.Object == "branch" || synchronized(d):
		hint = d.Target.Branch
	}

	rows, err := table.Of(ctx, runID.FindAllString(hint, maxRunIDs)...)
	if err != nil || d.Object != "status" {
		return rows, err
	}

	if !slices.ContainsFunc(rows, func(row outputs.Output) bool {
		var body outputs.StatusBody
		return row.Kind == outputs.Status && json.Unmarshal(row.Body, &body) == nil && body.Context == d.Context
	}) {
		return nil, nil
	}

	return rows, nil
}

// synchronized reports whether a delivery tells of new commits of a pull request.
func synchronized(d provider.Origin) bool {
	return d.Object == "pull_request" && strings.HasPrefix(d.Action, "synchronize")
}

// tells reports whether a delivery of the account that performs an output tells of that output.
func tells(d provider.Origin, marked string, row outputs.Output, act request.Act) bool {
	branch := row.Kind == outputs.PullRequest && act.Branch == d.Target.Branch
	switch {
	case d.Labels:
		return strings.EqualFold(act.Repository.String(), d.Target.Repository) && labels(d, row, act)
	case d.Object == "push" || synchronized(d):
		return branch && act.Head == d.Target.Commit
	case d.Object == "branch":
		return branch
	case d.Object == "status": // of the same context and run
		return true
	}

	return row.UID == marked
}

// labels reports whether an output changes the labels that a delivery tells of.
func labels(d provider.Origin, row outputs.Output, act request.Act) bool {
	named := slices.Concat(act.Add, act.Remove, act.Labels)
	if d.Label != "" && !slices.ContainsFunc(named, func(l string) bool { return strings.EqualFold(l, d.Label) }) {
		return false
	}

	switch row.Kind {
	case outputs.Label:
		return act.Number == d.Target.Number && act.Pull == d.Target.IsPull
	case outputs.PullRequest:
		return act.Branch == d.Target.Branch && len(act.Labels) > 0
	}

	return false
}
