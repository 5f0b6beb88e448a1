package forge

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"code.gitea.io/sdk/gitea"
)

// giteaForge is a Gitea or Forgejo server.
type giteaForge struct {
	host
	api    *url.URL
	client *http.Client
}

func openGitea(h host, api *url.URL) (Forge, error) {
	return &giteaForge{host: h, api: api, client: newClient(api, token(h.secret), nil)}, nil
}

// in returns a client for the requests of one call.
func (g *giteaForge) in(ctx context.Context) *gitea.Client {
	client, _ := gitea.NewClient( // it fails only when it asks for the server's version
		strings.TrimSuffix(g.api.String(), "/"),
		gitea.SetHTTPClient(g.client),
		gitea.SetContext(ctx),
		gitea.SetUserAgent(agent),
		gitea.SetGiteaVersion(""),
	)
	return client
}

// fail also knows what Gitea answers with 500 though it is not there, as the issue of a new comment.
func (g *giteaForge) fail(ctx context.Context, err error, doing string, args ...any) error {
	err = g.host.fail(ctx, err, doing, args...)
	var failed *Error
	if errors.As(err, &failed) && failed.Status == http.StatusInternalServerError &&
		strings.Contains(failed.Words, "does not exist") {
		failed.Kind = ErrNotFound
	}

	return err
}

func (g *giteaForge) Credential(ctx context.Context, _ Repository) (Credential, error) {
	return g.credential(ctx, gitUser, "read the token")
}

func (g *giteaForge) push(ctx context.Context, repo Repository) (string, Credential, error) {
	address, err := g.CloneURL(repo)
	if err != nil {
		return "", Credential{}, err
	}

	c, err := g.credential(ctx, gitUser, "read the token")
	return address, c, err
}

func (g *giteaForge) Login(ctx context.Context) (string, error) {
	user, _, err := g.in(ctx).GetMyUserInfo()
	if err != nil {
		return "", g.fail(ctx, err, "read the account of the token")
	}
	return user.UserName, nil
}

func (g *giteaForge) Branch(ctx context.Context, repo Repository, name string) (Ref, error) {
	client := g.in(ctx)
	if name == "" {
		r, _, err := client.GetRepo(repo.Owner, repo.Name)
		if err != nil {
			return Ref{}, g.fail(ctx, err, "read %s", repo)
		}

		name = r.DefaultBranch
	}

	b, _, err := client.GetRepoBranch(repo.Owner, repo.Name, name)
	if err != nil {
		return Ref{}, g.fail(ctx, err, "read branch %q of %s", name, repo)
	}

	ref := Ref{Repository: repo.String(), Branch: name}
	if b.Commit != nil {
		ref.Commit = b.Commit.ID
	}

	return ref, nil
}

// Reachable lists the commits that a branch lacks: there is none if it has the commit.
func (g *giteaForge) Reachable(ctx context.Context, repo Repository, commit, branch string) (bool, error) {
	if err := g.checkCommit(commit, repo); err != nil {
		return false, err
	}

	return reachable(ctx, g, repo, commit, branch, func(head string) (bool, error) {
		missing, _, err := g.in(ctx).ListRepoCommits(repo.Owner, repo.Name, gitea.ListCommitOptions{
			ListOptions: gitea.ListOptions{PageSize: 1}, SHA: commit, Not: head,
		})
		return err == nil && len(missing) == 0, g.fail(ctx, err, "look for commit %s of %s", commit, repo)
	})
}

func (g *giteaForge) Pull(ctx context.Context, repo Repository, number int) (Pull, error) {
	p, _, err := g.in(ctx).GetPullRequest(repo.Owner, repo.Name, int64(number))
	if err != nil {
		return Pull{}, g.fail(ctx, err, "read pull request %s#%d", repo, number)
	}
	return giteaPull(p), nil
}

func giteaPull(p *gitea.PullRequest) Pull {
	pull := Pull{
		Number: int(p.Index),
		URL:    p.HTMLURL,
		State:  string(p.State),
		Title:  p.Title,
		Body:   p.Body,
		Draft:  p.Draft,
		Author: giteaLogin(p.Poster),
		Head:   giteaRef(p.Head),
		Base:   giteaRef(p.Base),
	}
	if p.HasMerged {
		pull.State = PullMerged
	}

	return pull
}

func giteaLogin(u *gitea.User) string {
	if u == nil {
		return ""
	}
	return u.UserName
}

func giteaRef(b *gitea.PRBranchInfo) Ref {
	if b == nil {
		return Ref{}
	}

	ref := Ref{Branch: b.Ref, Commit: b.Sha}
	if b.Repository != nil {
		ref.Repository = b.Repository.FullName
	}
	// The branch of a merged pull request may be gone. Its label keeps the name.
	if strings.HasPrefix(ref.Branch, "refs/") && b.Name != "" {
		ref.Branch = b.Name[strings.IndexByte(b.Name, ':')+1:]
	}

	return ref
}

// maxPullPages bounds the pages of pull requests in which PullOf looks for a branch.
const maxPullPages = 5

// PullOf looks at the newest pull requests: Gitea cannot list those of a branch.
func (g *giteaForge) PullOf(ctx context.Context, repo Repository, branch string) (Pull, error) {
	var pulls []Pull
	for page := 1; page <= maxPullPages; page++ {
		list, res, err := g.in(ctx).ListRepoPullRequests(repo.Owner, repo.Name, gitea.ListPullRequestsOptions{
			ListOptions: gitea.ListOptions{Page: page, PageSize: pageSize}, State: gitea.StateAll,
		})
		if err != nil {
			return Pull{}, g.fail(ctx, err, "read the pull requests of branch %q of %s", branch, repo)
		}

		for _, p := range list {
			pulls = append(pulls, giteaPull(p))
		}

		if found, err := g.newest(pulls, repo, branch); err == nil && found.State == PullOpen {
			return found, nil
		}
		if res.NextPage == 0 {
			break
		}
	}

	return g.newest(pulls, repo, branch)
}

func (g *giteaForge) PullFiles(ctx context.Context, repo Repository, number int) ([]string, error) {
	return g.files(func(page int) ([]string, error) {
		list, _, err := g.in(ctx).ListPullRequestFiles(repo.Owner, repo.Name, int64(number),
			gitea.ListPullRequestFilesOptions{ListOptions: gitea.ListOptions{Page: page, PageSize: pageSize}})
		var names []string
		for _, f := range list {
			names = append(names, f.Filename)
			if f.PreviousFilename != "" {
				names = append(names, f.PreviousFilename)
			}
		}

		return names, g.fail(ctx, err, "list the files of %s#%d", repo, number)
	})
}

// draftPrefix marks a draft: Gitea reads it in titles.
const draftPrefix = "WIP: "

func (g *giteaForge) CreatePull(ctx context.Context, repo Repository, n NewPull) (Pull, error) {
	if n.Draft {
		n.Title = draftPrefix + n.Title
	}

	p, _, err := g.in(ctx).CreatePullRequest(repo.Owner, repo.Name, gitea.CreatePullRequestOption{
		Title: n.Title, Body: n.Body, Head: n.Head, Base: n.Base,
	})
	if err != nil {
		return Pull{}, g.fail(ctx, err, "open a pull request of branch %q of %s", n.Head, repo)
	}

	return giteaPull(p), nil
}

// Comments reads all comments at once: Gitea does not split the list of an issue into pages.
func (g *giteaForge) Comments(ctx context.Context, repo Repository, on Thread) ([]Comment, error) {
	return newestFirst(func(int) ([]Comment, int, error) {
		list, _, err := g.in(ctx).ListIssueComments(
			repo.Owner, repo.Name, int64(on.Number), gitea.ListIssueCommentOptions{},
		)
		var comments []Comment
		for _, c := range list {
			comments = append(comments, giteaComment(c))
		}

		return comments, 0, g.fail(ctx, err, "list the comments of %s#%d", repo, on.Number)
	})
}

func giteaComment(c *gitea.Comment) Comment {
	return Comment{ID: c.ID, URL: c.HTMLURL, Author: giteaLogin(c.Poster), Body: c.Body}
}

func (g *giteaForge) CreateComment(
	ctx context.Context, repo Repository, on Thread, body string,
) (Comment, error) {
	c, _, err := g.in(ctx).CreateIssueComment(
		repo.Owner, repo.Name, int64(on.Number), gitea.CreateIssueCommentOption{Body: body},
	)
	if err != nil {
		return Comment{}, g.fail(ctx, err, "comment on %s#%d", repo, on.Number)
	}
	return giteaComment(c), nil
}

func (g *giteaForge) UpdateComment(
	ctx context.Context, repo Repository, on Thread, id int64, body string,
) error {
	_, _, err := g.in(ctx).EditIssueComment(
		repo.Owner, repo.Name, id, gitea.EditIssueCommentOption{Body: body},
	)
	return g.fail(ctx, err, "edit a comment on %s#%d", repo, on.Number)
}

// labelColor is the color of labels that did not exist.
const labelColor = "#ededed"

// Labels looks up the labels: Gitea knows them by number.
func (g *giteaForge) Labels(ctx context.Context, repo Repository, on Thread, add, remove []string) error {
	client, number := g.in(ctx), int64(on.Number)
	known, err := g.labelIDs(ctx, client, repo)
	if err != nil {
		return err
	}

	var ids []int64
	for _, name := range add {
		id, exists := known[strings.ToLower(name)]
		if !exists {
			made, _, err := client.CreateLabel(
				repo.Owner, repo.Name, gitea.CreateLabelOption{Name: name, Color: labelColor},
			)
			if err != nil {
				return g.fail(ctx, err, "create label %q of %s", name, repo)
			}

			id = made.ID
		}

		ids = append(ids, id)
	}

	if len(ids) > 0 {
		_, _, err := client.AddIssueLabels(
			repo.Owner, repo.Name, number, gitea.IssueLabelsOption{Labels: ids},
		)
		if err != nil {
			return g.fail(ctx, err, "label %s#%d", repo, on.Number)
		}
	}

	for _, name := range remove {
		id, exists := known[strings.ToLower(name)]
		if !exists {
			continue
		}

		_, err := client.DeleteIssueLabel(repo.Owner, repo.Name, number, id)
		err = g.fail(ctx, err, "remove label %q of %s#%d", name, repo, on.Number)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
	}

	return nil
}

// maxLabelPages bounds the pages of labels of a repository.
const maxLabelPages = 10

// labelIDs returns the labels of a repository and its organization, by name in lower case.
func (g *giteaForge) labelIDs(
	ctx context.Context, client *gitea.Client, repo Repository,
) (map[string]int64, error) {
	ids := map[string]int64{}
	list := func(page func(gitea.ListOptions) ([]*gitea.Label, *gitea.Response, error)) error {
		for n := 1; n <= maxLabelPages; n++ {
			labels, res, err := page(gitea.ListOptions{Page: n, PageSize: pageSize})
			if err != nil {
				return g.fail(ctx, err, "list the labels of %s", repo)
			}

			for _, l := range labels {
				ids[strings.ToLower(l.Name)] = l.ID
			}
			if res.NextPage == 0 {
				break
			}
		}

		return nil
	}

	err := list(func(opts gitea.ListOptions) ([]*gitea.Label, *gitea.Response, error) {
		return client.ListOrgLabels(repo.Owner, gitea.ListOrgLabelsOptions{ListOptions: opts})
	})
	if err != nil && !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrDenied) { // the owner may be a user
		return nil, err
	}

	return ids, list(func(opts gitea.ListOptions) ([]*gitea.Label, *gitea.Response, error) {
		return client.ListRepoLabels(repo.Owner, repo.Name, gitea.ListLabelsOptions{ListOptions: opts})
	})
}

func (g *giteaForge) SetStatus(ctx context.Context, repo Repository, commit string, s Status) error {
	if err := g.checkCommit(commit, repo); err != nil {
		return err
	}

	_, _, err := g.in(ctx).CreateStatus(repo.Owner, repo.Name, commit, gitea.CreateStatusOption{
		State:       gitea.StatusState(s.State),
		Context:     s.Context,
		Description: cut(s.Description),
		TargetURL:   s.URL,
	})
	return g.fail(ctx, err, "set a status of commit %q of %s", commit, repo)
}

func (g *giteaForge) Reviews(ctx context.Context, repo Repository, number int) ([]Review, error) {
	return newestFirst(func(page int) ([]Review, int, error) {
		list, res, err := g.in(ctx).ListPullReviews(repo.Owner, repo.Name, int64(number),
			gitea.ListPullReviewsOptions{ListOptions: gitea.ListOptions{Page: page, PageSize: pageSize}})
		if err != nil {
			return nil, 0, g.fail(ctx, err, "list the reviews of %s#%d", repo, number)
		}

		var reviews []Review
		for _, r := range list {
			reviews = append(reviews, giteaReview(r))
		}

		return reviews, res.LastPage, nil
	})
}

func giteaReview(r *gitea.PullReview) Review {
	return Review{
		ID:     r.ID,
		URL:    r.HTMLURL,
		Author: giteaLogin(r.Reviewer),
		Event:  string(r.State),
		Body:   r.Body,
		Commit: r.CommitID,
	}
}

func (g *giteaForge) CreateReview(
	ctx context.Context, repo Repository, number int, r Review,
) (Review, error) {
	if err := g.checkReview(r, repo, number); err != nil {
		return Review{}, err
	}

	opts := gitea.CreatePullReviewOptions{
		State:    gitea.ReviewStateType(r.Event),
		Body:     r.Body,
		CommitID: r.Commit,
	}
	for _, c := range r.Comments {
		opts.Comments = append(opts.Comments, gitea.CreatePullReviewComment{
			Path: c.Path, Body: c.Body, NewLineNum: int64(c.Line),
		})
	}

	made, _, err := g.in(ctx).CreatePullReview(repo.Owner, repo.Name, int64(number), opts)
	if err != nil {
		return Review{}, g.fail(ctx, err, "review %s#%d", repo, number)
	}

	return giteaReview(made), nil
}
