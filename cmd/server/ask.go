package server

import (
	"context"
	"errors"
	"fmt"

	"millwright/forge"
	"millwright/ingress"
	"millwright/schema/provider"
	"millwright/state"
)

// askForge asks the forge that a delivery came from, for the Config of an ingress.
func (srv *server) askForge(
	ctx context.Context,
	q ingress.Question,
) (a provider.Answer, why string, err error) {
	a.Ask = q.Ask
	name, err := srv.forges.OfKind(provider.ForgeKind(q.Scheme))
	if err != nil {
		return a, err.Error(), nil
	}

	repo, err := forge.ParseRepository(q.Target.Repository)
	if err != nil {
		return a, "the payload names no repository", nil
	}
	repo.Forge = name

	factory, err := srv.store.Factory(ctx, q.FactoryUID)
	if errors.Is(err, state.ErrNotFound) {
		return a, "the factory is gone", nil
	}
	if err != nil {
		return a, "", err
	}
	if !srv.forges.Allowed(factory.Name, repo) {
		return a, fmt.Sprintf("the server's settings do not allow the factory %q to use the repository %s",
			factory.Name, repo), nil
	}

	host, err := srv.forges.Of(repo)
	if err == nil && q.Files {
		a.Files, err = host.PullFiles(ctx, repo, q.Target.Number)
	}
	if err == nil && q.Account {
		a.Account, err = host.Login(ctx)
	}
	if err == nil {
		return a, "", nil
	}
	if passes(err) {
		return a, "", &ingress.Away{Err: err, After: forge.RetryAfter(err)}
	}
	return a, err.Error(), nil
}

// passes reports whether a repeat may help.
func passes(err error) bool {
	return errors.Is(err, forge.ErrLater) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, context.Canceled)
}
