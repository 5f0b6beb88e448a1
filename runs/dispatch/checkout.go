package dispatch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"millwright/forge"
	"millwright/runs/wire"
	"millwright/schema"
	"millwright/schema/agentconfig"
	"millwright/schema/provider"
	"millwright/state"
)

// credentialTime is how long a forge may take to issue a credential, while the worker waits for its order.
const credentialTime = 3 * time.Second

// checkout adds to an order what the run starts in: the repositories of its factory, and those of its configuration.
func (d *Dispatcher) checkout(
	ctx context.Context,
	c state.Claim,
	r state.Run,
	environment schema.Environment,
	o *wire.Order,
) error {
	var config agentconfig.AmbientAgentConfig
	if err := json.Unmarshal(r.Config, &config); err != nil {
		return unfit("the configuration cannot be read")
	}

	def, err := d.cfg.Store.DefinitionOf(ctx, r)
	if err != nil && !errors.Is(err, state.ErrNotFound) {
		return err
	}

	listed := slices.Concat(def.Repositories, environment.Repositories)
	for _, one := range config.Repositories {
		listed = append(listed, schema.Repository{Owner: one.Owner, Name: one.Name, CodeForge: one.CodeForge})
	}

	target, err := d.target(ctx, r)
	if err != nil {
		return err
	}

	all, err := d.repositories(ctx, c, r, listed, func(one state.RunRepository) bool {
		return r.CheckoutHead && def.CheckoutRef == "" && d.foreign(ctx, r, one, target)
	})
	if err != nil || len(all) == 0 {
		return err
	}
	if d.cfg.Forges == nil || d.cfg.Forges.Empty() {
		notApplied(o, "repositories", "the settings of the server have no forges")
		return nil
	}

	factory, err := d.cfg.Store.Factory(ctx, r.FactoryUID)
	if err != nil {
		return err
	}

	o.Checkout = &wire.Checkout{Author: cmp.Or(config.Name, "millwright"), Title: r.Title}
	for _, one := range all {
		out, err := d.source(ctx, c, factory.Name, one)
		if err != nil {
			return err
		}

		choose(&out, one, def.CheckoutRef, target, config.Repositories)
		o.Confined = o.Confined || one.Foreign
		if out.Password != "" {
			o.Redact = append(o.Redact, out.Password)
		}
		o.Checkout.Repositories = append(o.Checkout.Repositories, out)
	}

	name(o.Checkout.Repositories)
	return nil
}

// repositories returns the repositories of a run. Its first claim decides on them, and which of them the run
// starts in at the commit of a fork.
func (d *Dispatcher) repositories(
	ctx context.Context,
	c state.Claim,
	r state.Run,
	listed []schema.Repository,
	foreign func(state.RunRepository) bool,
) ([]state.RunRepository, error) {
	all, err := d.cfg.Store.Repositories(ctx, r.ID)
	if err != nil || len(all) > 0 || r.Execution > 1 || d.cfg.Forges == nil {
		return all, err
	}

	for _, r := range listed {
		if !slices.ContainsFunc(all, func(one state.RunRepository) bool {
			return one.Forge == r.CodeForge && strings.EqualFold(one.Owner, r.Owner) &&
				strings.EqualFold(one.Name, r.Name)
		}) {
			all = append(all, state.RunRepository{Position: len(all), Forge: r.CodeForge, Owner: r.Owner, Name: r.Name})
		}
	}

	if len(all) > wire.MaxRepositories {
		return nil, unfit("the run has %d repositories: at most %d are checked out", len(all), wire.MaxRepositories)
	}
	if d.cfg.Forges.Empty() {
		return all, nil
	}

	for i, one := range all {
		all[i].Foreign = foreign(one)
	}
	return all, d.cfg.Store.SetRepositories(ctx, c, all)
}

// foreign reports whether what started a run names a commit of a repository that its forge does not prove to
// be on a branch.
func (d *Dispatcher) foreign(
	ctx context.Context,
	r state.Run,
	one state.RunRepository,
	target provider.Target,
) bool {
	if target.Commit == "" || !strings.EqualFold(target.Repository, one.FullName()) {
		return false
	}

	repo := forge.Repository{Forge: one.Forge, Owner: one.Owner, Name: one.Name}
	factory, err := d.cfg.Store.Factory(ctx, r.FactoryUID)
	if err != nil || !d.cfg.Forges.Allowed(factory.Name, repo) {
		return true
	}
	host, err := d.cfg.Forges.Of(repo)
	if err != nil {
		return true
	}

	ctx, cancel := context.WithTimeout(ctx, credentialTime)
	defer cancel()

	branch := ""
	if validBranch(target.Branch) {
		branch = target.Branch
	}
	proven, err := host.Reachable(ctx, repo, target.Commit, branch)
	return err != nil || !proven
}

// source returns where a worker fetches a repository, after checking that the factory may use it.
func (d *Dispatcher) source(
	ctx context.Context,
	c state.Claim,
	factory string,
	r state.RunRepository,
) (wire.Repository, error) {
	out := wire.Repository{Position: r.Position, Owner: r.Owner, Name: r.Name}
	repo := forge.Repository{Forge: r.Forge, Owner: r.Owner, Name: r.Name}
	host, err := d.cfg.Forges.Of(repo)
	if err != nil {
		return out, unfitError{err}
	}
	if !d.cfg.Forges.Allowed(factory, repo) {
		return out, unfit(
			"repository %s: the settings do not allow factory %q to use it: add it to factories[].repositories",
			repo, factory)
	}

	ctx, cancel := context.WithTimeout(ctx, credentialTime)
	defer cancel()

	credential, err := host.Credential(ctx, repo)
	switch {
	case errors.Is(err, state.ErrUnavailable):
		return out, err
	case errors.Is(err, forge.ErrLater), errors.Is(err, context.DeadlineExceeded):
		return out, laterError{err, forge.RetryAfter(err)}
	case err != nil:
		return out, unfitError{err}
	}
	if out.URL, err = host.CloneURL(repo); err != nil {
		return out, unfitError{err}
	}

	if state.ValidID(state.PrefixKey, c.Worker) { // it is on another machine
		switch {
		case strings.HasPrefix(out.URL, "file:"):
			return out, unfit("repository %s: it is a directory of the server, which a worker elsewhere "+
				"cannot fetch", repo)
		case credential.Password != "" && !credential.Short:
			if out.Via = d.relayAddress(c, r.Position); out.Via == "" {
				return out, unfit(
					"repository %s: a worker elsewhere gets no token that lives long, and reads repositories through "+
						"this server only over HTTPS: set publicUrl to an https address, give forge %s a GitHub App, "+
						"or execute this run on the server",
					repo, host.Name())
			}
			credential = forge.Credential{User: c.Worker, Password: c.Token}
		}
	}

	out.User, out.Password = credential.User, credential.Password
	return out, nil
}

// choose sets the commit of a repository: the one that the run began with before, or the ref of the
// automation or of the request, or what the delivery names, if a branch of the repository has it or the run
// starts in a fork's commit.
func choose(
	out *wire.Repository,
	r state.RunRepository,
	ref string,
	target provider.Target,
	asked []agentconfig.RunRepository,
) {
	if r.BaseCommit != "" {
		out.Commit, out.Ref = r.BaseCommit, r.BaseBranch
		return
	}

	for _, one := range asked {
		if strings.EqualFold(one.Owner, r.Owner) && strings.EqualFold(one.Name, r.Name) && one.Ref != "" {
			out.Ref = one.Ref
			return
		}
	}

	switch {
	case r.Foreign:
		out.Commit = target.Commit
		if validBranch(target.BaseBranch) {
			out.Ref = target.BaseBranch
		}
	case ref != "" && r.Position == 0:
		out.Ref = ref
	case strings.EqualFold(target.Repository, r.FullName()) && target.Commit != "":
		out.Commit, out.Proven = target.Commit, true
		if validBranch(target.Branch) {
			out.Ref = target.Branch
		}
		if validBranch(target.BaseBranch) {
			out.Base = target.BaseBranch
		}
	}
}

// validBranch reports whether a text of a payload can be the name of a branch.
func validBranch(name string) bool { return schema.ValidRef(name) && !strings.HasPrefix(name, "refs/") }

// target returns what the delivery of a run is about; zero without a delivery of a forge.
func (d *Dispatcher) target(ctx context.Context, r state.Run) (provider.Target, error) {
	if r.WebhookUID == "" {
		return provider.Target{}, nil
	}

	w, err := d.cfg.Store.Webhook(ctx, r.FactoryUID, r.WebhookUID)
	if errors.Is(err, state.ErrNotFound) {
		return provider.Target{}, nil
	}
	if err != nil {
		return provider.Target{}, err
	}

	payload, err := d.cfg.Store.Attachment(ctx, r, wire.PayloadFile)
	if errors.Is(err, state.ErrNotFound) {
		return provider.Target{}, nil
	}
	return provider.Read(w.Spec.SignatureScheme, "", payload.Body).Target(), err
}

// name gives each of several checkouts a directory of its own.
func name(all []wire.Repository) {
	if len(all) < 2 {
		return
	}

	seen := map[string]int{}
	for _, r := range all {
		seen[strings.ToLower(r.Name)]++
	}
	for i, r := range all {
		if all[i].Directory = r.Name; seen[strings.ToLower(r.Name)] > 1 {
			all[i].Directory = strings.ReplaceAll(r.Owner, "/", "-") + "-" + r.Name
		}
	}
}

// onCheckedOut records the commits that a run begins with.
func (d *Dispatcher) onCheckedOut(ctx context.Context, worker string, r wire.Request) wire.Answer {
	var bases []state.RunRepository
	for _, b := range r.Bases[:min(len(r.Bases), wire.MaxRepositories)] {
		bases = append(bases, state.RunRepository{
			Position:   b.Position,
			BaseCommit: clean(b.Commit, 64),
			BaseBranch: clean(b.Branch, schema.MaxRef),
			Untrusted:  b.Untrusted,
		})
	}

	if err := d.cfg.Store.SetBases(ctx, claimOf(worker, r), bases); err != nil {
		return failure(err)
	}
	return wire.Answer{}
}
