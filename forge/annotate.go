package forge

import (
	"context"

	"github.com/google/go-github/v88/github"
)

// Levels of annotations.
const (
	AnnotationFailure = "failure"
	AnnotationWarning = "warning"
)

// MaxAnnotations is how many annotations one request to GitHub may have.
const MaxAnnotations = 50

// Annotation is a problem at a line of a file.
type Annotation struct {
	Path    string // from the root of the repository
	Line    int
	Level   string // AnnotationFailure or AnnotationWarning
	Title   string
	Message string
}

// Annotations are the problems of a commit.
type Annotations struct {
	Name    string // of the check that has them; a later one of the same name and commit replaces it
	Failed  bool
	Title   string
	Summary string
	URL     string // of a page with details
	All     []Annotation
}

// Annotates shows problems beside the lines of a commit's files. Forges of kind github do, for a GitHub App.
type Annotates interface {
	// Annotate shows problems, the first MaxAnnotations. It returns ErrUnsupported where the credential is a
	// token.
	Annotate(ctx context.Context, repo Repository, commit string, a Annotations) error
}

// Annotate makes a check run: GitHub shows the last one of a name for each commit.
func (g *gitHub) Annotate(ctx context.Context, repo Repository, commit string, a Annotations) error {
	if g.app == nil {
		return &Error{
			Kind:  ErrUnsupported,
			Forge: g.name,
			Doing: "annotate a commit of " + repo.String(),
			Words: "GitHub takes annotations from apps only",
		}
	}
	if err := g.checkCommit(commit, repo); err != nil {
		return err
	}

	out := &github.CheckRunOutput{Title: &a.Title, Summary: &a.Summary}
	for _, one := range a.All[:min(len(a.All), MaxAnnotations)] {
		out.Annotations = append(out.Annotations, &github.CheckRunAnnotation{
			Path:            &one.Path,
			StartLine:       &one.Line,
			EndLine:         &one.Line,
			AnnotationLevel: &one.Level,
			Title:           optional(one.Title),
			Message:         &one.Message,
		})
	}

	conclusion := "success"
	if a.Failed {
		conclusion = "failure"
	}
	ctx = inRepository(ctx, repo)
	_, _, err := g.api.Checks.CreateCheckRun(ctx, repo.Owner, repo.Name, github.CreateCheckRunOptions{
		Name:       a.Name,
		HeadSHA:    commit,
		DetailsURL: optional(a.URL),
		Status:     new("completed"),
		Conclusion: &conclusion,
		Output:     out,
	})
	return g.fail(ctx, err, "annotate commit %q of %s", commit, repo)
}
