// Package forge talks to the hosts of git repositories: GitHub, GitLab, Gitea and Forgejo by their APIs, and
// any other host by git alone.
//
// A forge holds a credential and uses it for its own host only. The credential appears in no error. Every
// answer of a host is bounded, in bytes and in pages. Errors are of type *Error, except for the end of a
// context.
package forge

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Repository names a repository of a forge.
type Repository struct {
	Forge string // the name of a forge in the settings; empty: the default one
	Owner string // with slashes for the subgroups of GitLab
	Name  string
}

// String returns owner/name.
func (r Repository) String() string { return r.Owner + "/" + r.Name }

// maxSegment and maxOwner bound the parts of a repository's name, in bytes.
const (
	maxSegment = 100
	maxOwner   = 255
)

// segment is the form of a repository's name and of each part of its owner.
var segment = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*$`)

// Check returns an error if the names of the repository hold other characters than letters, digits and ._-
// or begin with one of .- Owners may hold slashes: only the forges of GitLab accept these.
func (r Repository) Check() error {
	if len(r.Owner) > maxOwner {
		return fmt.Errorf("owner: more than %d characters", maxOwner)
	}

	for part := range strings.SplitSeq(r.Owner, "/") {
		if err := checkSegment("owner", part); err != nil {
			return err
		}
	}

	return checkSegment("name", r.Name)
}

func checkSegment(what, text string) error {
	switch {
	case text == "":
		return fmt.Errorf("%s is empty", what)
	case len(text) > maxSegment:
		return fmt.Errorf("%s: more than %d characters", what, maxSegment)
	case !segment.MatchString(text):
		return fmt.Errorf(
			"%s %q: want letters, digits, '.', '_' and '-', beginning with a letter, digit or '_'",
			what,
			text,
		)
	}

	return nil
}

// ParseRepository reads owner/name. The owner of a GitLab repository may hold slashes.
func ParseRepository(text string) (Repository, error) {
	slash := strings.LastIndexByte(text, '/')
	if slash < 0 {
		return Repository{}, fmt.Errorf("repository %q: want owner/name", text)
	}

	repo := Repository{Owner: text[:slash], Name: text[slash+1:]}
	if err := repo.Check(); err != nil {
		return Repository{}, fmt.Errorf("repository %q: %w", text, err)
	}

	return repo, nil
}

// Credential is a user name and password for git over HTTP.
type Credential struct {
	User     string
	Password string
	Expires  time.Time // zero: it does not expire by itself
	// Short: the credential is for this repository and for reading alone, and expires within hours. It may
	// go to a worker on another machine.
	Short bool
}

// Ref is a branch of a repository, and its commit.
type Ref struct {
	Repository string // owner/name; empty if the repository is gone, as that of a deleted fork
	Branch     string
	Commit     string
}

// States of a pull request.
const (
	PullOpen   = "open"
	PullClosed = "closed"
	PullMerged = "merged"
)

// Pull is a pull request, or a merge request of GitLab.
type Pull struct {
	Number int
	URL    string // of its page
	State  string // PullOpen, PullClosed or PullMerged
	Title  string
	Body   string
	Draft  bool
	Author string // login
	Head   Ref
	Base   Ref
}

// NewPull describes a pull request between two branches of one repository.
type NewPull struct {
	Title string
	Body  string
	Head  string // branch
	Base  string // branch
	Draft bool
}

// Thread is an issue or a pull request. GitLab numbers them apart.
type Thread struct {
	Number int
	Pull   bool
}

// Comment is a comment on an issue or a pull request.
type Comment struct {
	ID     int64
	URL    string // of its page
	Author string // login
	Body   string
}

// States of a commit.
const (
	StatusPending = "pending"
	StatusSuccess = "success"
	StatusFailure = "failure"
	StatusError   = "error"
)

// Status is the state of a commit in one context.
type Status struct {
	Context     string
	State       string // StatusPending, StatusSuccess, StatusFailure or StatusError
	Description string // cut to what the forge accepts
	URL         string // of a page with details
}

// Events of a review. A review never approves.
const (
	ReviewComment        = "COMMENT"
	ReviewRequestChanges = "REQUEST_CHANGES"
)

// Review is a review of a pull request.
type Review struct {
	ID       int64  // set by the forge
	URL      string // of its page; set by the forge
	Author   string // login; set by the forge
	Event    string // ReviewComment or ReviewRequestChanges
	Body     string
	Commit   string // the reviewed commit
	Comments []LineComment
}

// LineComment is a comment on a line of a changed file.
type LineComment struct {
	Path string
	Line int // in the new version of the file
	Body string
}

// Forge is a host of repositories. Its methods are safe for concurrent use. Those of a forge of kind git that
// need more than git return ErrUnsupported.
type Forge interface {
	// Name returns the forge's name in the settings.
	Name() string
	// Kind returns github, gitlab, gitea or git.
	Kind() string
	// CloneURL returns the address of a repository, without a credential.
	CloneURL(Repository) (string, error)
	// Credential returns a credential that can read the repository, or none for public access.
	Credential(context.Context, Repository) (Credential, error)
	// Login returns the login of the account that the forge's credential belongs to.
	Login(context.Context) (string, error)

	// Branch returns a branch, or the default branch for an empty name.
	Branch(ctx context.Context, repo Repository, name string) (Ref, error)
	// Reachable reports whether the forge proves that a commit is reachable from a branch of the
	// repository. It looks at the named branch, if any, and at the default branch first. False means that
	// there is no proof, as for the commit of a fork.
	Reachable(ctx context.Context, repo Repository, commit, branch string) (bool, error)

	// Pull returns a pull request.
	Pull(ctx context.Context, repo Repository, number int) (Pull, error)
	// PullOf returns the open pull request of a branch of the repository, or else the newest one.
	PullOf(ctx context.Context, repo Repository, branch string) (Pull, error)
	// PullFiles returns the paths that a pull request changes, with the former paths of renamed files. It
	// returns ErrRefused for more than MaxFiles, or more than the forge lists.
	PullFiles(ctx context.Context, repo Repository, number int) ([]string, error)
	// CreatePull opens a pull request. It returns ErrConflict if the branches have one already.
	CreatePull(context.Context, Repository, NewPull) (Pull, error)

	// Comments returns the newest comments, at most MaxComments, newest first.
	Comments(context.Context, Repository, Thread) ([]Comment, error)
	// CreateComment adds a comment.
	CreateComment(ctx context.Context, repo Repository, on Thread, body string) (Comment, error)
	// UpdateComment replaces the body of a comment.
	UpdateComment(ctx context.Context, repo Repository, on Thread, id int64, body string) error
	// Labels adds and removes labels. Labels that do not exist are created; absent ones are not removed.
	Labels(ctx context.Context, repo Repository, on Thread, add, remove []string) error

	// SetStatus sets the state of a commit. Setting it twice is like once.
	SetStatus(ctx context.Context, repo Repository, commit string, status Status) error

	// Reviews returns the newest reviews, at most MaxComments, newest first, without their line comments.
	Reviews(ctx context.Context, repo Repository, number int) ([]Review, error)
	// CreateReview submits a review.
	CreateReview(ctx context.Context, repo Repository, number int, review Review) (Review, error)

	// Private reports whether the repository is only for those whom its owner chose.
	Private(context.Context, Repository) (bool, error)
	// Pulls returns the open pull requests to a branch, the last updated first, at most MaxPulls. whole
	// reports whether these are all. On GitLab the repository of a fork's head is not named.
	Pulls(ctx context.Context, repo Repository, base string) (open []Pull, whole bool, err error)

	// locate returns the repository that is at an address of git.
	locate(address string) (Repository, bool)
	// push returns the address and a credential to push with.
	push(context.Context, Repository) (string, Credential, error)
}

// Limits of lists.
const (
	MaxComments = 300
	MaxFiles    = 3000
	MaxPulls    = 1000
)
