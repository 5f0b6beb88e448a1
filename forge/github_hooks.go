package forge

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/go-github/v88/github"
)

// Hooks returns the webhooks of a repository.
func (g *gitHub) Hooks(ctx context.Context, repo Repository) ([]Hook, error) {
	ctx = inRepository(ctx, repo)
	return hookPages(func(page int) ([]Hook, error) {
		opts := &github.ListOptions{Page: page, PerPage: pageSize}
		list, _, err := g.api.Repositories.ListHooks(ctx, repo.Owner, repo.Name, opts)
		if err != nil {
			return nil, g.fail(ctx, err, "list the webhooks of %s", repo)
		}

		var hooks []Hook
		for _, h := range list {
			hooks = append(hooks, gitHubHook(h))
		}

		return hooks, nil
	})
}

func gitHubHook(h *github.Hook) Hook {
	return Hook{ID: h.GetID(), URL: h.GetConfig().GetURL(), Events: sorted(h.Events), Active: h.GetActive()}
}

func newGitHubHook(n NewHook) *github.Hook {
	return &github.Hook{
		Config: &github.HookConfig{
			URL:         &n.URL,
			ContentType: new("json"),
			InsecureSSL: new("0"),
			Secret:      &n.Secret,
		},
		Events: n.Events,
		Active: new(true),
	}
}

// CreateHook adds a webhook.
func (g *gitHub) CreateHook(ctx context.Context, repo Repository, n NewHook) (Hook, error) {
	ctx = inRepository(ctx, repo)
	made, _, err := g.api.Repositories.CreateHook(ctx, repo.Owner, repo.Name, newGitHubHook(n))
	if err != nil {
		return Hook{}, g.fail(ctx, err, "make a webhook of %s", repo)
	}
	return gitHubHook(made), nil
}

// UpdateHook replaces a webhook.
func (g *gitHub) UpdateHook(ctx context.Context, repo Repository, id int64, n NewHook) error {
	ctx = inRepository(ctx, repo)
	_, _, err := g.api.Repositories.EditHook(ctx, repo.Owner, repo.Name, id, newGitHubHook(n))
	return g.fail(ctx, err, "change webhook %d of %s", id, repo)
}

// DeleteHook removes a webhook.
func (g *gitHub) DeleteHook(ctx context.Context, repo Repository, id int64) error {
	ctx = inRepository(ctx, repo)
	_, err := g.api.Repositories.DeleteHook(ctx, repo.Owner, repo.Name, id)
	err = g.fail(ctx, err, "remove webhook %d of %s", id, repo)
	return orNil(err, errors.Is(err, ErrNotFound))
}

// FailedDeliveries reads the list of deliveries, newest first, back to a time.
func (g *gitHub) FailedDeliveries(
	ctx context.Context, repo Repository, hook int64, since time.Time,
) ([]Delivery, error) {
	ctx = inRepository(ctx, repo)
	opts := &github.ListCursorOptions{PerPage: pageSize}
	var failed []Delivery
	seen := map[string]bool{} // with a newer attempt
	delivered := map[string]bool{}
	for range maxDeliveryList {
		list, res, err := g.api.Repositories.ListHookDeliveries(ctx, repo.Owner, repo.Name, hook, opts)
		if err != nil {
			return nil, g.fail(ctx, err, "list the deliveries of webhook %d of %s", hook, repo)
		}

		old := false
		for _, d := range list {
			at := d.GetDeliveredAt().Time
			if old = at.Before(since); old {
				break
			}

			code := d.GetStatusCode()
			delivered[d.GetGUID()] = delivered[d.GetGUID()] || code >= 200 && code < 300
			if !seen[d.GetGUID()] && d.GetEvent() != "ping" {
				failed = append(failed, Delivery{ID: d.GetID(), GUID: d.GetGUID(), At: at})
			}
			seen[d.GetGUID()] = true
		}

		if old || res.Cursor == "" || len(list) == 0 {
			break
		}
		opts.Cursor = res.Cursor
	}

	failed = slices.DeleteFunc(failed, func(d Delivery) bool { return delivered[d.GUID] })
	slices.Reverse(failed)
	return failed[:min(len(failed), MaxRedeliveries)], nil
}

// Redeliver has a delivery sent again. GitHub accepts the request, and sends later.
func (g *gitHub) Redeliver(ctx context.Context, repo Repository, hook, delivery int64) error {
	ctx = inRepository(ctx, repo)
	_, _, err := g.api.Repositories.RedeliverHookDelivery(ctx, repo.Owner, repo.Name, hook, delivery)
	if errors.As(err, new(*github.AcceptedError)) {
		return nil
	}
	return g.fail(ctx, err, "send delivery %d of webhook %d of %s again", delivery, hook, repo)
}

// HookEvents returns the events, sorted.
func (g *gitHub) HookEvents(events []string) []string { return sorted(events) }
