package dispatch

import (
	"context"
	"encoding/json"
	"time"

	"millwright/outbox/request"
	"millwright/runs/wire"
	"millwright/state"
	"millwright/state/outputs"
)

// aim notes what the delivery of a claimed run is about, if the run may have outputs.
func (d *Dispatcher) aim(ctx context.Context, r state.Run) error {
	if r.AutomationUID == "" {
		return nil
	}

	table := d.cfg.Store.Outputs()
	policy, err := table.Policy(ctx, r.ID)
	if err != nil || policy == nil {
		return err
	}

	about, err := d.target(ctx, r)
	if err != nil {
		return err
	}
	repositories, err := d.cfg.Store.Repositories(ctx, r.ID)
	if err != nil {
		return err
	}

	target := request.Target{
		Repository: about.Repository,
		Number:     about.Number,
		Pull:       about.IsPull,
		Commit:     about.Commit,
	}
	if validBranch(about.Branch) {
		target.Branch = about.Branch
	}
	if at := d.concerned(about, repositories); at >= 0 {
		one := repositories[at]
		target.At = request.Repository{Forge: one.Forge, Owner: one.Owner, Name: one.Name}
	}

	text, err := json.Marshal(target)
	if err != nil {
		return err
	}
	return table.SetTarget(ctx, r.ID, text)
}

// checkouts returns the repositories of a run.
func (d *Dispatcher) checkouts(ctx context.Context, r state.Run) (all []request.Checkout, err error) {
	repositories, err := d.cfg.Store.Repositories(ctx, r.ID)
	for _, one := range repositories {
		all = append(all, request.Checkout{
			Repository: request.Repository{Forge: one.Forge, Owner: one.Owner, Name: one.Name},
			BaseCommit: one.BaseCommit,
			BaseBranch: one.BaseBranch,
			Untrusted:  one.Untrusted,
		})
	}
	return all, err
}

// judge adds to the result of an execution what the server is to perform for it, and what it refuses.
func (d *Dispatcher) judge(ctx context.Context, c state.Claim, r wire.Request, result *state.Result) error {
	policy, err := d.cfg.Store.Outputs().Policy(ctx, c.RunID)
	if err != nil || policy == nil && len(r.Outputs) == 0 {
		return err
	}

	run, err := d.cfg.Store.Run(ctx, c.RunID)
	if err != nil {
		return err
	}
	work, err := d.work(ctx, run, policy)
	if err != nil {
		return err
	}

	work.Lines, work.Numbers = r.Outputs, r.Lines
	if result.State != state.RunSucceeded {
		work.Ended = string(result.State)
	}

	said := state.Message{Role: state.RoleAssistant, At: time.Now()}
	for _, v := range request.Judge(work) {
		if v.Type != "" {
			o, err := output(v)
			if err != nil {
				return err
			}
			result.Outputs = append(result.Outputs, o)
		}
		if v.Type == request.Reference && v.Refuse == "" {
			result.Links = append(result.Links, state.Artifact{
				Type:  state.ArtifactReference,
				Path:  v.Act.URL,
				Facts: state.ArtifactFacts{Title: v.Act.Title, ReferenceType: "link"},
			})
		}
		if event, ok := event(v); ok {
			said.Content = append(said.Content, event)
		}
	}

	if len(said.Content) > 0 {
		result.Messages = append(result.Messages, said)
	}
	return nil
}

// work returns what an execution left, without its requests.
func (d *Dispatcher) work(ctx context.Context, r state.Run, policy *outputs.Policy) (w request.Work, err error) {
	w = request.Work{Run: r.ID, Title: r.Title}
	if policy != nil {
		w.Automation, w.Allowed = policy.Automation, policy.Outputs
		if policy.Target != nil {
			if err := json.Unmarshal(policy.Target, &w.Target); err != nil {
				return w, err
			}
		}
	}
	if w.Repositories, err = d.checkouts(ctx, r); err != nil {
		return w, err
	}

	values, err := d.cfg.Store.SecretValues(ctx, r, d.cfg.Environments)
	if err != nil {
		return w, err
	}
	w.Secrets = request.NewSecrets(values)

	bundles, err := d.cfg.Store.CompleteBundles(ctx, r)
	if err != nil {
		return w, err
	}
	for _, b := range bundles {
		for _, c := range w.Repositories {
			if c.String() == b.Repository && b.Facts.Head != "" {
				change := request.Change{Repository: c.Repository, Bundle: b.UID, Head: b.Facts.Head}
				w.Changes = append(w.Changes, change)
			}
		}
	}

	had, err := d.cfg.Store.Outputs().Of(ctx, r.ID)
	for _, o := range had {
		var a request.Act
		if o.Kind == outputs.PullRequest && o.State != outputs.Refused && o.State != outputs.Rejected &&
			json.Unmarshal(o.Body, &a) == nil {
			w.Continues = append(w.Continues, a.Repository)
		}
	}
	return w, err
}

// output returns the row of a verdict.
func output(v request.Verdict) (outputs.Output, error) {
	body, err := json.Marshal(v.Act)
	o := outputs.Output{
		UID:    state.NewID(state.PrefixOutput),
		Kind:   outputs.Kind(v.Type),
		State:  outputs.Pending,
		Body:   body,
		Reason: v.Staged + v.Refuse,
	}

	switch {
	case v.Refuse != "":
		o.State = outputs.Refused
	case v.Staged != "":
		o.State = outputs.Staged
	case v.Type == request.Reference:
		o.State, o.URL = outputs.Done, v.Act.URL
	}

	return o, err
}

// event returns the event of a request that is not simply performed.
func event(v request.Verdict) (state.Block, bool) {
	name, reason := "output_refused", v.Refuse
	if v.Refuse == "" {
		name, reason = "output_staged", v.Staged
	}
	if reason == "" {
		return state.Block{}, false
	}

	data, err := json.Marshal(struct {
		Line   int    `json:"line,omitempty"`
		Type   string `json:"type,omitempty"`
		Reason string `json:"reason"`
	}{v.Line, v.Type, reason})
	return state.Block{Type: "event", Name: name, Data: data}, err == nil
}
