package forge

import (
	"context"

	"code.gitea.io/sdk/gitea"
	"github.com/google/go-github/v88/github"
	gitlab "gitlab.com/gitlab-org/api/client-go"
)

// pulls collects pages of open pull requests. next is the number of the page after one, 0 after the last.
func pulls(page func(int) (list []Pull, next int, err error)) (open []Pull, whole bool, err error) {
	for n := 1; n != 0; {
		list, next, err := page(n)
		if err != nil {
			return nil, false, err
		}
		if len(open)+len(list) > MaxPulls {
			return append(open, list...)[:MaxPulls], false, nil
		}

		open = append(open, list...)
		if next != 0 && next <= n {
			next = 0 // a forge that repeats itself
		}
		n = next
	}

	return open, true, nil
}

func (g *gitHub) Private(ctx context.Context, repo Repository) (bool, error) {
	r, _, err := g.api.Repositories.Get(inRepository(ctx, repo), repo.Owner, repo.Name)
	visible := r.GetVisibility()
	return r.GetPrivate() && (visible == "" || visible == "private"), g.fail(ctx, err, "read %s", repo)
}

func (g *gitHub) Pulls(ctx context.Context, repo Repository, base string) ([]Pull, bool, error) {
	ctx = inRepository(ctx, repo)
	return pulls(func(page int) ([]Pull, int, error) {
		list, res, err := g.api.PullRequests.List(ctx, repo.Owner, repo.Name, &github.PullRequestListOptions{
			State:       "open",
			Base:        base,
			Sort:        "updated",
			Direction:   "desc",
			ListOptions: github.ListOptions{Page: page, PerPage: pageSize},
		})
		if err != nil {
			return nil, 0, g.fail(ctx, err, "list the pull requests to %q of %s", base, repo)
		}

		var open []Pull
		for _, p := range list {
			open = append(open, gitHubPull(p))
		}

		return open, res.NextPage, nil
	})
}

func (g *gitLab) Private(ctx context.Context, repo Repository) (bool, error) {
	p, _, err := g.api.Projects.GetProject(repo.String(), nil, gitlab.WithContext(ctx))
	if err != nil {
		return false, g.fail(ctx, err, "read %s", repo)
	}
	return p.Visibility == gitlab.PrivateVisibility, nil
}

func (g *gitLab) Pulls(ctx context.Context, repo Repository, base string) ([]Pull, bool, error) {
	return pulls(func(page int) ([]Pull, int, error) {
		opts := &gitlab.ListProjectMergeRequestsOptions{
			ListOptions:  gitlab.ListOptions{Page: int64(page), PerPage: pageSize},
			State:        new("opened"),
			TargetBranch: &base,
			OrderBy:      new("updated_at"),
			Sort:         new("desc"),
		}
		list, res, err := g.api.MergeRequests.ListProjectMergeRequests(
			repo.String(), opts, gitlab.WithContext(ctx),
		)
		if err != nil {
			return nil, 0, g.fail(ctx, err, "list the merge requests to %q of %s", base, repo)
		}

		var open []Pull
		for _, m := range list {
			open = append(open, gitLabPull(repo, m))
		}

		return open, int(res.NextPage), nil
	})
}

func (g *giteaForge) Private(ctx context.Context, repo Repository) (bool, error) {
	r, _, err := g.in(ctx).GetRepo(repo.Owner, repo.Name)
	if err != nil {
		return false, g.fail(ctx, err, "read %s", repo)
	}
	return r.Private && !r.Internal, nil
}

// Pulls reads those to all branches: Gitea does not list those to one.
func (g *giteaForge) Pulls(ctx context.Context, repo Repository, base string) ([]Pull, bool, error) {
	return pulls(func(page int) ([]Pull, int, error) {
		list, res, err := g.in(ctx).ListRepoPullRequests(repo.Owner, repo.Name, gitea.ListPullRequestsOptions{
			ListOptions: gitea.ListOptions{Page: page, PageSize: pageSize},
			State:       gitea.StateOpen,
			Sort:        "recentupdate",
		})
		if err != nil {
			return nil, 0, g.fail(ctx, err, "list the pull requests to %q of %s", base, repo)
		}

		var open []Pull
		for _, p := range list {
			if pull := giteaPull(p); pull.Base.Branch == base {
				open = append(open, pull)
			}
		}

		return open, res.NextPage, nil
	})
}

func (g *gitHost) Private(_ context.Context, repo Repository) (bool, error) {
	return false, g.unsupported("read %s", repo)
}

func (g *gitHost) Pulls(_ context.Context, repo Repository, _ string) ([]Pull, bool, error) {
	return nil, false, g.unsupported("list the pull requests of %s", repo)
}
