package schema

import "strings"

// Outputs are the outputs that runs of an automation may have: what the server performs for them at a forge.
// A kind that is nil is not allowed. Defaults are filled in.
type Outputs struct {
	PullRequest *PullRequestOutput `json:"pullRequest,omitempty"`
	Comment     *CommentOutput     `json:"comment,omitempty"`
	Labels      *LabelsOutput      `json:"labels,omitempty"`
	Status      *StatusOutput      `json:"status,omitempty"`
	Review      *ReviewOutput      `json:"review,omitempty"`
	Approval    string             `json:"approval,omitempty"` // ApprovalRequired, or empty
	Protect     []string           `json:"protect,omitempty"`  // paths beside the built-in ones
}

// PullRequestOutput is a pull request from the changes of a run.
type PullRequestOutput struct {
	Base   string   `json:"base,omitempty"` // empty: the branch that the run started from
	Branch string   `json:"branch"`         // with {automation} and {run}
	Draft  bool     `json:"draft"`
	Labels []string `json:"labels,omitempty"`
}

// CommentOutput allows comments on the issue or pull request that a delivery names.
type CommentOutput struct {
	Max int `json:"max"`
}

// LabelsOutput allows to add and remove labels.
type LabelsOutput struct {
	Allow []string `json:"allow"`
	Max   int      `json:"max"`
}

// StatusOutput is a status on the commit that a delivery names.
type StatusOutput struct {
	Context string `json:"context"` // with {automation}
}

// ReviewOutput allows reviews of the pull request that a delivery names.
type ReviewOutput struct {
	Max    int      `json:"max"`
	Events []string `json:"events"` // COMMENT, REQUEST_CHANGES
}

// ApprovalRequired is the Approval of outputs to each of which a person has to agree.
const ApprovalRequired = "required"

// The defaults of outputs.
const (
	DefaultBranch        = "agent/{automation}/{run}"
	DefaultStatusContext = "agent/{automation}"
	defaultLabels        = 3
)

const (
	placeholderAutomation = "{automation}"
	placeholderRun        = "{run}"
)

// BranchOf returns the branch of a run's changes.
func (p PullRequestOutput) BranchOf(automation, run string) string {
	return strings.NewReplacer(placeholderAutomation, automation, placeholderRun, run).Replace(p.Branch)
}

// ContextOf returns the name of a run's status.
func (s StatusOutput) ContextOf(automation string) string {
	return strings.ReplaceAll(s.Context, placeholderAutomation, automation)
}
