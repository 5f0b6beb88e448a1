package forge

import (
	"context"
	"errors"
	"slices"

	gitlab "gitlab.com/gitlab-org/api/client-go"
)

// gitLabEvents are the events of project hooks by the words of definitions.
var gitLabEvents = map[string]struct {
	has func(*gitlab.ProjectHook) bool
	set func(*gitlab.AddProjectHookOptions) **bool
}{
	"push": {
		func(h *gitlab.ProjectHook) bool { return h.PushEvents },
		func(o *gitlab.AddProjectHookOptions) **bool { return &o.PushEvents },
	},
	"tag_push": {
		func(h *gitlab.ProjectHook) bool { return h.TagPushEvents },
		func(o *gitlab.AddProjectHookOptions) **bool { return &o.TagPushEvents },
	},
	"issues": {
		func(h *gitlab.ProjectHook) bool { return h.IssuesEvents },
		func(o *gitlab.AddProjectHookOptions) **bool { return &o.IssuesEvents },
	},
	"merge_requests": {
		func(h *gitlab.ProjectHook) bool { return h.MergeRequestsEvents },
		func(o *gitlab.AddProjectHookOptions) **bool { return &o.MergeRequestsEvents },
	},
	"note": {
		func(h *gitlab.ProjectHook) bool { return h.NoteEvents },
		func(o *gitlab.AddProjectHookOptions) **bool { return &o.NoteEvents },
	},
	"job": {
		func(h *gitlab.ProjectHook) bool { return h.JobEvents },
		func(o *gitlab.AddProjectHookOptions) **bool { return &o.JobEvents },
	},
	"pipeline": {
		func(h *gitlab.ProjectHook) bool { return h.PipelineEvents },
		func(o *gitlab.AddProjectHookOptions) **bool { return &o.PipelineEvents },
	},
	"wiki_page": {
		func(h *gitlab.ProjectHook) bool { return h.WikiPageEvents },
		func(o *gitlab.AddProjectHookOptions) **bool { return &o.WikiPageEvents },
	},
	"deployment": {
		func(h *gitlab.ProjectHook) bool { return h.DeploymentEvents },
		func(o *gitlab.AddProjectHookOptions) **bool { return &o.DeploymentEvents },
	},
	"releases": {
		func(h *gitlab.ProjectHook) bool { return h.ReleasesEvents },
		func(o *gitlab.AddProjectHookOptions) **bool { return &o.ReleasesEvents },
	},
	"emoji": {
		func(h *gitlab.ProjectHook) bool { return h.EmojiEvents },
		func(o *gitlab.AddProjectHookOptions) **bool { return &o.EmojiEvents },
	},
}

// Hooks returns the webhooks of a project.
func (g *gitLab) Hooks(ctx context.Context, repo Repository) ([]Hook, error) {
	return hookPages(func(page int) ([]Hook, error) {
		opts := &gitlab.ListProjectHooksOptions{
			ListOptions: gitlab.ListOptions{Page: int64(page), PerPage: pageSize},
		}
		list, _, err := g.api.Projects.ListProjectHooks(repo.String(), opts, gitlab.WithContext(ctx))
		if err != nil {
			return nil, g.fail(ctx, err, "list the webhooks of %s", repo)
		}

		var hooks []Hook
		for _, h := range list {
			hooks = append(hooks, gitLabHook(h))
		}

		return hooks, nil
	})
}

// gitLabHook returns a webhook. GitLab switches one off for a time when its deliveries fail.
func gitLabHook(h *gitlab.ProjectHook) Hook {
	hook := Hook{ID: h.ID, URL: h.URL, Active: h.AlertStatus != "disabled"}
	for name, event := range gitLabEvents {
		if event.has(h) {
			hook.Events = append(hook.Events, name)
		}
	}

	slices.Sort(hook.Events)
	return hook
}

func (g *gitLab) hookOptions(n NewHook, repo Repository) (gitlab.AddProjectHookOptions, error) {
	opts := gitlab.AddProjectHookOptions{URL: &n.URL, Token: &n.Secret, EnableSSLVerification: new(true)}
	for name, event := range gitLabEvents {
		*event.set(&opts) = new(slices.Contains(n.Events, name))
	}

	for _, name := range n.Events {
		if _, known := gitLabEvents[name]; !known {
			return opts, g.fail(context.Background(), &Error{
				Kind:  ErrRefused,
				Words: "GitLab has no event of this name for webhooks",
			}, "send event %q of %s", name, repo)
		}
	}

	return opts, nil
}

// CreateHook adds a webhook.
func (g *gitLab) CreateHook(ctx context.Context, repo Repository, n NewHook) (Hook, error) {
	opts, err := g.hookOptions(n, repo)
	if err != nil {
		return Hook{}, err
	}

	made, _, err := g.api.Projects.AddProjectHook(repo.String(), &opts, gitlab.WithContext(ctx))
	if err != nil {
		return Hook{}, g.fail(ctx, err, "make a webhook of %s", repo)
	}

	return gitLabHook(made), nil
}

// UpdateHook replaces a webhook.
func (g *gitLab) UpdateHook(ctx context.Context, repo Repository, id int64, n NewHook) error {
	opts, err := g.hookOptions(n, repo)
	if err != nil {
		return err
	}

	edit := gitlab.EditProjectHookOptions{
		URL: opts.URL, Token: opts.Token, EnableSSLVerification: opts.EnableSSLVerification,
		PushEvents: opts.PushEvents, TagPushEvents: opts.TagPushEvents, IssuesEvents: opts.IssuesEvents,
		MergeRequestsEvents: opts.MergeRequestsEvents, NoteEvents: opts.NoteEvents, JobEvents: opts.JobEvents,
		PipelineEvents: opts.PipelineEvents, WikiPageEvents: opts.WikiPageEvents,
		DeploymentEvents: opts.DeploymentEvents, ReleasesEvents: opts.ReleasesEvents,
		EmojiEvents: opts.EmojiEvents,
	}
	_, _, err = g.api.Projects.EditProjectHook(repo.String(), id, &edit, gitlab.WithContext(ctx))
	return g.fail(ctx, err, "change webhook %d of %s", id, repo)
}

// DeleteHook removes a webhook.
func (g *gitLab) DeleteHook(ctx context.Context, repo Repository, id int64) error {
	_, err := g.api.Projects.DeleteProjectHook(repo.String(), id, gitlab.WithContext(ctx))
	err = g.fail(ctx, err, "remove webhook %d of %s", id, repo)
	return orNil(err, errors.Is(err, ErrNotFound))
}

// HookEvents returns the events, sorted.
func (g *gitLab) HookEvents(events []string) []string { return sorted(events) }
