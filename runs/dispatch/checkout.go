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

	all, err := d.repositories(ctx, c, r, listed, func(all []state.RunRepository) int {
		at := d.concerned(target, all)
		if !r.CheckoutHead || def.CheckoutRef != "" || at < 0 || !d.foreign(ctx, r, all[at], target.Target) {
			return -1
		}
		return at
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

	at := d.concerned(target, all)
	o.Checkout = &wire.Checkout{Author: cmp.Or(config.Name, "millwright"), Title: r.Title}
	for i, one := range all {
		out, err := d.source(ctx, c, factory.Name, one)
		if err != nil {
			return err
		}

		var named provider.Target
		if i == at {
			named = target.Target
		}
		choose(&out, one, def.CheckoutRef, named, config.Repositories)
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
// starts in at the commit of a fork: foreign returns its index, or -1.
func (d *Dispatcher) repositories(
	ctx context.Context,
	c state.Claim,
	r state.Run,
	listed []schema.Repository,
	foreign func([]state.RunRepository) int,
) ([]state.RunRepository, error) {
	all, err := d.cfg.Store.Repositories(ctx, r.ID)
	if err != nil || len(all) > 0 || r.Execution > 1 || d.cfg.Forges == nil {
		return all, err
	}

	for _, r := range listed {
		one := state.RunRepository{Position: len(all), Forge: r.CodeForge, Owner: r.Owner, Name: r.Name}
		had := slices.IndexFunc(all, func(other state.RunRepository) bool {
			return strings.EqualFold(other.FullName(), one.FullName())
		})
		switch {
		case had < 0:
			all = append(all, one)
		case d.forgeOf(all[had]) != d.forgeOf(one) && !d.cfg.Forges.Empty():
			return nil, unfit("the run has repository %s of the forges %s and %s: it can have one of them",
				one.FullName(), d.forgeOf(all[had]), d.forgeOf(one))
		}
	}

	if len(all) > wire.MaxRepositories {
		return nil, unfit("the run has %d repositories: at most %d are checked out", len(all), wire.MaxRepositories)
	}
	if d.cfg.Forges.Empty() {
		return all, nil
	}

	if at := foreign(all); at >= 0 {
		all[at].Foreign = true
	}
	return all, d.cfg.Store.SetRepositories(ctx, c, all)
}

// forgeOf returns the name of a repository's forge.
func (d *Dispatcher) forgeOf(r state.RunRepository) string {
	host, err := d.cfg.Forges.Of(forge.Repository{Forge: r.Forge, Owner: r.Owner, Name: r.Name})
	if err != nil {
		return r.Forge
	}
	return host.Name()
}

// foreign reports whether what started a run names a commit of a repository that its forge does not prove to
// be on a branch.
func (d *Dispatcher) foreign(
	ctx context.Context,
	r state.Run,
	one state.RunRepository,
	target provider.Target,
) bool {
	if target.Commit == "" {
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
// starts in a fork's commit. target is zero for a repository that the delivery does not concern.
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
	case target.Commit != "":
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

// sent is what the delivery of a run is about, and the kind of forge that sent it.
type sent struct {
	provider.Target
	kind string
}

// target returns what the delivery of a run is about; zero without a delivery of a forge.
func (d *Dispatcher) target(ctx context.Context, r state.Run) (sent, error) {
	if r.WebhookUID == "" {
		return sent{}, nil
	}

	w, err := d.cfg.Store.Webhook(ctx, r.FactoryUID, r.WebhookUID)
	if errors.Is(err, state.ErrNotFound) {
		return sent{}, nil
	}
	if err != nil {
		return sent{}, err
	}

	payload, err := d.cfg.Store.Attachment(ctx, r, wire.PayloadFile)
	if errors.Is(err, state.ErrNotFound) {
		return sent{}, nil
	}

	scheme := w.Spec.SignatureScheme
	return sent{provider.Read(scheme, "", payload.Body).Target(), provider.ForgeKind(scheme)}, err
}

// concerned returns the index of the repository that a delivery is about, or -1. It has the delivery's name, and
// is at the forge that the server asks about the sender's deliveries, or at a host of git alone. If the settings
// have several forges of the sender's kind, and none of them is the default, it is at any of them.
func (d *Dispatcher) concerned(t sent, all []state.RunRepository) int {
	if t.Repository == "" || d.cfg.Forges == nil {
		return -1
	}

	asked, err := d.cfg.Forges.OfKind(t.kind)
	return slices.IndexFunc(all, func(one state.RunRepository) bool {
		repo := forge.Repository{Forge: one.Forge, Owner: one.Owner, Name: one.Name}
		host, unknown := d.cfg.Forges.Of(repo)
		if unknown != nil || !strings.EqualFold(t.Repository, one.FullName()) {
			return false
		}
		return host.Kind() == forge.Git || host.Kind() == t.kind && (err != nil || host.Name() == asked)
	})
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
