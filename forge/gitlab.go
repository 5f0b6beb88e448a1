package forge

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	gitlab "gitlab.com/gitlab-org/api/client-go"
)

// gitLab is gitlab.com or another GitLab server.
type gitLab struct {
	host
	api *gitlab.Client
}

func openGitLab(h host, api *url.URL) (Forge, error) {
	client, err := gitlab.NewAuthSourceClient(
		gitlab.Unauthenticated{}, // the transport adds the token
		gitlab.WithBaseURL(api.String()),
		gitlab.WithHTTPClient(newClient(api, token(h.secret), nil)),
		gitlab.WithoutRetries(),
		gitlab.WithCustomLimiter(unlimited{}),
		gitlab.WithUserAgent(agent),
	)
	if err != nil {
		return nil, &ConfigError{"forges." + h.name + ".api", err}
	}

	return &gitLab{h, client}, nil
}

// unlimited leaves limits of requests to the caller.
type unlimited struct{}

// Wait returns at once.
func (unlimited) Wait(context.Context) error { return nil }

func (g *gitLab) Credential(ctx context.Context, _ Repository) (Credential, error) {
	return g.credential(ctx, "oauth2", "read the token")
}

func (g *gitLab) push(ctx context.Context, repo Repository) (string, Credential, error) {
	address, err := g.CloneURL(repo)
	if err != nil {
		return "", Credential{}, err
	}

	c, err := g.Credential(ctx, repo)
	return address, c, err
}

func (g *gitLab) Login(ctx context.Context) (string, error) {
	user, _, err := g.api.Users.CurrentUser(gitlab.WithContext(ctx))
	if err != nil {
		return "", g.fail(ctx, err, "read the account of the token")
	}
	return user.Username, nil
}

func (g *gitLab) Branch(ctx context.Context, repo Repository, name string) (Ref, error) {
	if name == "" {
		p, _, err := g.api.Projects.GetProject(repo.String(), nil, gitlab.WithContext(ctx))
		if err != nil {
			return Ref{}, g.fail(ctx, err, "read %s", repo)
		}
		if p.DefaultBranch == "" {
			return Ref{}, g.fail(
				ctx, &Error{Kind: ErrNotFound, Words: "the repository is empty"}, "read %s", repo,
			)
		}

		name = p.DefaultBranch
	}

	b, _, err := g.api.Branches.GetBranch(repo.String(), name, gitlab.WithContext(ctx))
	if err != nil {
		return Ref{}, g.fail(ctx, err, "read branch %q of %s", name, repo)
	}

	ref := Ref{Repository: repo.String(), Branch: name}
	if b.Commit != nil {
		ref.Commit = b.Commit.ID
	}

	return ref, nil
}

// Reachable asks for the branches that contain the commit.
func (g *gitLab) Reachable(ctx context.Context, repo Repository, commit, _ string) (bool, error) {
	if err := g.checkCommit(commit, repo); err != nil {
		return false, err
	}

	refs, _, err := g.api.Commits.GetCommitRefs(repo.String(), commit, &gitlab.GetCommitRefsOptions{
		ListOptions: gitlab.ListOptions{PerPage: 1}, Type: new("branch"),
	}, gitlab.WithContext(ctx))
	err = g.fail(ctx, err, "find the branches of commit %s of %s", commit, repo)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}

	return len(refs) > 0, err
}

func (g *gitLab) Pull(ctx context.Context, repo Repository, number int) (Pull, error) {
	m, _, err := g.api.MergeRequests.GetMergeRequest(
		repo.String(), int64(number), nil, gitlab.WithContext(ctx),
	)
	if err != nil {
		return Pull{}, g.fail(ctx, err, "read merge request %s!%d", repo, number)
	}

	pull := gitLabPull(repo, &m.BasicMergeRequest)
	pull.Base.Commit = m.DiffRefs.BaseSha
	if m.SourceProjectID == m.TargetProjectID || m.SourceProjectID == 0 {
		return pull, nil
	}

	p, _, err := g.api.Projects.GetProject(m.SourceProjectID, nil, gitlab.WithContext(ctx))
	err = g.fail(ctx, err, "read the fork of merge request %s!%d", repo, number)
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrDenied) {
		return pull, nil // the fork is gone, or private
	}
	if err != nil {
		return Pull{}, err
	}

	pull.Head.Repository = p.PathWithNamespace
	return pull, nil
}

// gitLabPull returns a merge request. The repository of its head is known if it is that of its base.
func gitLabPull(repo Repository, m *gitlab.BasicMergeRequest) Pull {
	pull := Pull{
		Number: int(m.IID),
		URL:    m.WebURL,
		State:  m.State,
		Title:  m.Title,
		Body:   m.Description,
		Draft:  m.Draft,
		Head:   Ref{Branch: m.SourceBranch, Commit: m.SHA},
		Base:   Ref{Repository: repo.String(), Branch: m.TargetBranch},
	}
	if m.State == "opened" || m.State == "locked" {
		pull.State = PullOpen
	}
	if m.Author != nil {
		pull.Author = m.Author.Username
	}
	if m.SourceProjectID == m.TargetProjectID {
		pull.Head.Repository = repo.String()
	}

	return pull
}

func (g *gitLab) PullOf(ctx context.Context, repo Repository, branch string) (Pull, error) {
	opts := &gitlab.ListProjectMergeRequestsOptions{
		ListOptions:  gitlab.ListOptions{PerPage: pageSize},
		SourceBranch: &branch,
		State:        new("all"),
	}
	list, _, err := g.api.MergeRequests.ListProjectMergeRequests(repo.String(), opts, gitlab.WithContext(ctx))
	if err != nil {
		return Pull{}, g.fail(ctx, err, "read the merge requests of branch %q of %s", branch, repo)
	}

	var pulls []Pull
	for _, m := range list {
		pulls = append(pulls, gitLabPull(repo, m))
	}

	return g.newest(pulls, repo, branch)
}

// diffPage is how many files one request lists. GitLab sends their differences too.
const diffPage = 30

// PullFiles asks first whether GitLab lists all files: it cuts the list of a large merge request.
func (g *gitLab) PullFiles(ctx context.Context, repo Repository, number int) ([]string, error) {
	m, _, err := g.api.MergeRequests.GetMergeRequest(repo.String(), int64(number), nil, gitlab.WithContext(ctx))
	if err != nil {
		return nil, g.fail(ctx, err, "read merge request %s!%d", repo, number)
	}
	if strings.HasSuffix(m.ChangesCount, "+") {
		return nil, &Error{
			Kind: ErrRefused, Forge: g.name, Doing: "list the files of a merge request",
			Words: "it is so large that GitLab does not list all of its files",
		}
	}

	return g.files(func(page int) ([]string, error) {
		opts := &gitlab.ListMergeRequestDiffsOptions{
			ListOptions: gitlab.ListOptions{Page: int64(page), PerPage: diffPage},
		}
		list, _, err := g.api.MergeRequests.ListMergeRequestDiffs(repo.String(), int64(number), opts,
			gitlab.WithContext(ctx))
		var names []string
		for _, d := range list {
			names = append(names, d.NewPath, d.OldPath)
		}

		return names, g.fail(ctx, err, "list the files of %s!%d", repo, number)
	})
}

func (g *gitLab) CreatePull(ctx context.Context, repo Repository, n NewPull) (Pull, error) {
	if n.Draft {
		n.Title = "Draft: " + n.Title
	}

	m, _, err := g.api.MergeRequests.CreateMergeRequest(repo.String(), &gitlab.CreateMergeRequestOptions{
		Title: &n.Title, Description: &n.Body, SourceBranch: &n.Head, TargetBranch: &n.Base,
	}, gitlab.WithContext(ctx))
	if err != nil {
		return Pull{}, g.fail(ctx, err, "open a merge request of branch %q of %s", n.Head, repo)
	}

	return gitLabPull(repo, &m.BasicMergeRequest), nil
}

func (g *gitLab) Comments(ctx context.Context, repo Repository, on Thread) ([]Comment, error) {
	var all []Comment
	opts := gitlab.ListOptions{Page: 1, PerPage: pageSize, OrderBy: "created_at", Sort: "desc"}
	for len(all) < MaxComments {
		var list []*gitlab.Note
		var res *gitlab.Response
		var err error
		if on.Pull {
			list, res, err = g.api.Notes.ListMergeRequestNotes(repo.String(), int64(on.Number),
				&gitlab.ListMergeRequestNotesOptions{ListOptions: opts}, gitlab.WithContext(ctx))
		} else {
			list, res, err = g.api.Notes.ListIssueNotes(repo.String(), int64(on.Number),
				&gitlab.ListIssueNotesOptions{ListOptions: opts}, gitlab.WithContext(ctx))
		}
		if err != nil {
			return nil, g.fail(ctx, err, "list the comments of %s", gitLabThread(repo, on))
		}

		for _, n := range list {
			if !n.System {
				all = append(all, g.comment(repo, on, n))
			}
		}

		if opts.Page = res.NextPage; opts.Page == 0 || opts.Page > maxNotePages {
			break
		}
	}

	return all[:min(len(all), MaxComments)], nil
}

// maxNotePages bounds the pages of comments, since those that GitLab wrote itself are among them.
const maxNotePages = 10

// gitLabThread names an issue or merge request as GitLab does.
func gitLabThread(repo Repository, on Thread) string {
	if on.Pull {
		return fmt.Sprintf("%s!%d", repo, on.Number)
	}
	return fmt.Sprintf("%s#%d", repo, on.Number)
}

// comment returns a note with the address of its place on the page.
func (g *gitLab) comment(repo Repository, on Thread, n *gitlab.Note) Comment {
	kind := "issues"
	if on.Pull {
		kind = "merge_requests"
	}

	page := g.url.JoinPath(repo.Owner, repo.Name, "-", kind, fmt.Sprint(on.Number))
	return Comment{
		ID:     n.ID,
		URL:    fmt.Sprintf("%s#note_%d", page, n.ID),
		Author: n.Author.Username,
		Body:   n.Body,
	}
}

func (g *gitLab) CreateComment(
	ctx context.Context,
	repo Repository,
	on Thread,
	body string,
) (Comment, error) {
	var n *gitlab.Note
	var err error
	if on.Pull {
		n, _, err = g.api.Notes.CreateMergeRequestNote(repo.String(), int64(on.Number),
			&gitlab.CreateMergeRequestNoteOptions{Body: &body}, gitlab.WithContext(ctx))
	} else {
		n, _, err = g.api.Notes.CreateIssueNote(repo.String(), int64(on.Number),
			&gitlab.CreateIssueNoteOptions{Body: &body}, gitlab.WithContext(ctx))
	}
	if err != nil {
		return Comment{}, g.fail(ctx, err, "comment on %s", gitLabThread(repo, on))
	}

	return g.comment(repo, on, n), nil
}

func (g *gitLab) UpdateComment(ctx context.Context, repo Repository, on Thread, id int64, body string) error {
	var err error
	if on.Pull {
		_, _, err = g.api.Notes.UpdateMergeRequestNote(repo.String(), int64(on.Number), id,
			&gitlab.UpdateMergeRequestNoteOptions{Body: &body}, gitlab.WithContext(ctx))
	} else {
		_, _, err = g.api.Notes.UpdateIssueNote(repo.String(), int64(on.Number), id,
			&gitlab.UpdateIssueNoteOptions{Body: &body}, gitlab.WithContext(ctx))
	}

	return g.fail(ctx, err, "edit a comment on %s", gitLabThread(repo, on))
}

func (g *gitLab) Labels(ctx context.Context, repo Repository, on Thread, add, remove []string) error {
	for _, label := range append(append([]string{}, add...), remove...) {
		if strings.Contains(label, ",") {
			err := &Error{
				Kind:  ErrRefused,
				Words: fmt.Sprintf("label %q: GitLab's labels have no comma", printable(label)),
			}
			return g.fail(ctx, err, "label %s", gitLabThread(repo, on))
		}
	}

	var added, removed *gitlab.LabelOptions // nil: the request leaves them out
	if len(add) > 0 {
		added = (*gitlab.LabelOptions)(&add)
	}
	if len(remove) > 0 {
		removed = (*gitlab.LabelOptions)(&remove)
	}

	var err error
	if on.Pull {
		_, _, err = g.api.MergeRequests.UpdateMergeRequest(repo.String(), int64(on.Number),
			&gitlab.UpdateMergeRequestOptions{AddLabels: added, RemoveLabels: removed},
			gitlab.WithContext(ctx))
	} else {
		_, _, err = g.api.Issues.UpdateIssue(repo.String(), int64(on.Number),
			&gitlab.UpdateIssueOptions{AddLabels: added, RemoveLabels: removed}, gitlab.WithContext(ctx))
	}

	return g.fail(ctx, err, "label %s", gitLabThread(repo, on))
}

// SetStatus sets a status. GitLab refuses the state that a commit has already.
func (g *gitLab) SetStatus(ctx context.Context, repo Repository, commit string, s Status) error {
	if err := g.checkCommit(commit, repo); err != nil {
		return err
	}

	state := gitlab.BuildStateValue(s.State)
	if s.State == StatusFailure || s.State == StatusError {
		state = gitlab.Failed
	}

	_, _, err := g.api.Commits.SetCommitStatus(repo.String(), commit, &gitlab.SetCommitStatusOptions{
		State: state, Name: &s.Context, Description: new(cut(s.Description)), TargetURL: optional(s.URL),
	}, gitlab.WithContext(ctx))
	err = g.fail(ctx, err, "set a status of commit %s of %s", commit, repo)
	var refused *Error
	if errors.As(err, &refused) && strings.Contains(refused.Words, "Cannot transition status") {
		return nil
	}

	return err
}

// Reviews returns the comments: GitLab publishes reviews as these.
func (g *gitLab) Reviews(ctx context.Context, repo Repository, number int) ([]Review, error) {
	comments, err := g.Comments(ctx, repo, Thread{Number: number, Pull: true})
	var reviews []Review
	for _, c := range comments {
		reviews = append(
			reviews, Review{ID: c.ID, URL: c.URL, Author: c.Author, Event: ReviewComment, Body: c.Body},
		)
	}

	return reviews, err
}

// changesRequested begins the body of a review that requests changes, which GitLab has no words for.
const changesRequested = "**Changes requested**\n\n"

// CreateReview writes drafts and publishes them at once. Drafts of the same review are of an attempt that did
// not end. Any others would be published too, so it waits until they are gone.
func (g *gitLab) CreateReview(ctx context.Context, repo Repository, number int, r Review) (Review, error) {
	if err := g.checkReview(r, repo, number); err != nil {
		return Review{}, err
	}

	if r.Event == ReviewRequestChanges {
		r.Body = changesRequested + r.Body
	}

	if err := g.draftReview(ctx, repo, int64(number), r); err != nil {
		return Review{}, g.fail(ctx, err, "review %s!%d", repo, number)
	}

	published, err := g.Reviews(ctx, repo, number)
	if err != nil {
		return Review{}, err
	}

	for _, p := range published {
		if p.Body == r.Body {
			p.Event, p.Commit = r.Event, r.Commit
			return p, nil
		}
	}

	return r, nil
}

func (g *gitLab) draftReview(ctx context.Context, repo Repository, number int64, r Review) error {
	m, _, err := g.api.MergeRequests.GetMergeRequest(repo.String(), number, nil, gitlab.WithContext(ctx))
	if err != nil {
		return err
	}

	old, _, err := g.api.DraftNotes.ListDraftNotes(repo.String(), number,
		&gitlab.ListDraftNotesOptions{ListOptions: gitlab.ListOptions{PerPage: pageSize}},
		gitlab.WithContext(ctx))
	if err != nil {
		return err
	}

	for _, n := range old {
		same := func(c LineComment) bool { return c.Body == n.Note }
		if n.Note != r.Body && !slices.ContainsFunc(r.Comments, same) {
			return &Error{Kind: ErrLater, Words: "the account has drafts of another review there"}
		}

		_, err := g.api.DraftNotes.DeleteDraftNote(repo.String(), number, n.ID, gitlab.WithContext(ctx))
		if err != nil {
			return err
		}
	}

	drafts := []*gitlab.CreateDraftNoteOptions{{Note: &r.Body}}
	for _, c := range r.Comments {
		position := &gitlab.PositionOptions{
			PositionType: new("text"),
			BaseSHA:      &m.DiffRefs.BaseSha,
			StartSHA:     &m.DiffRefs.StartSha,
			HeadSHA:      &m.DiffRefs.HeadSha,
			NewPath:      &c.Path,
			OldPath:      &c.Path,
			NewLine:      new(int64(c.Line)),
		}
		drafts = append(drafts, &gitlab.CreateDraftNoteOptions{Note: &c.Body, Position: position})
	}

	for _, d := range drafts {
		_, _, err := g.api.DraftNotes.CreateDraftNote(repo.String(), number, d, gitlab.WithContext(ctx))
		if err != nil {
			return err
		}
	}

	_, err = g.api.DraftNotes.PublishAllDraftNotes(repo.String(), number, gitlab.WithContext(ctx))
	return err
}
