package forge

import (
	"context"
	"errors"
	"slices"
	"strings"

	"code.gitea.io/sdk/gitea"
)

// Hooks returns the webhooks of a repository.
func (g *giteaForge) Hooks(ctx context.Context, repo Repository) ([]Hook, error) {
	return hookPages(func(page int) ([]Hook, error) {
		list, _, err := g.in(ctx).ListRepoHooks(repo.Owner, repo.Name, gitea.ListHooksOptions{
			ListOptions: gitea.ListOptions{Page: page, PageSize: pageSize},
		})
		if err != nil {
			return nil, g.fail(ctx, err, "list the webhooks of %s", repo)
		}

		var hooks []Hook
		for _, h := range list {
			hooks = append(hooks, giteaHook(h))
		}

		return hooks, nil
	})
}

func giteaHook(h *gitea.Hook) Hook {
	return Hook{ID: h.ID, URL: h.Config["url"], Events: sorted(giteaEvents(h.Events)), Active: h.Active}
}

// giteaEvents leaves out the parts of pull_request and issues, which Gitea adds to these, such as pull_request_sync.
func giteaEvents(events []string) []string {
	for whole, part := range map[string]string{"pull_request": "pull_request_", "issues": "issue_"} {
		if slices.Contains(events, whole) {
			events = slices.DeleteFunc(slices.Clone(events), func(e string) bool { return strings.HasPrefix(e, part) })
		}
	}
	return events
}

func giteaHookConfig(n NewHook) map[string]string {
	return map[string]string{"url": n.URL, "content_type": "json", "http_method": "post", "secret": n.Secret}
}

// CreateHook adds a webhook.
func (g *giteaForge) CreateHook(ctx context.Context, repo Repository, n NewHook) (Hook, error) {
	made, _, err := g.in(ctx).CreateRepoHook(repo.Owner, repo.Name, gitea.CreateHookOption{
		Type: gitea.HookTypeGitea, Config: giteaHookConfig(n), Events: n.Events, Active: true,
	})
	if err != nil {
		return Hook{}, g.fail(ctx, err, "make a webhook of %s", repo)
	}
	return giteaHook(made), nil
}

// UpdateHook replaces a webhook.
func (g *giteaForge) UpdateHook(ctx context.Context, repo Repository, id int64, n NewHook) error {
	_, err := g.in(ctx).EditRepoHook(repo.Owner, repo.Name, id, gitea.EditHookOption{
		Config: giteaHookConfig(n), Events: n.Events, Active: new(true),
	})
	return g.fail(ctx, err, "change webhook %d of %s", id, repo)
}

// DeleteHook removes a webhook.
func (g *giteaForge) DeleteHook(ctx context.Context, repo Repository, id int64) error {
	_, err := g.in(ctx).DeleteRepoHook(repo.Owner, repo.Name, id)
	err = g.fail(ctx, err, "remove webhook %d of %s", id, repo)
	return orNil(err, errors.Is(err, ErrNotFound))
}

// HookEvents returns the events, sorted, without those that others contain.
func (g *giteaForge) HookEvents(events []string) []string { return sorted(giteaEvents(events)) }
