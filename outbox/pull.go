package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"millwright/forge"
	"millwright/outbox/request"
	"millwright/state"
	"millwright/state/outputs"
)

// pullRequest pushes the changes of an execution to the branch of the run, and opens its pull request unless
// there is one.
func (j *job) pullRequest(ctx context.Context) (string, error) {
	bundle, err := j.cfg.Store.Artifact(ctx, j.act.Bundle)
	if err != nil {
		return "", fmt.Errorf("the changes are not stored any more: %w", err)
	}
	if err := j.inspect(ctx, bundle); err != nil {
		return "", err
	}

	if j.hidden != nil {
		return "", j.hidden
	}

	had, err := j.forge.PullOf(ctx, j.repo, j.act.Branch)
	if err != nil && !gone(err) {
		return "", err
	}
	found := err == nil
	if found && had.State == forge.PullOpen && !strings.EqualFold(had.Author, j.login) {
		return "", fmt.Errorf("the branch %s has a pull request of %s", j.act.Branch, request.Printable(had.Author))
	}

	if err := j.push(ctx, bundle); err != nil {
		return "", err
	}

	if !found || had.State != forge.PullOpen && !j.ours(had.Author, had.Body) {
		if had, err = j.create(ctx); err != nil {
			return "", err
		}
	}

	return had.URL, j.complete(ctx, had)
}

// create opens the pull request. A forge may say that there is one before it lists it.
func (j *job) create(ctx context.Context) (forge.Pull, error) {
	base := j.act.Base
	if base == "" { // the run began with a tag
		byDefault, err := j.forge.Branch(ctx, j.repo, "")
		if err != nil {
			return forge.Pull{}, err
		}
		base = byDefault.Branch
	}

	made, err := j.forge.CreatePull(ctx, j.repo, forge.NewPull{
		Title: j.act.Title,
		Body:  request.Mark(j.key, j.row.UID, j.act.Body),
		Head:  j.act.Branch,
		Base:  base,
		Draft: j.act.Draft,
	})
	if !errors.Is(err, forge.ErrConflict) {
		return made, err
	}

	had, missing := j.forge.PullOf(ctx, j.repo, j.act.Branch)
	if missing != nil || had.State != forge.PullOpen || !strings.EqualFold(had.Author, j.login) {
		return forge.Pull{}, err
	}
	return had, nil
}

// push brings the changes to the branch of the run. The branch is new, or where an earlier execution left it.
func (j *job) push(ctx context.Context, bundle state.Artifact) error {
	old := ""
	now, err := j.forge.Branch(ctx, j.repo, j.act.Branch)
	switch {
	case gone(err):
	case err != nil:
		return err
	case now.Commit != j.act.Head:
		heads, err := j.heads(ctx)
		if err != nil {
			return err
		}
		if !slices.Contains(heads, now.Commit) {
			return fmt.Errorf("the branch %s has commits that are not of this run", j.act.Branch)
		}
		old = now.Commit
	}

	folder, _, _ := strings.Cut(j.act.Branch, "/")
	return forge.Push(ctx, j.forge, j.repo, forge.Change{
		Bundle: j.cfg.Store.ArtifactContent(ctx, bundle),
		Base:   j.act.BaseCommit,
		Head:   j.act.Head,
		Branch: j.act.Branch,
		Prefix: folder + "/",
		Old:    old,
	})
}

// heads returns the commits that earlier executions of the run may have pushed to the branch.
func (j *job) heads(ctx context.Context) (all []string, err error) {
	rows, err := j.cfg.Store.Outputs().Of(ctx, j.row.RunID)
	if err != nil {
		return nil, err
	}

	for _, row := range rows {
		var a request.Act
		if row.Kind == outputs.PullRequest && row.UID < j.row.UID && row.Attempts > 0 &&
			json.Unmarshal(row.Body, &a) == nil && a.Repository == j.act.Repository && a.Branch == j.act.Branch {
			all = append(all, a.Head)
		}
	}

	return all, nil
}

// complete does what comes after the pull request is there. All of it may be done twice.
func (j *job) complete(ctx context.Context, pull forge.Pull) error {
	if len(j.act.Labels) > 0 {
		on := forge.Thread{Number: pull.Number, Pull: true}
		if err := j.forge.Labels(ctx, j.repo, on, j.act.Labels, nil); err != nil {
			return err
		}
	}
	if err := j.statusOfHead(ctx); err != nil {
		return err
	}

	return j.cfg.Store.PutLink(ctx, j.row.RunID, state.Artifact{
		Type:       state.ArtifactPullRequest,
		Repository: j.act.Repository.String(),
		Path:       pull.URL,
		Facts: state.ArtifactFacts{
			Branch: j.act.Branch,
			Status: pull.State,
			Forge:  j.act.Repository.Forge,
			Number: pull.Number,
		},
	})
}

// statusOfHead sets the run's status on the pushed commit.
func (j *job) statusOfHead(ctx context.Context) error {
	rows, err := j.cfg.Store.Outputs().Of(ctx, j.row.RunID)
	if err != nil {
		return err
	}

	for _, row := range rows {
		var body outputs.StatusBody
		if row.Kind == outputs.Status && json.Unmarshal(row.Body, &body) == nil {
			return j.setStatus(ctx, j.act.Head, body)
		}
	}

	return nil
}
