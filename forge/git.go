package forge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// gitHost is a host that understands git alone.
type gitHost struct {
	host
	template string
	username string
}

func openGit(h host, at string, s Settings) (Forge, error) {
	bad := func(err error) error {
		return &ConfigError{at + ".url", fmt.Errorf("%q: %w", withoutUser(s.URL), err)}
	}
	if !strings.Contains(s.URL, "{name}") {
		return nil, bad(errors.New("want a template like https://git.example.com/{owner}/{name}.git"))
	}

	address := fill(s.URL, Repository{Owner: "owner", Name: "name"})
	u, err := url.Parse(address)
	switch {
	case err != nil, strings.ContainsAny(address, "{}"), strings.ContainsAny(hostOf(s.URL), "{}"):
		return nil, bad(errors.New("want {owner} and {name} in the path only"))
	case u.Scheme == "file" && (u.Host != "" || !strings.HasPrefix(u.Path, "/")):
		return nil, bad(errors.New("a file URL is file:// and an absolute path"))
	case u.Scheme == "file" && s.TokenSecret != "":
		return nil, bad(errors.New("a file URL has no token"))
	case u.Scheme == "file":
		h.url = u
	default:
		if h.url, err = checkOrigin(address, s.TokenSecret != ""); err != nil {
			return nil, bad(err)
		}
	}

	return &gitHost{h, s.URL, cmp.Or(s.Username, gitUser)}, nil
}

// hostOf returns the part of an address between its scheme and its path.
func hostOf(address string) string {
	_, rest, _ := strings.Cut(address, "://")
	before, _, _ := strings.Cut(rest, "/")
	return before
}

// fill fills in a template. The names have been checked.
func fill(template string, repo Repository) string {
	return strings.NewReplacer("{owner}", repo.Owner, "{name}", repo.Name).Replace(template)
}

// CloneURL returns the address of a repository.
func (g *gitHost) CloneURL(repo Repository) (string, error) {
	return fill(g.template, repo), checkName(g.name, g.kind, repo)
}

func (g *gitHost) Credential(ctx context.Context, _ Repository) (Credential, error) {
	return g.credential(ctx, g.username, "read the token")
}

func (g *gitHost) push(ctx context.Context, repo Repository) (string, Credential, error) {
	address, err := g.CloneURL(repo)
	if err != nil {
		return "", Credential{}, err
	}

	c, err := g.Credential(ctx, repo)
	return address, c, err
}

// Branch asks git for the branches of the repository.
func (g *gitHost) Branch(ctx context.Context, repo Repository, name string) (Ref, error) {
	heads, fallback, err := g.heads(ctx, repo)
	if err != nil {
		return Ref{}, err
	}

	name = cmp.Or(name, fallback)
	commit, found := heads[name]
	if !found {
		return Ref{}, g.fail(
			ctx,
			&Error{Kind: ErrNotFound, Words: "there is no such branch"},
			"read branch %q of %s",
			name,
			repo,
		)
	}

	return Ref{Repository: repo.String(), Branch: name, Commit: commit}, nil
}

// Reachable knows the heads of branches alone.
func (g *gitHost) Reachable(ctx context.Context, repo Repository, commit, _ string) (bool, error) {
	if err := g.checkCommit(commit, repo); err != nil {
		return false, err
	}

	heads, _, err := g.heads(ctx, repo)
	for _, head := range heads {
		if head == commit {
			return true, nil
		}
	}

	return false, err
}

// heads returns the branches of a repository with their commits, and the name of the default one.
func (g *gitHost) heads(ctx context.Context, repo Repository) (map[string]string, string, error) {
	address, c, err := g.push(ctx, repo)
	if err != nil {
		return nil, "", err
	}

	refs, fallback, err := advertised(ctx, address, c)
	if err != nil {
		return nil, "", g.fail(ctx, err, "list the branches of %s", repo)
	}

	heads := map[string]string{}
	for name, hash := range refs {
		if ref := plumbing.ReferenceName(name); ref.IsBranch() {
			heads[ref.Short()] = hash.String()
		}
	}

	return heads, fallback, nil
}

// unsupported is the error of what needs more than git.
func (g *gitHost) unsupported(doing string, args ...any) error {
	return g.fail(context.Background(), &Error{
		Kind:  ErrUnsupported,
		Words: "forges of kind git have no API: set kind to github, gitlab or gitea",
	}, doing, args...)
}

func (g *gitHost) Login(context.Context) (string, error) {
	return "", g.unsupported("read the account of the token")
}

func (g *gitHost) Pull(_ context.Context, repo Repository, number int) (Pull, error) {
	return Pull{}, g.unsupported("read pull request %s#%d", repo, number)
}

func (g *gitHost) PullOf(_ context.Context, repo Repository, branch string) (Pull, error) {
	return Pull{}, g.unsupported("read the pull requests of branch %q of %s", branch, repo)
}

func (g *gitHost) PullFiles(_ context.Context, repo Repository, number int) ([]string, error) {
	return nil, g.unsupported("list the files of %s#%d", repo, number)
}

func (g *gitHost) CreatePull(_ context.Context, repo Repository, n NewPull) (Pull, error) {
	return Pull{}, g.unsupported("open a pull request of branch %q of %s", n.Head, repo)
}

func (g *gitHost) Comments(_ context.Context, repo Repository, on Thread) ([]Comment, error) {
	return nil, g.unsupported("list the comments of %s#%d", repo, on.Number)
}

func (g *gitHost) CreateComment(_ context.Context, repo Repository, on Thread, _ string) (Comment, error) {
	return Comment{}, g.unsupported("comment on %s#%d", repo, on.Number)
}

func (g *gitHost) UpdateComment(_ context.Context, repo Repository, on Thread, _ int64, _ string) error {
	return g.unsupported("edit a comment on %s#%d", repo, on.Number)
}

func (g *gitHost) Labels(_ context.Context, repo Repository, on Thread, _, _ []string) error {
	return g.unsupported("label %s#%d", repo, on.Number)
}

func (g *gitHost) SetStatus(_ context.Context, repo Repository, commit string, _ Status) error {
	return g.unsupported("set a status of commit %q of %s", commit, repo)
}

func (g *gitHost) Reviews(_ context.Context, repo Repository, number int) ([]Review, error) {
	return nil, g.unsupported("list the reviews of %s#%d", repo, number)
}

func (g *gitHost) CreateReview(_ context.Context, repo Repository, number int, _ Review) (Review, error) {
	return Review{}, g.unsupported("review %s#%d", repo, number)
}
