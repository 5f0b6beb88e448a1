package forge_test

import (
	"context"
	"errors"
	"flag"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"millwright/forge"
	"millwright/forge/forgetest"
)

// world is a repository acme/tool on a forge: branch main, and branch agent/fix with one more commit, which
// changes test.txt and renames old.txt to new.txt. It has one issue, and no pull request of agent/fix.
type world struct {
	forges *forge.Set
	login  string // of the token's account
	issue  int
	main   string // commits
	head   string
	fork   string // a commit that no branch has

	private bool // the repository
}

var tool = forge.Repository{Owner: "acme", Name: "tool"}

// The commits of the recorded exchanges.
const (
	mainCommit = "6dcb09b5b57875f334f61aebed695e2e4193db5e"
	headCommit = "c5b97d5ae6c19d5c5df71a34c7fbeeda2479ccbc"
	forkCommit = "7fd1a60b01f91b314f59955a4e4d4e80d8edf11d"
)

func TestConformance(t *testing.T) {
	for kind, w := range map[string]world{
		forge.GitHub: {login: "octobot", issue: 7, main: mainCommit, head: headCommit, fork: forkCommit, private: true},
		forge.GitLab: {login: "project_1_bot", issue: 7, main: mainCommit, head: headCommit, fork: forkCommit, private: true},
		forge.Gitea: {
			login: "root-admin", issue: 1, main: "85a263ea97c9b3d65167dbbe4637b30e5cc88578",
			head: "f4d4e3f1c4ae159e92162a2a926bb1c836aa1138", fork: "616b8dfb3f80c55c3660907ae53ce0b30405c70d",
		},
	} {
		t.Run(kind, func(t *testing.T) {
			w.forges = one(t, forge.Settings{Kind: kind, URL: recorded(t, kind+".json"), TokenSecret: "TOKEN"})
			conform(t, w)
		})
	}
}

// one returns a set with one forge, whose token is testToken.
func one(t *testing.T, s forge.Settings) *forge.Set {
	t.Helper()
	set, err := forge.Open(forge.Config{
		Forges:  map[string]forge.Settings{"acme": s},
		Allowed: map[string][]string{"factory": nil},
		Secret:  func(context.Context, string) ([]byte, error) { return []byte(testToken + "\n"), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

var record = flag.Bool("record", false, "write testdata/gitea.json anew, from the real Gitea")

// TestAcceptanceGitea runs the suite, and what only a real forge shows, against a real Gitea.
func TestAcceptanceGitea(t *testing.T) {
	server := forgetest.Start(t)
	server.Organization("acme")
	w := world{forges: server.Forges(func() string { return server.Token }), login: server.Admin}
	w.main = server.Repository("acme", "tool", map[string]string{"old.txt": "same\nsame\nsame\n", "test.txt": "fails\n"})

	dir := t.TempDir()
	forgetest.Git(t, dir, "clone", "--quiet", server.Remote("acme", "tool"), ".")
	w.head = commitFix(t, dir)
	forgetest.Git(t, dir, "push", "--quiet", "origin", "HEAD:refs/heads/agent/fix")

	forgetest.Git(t, dir, "checkout", "--quiet", "--orphan", "strange")
	forgetest.Git(t, dir, "commit", "--quiet", "--message", "Strange")
	w.fork = forgetest.Git(t, dir, "rev-parse", "HEAD")
	forgetest.Git(t, dir, "push", "--quiet", "origin", "HEAD:refs/heads/strange")
	forgetest.Git(t, dir, "push", "--quiet", "origin", ":refs/heads/strange")

	w.issue = server.Issue("acme", "tool", "It fails")
	t.Run("conformance", func(t *testing.T) {
		if *record {
			w.forges = recording(t, server)
		}
		conform(t, w)
	})
	t.Run("push", func(t *testing.T) { giteaPush(t, server) })
	t.Run("repositories that are gone", func(t *testing.T) { giteaGone(t, server) })
	t.Run("token revoked in the middle", func(t *testing.T) { giteaRevoked(t, server) })
}

// commitFix commits the change of branch agent/fix in a clone.
func commitFix(t *testing.T, dir string) string {
	t.Helper()
	forgetest.Git(t, dir, "checkout", "--quiet", "-b", "agent/fix")
	forgetest.Git(t, dir, "mv", "old.txt", "new.txt")
	write(t, dir, "test.txt", "works\n")
	forgetest.Git(t, dir, "commit", "--quiet", "--all", "--message", "Fix")
	return forgetest.Git(t, dir, "rev-parse", "HEAD")
}

// conform is the suite that every forge with an API passes.
func conform(t *testing.T, w world) {
	ctx := t.Context()
	f, err := w.forges.Of(tool)
	must(t, err)

	t.Run("account", func(t *testing.T) {
		login, err := f.Login(ctx)
		must(t, err)
		equal(t, "login", login, w.login)
	})

	t.Run("branches", func(t *testing.T) {
		ref, err := f.Branch(ctx, tool, "")
		must(t, err)
		equal(t, "default branch", ref, forge.Ref{Repository: "acme/tool", Branch: "main", Commit: w.main})

		ref, err = f.Branch(ctx, tool, "agent/fix")
		must(t, err)
		equal(t, "branch", ref, forge.Ref{Repository: "acme/tool", Branch: "agent/fix", Commit: w.head})

		_, err = f.Branch(ctx, tool, "gone")
		is(t, err, forge.ErrNotFound)
		_, err = f.Branch(ctx, forge.Repository{Owner: "acme", Name: "gone"}, "")
		is(t, err, forge.ErrNotFound)
	})

	t.Run("reachable commits", func(t *testing.T) {
		ok, err := f.Reachable(ctx, tool, w.main, "")
		must(t, err)
		equal(t, "the head of the default branch", ok, true)

		ok, err = f.Reachable(ctx, tool, w.main, "agent/fix")
		must(t, err)
		equal(t, "an ancestor of a branch", ok, true)

		ok, err = f.Reachable(ctx, tool, w.fork, "gone")
		must(t, err)
		equal(t, "a commit of no branch", ok, false)

		_, err = f.Reachable(ctx, tool, "main/../../x", "")
		is(t, err, forge.ErrRefused)
	})

	number := pulls(t, f, w)
	t.Run("comments", func(t *testing.T) { comments(t, f, w) })

	t.Run("labels", func(t *testing.T) {
		must(t, f.Labels(ctx, tool, forge.Thread{Number: w.issue}, []string{"triaged"}, []string{"needs/info"}))
		must(t, f.Labels(ctx, tool, forge.Thread{Number: number, Pull: true}, []string{"triaged"}, nil))
		must(t, f.Labels(ctx, tool, forge.Thread{Number: number, Pull: true}, nil, []string{"triaged"}))
	})

	t.Run("statuses", func(t *testing.T) {
		status := forge.Status{
			Context: "agent/fixer", State: forge.StatusPending, Description: "Running",
			URL: "https://hooks.example.com/runs/1",
		}
		must(t, f.SetStatus(ctx, tool, w.head, status))

		status.State, status.Description = forge.StatusSuccess, "Done"
		must(t, f.SetStatus(ctx, tool, w.head, status))
		must(t, f.SetStatus(ctx, tool, w.head, status))
		is(t, f.SetStatus(ctx, tool, "../../x", status), forge.ErrRefused)
	})

	t.Run("reviews", func(t *testing.T) { reviews(t, f, w, number) })
}

func pulls(t *testing.T, f forge.Forge, w world) (number int) {
	ctx := t.Context()
	t.Run("pull requests", func(t *testing.T) {
		_, err := f.PullOf(ctx, tool, "agent/fix")
		is(t, err, forge.ErrNotFound)

		open := forge.NewPull{Title: "Fix the test", Body: "It failed.", Head: "agent/fix", Base: "main", Draft: true}
		made, err := f.CreatePull(ctx, tool, open)
		must(t, err)
		number = made.Number
		_, err = f.CreatePull(ctx, tool, open)
		is(t, err, forge.ErrConflict)

		if made.State != forge.PullOpen || !made.Draft || made.Author != w.login || made.URL == "" || made.Body != "It failed." {
			t.Errorf("pull request %+v", made)
		}
		equal(t, "head", made.Head, forge.Ref{Repository: "acme/tool", Branch: "agent/fix", Commit: w.head})
		equal(t, "base", made.Base.Branch, "main")

		found, err := f.PullOf(ctx, tool, "agent/fix")
		must(t, err)
		equal(t, "the pull request of the branch", found.Number, number)

		read, err := f.Pull(ctx, tool, number)
		must(t, err)
		equal(t, "the pull request", read.URL, made.URL)
		equal(t, "its base", read.Base, forge.Ref{Repository: "acme/tool", Branch: "main", Commit: w.main})
		_, err = f.Pull(ctx, tool, 9999)
		is(t, err, forge.ErrNotFound)

		files, err := f.PullFiles(ctx, tool, number)
		must(t, err)
		equal(t, "files", files, []string{"new.txt", "old.txt", "test.txt"})

		list, whole, err := f.Pulls(ctx, tool, "main")
		must(t, err)
		if len(list) != 1 || !whole || list[0].Number != number || list[0].Head != made.Head {
			t.Errorf("open pull requests: %+v, whole %t", list, whole)
		}
		list, whole, err = f.Pulls(ctx, tool, "other")
		must(t, err)
		if len(list) != 0 || !whole {
			t.Errorf("open pull requests to another branch: %+v, whole %t", list, whole)
		}

		private, err := f.Private(ctx, tool)
		must(t, err)
		equal(t, "private", private, w.private)
	})

	return number
}

func comments(t *testing.T, f forge.Forge, w world) {
	ctx, on := t.Context(), forge.Thread{Number: w.issue}
	first, err := f.CreateComment(ctx, tool, on, "first")
	must(t, err)
	second, err := f.CreateComment(ctx, tool, on, "second")
	must(t, err)
	must(t, f.UpdateComment(ctx, tool, on, first.ID, "edited"))

	all, err := f.Comments(ctx, tool, on)
	must(t, err)
	first.Body = "edited"
	equal(t, "comments", all, []forge.Comment{second, first})
	if first.Author != w.login || first.URL == "" || first.URL == second.URL {
		t.Errorf("comment %+v", first)
	}

	_, err = f.CreateComment(ctx, tool, forge.Thread{Number: 9999}, "nowhere")
	is(t, err, forge.ErrNotFound)
}

func reviews(t *testing.T, f forge.Forge, w world, number int) {
	ctx := t.Context()
	_, err := f.CreateReview(ctx, tool, number, forge.Review{Event: "APPROVE", Body: "Good."})
	is(t, err, forge.ErrRefused)

	made, err := f.CreateReview(ctx, tool, number, forge.Review{
		Event: forge.ReviewComment, Body: "Please look.", Commit: w.head,
		Comments: []forge.LineComment{{Path: "test.txt", Line: 1, Body: "Here."}},
	})
	must(t, err)

	all, err := f.Reviews(ctx, tool, number)
	must(t, err)
	if !slices.ContainsFunc(all, func(r forge.Review) bool {
		return r.ID == made.ID && r.Body == "Please look." && r.Author == w.login && r.Event == forge.ReviewComment
	}) {
		t.Errorf("review %+v is not one of %+v", made, all)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func is(t *testing.T, err, kind error) {
	t.Helper()
	withoutToken(t, err)
	if !errors.Is(err, kind) {
		t.Errorf("error %v, want %v", err, kind)
	}
}

func equal[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
