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
	"millwright/schema"
	"millwright/state"
	"millwright/state/outputs"
)

// job is an output with all that performing it needs.
type job struct {
	*Outbox
	row     outputs.Output
	act     request.Act
	run     state.Run
	forge   forge.Forge
	repo    forge.Repository
	secrets request.Secrets
	applied *outputs.Policy // what the definition allows now; nil: nothing
	login   string          // of the account that performs it
	hidden  error           // why the forge does not tell the login
}

// open finds the forge of a repository, if the operator allows the factory to use it.
func (j *job) open(ctx context.Context, repo request.Repository) (err error) {
	factory, err := j.cfg.Store.Factory(ctx, j.row.FactoryUID)
	if err != nil {
		return err
	}

	j.repo = forge.Repository{Forge: repo.Forge, Owner: repo.Owner, Name: repo.Name}
	if factory.Detached || !j.cfg.Forges.Allowed(factory.Name, j.repo) {
		return decision{outputs.Refused, fmt.Sprintf(
			"the server's settings do not allow the factory %q to use the repository %s", factory.Name, repo)}
	}

	j.forge, err = j.cfg.Forges.Of(j.repo)
	return err
}

// account records who performs the output before the forge hears of it: the forge may send its event before it
// answers. A forge that hides the account does not stop the output.
func (j *job) account(ctx context.Context) error {
	j.login, j.hidden = j.forge.Login(ctx)
	if j.hidden != nil {
		if passes(j.hidden) {
			return j.hidden
		}

		j.cfg.Log.Warn("outbox: the forge does not tell the account of its credential: events of what the "+
			"server does there may start runs", "forge", j.forge.Name(), "error", j.hidden)
		return nil
	}

	return j.cfg.Store.Outputs().Performs(ctx, j.row, j.login)
}

// allow checks an output by the definition and the secrets of this moment.
func (j *job) allow(ctx context.Context) (err error) {
	values, err := j.cfg.Store.SecretValues(ctx, j.run, j.cfg.Environments)
	if err != nil {
		return err
	}
	j.secrets = request.NewSecrets(values)

	if j.applied, err = j.cfg.Store.Outputs().Applied(ctx, j.row.AutomationUID); err != nil {
		return err
	}
	if j.act.Person { // who asked for it has the right to
		if j.secrets.In(j.act.Title, j.act.Body) {
			return decision{outputs.Refused, "its text has the value of a secret"}
		}
		return nil
	}
	if j.applied == nil {
		return decision{outputs.Refused, "the applied definition allows this automation no outputs any more"}
	}

	used, err := j.used(ctx)
	if err != nil {
		return err
	}

	reason := request.Recheck(j.applied.Outputs, j.applied.Automation, j.row.RunID, string(j.row.Kind), j.act, used,
		j.secrets)
	if reason != "" {
		return decision{outputs.Refused, reason}
	}
	if j.applied.Outputs.Approval == schema.ApprovalRequired && j.row.DecidedBy == "" {
		return decision{outputs.Staged, "the automation requires approval"}
	}
	if j.row.Kind == outputs.PullRequest {
		j.act = request.Narrowed(*j.applied.Outputs.PullRequest, j.act)
	}

	return nil
}

// used returns how much of its kind's maximum the execution uses up to this output.
func (j *job) used(ctx context.Context) (int, error) {
	all, err := j.cfg.Store.Outputs().Of(ctx, j.row.RunID)
	if err != nil {
		return 0, err
	}

	used := 0
	for _, o := range all {
		if o.Kind != j.row.Kind || o.Execution != j.row.Execution || o.UID > j.row.UID ||
			o.State == outputs.Refused || o.State == outputs.Rejected {
			continue
		}

		var a request.Act
		if err := json.Unmarshal(o.Body, &a); err != nil {
			return 0, err
		}
		used += request.Used(string(o.Kind), a)
	}

	return used, nil
}

func (j *job) thread() forge.Thread { return forge.Thread{Number: j.act.Number, Pull: j.act.Pull} }

// repeated reports whether an earlier attempt may have made the object without recording it.
func (j *job) repeated() bool { return j.row.Attempts > 1 }

// ours reports whether an object of an author is this output. Only what our own account made counts.
func (j *job) ours(author, body string) bool {
	return j.login != "" && strings.EqualFold(j.login, author) && request.Marked(j.key, j.row.UID, body)
}

// comment writes a comment.
func (j *job) comment(ctx context.Context) (string, error) {
	if j.repeated() {
		if j.hidden != nil {
			return "", j.hidden
		}

		made, err := j.forge.Comments(ctx, j.repo, j.thread())
		if err != nil {
			return "", err
		}
		for _, c := range made {
			if j.ours(c.Author, c.Body) {
				return c.URL, nil
			}
		}
	}

	c, err := j.forge.CreateComment(ctx, j.repo, j.thread(), request.Mark(j.key, j.row.UID, j.act.Body))
	return c.URL, err
}

// review writes a review.
func (j *job) review(ctx context.Context) (string, error) {
	if j.repeated() {
		if j.hidden != nil {
			return "", j.hidden
		}

		made, err := j.forge.Reviews(ctx, j.repo, j.act.Number)
		if err != nil {
			return "", err
		}
		for _, r := range made {
			if j.ours(r.Author, r.Body) {
				return r.URL, nil
			}
		}
	}

	review := forge.Review{
		Event:  j.act.Event,
		Body:   request.Mark(j.key, j.row.UID, j.act.Body),
		Commit: j.act.Head,
	}
	for _, c := range j.act.Comments {
		body := request.Mark(j.key, j.row.UID, c.Body)
		review.Comments = append(review.Comments, forge.LineComment{Path: c.Path, Line: c.Line, Body: body})
	}

	r, err := j.forge.CreateReview(ctx, j.repo, j.act.Number, review)
	return r.URL, err
}

// status sets the status of the run on the commit of its delivery and on those that it pushed. The first
// error counts, after all were tried.
func (j *job) status(ctx context.Context) error {
	var body outputs.StatusBody
	if err := json.Unmarshal(j.row.Body, &body); err != nil {
		return fmt.Errorf("the status cannot be read as it is stored: %w", err)
	}

	on, err := j.commits(ctx)
	if err != nil {
		return err
	}

	var first error
	for _, c := range on {
		if err := j.statusOf(ctx, c, body); first == nil {
			first = err
		}
	}

	return first
}

// statusOf sets the status on one commit. One that may be a fork's has it once a person agreed.
func (j *job) statusOf(ctx context.Context, c commit, body outputs.StatusBody) error {
	if err := j.open(ctx, c.repo); err != nil {
		return err
	}

	if !c.ours && j.row.DecidedBy == "" {
		proven, err := j.forge.Reachable(ctx, j.repo, c.commit, c.branch)
		if err != nil {
			return err
		}
		if !proven {
			return decision{outputs.Staged, request.OfFork}
		}
	}

	if err := j.account(ctx); err != nil {
		return err
	}
	return j.setStatus(ctx, c.commit, body)
}

func (j *job) setStatus(ctx context.Context, commit string, s outputs.StatusBody) error {
	return j.forge.SetStatus(ctx, j.repo, commit, forge.Status{
		Context:     s.Context,
		State:       s.State,
		Description: s.Description,
		URL:         j.cfg.PublicURL + "/runs/" + j.row.RunID,
	})
}

// commit is a commit of a repository.
type commit struct {
	repo   request.Repository
	commit string
	branch string // that it is on, by the delivery
	ours   bool   // a worker found it on a branch of the repository, or the server pushed it
}

// commits returns the commits that have the status of the run.
func (j *job) commits(ctx context.Context) (all []commit, err error) {
	p, err := j.cfg.Store.Outputs().Policy(ctx, j.row.RunID)
	if err != nil {
		return nil, err
	}
	if p != nil && p.Target == nil && j.run.Held() && j.run.Execution == j.row.Execution {
		return nil, errEarly
	}

	var target request.Target
	if p != nil && p.Target != nil {
		if err := json.Unmarshal(p.Target, &target); err != nil {
			return nil, err
		}
	}
	if target.Commit != "" && target.At.Name != "" {
		proven, err := j.proven(ctx, target)
		if err != nil {
			return nil, err
		}
		all = append(all, commit{target.At, target.Commit, target.Branch, proven})
	}

	rows, err := j.cfg.Store.Outputs().Of(ctx, j.row.RunID)
	if err != nil {
		return nil, err
	}

	heads := map[request.Repository]string{}
	for _, row := range rows {
		var a request.Act
		if row.Kind == outputs.PullRequest && row.State == outputs.Done && json.Unmarshal(row.Body, &a) == nil {
			heads[a.Repository] = a.Head
		}
	}
	for repo, head := range heads {
		all = append(all, commit{repo: repo, commit: head, ours: true})
	}

	return all, nil
}

// proven reports whether a worker checked the commit of the delivery out, which it found on a branch.
func (j *job) proven(ctx context.Context, target request.Target) (bool, error) {
	all, err := j.cfg.Store.Repositories(ctx, j.row.RunID)
	return slices.ContainsFunc(all, func(r state.RunRepository) bool {
		at := request.Repository{Forge: r.Forge, Owner: r.Owner, Name: r.Name}
		return at == target.At && r.BaseCommit == target.Commit && !r.Untrusted
	}), err
}

// gone reports whether a forge does not have something.
func gone(err error) bool { return errors.Is(err, forge.ErrNotFound) }
