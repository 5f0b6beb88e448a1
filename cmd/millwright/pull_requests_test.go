package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"code.gitea.io/sdk/gitea"

	"millwright/cmd/cli"
	"millwright/forge/forgetest"
	"millwright/state/statetest"
)

// checkedWorld is a server with two factories whose definitions are on a Gitea: mill in a private repository, and
// open in a public one.
type checkedWorld struct {
	*forgeWorld
	clones map[string]string // by repository
}

func newCheckedWorld(t *testing.T) *checkedWorld {
	t.Helper()
	statetest.Program(t, "git")
	w := &checkedWorld{
		forgeWorld: &forgeWorld{t: t, gitea: forgetest.Start(t), dir: t.TempDir(), port: mustPort(t)},
		clones:     map[string]string{},
	}
	w.gitea.Organization("acme")
	hook := "secretName: HOOK\n"
	w.gitea.Repository("acme", "mill", map[string]string{"README.md": "Mill\n", "def/webhooks/hook.yaml": hook})
	w.gitea.Repository("acme", "open", map[string]string{"webhooks/hook.yaml": hook})
	w.gitea.Repository("acme", "told", map[string]string{"webhooks/hook.yaml": hook})
	private := true
	if _, _, err := w.gitea.API().EditRepo("acme", "mill", gitea.EditRepoOption{Private: &private}); err != nil {
		t.Fatal(err)
	}

	settings := fmt.Sprintf(`listen: 127.0.0.1:%[1]s
publicUrl: http://127.0.0.1:%[1]s
workers: 0
forges:
  acme: { kind: gitea, url: %[2]s, tokenSecret: GITEA_TOKEN }
factories:
  - name: mill
    repositories: []
    source: { git: { url: %[2]s/acme/mill.git, path: def, interval: 300ms, tokenSecret: GITEA_TOKEN } }
  - name: open
    repositories: []
    source: { git: { url: %[2]s/acme/open.git, interval: 300ms } }
  - name: told
    repositories: []
    source: { git: { url: %[2]s/acme/told.git, interval: 1h, pushSecret: PUSH, pushScheme: gitea } }
`, w.port, w.gitea.URL)
	if err := cli.WriteNew(filepath.Join(w.dir, "millwright.yaml"), []byte(settings)); err != nil {
		t.Fatal(err)
	}
	for _, repo := range []string{"mill", "open", "told"} {
		w.clones[repo] = t.TempDir()
		forgetest.Git(t, w.clones[repo], "clone", "--quiet", w.gitea.Remote("acme", repo), ".")
	}
	return w
}

// commit commits files on a branch that begins at main, forces it to the remote and returns the commit.
func (w *checkedWorld) commit(repo, branch, remote string, files map[string]string) string {
	w.t.Helper()
	dir := w.clones[repo]
	forgetest.Git(w.t, dir, "checkout", "--quiet", "-B", branch, "origin/main")
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			w.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			w.t.Fatal(err)
		}
	}
	forgetest.Git(w.t, dir, "add", "--all")
	forgetest.Git(w.t, dir, "commit", "--quiet", "--message", "Change of "+branch)
	forgetest.Git(w.t, dir, "push", "--quiet", "--force", remote, branch)
	return forgetest.Git(w.t, dir, "rev-parse", "HEAD")
}

// pull opens a pull request of a branch.
func (w *checkedWorld) pull(repo, head string) int64 {
	w.t.Helper()
	p, _, err := w.gitea.API().CreatePullRequest("acme", repo, gitea.CreatePullRequestOption{
		Head: head, Base: "main", Title: "Change of " + head,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return p.Index
}

// status returns the latest status that the server set on a commit, as "state description".
func (w *checkedWorld) status(repo, commit string) string {
	list, _, err := w.gitea.API().ListStatuses("acme", repo, commit, gitea.ListStatusesOption{})
	if err != nil {
		return err.Error()
	}
	var last *gitea.Status
	for _, s := range list {
		if s.Context == "millwright/"+repo && (last == nil || s.ID > last.ID) {
			last = s
		}
	}
	if last == nil {
		return "none"
	}
	return string(last.State) + " " + last.Description
}

// shows waits for a status.
func (w *checkedWorld) shows(repo, commit, want string) {
	w.t.Helper()
	last := ""
	defer func() {
		if !strings.HasPrefix(last, want) {
			w.t.Logf("the status of %s is %s", commit, last)
		}
	}()
	statetest.Until(w.t, "the status "+want+" of "+commit, func() bool {
		last = w.status(repo, commit)
		return strings.HasPrefix(last, want)
	})
}

// comments returns the comments on a pull request that say something of the server's.
func (w *checkedWorld) comments(repo string, number int64) (own []*gitea.Comment) {
	w.t.Helper()
	list, _, err := w.gitea.API().ListIssueComments("acme", repo, number, gitea.ListIssueCommentOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, c := range list {
		if strings.Contains(c.Body, "### millwright") {
			own = append(own, c)
		}
	}
	return own
}

// says waits until a pull request has exactly one comment of the server, with a text.
func (w *checkedWorld) says(repo string, number int64, want string) *gitea.Comment {
	w.t.Helper()
	var own []*gitea.Comment
	statetest.Until(w.t, fmt.Sprintf("the comment on %s#%d: %s", repo, number, want), func() bool {
		own = w.comments(repo, number)
		return len(own) > 0 && strings.Contains(own[len(own)-1].Body, want)
	})
	if len(own) != 1 {
		w.t.Fatalf("%s#%d has %d comments of the server", repo, number, len(own))
	}
	return own[0]
}

// crash kills the server and starts it again.
func (w *checkedWorld) crash(p *process) *process {
	w.t.Helper()
	if err := p.Process.Signal(syscall.SIGKILL); err != nil {
		w.t.Fatal(err)
	}
	_ = p.Wait()
	return w.start()
}

// edition is what a pull request commits, and what the server finds.
func edition(n, round int) (files map[string]string, status, comment string) {
	name := fmt.Sprintf("new-%d-%d", n, round)
	switch n % 4 {
	case 0:
		return map[string]string{"def/webhooks/" + name + ".yaml": "secretName: HOOK\n"},
			"success would be applied: 1 to create", "| create | webhook | `" + name + "` |"
	case 1:
		return map[string]string{"def/webhooks/" + name + ".yaml": "secretName: ABSENT\n"},
			"failure would be refused: webhooks/" + name + ".yaml:1", "`webhooks/" + name + ".yaml:1`"
	case 2:
		return map[string]string{"src/" + name + ".go": "package src\n"}, "success does not change the definition", ""
	}
	text := fmt.Sprintf("secretName: HOOK\ndeliveryIdHeader: X-Edition-%d-%d\n", n, round)
	return map[string]string{"def/webhooks/hook.yaml": text}, "success would be applied: 1 to update", "`deliveryIdHeader`"
}

// TestAcceptancePullRequests checks twenty pull requests at a real forge, twice, while the server is killed again
// and again: each head has its status, and each pull request that touches the definition one comment.
func TestAcceptancePullRequests(t *testing.T) {
	w := newCheckedWorld(t)
	p := w.start()
	w.cli(w.gitea.Token, "secret", "set", "GITEA_TOKEN")
	w.cli("h00k-of-the-story", "secret", "set", "HOOK")
	w.shows("mill", forgetest.Git(t, w.clones["mill"], "rev-parse", "origin/main"), "success applied: 1 created")
	w.shows("open", forgetest.Git(t, w.clones["open"], "rev-parse", "origin/main"), "success applied: 1 created")

	const pulls = 20
	var numbers [pulls]int64
	for round := range 2 {
		var heads [pulls]string
		for n := range pulls {
			files, _, _ := edition(n, round)
			branch := fmt.Sprintf("change-%d", n)
			if heads[n] = w.commit("mill", branch, "origin", files); round == 0 {
				numbers[n] = w.pull("mill", branch)
			}
		}

		for range kills(t) {
			<-time.After(time.Duration(rand.IntN(1500)) * time.Millisecond)
			p = w.crash(p)
		}

		for n := range pulls {
			_, status, comment := edition(n, round)
			w.shows("mill", heads[n], status)
			if comment != "" {
				w.says("mill", numbers[n], comment)
			} else if own := w.comments("mill", numbers[n]); len(own) > 0 {
				t.Errorf("#%d does not touch the definition, and has %d comments", numbers[n], len(own))
			}
		}
	}

	for name, f := range map[string]func(){
		"a bad revision":     w.badRevision,
		"pushed ten times":   func() { w.pushedOften(numbers[0]) },
		"comments of others": func() { w.meddled(numbers[4]) },
		"closed and opened":  func() { w.closed(numbers[8]) },
		"many files":         w.manyFiles,
		"strangers":          w.strangers,
		"told by a webhook":  w.told,
		"all in one comment": w.whole,
	} {
		t.Run(name, func(t *testing.T) {
			w.t = t
			f()
		})
	}

	w.t = t
	p.alive(t)
	w.secretless(p)
}

// badRevision pushes a revision that is refused, and takes it back.
func (w *checkedWorld) badRevision() {
	bad := w.commit("mill", "main", "origin", map[string]string{"def/webhooks/bad.yaml": "secretNam: X\n"})
	w.shows("mill", bad, "failure refused: webhooks/bad.yaml:1")
	forgetest.Git(w.t, w.clones["mill"], "push", "--quiet", "--force", "origin", bad+"^:refs/heads/main")
}

// pushedOften pushes ten heads at once: the last one is what the comment has.
func (w *checkedWorld) pushedOften(number int64) {
	var head string
	for i := range 10 {
		name := fmt.Sprintf("def/webhooks/often-%d.yaml", i)
		head = w.commit("mill", "change-0", "origin", map[string]string{name: "secretName: HOOK\n"})
	}
	w.shows("mill", head, "success would be applied: 1 to create")
	w.says("mill", number, "`often-9`")
}

// meddled edits and deletes the comment. It is edited back with the next head, and made again once.
func (w *checkedWorld) meddled(number int64) {
	t, api := w.t, w.gitea.API()
	push := func(name string) string {
		return w.commit("mill", "change-4", "origin", map[string]string{
			"def/webhooks/" + name + ".yaml": "secretName: HOOK\n",
		})
	}

	comment := w.says("mill", number, "### millwright")
	_, _, err := api.EditIssueComment("acme", "mill", comment.ID, gitea.EditIssueCommentOption{Body: "I was here"})
	if err != nil {
		t.Fatal(err)
	}
	push("edited")
	if again := w.says("mill", number, "`edited`"); again.ID != comment.ID {
		t.Errorf("comment %d in place of %d", again.ID, comment.ID)
	}

	if _, err := api.DeleteIssueComment("acme", "mill", comment.ID); err != nil {
		t.Fatal(err)
	}
	push("deleted")
	again := w.says("mill", number, "`deleted`")
	if _, err := api.DeleteIssueComment("acme", "mill", again.ID); err != nil {
		t.Fatal(err)
	}
	head := push("unwanted")
	w.shows("mill", head, "success")
	if own := w.comments("mill", number); len(own) > 0 {
		t.Errorf("the comment was made again twice: %s", own[0].Body)
	}
}

// closed closes a pull request, pushes to it, and opens it again.
func (w *checkedWorld) closed(number int64) {
	t, api := w.t, w.gitea.API()
	state := gitea.StateClosed
	if _, _, err := api.EditPullRequest("acme", "mill", number, gitea.EditPullRequestOption{State: &state}); err != nil {
		t.Fatal(err)
	}
	w.commit("mill", "change-8", "origin", map[string]string{"def/webhooks/while.yaml": "secretName: HOOK\n"})
	state = gitea.StateOpen
	if _, _, err := api.EditPullRequest("acme", "mill", number, gitea.EditPullRequestOption{State: &state}); err != nil {
		t.Fatal(err)
	}
	head := w.commit("mill", "change-8", "origin", map[string]string{"def/webhooks/after.yaml": "secretName: HOOK\n"})
	w.shows("mill", head, "success would be applied: 1 to create")
	w.says("mill", number, head[:12])
}

// manyFiles opens a pull request with 3,000 files beside the definition, and one in it.
func (w *checkedWorld) manyFiles() {
	files := map[string]string{"def/webhooks/last.yaml": "secretName: HOOK\n"}
	for i := range 3000 {
		files[fmt.Sprintf("src/%d.txt", i)] = fmt.Sprint(i)
	}
	head := w.commit("mill", "many", "origin", files)
	number := w.pull("mill", "many")
	w.shows("mill", head, "success would be applied: 1 to create")
	w.says("mill", number, "`last`")
}

// whole opens a pull request whose comment has UIDs, secrets and a backtest.
func (w *checkedWorld) whole() {
	var hooks struct {
		Webhooks []struct {
			UID        string `json:"uid"`
			IngressURL string `json:"ingress_url"`
		}
	}
	list := w.cli("", "webhook", "list", "--factory", "mill", "-o", "json")
	if err := json.Unmarshal([]byte(list), &hooks); err != nil || len(hooks.Webhooks) != 1 {
		w.t.Fatalf("webhooks %s, %v", list, err)
	}
	hook := hooks.Webhooks[0]
	request, err := http.NewRequest(http.MethodPost, hook.IngressURL, strings.NewReader(`{"status": "failed"}`))
	if err != nil {
		w.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer h00k-of-the-story")
	res, err := http.DefaultClient.Do(request)
	if err != nil {
		w.t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusAccepted {
		w.t.Fatalf("the delivery got %d", res.StatusCode)
	}

	head := w.commit("mill", "whole", "origin", map[string]string{
		"def/webhooks/added.yaml": "secretName: HOOK\n",
		"def/automations/look/automation.md": "---\ntriggers:\n  - provider: webhook\n    event: received\n" +
			"    filter: {webhook_ids: [" + hook.UID + "], payload: {status: [failed]}}\n---\nLook.\n",
	})
	number := w.pull("mill", "whole")
	w.shows("mill", head, "success would be applied: 2 to create")
	w.cli("h00k-of-another-day", "secret", "set", "HOOK")
	comment := w.says("mill", number, "Secrets whose new values would be used")
	for _, want := range []string{
		"**UIDs of new webhooks**", "| `added` | `wh_", "**Backtest of changed triggers**", "| `look` |", "| `HOOK` | `hook` |",
	} {
		if !strings.Contains(comment.Body, want) {
			w.t.Errorf("the comment lacks %s:\n%s", want, comment.Body)
		}
	}
}

// told opens a pull request of a repository that the server looks at each hour, and pushes to it. The forge's
// webhook wakes it.
func (w *checkedWorld) told() {
	w.cli("pushed", "secret", "set", "PUSH")
	var all struct {
		Factories []struct{ UID, Name string }
	}
	c := cli.Client{Server: "http://127.0.0.1:" + w.port, Key: crashKey, HTTP: http.DefaultClient}
	if err := c.Get(w.t.Context(), "/factory", &all); err != nil {
		w.t.Fatal(err)
	}
	for _, f := range all.Factories {
		if f.Name == "told" {
			address := "http://127.0.0.1:" + w.port + "/api/v1/factory/" + f.UID + "/push"
			w.gitea.Webhook("acme", "told", address, "pushed", "push", "pull_request")
		}
	}

	head := w.commit("told", "first", "origin", map[string]string{"webhooks/first.yaml": "secretName: HOOK\n"})
	number := w.pull("told", "first")
	w.shows("told", head, "success would be applied: 1 to create")
	head = w.commit("told", "first", "origin", map[string]string{"webhooks/second.yaml": "secretName: HOOK\n"})
	w.shows("told", head, "success would be applied: 1 to create")
	w.says("told", number, "`second`")
}

// strangers opens a pull request from a fork of the public repository, with hostile text in every name.
func (w *checkedWorld) strangers() {
	t := w.t
	token := w.gitea.User("mallory")
	if _, _, err := w.gitea.APIOf(token).CreateFork("acme", "open", gitea.CreateForkOption{}); err != nil {
		t.Fatal(err)
	}
	fork := strings.Replace(w.gitea.URL, "://", "://mallory:"+token+"@", 1) + "/mallory/open.git"
	evil := "<img src=x onerror=alert(1)> @root-admin [x](http://evil.example) https://evil.example"
	head := w.commit("open", "evil", fork, map[string]string{
		"webhooks/" + strings.ReplaceAll(evil, "/", "") + ".yaml": "secretName: HOOK\n",
		"webhooks/fine.yaml": "secretName: NO_SUCH_SECRET\n",
		"webhooks/text.yaml": "authMode: \"@everyone " + evil + " ` | #1 acme/mill#1\"\nsecretName: GITEA_TOKEN\n",
	})
	number := w.pull("open", "mallory:evil")
	w.shows("open", head, "failure would be refused: ")
	comment := w.says("open", number, "### millwright")

	for _, secret := range []string{"does not exist", "tokenSecret", "wh_"} {
		if strings.Contains(comment.Body, secret) || strings.Contains(w.status("open", head), secret) {
			t.Errorf("a stranger learns %q:\n%s", secret, comment.Body)
		}
	}

	html, _, err := w.gitea.API().RenderMarkdown(gitea.MarkdownOption{Text: comment.Body, Mode: "comment", Context: "acme/open"})
	if err != nil {
		t.Fatal(err)
	}
	for _, markup := range []string{"<img", "<a ", "mention"} {
		if strings.Contains(html, markup) {
			t.Errorf("the comment has %s:\n%s", markup, html)
		}
	}
}

// secretless ends the server and holds that its log has no secret.
func (w *checkedWorld) secretless(p *process) {
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		w.t.Fatal(err)
	}
	_ = p.Wait()
	if log := p.log.String(); strings.Contains(log, w.gitea.Token) || strings.Contains(log, "h00k-of-the-story") {
		w.t.Error("the log has a secret")
	}
}
