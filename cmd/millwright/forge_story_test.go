package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
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

// storyAgent stands for the program of the preset claude: it mends a shell script, tests it, and asks for outputs. It
// does the same in each execution, on what it finds.
const storyAgent = `#!/bin/sh
set -eu
echo '{"type":"system","subtype":"init","session_id":"story","model":"scripted"}'
echo 'echo $(($1 + $2))' > add.sh
if grep -q README "$MILLWRIGHT_DIR/prompt.md"; then
  echo "It adds." >> README.md
else
  echo '{"type":"pull_request","title":"Add the numbers","body":"The script subtracted."}' >> "$MILLWRIGHT_DIR/outputs.jsonl"
  echo '{"type":"comment","body":"It subtracted. The pull request mends it."}' >> "$MILLWRIGHT_DIR/outputs.jsonl"
  echo '{"type":"label","add":["triaged"]}' >> "$MILLWRIGHT_DIR/outputs.jsonl"
fi
sh test.sh
git -c user.name=Agent -c user.email=agent@example.com commit -qam "Add, and do not subtract"
echo '{"type":"assistant","message":{"id":"a","content":[{"type":"text","text":"The script adds, and its test passes."}]}}'
echo '{"type":"result","subtype":"success","is_error":false,"result":"Done.","session_id":"story"}'
`

// forgeWorld is a server whose factory is in git on a Gitea, with a repository that has a failing test.
type forgeWorld struct {
	t     *testing.T
	gitea *forgetest.Server
	dir   string
	port  string
}

func newForgeWorld(t *testing.T) *forgeWorld {
	t.Helper()
	w := &forgeWorld{t: t, gitea: forgetest.Start(t), dir: t.TempDir(), port: mustPort(t)}
	w.gitea.Organization("acme")
	w.gitea.Repository("acme", "shop", map[string]string{
		"add.sh":    "echo $(($1 - $2))\n",
		"test.sh":   "test \"$(sh add.sh 2 3)\" = 5\n",
		"README.md": "Shop\n",
	})
	w.gitea.Repository("acme", "factory", map[string]string{"webhooks/forge.yaml": "authMode: signature\nsignatureScheme: gitea\nsecretName: HOOK\n"})
	settings := fmt.Sprintf(`listen: 127.0.0.1:%s
publicUrl: http://127.0.0.1:%s
workers: 2
harness: script
harnesses:
  script: { preset: claude, program: %s, sameUser: true }
forges:
  acme: { kind: gitea, url: %s, tokenSecret: GITEA_TOKEN }
factories:
  - name: shop
    repositories: [acme/shop]
    source: { git: { url: %q, interval: 200ms } }
`, w.port, w.port, filepath.Join(w.dir, "agent.sh"), w.gitea.URL, w.gitea.URL+"/acme/factory.git")
	for name, text := range map[string]string{"millwright.yaml": settings, "agent.sh": storyAgent} {
		if err := cli.WriteNew(filepath.Join(w.dir, name), []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(w.dir, "agent.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	return w
}

// cli runs a client command, and returns its output.
func (w *forgeWorld) cli(in string, args ...string) string {
	w.t.Helper()
	out, err := w.try(in, args...)
	if err != nil {
		w.t.Fatalf("millwright %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func (w *forgeWorld) try(in string, args ...string) (string, error) {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Dir = w.dir
	cmd.Env = append(os.Environ(), runMain+"=1", "MILLWRIGHT_SERVER=http://127.0.0.1:"+w.port, "MILLWRIGHT_API_KEY="+crashKey)
	cmd.Stdin = strings.NewReader(in)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// start starts the server.
func (w *forgeWorld) start() *process {
	w.t.Helper()
	p := &process{ended: make(chan struct{})}
	p.Cmd = exec.Command(os.Args[0], "serve", "--config", "millwright.yaml", "--state", filepath.Join(w.dir, "state.db"))
	p.Dir = w.dir
	p.Env = append(os.Environ(), runMain+"=1", "MILLWRIGHT_BOOTSTRAP_KEY="+crashKey, "TMPDIR="+w.dir)
	p.Stdout, p.Stderr = io.Discard, &p.log
	if err := p.Start(); err != nil {
		w.t.Fatal(err)
	}
	go func() {
		p.err = p.Cmd.Wait()
		close(p.ended)
	}()
	w.t.Cleanup(func() {
		_ = p.Process.Kill()
		_ = p.Wait()
		if w.t.Failed() {
			w.t.Logf("the server said:\n%s", p.log.String())
		}
	})

	statetest.Until(w.t, "the server is ready", func() bool {
		p.alive(w.t)
		res, err := http.Get("http://127.0.0.1:" + w.port + "/healthz")
		if err != nil {
			return false
		}
		res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
	return p
}

// begin applies the definition and registers the webhook.
func (w *forgeWorld) begin() {
	w.t.Helper()
	w.cli(w.gitea.Token, "secret", "set", "GITEA_TOKEN")
	w.cli("h00k-of-the-story", "secret", "set", "HOOK")

	var hooks struct {
		Webhooks []struct {
			UID        string `json:"uid"`
			IngressURL string `json:"ingress_url"`
		}
	}
	statetest.Until(w.t, "the webhook of the definition", func() bool {
		out, err := w.try("", "webhook", "list", "-o", "json")
		return err == nil && json.Unmarshal([]byte(out), &hooks) == nil && len(hooks.Webhooks) == 1
	})

	dir := w.t.TempDir()
	forgetest.Git(w.t, dir, "clone", "--quiet", w.gitea.Remote("acme", "factory"), ".")
	for name, text := range map[string]string{
		"factory.yaml": `schemaVersion: v1alpha1
name: shop
repositories: [{ owner: acme, name: shop }]
agentDefaults: { harness: { type: script } }
`,
		"agents/foreman/agent.md": "---\nagentType: FOREMAN\n---\nBe brief.\n",
		"automations/mend/automation.md": `---
triggers:
  - provider: webhook
    event: received
    filter:
      webhook_ids: [` + hooks.Webhooks[0].UID + `]
      payload: { action: [opened], issue: { exists: true } }
outputs:
  pullRequest: { labels: [agent] }
  comment: { max: 1 }
  labels: { allow: [triaged] }
  status: {}
---
Mend what the issue describes, and run the test.
`,
		// What the server does itself would start this one.
		"automations/watch/automation.md": `---
triggers:
  - { provider: github, event: pull_request_opened }
  - { provider: github, event: pull_request_synchronized }
  - { provider: webhook, event: received, filter: { webhook_ids: [` + hooks.Webhooks[0].UID + `], payload: { comment: { exists: true } } } }
---
Look at it.
`,
	} {
		if err := cli.WriteNew(filepath.Join(dir, name), []byte(text)); err != nil {
			w.t.Fatal(err)
		}
	}
	forgetest.Git(w.t, dir, "add", "--all")
	forgetest.Git(w.t, dir, "commit", "--quiet", "--message", "Mend what issues describe")
	forgetest.Git(w.t, dir, "push", "--quiet", "origin", "main")
	statetest.Until(w.t, "the automation is applied", func() bool {
		out, err := w.try("", "status", "-o", "json")
		return err == nil && strings.Contains(out, `"automations": 2`) || strings.Contains(out, forgetest.Git(w.t, dir, "rev-parse", "HEAD"))
	})
	w.gitea.Webhook("acme", "shop", hooks.Webhooks[0].IngressURL, "h00k-of-the-story", "issues", "issue_comment", "pull_request", "push")
}

// openIssue opens an issue, whose delivery starts a run, and returns its number.
func (w *forgeWorld) openIssue() int64 {
	w.t.Helper()
	issue, _, err := w.gitea.API().CreateIssue("acme", "shop", gitea.CreateIssueOption{Title: "2 and 3 make -1"})
	if err != nil {
		w.t.Fatal(err)
	}
	return issue.Index
}

type storyRun struct {
	RunID    string `json:"run_id"`
	State    string
	Metadata map[string]string

	StatusMessage struct {
		Message   string
		ErrorCode string `json:"error_code"`
	} `json:"status_message"`
}

func (w *forgeWorld) runs() []storyRun {
	out, err := w.try("", "run", "list", "--all", "-o", "json")
	var list struct{ Runs []storyRun }
	if err != nil || json.Unmarshal([]byte(out), &list) != nil {
		return nil
	}
	return list.Runs
}

// settled reports whether n runs have ended, and no output is to be performed.
func (w *forgeWorld) settled(n int) bool { return w.unsettled(n) == 0 }

// unsettled returns how many of n runs have not ended, or have outputs to be performed.
func (w *forgeWorld) unsettled(n int) int {
	all := w.runs()
	left := max(0, n-len(all))
	for _, r := range all {
		if r.State == "QUEUED" || r.State == "CLAIMED" || r.State == "INPROGRESS" {
			left++
			continue
		}
		out, err := w.try("", "run", "outputs", r.RunID, "-o", "json")
		if err != nil || strings.Contains(out, `"pending"`) || strings.Contains(out, `"doing"`) {
			left++
		}
	}
	return left
}

// shown checks what the forge shows of n issues.
func (w *forgeWorld) shown(n, commits int) {
	w.t.Helper()
	api := w.gitea.API()
	pulls, _, err := api.ListRepoPullRequests("acme", "shop", gitea.ListPullRequestsOptions{State: gitea.StateAll})
	if err != nil || len(pulls) != n {
		w.t.Fatalf("%d pull requests of %d runs, %v", len(pulls), n, err)
	}
	for _, p := range pulls {
		list, _, err := api.ListPullRequestCommits("acme", "shop", p.Index, gitea.ListPullRequestCommitsOptions{})
		if err != nil || len(list) != commits || !p.Draft || !strings.HasPrefix(p.Head.Name, "agent/mend/") {
			w.t.Errorf("pull request %d: %d commits, draft %t, branch %s, %v", p.Index, len(list), p.Draft, p.Head.Name, err)
		}
		status, _, err := api.GetCombinedStatus("acme", "shop", p.Head.Sha)
		if err != nil || status.State != gitea.StatusSuccess {
			w.t.Errorf("pull request %d: status %+v, %v", p.Index, status, err)
		}
	}
}

// TestAcceptanceForgeStory opens an issue on a real forge. Its signed delivery starts a run in a checkout, the
// agent mends the failing test, and the forge shows a draft pull request with a green status and a comment. A
// follow-up adds a commit to the same pull request. Then the server is killed again and again.
func TestAcceptanceForgeStory(t *testing.T) {
	statetest.Program(t, "git")
	w := newForgeWorld(t)
	p := w.start()
	w.begin()
	issue := w.openIssue()
	statetest.Until(t, "the first run and its outputs", func() bool { p.alive(t); return w.settled(1) })
	run := w.runs()[0]
	outputs := w.cli("", "run", "outputs", run.RunID)
	if run.State != "SUCCEEDED" {
		t.Fatalf("the run is %s:\n%s\n%s", run.State, w.cli("", "run", "logs", run.RunID), outputs)
	}
	w.shown(1, 1)
	comments, _, err := w.gitea.API().ListIssueComments("acme", "shop", issue, gitea.ListIssueCommentOptions{})
	if err != nil || len(comments) != 1 || !strings.HasPrefix(comments[0].Body, "It subtracted.") {
		t.Errorf("comments %+v, %v\n%s", comments, err, outputs)
	}
	got, _, err := w.gitea.API().GetIssue("acme", "shop", issue)
	if err != nil || len(got.Labels) != 1 {
		t.Errorf("labels %+v, %v", got.Labels, err)
	}

	w.followUp(run)
	w.shown(1, 2)
	if n := len(w.runs()); n != 1 {
		t.Errorf("what the server did started %d runs", n-1)
	}
	if comments, _, _ := w.gitea.API().ListIssueComments("acme", "shop", issue, gitea.ListIssueCommentOptions{}); len(comments) != 1 {
		t.Errorf("%d comments after the follow-up", len(comments))
	}

	w.killed(p)
}

// followUp asks a run for more, and waits for its second commit in the pull request.
func (w *forgeWorld) followUp(run storyRun) {
	w.t.Helper()
	w.cli("", "run", "followup", run.RunID, "Tell it in the README")

	statetest.Until(w.t, "the follow-up", func() bool {
		api := w.gitea.API()
		pulls, _, err := api.ListRepoPullRequests("acme", "shop", gitea.ListPullRequestsOptions{})
		if err != nil || len(pulls) != 1 {
			return false
		}
		list, _, err := api.ListPullRequestCommits("acme", "shop", pulls[0].Index, gitea.ListPullRequestCommitsOptions{})
		return err == nil && len(list) == 2
	})
	statetest.Until(w.t, "the outputs of the follow-up", func() bool { return w.settled(1) })
}

var demoForge = flag.Bool("demo-forge", false, "play the story of a forge, and serve until Ctrl-C")

// TestDemoForge plays the story for people: make demo-forge.
func TestDemoForge(t *testing.T) {
	if !*demoForge {
		t.Skip("make demo-forge plays it")
	}
	stop, end := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
	defer end()

	w := newForgeWorld(t)
	p := w.start()
	w.begin()
	fmt.Printf("\nA Gitea with a repository whose test fails: %s/acme/shop\n", w.gitea.URL)
	fmt.Printf("Its factory: %s/acme/factory\n", w.gitea.URL)
	fmt.Printf("millwright: http://127.0.0.1:%s, sign in with the key %s\n", w.port, crashKey)

	issue := w.openIssue()
	fmt.Printf("An issue was opened: %s/acme/shop/issues/%d\n", w.gitea.URL, issue)
	statetest.Until(t, "the run and its outputs", func() bool { p.alive(t); return w.settled(1) })
	run := w.runs()[0]
	fmt.Printf("The run %s: http://127.0.0.1:%s/runs/%s\n", run.State, w.port, run.RunID)
	w.followUp(run)
	fmt.Printf("A follow-up added a commit to its pull request.\n\n%s", w.cli("", "run", "outputs", run.RunID))
	fmt.Printf("\nThe pull request: %s/acme/shop/pulls\nCtrl-C stops all of it.\n", w.gitea.URL)
	<-stop.Done()
}

// pulls returns how many pull requests the forge has of a branch.
func (w *forgeWorld) pulls(branch string) int {
	w.t.Helper()
	count := 0
	for page := 1; ; page++ {
		list, _, err := w.gitea.API().ListRepoPullRequests("acme", "shop", gitea.ListPullRequestsOptions{
			State: gitea.StateAll, ListOptions: gitea.ListOptions{Page: page, PageSize: 50},
		})
		if err != nil {
			w.t.Fatal(err)
		}
		for _, p := range list {
			if p.Head.Name == branch {
				count++
			}
		}
		if len(list) < 50 {
			return count
		}
	}
}

// killed kills the server at random moments of more runs. Each run succeeds with one pull request and one
// comment, unless its worker died in each of its attempts.
func (w *forgeWorld) killed(p *process) {
	t := w.t
	n := kills(t)
	var issues []int64
	for i := range n {
		issues = append(issues, w.openIssue())
		timer := time.After(time.Duration(rand.IntN(1500)) * time.Millisecond)
		<-timer
		if err := p.Process.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		_ = p.Wait()
		if p = w.start(); t.Failed() {
			t.Fatalf("after %d kills", i+1)
		}
	}

	statetest.Drain(t, "all runs and their outputs", func() int { p.alive(t); return w.unsettled(n + 1) })
	lost := 0 // runs that ended because too many of their workers died
	for _, r := range w.runs() {
		wanted := 1
		switch {
		case r.State == "SUCCEEDED":
		case r.State == "ERROR" && r.StatusMessage.ErrorCode == "infrastructure_timeout" &&
			strings.Contains(r.StatusMessage.Message, "in each of 3 attempts"):
			lost++
			wanted = 0
		default:
			t.Errorf("run %s ended as %s, %s: %s\n%s", r.RunID, r.State, r.StatusMessage.ErrorCode,
				r.StatusMessage.Message, w.cli("", "run", "logs", r.RunID))
			continue
		}

		if pulls := w.pulls("agent/mend/" + r.RunID); pulls != wanted {
			t.Errorf("%d pull requests of run %s, which is %s:\n%s", pulls, r.RunID, r.State,
				w.cli("", "run", "outputs", r.RunID))
		}
	}

	without := 0
	for _, issue := range issues {
		list, _, err := w.gitea.API().ListIssueComments("acme", "shop", issue, gitea.ListIssueCommentOptions{})
		if err != nil || len(list) > 1 {
			t.Errorf("issue %d has %d comments, %v", issue, len(list), err)
		}
		if len(list) == 0 {
			without++
		}
	}
	if without != lost {
		t.Errorf("%d issues have no comment, and %d runs died in each attempt", without, lost)
	}
	t.Logf("%d kills, %d runs died in each attempt", n, lost)
}
