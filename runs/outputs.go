package runs

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"millwright/api"
	"millwright/outbox/request"
	"millwright/state"
	"millwright/state/notice"
	"millwright/state/outputs"
)

// ListOutputsResponse lists the outputs of a run.
type ListOutputsResponse struct {
	Outputs []RunOutput `json:"outputs" nullable:"false" doc:"The outputs, oldest first"`
}

// RunOutput is something that the server performs for a run at a forge.
type RunOutput struct {
	OutputUID  string    `json:"output_uid" doc:"Its ID"`
	Kind       string    `json:"kind" enum:"pull_request,comment,label,review,status,reference" doc:"Kind of output"`
	State      string    `json:"state" enum:"pending,doing,staged,done,failed,rejected,refused" doc:"pending and doing: the server performs it. staged: a person has to agree. failed: for good, until somebody tries again. rejected: a person did not agree. refused: it was not allowed"`
	Execution  int       `json:"execution" doc:"Number of the execution that asked for it, from 1"`
	Repository string    `json:"repository,omitempty" doc:"owner/name"`
	Number     int       `json:"number,omitempty" doc:"The issue or pull request that it is about"`
	Branch     string    `json:"branch,omitempty" doc:"The branch of a pull request"`
	Title      string    `json:"title,omitempty" doc:"Title of a pull request or reference"`
	Body       string    `json:"body,omitempty" doc:"Text, as it is sent. Commands to bots contain an invisible character"`
	Add        []string  `json:"add,omitempty" doc:"Labels to add"`
	Remove     []string  `json:"remove,omitempty" doc:"Labels to remove"`
	Event      string    `json:"event,omitempty" doc:"Verdict of a review"`
	URL        string    `json:"url,omitempty" doc:"Address of what was made"`
	Reason     string    `json:"reason,omitempty" doc:"Why it is staged, refused or failed, or waits for another attempt"`
	DecidedBy  string    `json:"decided_by,omitempty" doc:"Who approved or rejected the output"`
	Attempts   int       `json:"attempts" doc:"How often the server began to perform it"`
	CreatedAt  time.Time `json:"created_at" doc:"Time when it was asked for"`
	UpdatedAt  time.Time `json:"updated_at" doc:"Time of the last change"`
}

// OpenPullRequest asks for a pull request from the changes of a run.
type OpenPullRequest struct {
	Repository string `json:"repository,omitempty" maxLength:"400" doc:"owner/name, if the run changed several"`
	Title      string `json:"title,omitempty" maxLength:"250" doc:"The run's title when absent"`
	Body       string `json:"body,omitempty" maxLength:"60000" doc:"Text"`
}

// outputPath names an output in a path.
type outputPath struct {
	RunPath
	OutputUID string `path:"outputUid" doc:"The output's ID"`
}

type openInput struct {
	RunPath
	Body OpenPullRequest
}

func (s *service) registerOutputs() {
	const path = "/agent/runs/{runId}/outputs"
	api.Handle(
		s.api,
		api.Explained(
			api.Operation(http.MethodGet, path, "listRunOutputs", state.RoleViewer, "List the outputs of a run"),
			"What the server performs for the run at a forge, and what it refused.",
		),
		s.outputs,
	)
	api.Handle(
		s.api,
		api.Also(api.Explained(
			api.Operation(http.MethodPost, path, "openPullRequest", state.RoleAdmin,
				"Open a pull request from the changes of a run"),
			"For changes without a pull request. 409 when the run has not ended, has "+
				"no changes, or has a pull request already.",
		), http.StatusConflict),
		s.openPull,
	)

	decide := func(name, id string, role state.Role, summary, text string, f decision) {
		op := api.Operation(http.MethodPost, path+"/{outputUid}/"+name, id, role, summary)
		api.Handle(s.api, api.Also(api.Explained(op, text), http.StatusConflict), s.deciding(f))
	}
	decide("approve", "approveRunOutput", state.RoleAdmin, "Agree to an output",
		"The server performs it. 409 unless it is staged.", outputs.Table.Approve)
	decide("reject", "rejectRunOutput", state.RoleRunner, "Reject an output",
		"It is never performed. 409 unless it is staged.", outputs.Table.Reject)
	decide("retry", "retryRunOutput", state.RoleRunner, "Try an output again",
		"409 unless it failed.",
		func(t outputs.Table, ctx context.Context, run, uid, _ string) (outputs.Output, error) {
			return t.Retry(ctx, run, uid)
		})
}

// decision changes an output on the word of by.
type decision func(t outputs.Table, ctx context.Context, run, uid, by string) (outputs.Output, error)

func (s *service) deciding(change decision) func(context.Context, *outputPath) (RunOutput, error) {
	return func(ctx context.Context, in *outputPath) (RunOutput, error) {
		r, err := s.run(ctx, in.RunPath)
		if err != nil {
			return RunOutput{}, err
		}
		if !state.ValidID(state.PrefixOutput, in.OutputUID) {
			return RunOutput{}, api.Problem("resource_not_found", "the run has no such output")
		}

		o, err := change(s.Store.Outputs(), ctx, r.ID, in.OutputUID, api.KeyOf(ctx).Name)
		switch {
		case errors.Is(err, outputs.ErrNotFound):
			return RunOutput{}, api.Problem("resource_not_found", "the run has no output %s", in.OutputUID)
		case errors.Is(err, outputs.ErrConflict):
			return RunOutput{}, api.Problem("conflict", "output %s is %s", o.UID, o.State)
		case err != nil:
			return RunOutput{}, err
		}

		s.Store.Notify(notice.Run, r.ID)
		return outputItem(o), nil
	}
}

func (s *service) outputs(ctx context.Context, in *RunPath) (ListOutputsResponse, error) {
	r, err := s.run(ctx, *in)
	if err != nil {
		return ListOutputsResponse{}, err
	}

	all, err := s.Store.Outputs().Of(ctx, r.ID)
	out := ListOutputsResponse{Outputs: []RunOutput{}}
	for _, o := range all {
		out.Outputs = append(out.Outputs, outputItem(o))
	}
	return out, err
}

// outputItem returns the API's form of an output.
func outputItem(o outputs.Output) RunOutput {
	item := RunOutput{
		OutputUID: o.UID,
		Kind:      string(o.Kind),
		State:     string(o.State),
		Execution: o.Execution,
		URL:       o.URL,
		Reason:    o.Reason,
		DecidedBy: o.DecidedBy,
		Attempts:  o.Attempts,
		CreatedAt: o.Created,
		UpdatedAt: o.Updated,
	}
	if o.Kind == outputs.Status {
		var s outputs.StatusBody
		if json.Unmarshal(o.Body, &s) == nil {
			item.Title, item.Event, item.Body = s.Context, s.State, s.Description
		}
		return item
	}

	var a request.Act
	if json.Unmarshal(o.Body, &a) != nil {
		return item
	}
	if a.Repository.Name != "" {
		item.Repository = a.Repository.String()
	}
	item.Number, item.Branch, item.Title, item.Body = a.Number, a.Branch, a.Title, a.Body
	item.Add, item.Remove, item.Event = a.Add, a.Remove, a.Event
	return item
}

// openPull adds the pull request that a person asks for.
func (s *service) openPull(ctx context.Context, in *openInput) (RunOutput, error) {
	r, err := s.run(ctx, in.RunPath)
	if err != nil {
		return RunOutput{}, err
	}
	if !r.State.Ended() {
		return RunOutput{}, api.Problem("conflict", "run %s is %s: its changes are there when it has ended",
			r.ID, r.State)
	}
	if !clean(in.Body.Title) || !clean(in.Body.Body) {
		return RunOutput{}, api.InvalidField("body", "holds a NUL character or invalid UTF-8")
	}

	act, err := s.pullOf(ctx, r, in.Body)
	if err != nil {
		return RunOutput{}, err
	}
	body, err := json.Marshal(act)
	if err != nil {
		return RunOutput{}, err
	}

	run := outputs.Run{ID: r.ID, FactoryUID: r.FactoryUID, AutomationUID: r.AutomationUID, Execution: r.Execution}
	o, err := s.Store.Outputs().AddOnce(ctx, run, outputs.Output{
		UID:       state.NewID(state.PrefixOutput),
		Kind:      outputs.PullRequest,
		State:     outputs.Pending,
		Body:      body,
		DecidedBy: api.KeyOf(ctx).Name,
	})
	if errors.Is(err, outputs.ErrConflict) {
		return RunOutput{}, api.Problem("conflict", "run %s has a pull request for these changes already", r.ID)
	}
	if err == nil {
		s.Store.Notify(notice.Run, r.ID)
	}
	return outputItem(o), err
}

// pullOf returns the pull request from the changes of a run.
func (s *service) pullOf(ctx context.Context, r state.Run, in OpenPullRequest) (request.Act, error) {
	work, err := s.left(ctx, r)
	if err != nil {
		return request.Act{}, err
	}

	var found []request.Change
	for _, c := range work.Changes {
		if in.Repository == "" || in.Repository == c.Repository.String() {
			found = append(found, c)
		}
	}
	switch {
	case len(found) == 0:
		return request.Act{}, api.Problem("conflict", "run %s has no changes that a pull request could have", r.ID)
	case len(found) > 1:
		return request.Act{}, api.InvalidField("repository", "the run changed %d repositories: name one", len(found))
	}

	return work.Pull(request.Request{Title: in.Title, Body: in.Body}, found[0]), nil
}

// left returns the changes that a run left, and what its automation says of pull requests.
func (s *service) left(ctx context.Context, r state.Run) (w request.Work, err error) {
	w = request.Work{Run: r.ID, Title: r.Title, Automation: "run"}
	policy, err := s.Store.Outputs().Policy(ctx, r.ID)
	if err != nil {
		return w, err
	}
	if policy != nil {
		w.Automation, w.Allowed = policy.Automation, policy.Outputs
	}

	repositories, err := s.Store.Repositories(ctx, r.ID)
	if err != nil {
		return w, err
	}
	artifacts, err := s.Store.Artifacts(ctx, r.ID)
	if err != nil {
		return w, err
	}

	for _, one := range repositories {
		repo := request.Repository{Forge: one.Forge, Owner: one.Owner, Name: one.Name}
		w.Repositories = append(w.Repositories, request.Checkout{
			Repository: repo,
			BaseCommit: one.BaseCommit,
			BaseBranch: one.BaseBranch,
			Untrusted:  one.Untrusted,
		})
		for _, a := range artifacts[r.ID] {
			if a.Kind == state.KindBundle && a.Repository == one.FullName() && a.Facts.Head != "" {
				w.Changes = append(w.Changes, request.Change{Repository: repo, Bundle: a.UID, Head: a.Facts.Head})
			}
		}
	}

	return w, nil
}
