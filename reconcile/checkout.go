package reconcile

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"
)

// Checkout is a git repository on this machine, of which the git program is asked.
type Checkout struct{ dir string }

// OpenCheckout returns the repository that dir is in. Where there is none, or no git program, the Checkout
// knows no commit.
func OpenCheckout(dir string) *Checkout { return &Checkout{dir} }

var fullCommit = regexp.MustCompile(`^[0-9a-f]{40}$`)

// Resolve returns the full ID of a commit from a shortened one or another name of it, and "" for a commit that
// the repository does not have.
func (c *Checkout) Resolve(ctx context.Context, name string) string {
	id, err := c.git(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", name+"^{commit}")
	if err != nil || !fullCommit.MatchString(id) {
		return ""
	}
	return id
}

// Made returns when a commit of the repository was made.
func (c *Checkout) Made(ctx context.Context, id string) (time.Time, bool) {
	text, err := c.git(ctx, "show", "--no-patch", "--format=%cI", "--end-of-options", id)
	if err != nil {
		return time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339, text)
	return at, err == nil
}

// Contains reports whether the history of commit has the commit ancestor, which the repository has. It fetches
// commit from the repository's origin where it is missing. Both are full IDs.
func (c *Checkout) Contains(ctx context.Context, commit, ancestor string) bool {
	if !fullCommit.MatchString(commit) || !fullCommit.MatchString(ancestor) {
		return false
	}
	if c.Resolve(ctx, commit) == "" {
		_, err := c.git(ctx, "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "origin", commit)
		if err != nil {
			return false
		}
	}

	_, err := c.git(ctx, "merge-base", "--is-ancestor", ancestor, commit)
	return err == nil
}

// git runs the git program, which asks nobody for a password.
func (c *Checkout) git(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = c.dir
	cmd.Env = append(os.Environ(), "GIT_TERMINAL_PROMPT=0")
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
}
