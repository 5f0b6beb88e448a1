package forge

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/google/go-github/v88/github"
)

// gitHub is github.com or a GitHub Enterprise server.
type gitHub struct {
	host
	api *github.Client
	app *gitHubApp // nil: authenticated with a token
}

func openGitHub(
	h host, api *url.URL, app *App, secret func(context.Context, string) ([]byte, error),
) (Forge, error) {
	g := &gitHub{host: h}
	client := newClient(api, token(h.secret), nil)
	if app != nil {
		g.app = newGitHubApp(api, *app, secret)
		client = newClient(api, g.app.bearer, g.app.rejected)
	}

	var err error
	g.api, err = gitHubClient(api, client)
	if err != nil {
		return nil, &ConfigError{"forges." + h.name + ".api", err}
	}

	return g, nil
}

func (g *gitHub) Credential(ctx context.Context, repo Repository) (Credential, error) {
	if g.app != nil {
		c, err := g.app.credential(ctx, repo, "read")
		return c, g.fail(ctx, err, "get a token to read %s", repo)
	}
	return g.credential(ctx, gitUser, "read the token")
}

func (g *gitHub) push(ctx context.Context, repo Repository) (string, Credential, error) {
	address, err := g.CloneURL(repo)
	if err != nil {
		return "", Credential{}, err
	}

	if g.app != nil {
		c, err := g.app.credential(ctx, repo, "write")
		return address, c, g.fail(ctx, err, "get a token to push to %s", repo)
	}

	c, err := g.credential(ctx, gitUser, "read the token")
	return address, c, err
}

func (g *gitHub) Login(ctx context.Context) (string, error) {
	if g.app != nil {
		slug, err := g.app.slug(ctx)
		return slug + "[bot]", g.fail(ctx, err, "read the name of the app")
	}

	user, _, err := g.api.Users.Get(ctx, "")
	return user.GetLogin(), g.fail(ctx, err, "read the account of the token")
}

func (g *gitHub) Branch(ctx context.Context, repo Repository, name string) (Ref, error) {
	ctx = inRepository(ctx, repo)
	if name == "" {
		r, _, err := g.api.Repositories.Get(ctx, repo.Owner, repo.Name)
		if err != nil {
			return Ref{}, g.fail(ctx, err, "read %s", repo)
		}

		name = r.GetDefaultBranch()
	}

	b, _, err := g.api.Repositories.GetBranch(ctx, repo.Owner, repo.Name, name, maxRedirects)
	return Ref{Repository: repo.String(), Branch: name, Commit: b.GetCommit().GetSHA()},
		g.fail(ctx, err, "read branch %q of %s", name, repo)
}

// Reachable compares with branches. The existence of a commit proves nothing: GitHub finds the commits of
// forks under the name of the repository that they were forked from.
func (g *gitHub) Reachable(ctx context.Context, repo Repository, commit, branch string) (bool, error) {
	if err := g.checkCommit(commit, repo); err != nil {
		return false, err
	}

	ctx = inRepository(ctx, repo)
	return reachable(ctx, g, repo, commit, branch, func(head string) (bool, error) {
		one := &github.ListOptions{PerPage: 1}
		c, _, err := g.api.Repositories.CompareCommits(ctx, repo.Owner, repo.Name, head, commit, one)
		status := c.GetStatus()
		return status == "behind" || status == "identical", g.fail(
			ctx, err, "compare commit %q of %s", commit, repo,
		)
	})
}

// reachable asks behind about the named branch and the default branch. behind reports whether the commit is
// an ancestor of a head.
func reachable(
	ctx context.Context, f Forge, repo Repository, commit, branch string,
	behind func(head string) (bool, error),
) (bool, error) {
	names := []string{""}
	if branch != "" {
		names = []string{branch, ""}
	}

	for _, name := range names {
		ref, err := f.Branch(ctx, repo, name)
		if name != "" && errors.Is(err, ErrNotFound) {
			continue // deleted: the default branch may have its commits
		}
		if err != nil {
			return false, err
		}
		if ref.Commit == commit {
			return true, nil
		}

		ok, err := behind(ref.Commit)
		if ok {
			return true, nil
		}
		if err != nil && !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrRefused) {
			return false, err
		}
	}

	return false, nil
}

func (g *gitHub) Pull(ctx context.Context, repo Repository, number int) (Pull, error) {
	ctx = inRepository(ctx, repo)
	p, _, err := g.api.PullRequests.Get(ctx, repo.Owner, repo.Name, number)
	return gitHubPull(p), g.fail(ctx, err, "read pull request %s#%d", repo, number)
}

func gitHubPull(p *github.PullRequest) Pull {
	pull := Pull{
		Number: p.GetNumber(),
		URL:    p.GetHTMLURL(),
		State:  p.GetState(),
		Title:  p.GetTitle(),
		Body:   p.GetBody(),
		Draft:  p.GetDraft(),
		Author: p.GetUser().GetLogin(),
		Head:   gitHubRef(p.GetHead()),
		Base:   gitHubRef(p.GetBase()),
	}
	if p.GetMerged() || !p.GetMergedAt().IsZero() {
		pull.State = PullMerged
	}

	return pull
}

func gitHubRef(b *github.PullRequestBranch) Ref {
	return Ref{Repository: b.GetRepo().GetFullName(), Branch: b.GetRef(), Commit: b.GetSHA()}
}

func (g *gitHub) PullOf(ctx context.Context, repo Repository, branch string) (Pull, error) {
	ctx = inRepository(ctx, repo)
	all, _, err := g.api.PullRequests.List(ctx, repo.Owner, repo.Name, &github.PullRequestListOptions{
		State: "all", Head: repo.Owner + ":" + branch, ListOptions: github.ListOptions{PerPage: pageSize},
	})
	if err != nil {
		return Pull{}, g.fail(ctx, err, "read the pull requests of branch %q of %s", branch, repo)
	}

	var pulls []Pull
	for _, p := range all {
		pulls = append(pulls, gitHubPull(p))
	}

	return g.newest(pulls, repo, branch)
}

// newest returns the open pull request of a branch, or else the one with the highest number.
func (h *host) newest(pulls []Pull, repo Repository, branch string) (Pull, error) {
	var best *Pull
	for i := range pulls {
		p := &pulls[i]
		if p.Head.Branch != branch || !strings.EqualFold(p.Head.Repository, repo.String()) {
			continue
		}
		if best == nil || p.State == PullOpen && best.State != PullOpen ||
			(p.State == PullOpen) == (best.State == PullOpen) && p.Number > best.Number {
			best = p
		}
	}

	if best == nil {
		return Pull{}, &Error{
			Kind:  ErrNotFound,
			Forge: h.name,
			Doing: "find a pull request of " + printable(branch) + " of " + repo.String(),
			Words: "the branch has none",
		}
	}

	return *best, nil
}

// pageSize is how many entries of a list one request asks for.
const pageSize = 100

func (g *gitHub) PullFiles(ctx context.Context, repo Repository, number int) ([]string, error) {
	ctx = inRepository(ctx, repo)
	return g.files(func(page int) ([]string, error) {
		opts := &github.ListOptions{Page: page, PerPage: pageSize}
		files, _, err := g.api.PullRequests.ListFiles(ctx, repo.Owner, repo.Name, number, opts)
		var names []string
		for _, f := range files {
			names = append(names, f.GetFilename())
			if old := f.GetPreviousFilename(); old != "" {
				names = append(names, old)
			}
		}

		return names, g.fail(ctx, err, "list the files of %s#%d", repo, number)
	})
}

// files collects pages of names until an empty one.
func (h *host) files(page func(int) ([]string, error)) ([]string, error) {
	var all []string
	for n := 1; ; n++ {
		names, err := page(n)
		if err != nil {
			return nil, err
		}
		if len(names) == 0 {
			slices.Sort(all)
			return slices.Compact(all), nil
		}
		if all = append(all, names...); len(all) > MaxFiles {
			return nil, &Error{
				Kind: ErrRefused, Forge: h.name, Doing: "list the files of a pull request",
				Words: "it changes more than 3000 files",
			}
		}
	}
}

func (g *gitHub) CreatePull(ctx context.Context, repo Repository, n NewPull) (Pull, error) {
	ctx = inRepository(ctx, repo)
	p, _, err := g.api.PullRequests.Create(ctx, repo.Owner, repo.Name, &github.NewPullRequest{
		Title: &n.Title, Body: &n.Body, Head: &n.Head, Base: &n.Base, Draft: &n.Draft,
	})
	return gitHubPull(p), g.fail(ctx, err, "open a pull request of branch %q of %s", n.Head, repo)
}

// Comments reads from the last page backwards: GitHub lists the oldest comments first.
func (g *gitHub) Comments(ctx context.Context, repo Repository, on Thread) ([]Comment, error) {
	ctx = inRepository(ctx, repo)
	return newestFirst(func(page int) ([]Comment, int, error) {
		opts := &github.IssueListCommentsOptions{
			ListOptions: github.ListOptions{Page: page, PerPage: pageSize},
		}
		list, res, err := g.api.Issues.ListComments(ctx, repo.Owner, repo.Name, on.Number, opts)
		if err != nil {
			return nil, 0, g.fail(ctx, err, "list the comments of %s#%d", repo, on.Number)
		}

		var comments []Comment
		for _, c := range list {
			comments = append(comments, gitHubComment(c))
		}

		return comments, res.LastPage, nil
	})
}

// newestFirst returns the last MaxComments entries of a list that pages return oldest first. A page tells
// the number of the last one; 0: it is itself.
func newestFirst[T any](page func(int) (list []T, last int, err error)) ([]T, error) {
	first, last, err := page(1)
	if err != nil {
		return nil, err
	}

	var all []T
	for n := last; n > 1 && len(all) < MaxComments; n-- {
		list, _, err := page(n)
		if err != nil {
			return nil, err
		}

		slices.Reverse(list)
		all = append(all, list...)
	}

	slices.Reverse(first)
	if len(all) < MaxComments {
		all = append(all, first...)
	}

	return all[:min(len(all), MaxComments)], nil
}

func gitHubComment(c *github.IssueComment) Comment {
	return Comment{ID: c.GetID(), URL: c.GetHTMLURL(), Author: c.GetUser().GetLogin(), Body: c.GetBody()}
}

func (g *gitHub) CreateComment(
	ctx context.Context, repo Repository, on Thread, body string,
) (Comment, error) {
	ctx = inRepository(ctx, repo)
	c, _, err := g.api.Issues.CreateComment(
		ctx, repo.Owner, repo.Name, on.Number, &github.IssueComment{Body: &body},
	)
	return gitHubComment(c), g.fail(ctx, err, "comment on %s#%d", repo, on.Number)
}

func (g *gitHub) UpdateComment(ctx context.Context, repo Repository, on Thread, id int64, body string) error {
	ctx = inRepository(ctx, repo)
	_, _, err := g.api.Issues.EditComment(ctx, repo.Owner, repo.Name, id, &github.IssueComment{Body: &body})
	return g.fail(ctx, err, "edit a comment on %s#%d", repo, on.Number)
}

func (g *gitHub) Labels(ctx context.Context, repo Repository, on Thread, add, remove []string) error {
	ctx = inRepository(ctx, repo)
	if len(add) > 0 {
		_, _, err := g.api.Issues.AddLabelsToIssue(ctx, repo.Owner, repo.Name, on.Number, add)
		if err != nil {
			return g.fail(ctx, err, "label %s#%d", repo, on.Number)
		}
	}

	for _, label := range remove {
		// The library puts the label into the path as it is.
		_, err := g.api.Issues.RemoveLabelForIssue(
			ctx, repo.Owner, repo.Name, on.Number, url.PathEscape(label),
		)
		err = g.fail(ctx, err, "remove label %q of %s#%d", label, repo, on.Number)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
	}

	return nil
}

// maxDescription is what GitHub accepts as the description of a status, in characters.
const maxDescription = 140

func (g *gitHub) SetStatus(ctx context.Context, repo Repository, commit string, s Status) error {
	if err := g.checkCommit(commit, repo); err != nil {
		return err
	}

	ctx = inRepository(ctx, repo)
	_, _, err := g.api.Repositories.CreateStatus(ctx, repo.Owner, repo.Name, commit, github.RepoStatus{
		State:       &s.State,
		Context:     &s.Context,
		Description: new(cut(s.Description)),
		TargetURL:   optional(s.URL),
	})
	return g.fail(ctx, err, "set a status of commit %q of %s", commit, repo)
}

// cut shortens a description to what every forge accepts.
func cut(text string) string {
	runes := []rune(printable(text))
	if len(runes) <= maxDescription {
		return string(runes)
	}
	return string(runes[:maxDescription-1]) + "…"
}

// optional returns nil for the zero value.
func optional[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

func (g *gitHub) Reviews(ctx context.Context, repo Repository, number int) ([]Review, error) {
	ctx = inRepository(ctx, repo)
	return newestFirst(func(page int) ([]Review, int, error) {
		opts := &github.ListOptions{Page: page, PerPage: pageSize}
		list, res, err := g.api.PullRequests.ListReviews(ctx, repo.Owner, repo.Name, number, opts)
		if err != nil {
			return nil, 0, g.fail(ctx, err, "list the reviews of %s#%d", repo, number)
		}

		var reviews []Review
		for _, r := range list {
			reviews = append(reviews, gitHubReview(r))
		}

		return reviews, res.LastPage, nil
	})
}

func gitHubReview(r *github.PullRequestReview) Review {
	event := map[string]string{
		"COMMENTED":         ReviewComment,
		"CHANGES_REQUESTED": ReviewRequestChanges,
	}[r.GetState()]
	return Review{
		ID:     r.GetID(),
		URL:    r.GetHTMLURL(),
		Author: r.GetUser().GetLogin(),
		Event:  cmp.Or(event, r.GetState()),
		Body:   r.GetBody(),
		Commit: r.GetCommitID(),
	}
}

func (g *gitHub) CreateReview(ctx context.Context, repo Repository, number int, r Review) (Review, error) {
	if err := g.checkReview(r, repo, number); err != nil {
		return Review{}, err
	}

	ctx = inRepository(ctx, repo)
	request := &github.PullRequestReviewRequest{Event: &r.Event, Body: &r.Body, CommitID: optional(r.Commit)}
	for _, c := range r.Comments {
		side := "RIGHT"
		request.Comments = append(request.Comments, &github.DraftReviewComment{
			Path: &c.Path, Line: &c.Line, Side: &side, Body: &c.Body,
		})
	}

	made, _, err := g.api.PullRequests.CreateReview(ctx, repo.Owner, repo.Name, number, request)
	return gitHubReview(made), g.fail(ctx, err, "review %s#%d", repo, number)
}

// commitForm is the name of a commit: SHA-1 or SHA-256.
var commitForm = regexp.MustCompile(`^(?:[0-9a-f]{40}|[0-9a-f]{64})$`)

// checkCommit refuses other names of a commit than its hash.
func (h *host) checkCommit(commit string, repo Repository) error {
	if commitForm.MatchString(commit) {
		return nil
	}
	return h.fail(context.Background(), &Error{
		Kind:  ErrRefused,
		Words: "want a commit as 40 or 64 hexadecimal digits",
	}, "use commit %q of %s", commit, repo)
}

// checkReview refuses a review that would approve.
func (h *host) checkReview(r Review, repo Repository, number int) error {
	if r.Event == ReviewComment || r.Event == ReviewRequestChanges {
		return nil
	}
	return h.fail(context.Background(), &Error{
		Kind:  ErrRefused,
		Words: "a review comments or requests changes: it never approves",
	}, "review %s#%d", repo, number)
}
