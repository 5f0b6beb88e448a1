package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"code.gitea.io/sdk/gitea"

	"millwright/cmd/cli"
	"millwright/forge/forgetest"
	"millwright/state/statetest"
)

// giteaTriggers are triggers that a real Gitea fires, and the same with a filter that keeps them from it.
var giteaTriggers = map[string][2]string{
	"issue_created":             {`authors: [root-admin]`, `authors: [somebody]`},
	"issue_mentioned":           {`mentioned: [root-admin], repos: [acme/shop]`, `mentioned: [somebody]`},
	"issue_labeled":             {`labels: [BUG]`, `labels: [docs]`},
	"push":                      {`branches: [feature], paths: ["basket/**"]`, `paths: ["docs/**"], branches: [feature]`},
	"pull_request_opened":       {`base_branches: [main], paths: ["basket/*.go"]`, `paths: ["docs/**"]`},
	"pull_request_labeled":      {`labels: [bug], pr_numbers: [2]`, `pr_numbers: [1]`},
	"pull_request_synchronized": {`authors: [root-admin], paths: {not_in: ["docs/**"]}`, `base_branches: [dev]`},
	"pull_request_closed":       {`repos: [Acme/Shop]`, `repos: [acme/factory]`},
	"pull_request_reopened":     {`labels: {in: [bug], not_in: [wip]}`, `labels: {not_in: [bug]}`},
	"pull_request_merged":       {`labels: [bug]`, `assignees: [root-admin]`},
}

// TestAcceptanceGiteaTriggers has a real Gitea send its events. Each fires the trigger whose filter matches,
// and no other one. Those on the paths of a pull request ask Gitea for them.
func TestAcceptanceGiteaTriggers(t *testing.T) {
	statetest.Program(t, "git")
	w := &forgeWorld{t: t, gitea: forgetest.Start(t), dir: t.TempDir(), port: mustPort(t)}
	w.gitea.Organization("acme")
	w.gitea.Repository("acme", "shop", map[string]string{"README.md": "Shop\n"})
	w.write("millwright.yaml", fmt.Sprintf(`listen: 127.0.0.1:%s
publicUrl: http://127.0.0.1:%s
workers: 0
forges:
  acme: { kind: gitea, url: %s, tokenSecret: GITEA_TOKEN }
factories:
  - name: shop
    repositories: [acme/shop]
    source: { dir: shop, interval: 200ms }
`, w.port, w.port, w.gitea.URL))
	w.write("shop/webhooks/forge.yaml", "authMode: signature\nsignatureScheme: gitea\nsecretName: HOOK\ndeliveriesPerMinute: 600\n")
	for event, filters := range giteaTriggers {
		for i, kind := range []string{"hit", "miss"} {
			w.write("shop/automations/"+kind+"-"+strings.ReplaceAll(event, "_", "-")+"/automation.md", fmt.Sprintf(
				"---\ntriggers:\n  - provider: github\n    event: %s\n    filter: {%s}\n---\nLook at it.\n", event, filters[i]))
		}
	}

	p := w.start()
	w.cli(w.gitea.Token, "secret", "set", "GITEA_TOKEN")
	w.cli("h00k", "secret", "set", "HOOK")
	var list struct {
		Webhooks []struct {
			IngressURL string `json:"ingress_url"`
		}
	}
	statetest.Until(t, "the webhook of the definition", func() bool {
		p.alive(t)
		out, err := w.try("", "webhook", "list", "-o", "json")
		return err == nil && json.Unmarshal([]byte(out), &list) == nil && len(list.Webhooks) == 1
	})
	w.gitea.Webhook("acme", "shop", list.Webhooks[0].IngressURL, "h00k", "push", "issues", "issue_label", "issue_comment",
		"pull_request", "pull_request_label", "pull_request_sync")
	w.work()

	var want []string
	for event := range giteaTriggers {
		want = append(want, "hit-"+strings.ReplaceAll(event, "_", "-")+" from forge")
	}
	slices.Sort(want)
	titles := func() []string {
		all := w.titled()
		slices.Sort(all)
		return slices.Compact(all)
	}
	defer func() {
		if t.Failed() {
			t.Logf("runs: %q\n%s", titles(), w.cli("", "webhook", "deliveries", "forge"))
		}
	}()
	statetest.Drain(t, "the runs of Gitea's events", func() int {
		p.alive(t)
		started := titles()
		return len(slices.DeleteFunc(slices.Clone(want), func(title string) bool { return slices.Contains(started, title) }))
	})
	statetest.Until(t, "the decisions that ask the forge", func() bool {
		return !strings.Contains(w.cli("", "webhook", "deliveries", "forge"), "waits: forge")
	})
	if got := titles(); !slices.Equal(got, want) {
		t.Errorf("started\n%q, want\n%q", got, want)
	}
}

// work does at the forge what the triggers are about.
func (w *forgeWorld) work() {
	w.t.Helper()
	api := w.gitea.API()
	must := func(err error) {
		w.t.Helper()
		if err != nil {
			w.t.Fatal(err)
		}
	}

	label, _, err := api.CreateLabel("acme", "shop", gitea.CreateLabelOption{Name: "bug", Color: "#ff0000"})
	must(err)
	bug := gitea.IssueLabelsOption{Labels: []int64{label.ID}}
	issue := int64(w.gitea.Issue("acme", "shop", "The basket is empty"))
	_, _, err = api.CreateIssueComment("acme", "shop", issue, gitea.CreateIssueCommentOption{Body: "Hello @root-admin"})
	must(err)
	_, _, err = api.AddIssueLabels("acme", "shop", issue, bug)
	must(err)

	dir := w.t.TempDir()
	forgetest.Git(w.t, dir, "clone", "--quiet", w.gitea.Remote("acme", "shop"), ".")
	forgetest.Git(w.t, dir, "switch", "--quiet", "--create", "feature")
	push := func(file string) {
		w.t.Helper()
		must(cli.WriteNew(filepath.Join(dir, filepath.FromSlash(file)), []byte("package basket\n")))
		forgetest.Git(w.t, dir, "add", "--all")
		forgetest.Git(w.t, dir, "commit", "--quiet", "--message", "Add "+file)
		forgetest.Git(w.t, dir, "push", "--quiet", "origin", "feature")
	}

	push("basket/item.go")
	pull, _, err := api.CreatePullRequest("acme", "shop", gitea.CreatePullRequestOption{
		Head: "feature", Base: "main", Title: "Add the basket",
	})
	must(err)
	_, _, err = api.AddIssueLabels("acme", "shop", pull.Index, bug)
	must(err)
	push("basket/price.go")
	for _, state := range []gitea.StateType{gitea.StateClosed, gitea.StateOpen} {
		_, _, err = api.EditPullRequest("acme", "shop", pull.Index, gitea.EditPullRequestOption{State: &state})
		must(err)
	}

	statetest.Until(w.t, "the merge of the pull request", func() bool {
		merged, _, err := api.MergePullRequest("acme", "shop", pull.Index, gitea.MergePullRequestOption{Style: gitea.MergeStyleMerge})
		return err == nil && merged
	})
}

// titled returns the titles of all runs.
func (w *forgeWorld) titled() (titles []string) {
	out, err := w.try("", "run", "list", "--all", "-o", "json")
	var list struct{ Runs []struct{ Title string } }
	if err != nil || json.Unmarshal([]byte(out), &list) != nil {
		return nil
	}
	for _, r := range list.Runs {
		titles = append(titles, r.Title)
	}
	return titles
}

// write adds a file of the server.
func (w *forgeWorld) write(name, text string) {
	w.t.Helper()
	if err := cli.WriteNew(filepath.Join(w.dir, filepath.FromSlash(name)), []byte(text)); err != nil {
		w.t.Fatal(err)
	}
}
